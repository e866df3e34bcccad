"""A kernel's source, each line with what it did."""

from __future__ import annotations

from collections.abc import Callable

from simgpu.cuda_c import Counts, LineCounts

Cell = Callable[[LineCounts], str]


def annotate(name: str, source: str, launches: int, counts: Counts) -> str:
    """The source with numbers in front, summed over `launches`.

    Instructions are those that warps issue, in per cent of all. Requests are accesses of warps to
    global memory; conflicts are extra passes of accesses to shared memory.
    """
    lines = source.split("\n")
    total = max(counts.warp_instructions, 1)
    columns: list[tuple[str, Cell]] = [
        ("instructions", lambda x: f"{n / total:.1%}" if (n := x.warp_instructions) else "")
    ]
    if counts.flops:
        columns.append(("FLOP", _number("flops")))
    if counts.global_load_requests + counts.global_store_requests:
        columns += [("requests", _number("global_requests")), ("sectors/request", _sectors)]
    if counts.shared_requests:
        columns += [("shared", _number("shared_requests")), ("conflicts", _conflicts)]
    if counts.divergent_branches:
        columns.append(("divergent", _number("divergent_branches")))
    rows = [
        [cell(counts.lines[n]) if n in counts.lines else "" for _, cell in columns]
        for n in range(1, len(lines) + 1)
    ]
    sizes = [
        max(len(title), *(len(row[i]) for row in rows)) for i, (title, _) in enumerate(columns)
    ]
    number = len(str(len(lines)))
    times = "1 launch" if launches == 1 else f"{launches} launches"
    said = [
        f"{name}, {times}, {counts.warp_instructions:,} warp instructions, {counts.flops:,} FLOP"
    ]
    head = "  ".join(title.rjust(size) for (title, _), size in zip(columns, sizes, strict=True))
    said.append(f"{head}  {'':{number}} |")
    for n, (row, text) in enumerate(zip(rows, lines, strict=True), start=1):
        cells = "  ".join(cell.rjust(size) for cell, size in zip(row, sizes, strict=True))
        said.append(f"{cells}  {n:{number}} | {text}".rstrip())
    while said[-1].endswith("|"):  # the source ended with empty lines
        said.pop()
    return "\n".join(said)


def _sectors(line: LineCounts) -> str:
    return f"{line.global_sectors / line.global_requests:.2f}" if line.global_requests else ""


def _conflicts(line: LineCounts) -> str:
    return f"{line.bank_conflicts:,}" if line.shared_requests else ""


def _number(name: str) -> Cell:
    """A count as it is, and nothing for 0."""
    return lambda line: f"{n:,}" if (n := getattr(line, name)) else ""
