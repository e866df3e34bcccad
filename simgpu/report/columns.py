"""A report as text: a column for each kernel, and a kernel's source, each line with what it did."""

from collections.abc import Callable, Iterator, Sequence

from simgpu.cuda_c import Counts, LineCounts
from simgpu.report.kernel_report import KernelReport, load_store_gb_s, peak_gflops
from simgpu.spec import DeviceSpec

ColumnCell = Callable[[KernelReport], str]
_Count = Callable[[LineCounts], str]


def render_columns(spec: DeviceSpec, kernels: Sequence[KernelReport], width: int) -> str:
    """The table; as many kernels side by side as `width` allows."""
    peak, memory, units = peak_gflops(spec), spec.dram_gb_s, load_store_gb_s(spec)
    head = (
        f"Kernels on simulated {spec.name}: counted by the interpreter, times modelled\n"
        f"Roofs: {_short(peak * 1e9)}FLOP/s arithmetic, {_short(memory * 1e9)}B/s memory, "
        f"{_short(spec.l2_gb_s * 1e9)}B/s L2, {_short(units * 1e9)}B/s load-store units"
    )
    if not kernels:
        return f"{head}\n\nNo kernel ran."
    rows = [(name, [cell(kernel) for kernel in kernels]) for name, cell in _rows(kernels)]
    label = max(len(name) for name, _ in rows)
    sizes = [max(len(cells[k]) for _, cells in rows) for k in range(len(kernels))]
    parts, first = [head], 0
    while first < len(sizes):
        end, used = first + 1, label + 2 + sizes[first]
        while end < len(sizes) and (used := used + 2 + sizes[end]) <= width:
            end += 1
        part = slice(first, end)
        lines = [_line(name.ljust(label), cells[part], sizes[part]) for name, cells in rows]
        lines.insert(1, "  ".join("-" * size for size in (label, *sizes[part])))
        parts.append("\n".join(lines))
        first = end
    return "\n\n".join(parts)


def _line(name: str, cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "  ".join([name, *map(str.rjust, cells, sizes)]).rstrip()


def _rows(kernels: Sequence[KernelReport]) -> Iterator[tuple[str, ColumnCell]]:
    """Names and cells; what none of the kernels has is left out."""

    def each(number: Callable[[KernelReport], float]) -> ColumnCell:
        return lambda k: _short(number(k) / len(k.launches))

    yield "", lambda k: k.name
    yield "launches", lambda k: str(len(k.launches))
    yield "grid", lambda k: _dim(k.grid)
    yield "block", lambda k: _dim(k.block)
    if any(launch.extrapolated for k in kernels for launch in k.launches):
        some = "extrapolated from some blocks"
        yield "counted", lambda k: some if any(x.extrapolated for x in k.launches) else "all blocks"
    if any(k.shared_bytes for k in kernels):
        yield "shared memory of a block, bytes", lambda k: f"{k.shared_bytes:,}"
    yield "occupancy", lambda k: f"{k.occupancy:.0%}"
    yield "  limited by", lambda k: " and ".join(k.occupancy_limits)
    yield "waves of blocks", lambda k: f"{k.waves:.3g}"
    yield "one launch:", lambda _: ""
    yield "  FLOP", each(lambda k: k.flops)
    yield "  bytes needed", each(lambda k: k.bytes_needed)
    yield "  bytes moved", each(lambda k: k.bytes_moved)
    yield "sectors per load", lambda k: _per(k.load_sectors_per_request)
    yield "sectors per store", lambda k: _per(k.store_sectors_per_request)
    if any(k.counts.shared_requests for k in kernels):
        yield "extra passes per shared access", lambda k: f"{k.conflicts_per_request:.2f}"
    if any(k.counts.atomics for k in kernels):
        yield "  atomic operations", each(lambda k: k.counts.atomics)
    yield "divergent branches", lambda k: f"{k.divergence:.1%}"
    yield "FLOP per byte needed", lambda k: f"{k.intensity:.3g}"
    yield "FLOP per byte moved", lambda k: f"{k.intensity_moved:.3g}"
    yield "modelled time, us", lambda k: f"{k.us:.2f}"
    yield "  beyond its bound, us", lambda k: f"{k.us - max(k.bounds.values()):.2f}"
    for bound in kernels[0].bounds:
        yield f"  {bound}, us", lambda k, name=bound: f"{k.bounds[name]:.2f}"
    yield "  bound that holds", lambda k: k.bound
    yield "FLOP/s", lambda k: _short(k.gflops * 1e9)
    yield "  of the roof", lambda k: f"{k.under_roof:.2%}" if k.flops else "-"


def _dim(size: tuple[int, int, int]) -> str:
    """Without the ones behind: 4 x 4, 256."""
    x, y, z = size
    return " x ".join(str(n) for n in ((x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def _per(number: float) -> str:
    return f"{number:.2f}" if number else "-"


def _short(number: float) -> str:
    """Three or four digits and a letter: 524k, 66.9T. Below a thousand as it is."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5 or letter == "T":
            return f"{number:.3g}{letter}" if letter or number % 1 else f"{number:.0f}"
        number /= 1000
    raise AssertionError(number)


def annotate(name: str, source: str, launches: int, counts: Counts) -> str:
    """The source with numbers in front, summed over `launches`.

    Instructions are those that warps issue, in per cent of all. Requests are accesses of warps to
    global memory; conflicts are extra passes of accesses to shared memory.
    """
    lines = source.split("\n")
    total = max(counts.warp_instructions, 1)
    columns: list[tuple[str, _Count]] = [
        ("instructions", lambda x: f"{n / total:.1%}" if (n := x.warp_instructions) else "")
    ]
    if counts.flops:
        columns.append(("FLOP", _spell_number("flops")))
    if counts.global_load_requests + counts.global_store_requests:
        columns += [("requests", _spell_number("global_requests")), ("sectors/request", _sectors)]
    if counts.shared_requests:
        columns += [("shared", _spell_number("shared_requests")), ("conflicts", _conflicts)]
    if counts.divergent_branches:
        columns.append(("divergent", _spell_number("divergent_branches")))
    rows = [[title for title, _ in columns]]
    for n in range(1, len(lines) + 1):
        line = counts.lines.get(n)
        rows.append(["" if line is None else cell(line) for _, cell in columns])
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    number = len(str(len(lines)))
    times = "1 launch" if launches == 1 else f"{launches} launches"
    did = f"{counts.warp_instructions:,} warp instructions, {counts.flops:,} FLOP"
    said = [f"{name}, {times}, {did}"]
    for n, (row, text) in enumerate(zip(rows, ["", *lines], strict=True)):
        cells = "  ".join(map(str.rjust, row, sizes))
        said.append(f"{cells}  {n or '':{number}} | {text}".rstrip())
    while said[-1].endswith("|"):  # the source ended with empty lines
        said.pop()
    return "\n".join(said)


def _sectors(line: LineCounts) -> str:
    return f"{line.global_sectors / line.global_requests:.2f}" if line.global_requests else ""


def _conflicts(line: LineCounts) -> str:
    return f"{line.bank_conflicts:,}" if line.shared_requests else ""


def _spell_number(name: str) -> _Count:
    """A count as it is, and nothing for 0."""
    return lambda line: f"{n:,}" if (n := getattr(line, name)) else ""
