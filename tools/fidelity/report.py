"""Write docs/fidelity.md from the recordings.

python tools/fidelity report [--check]
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from asyncgpu_tutor.devices.simulated import SPECS

from . import links
from .bars import compared
from .cases import COPIES, COPY_BYTES, DIMS, UNSEEN, VARIANTS, MlpCase, kernel_cases
from .chains import FILE, modelled
from .counting import load

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "fidelity.md"
BY_CALIBRATE = "mlp, constants by calibrate"
NO_FIT = "kernels that are in no fit"
TIE = 0.1  # two makespans that are closer than this, measured, count as equal: so far apart are two runs


class Error(NamedTuple):
    """Of some cases: how many, and how far off."""

    cases: int
    median: float
    worst: float


def recording() -> dict[str, Any]:
    """Load the file that `record` wrote."""
    found = json.loads((HERE / "recordings" / "h200.json").read_text())
    return {**found, BY_CALIBRATE: found["mlp"], NO_FIT: found["kernels"]}


def _halves() -> Iterator[tuple[str, bool]]:
    seen: dict[str, int] = {}
    for kernel in kernel_cases():
        seen[kernel.kernel] = seen.get(kernel.kernel, -1) + 1
        yield kernel.name, seen[kernel.kernel] % 2 == 0 and kernel.kernel not in UNSEEN
    for i, (case, nbytes) in enumerate(product(COPIES, COPY_BYTES)):
        for kind in (case, f"pageable {case}"):
            yield f"{kind} {nbytes}", i % 2 == 0
    for (d, dim), pinned, (v, variant) in product(
        enumerate(DIMS), (True, False), enumerate(VARIANTS)
    ):
        yield MlpCase(dim, variant, pinned).name, (d + v + pinned) % 2 == 0


HALVES = dict(_halves())


def calibrated(name: str) -> bool:
    """Tell if the constants may be fitted to this case: every other size, and none of some kernels."""
    return HALVES[name]


def errors(predicted: dict[str, float], measured: dict[str, float], half: bool) -> Error:
    """Of one half of a group."""
    off = [abs(us / measured[n] - 1) for n, us in predicted.items() if calibrated(n) is half]
    return Error(len(off), statistics.median(off), max(off))


def misordered(predicted: dict[str, float], measured: dict[str, float]) -> list[str]:
    """Pairs of variants, of one DIM and one kind of memory, whose order the model has wrong."""
    found: list[str] = []
    for dim in DIMS:
        for pinned in (True, False):
            names = [MlpCase(dim, variant, pinned).name for variant in VARIANTS]
            for i, a in enumerate(names):
                for b in names[i + 1 :]:
                    low, high = sorted((a, b), key=lambda n: measured[n])
                    apart = measured[high] / measured[low] - 1
                    if apart > TIE and predicted[low] > predicted[high]:
                        found.append(f"{low} < {high}")
    return found


def pairs_apart(measured: dict[str, float]) -> int:
    """How many such pairs are far enough apart, measured, to have an order."""
    count = 0
    for dim in DIMS:
        for pinned in (True, False):
            row = [measured[MlpCase(dim, variant, pinned).name] for variant in VARIANTS]
            count += sum(
                max(a, b) / min(a, b) - 1 > TIE for i, a in enumerate(row) for b in row[i + 1 :]
            )
    return count


def page(predicted: dict[str, dict[str, float]]) -> str:
    """The text of the page."""
    return "\n".join(_lines(predicted, recording())) + "\n"


def _lines(predicted: dict[str, dict[str, float]], measured: dict[str, Any]) -> Iterator[str]:
    machine = measured["machine"]
    head = (HERE / "fidelity_head.md").read_text()
    launch = f"{SPECS['h200'].call_launch_us:.0f}"
    yield from head.replace("{call_launch_us}", launch).splitlines()
    yield ""
    yield "## Measured on"
    yield ""
    yield from (f"- {key}: {value}" for key, value in machine.items())
    yield ""
    yield "## Errors"
    yield ""
    yield "| group | half | cases | median error | worst error |"
    yield "|---|---|---|---|---|"
    for group, times in predicted.items():
        for half, word in ((True, "calibrated on"), (False, "held out")):
            if not any(calibrated(name) is half for name in times):
                continue
            e = errors(times, measured[group], half)
            yield f"| {group} | {word} | {e.cases} | {e.median:.1%} | {e.worst:.1%} |"
    wrong = misordered(predicted["mlp"], measured["mlp"])
    yield ""
    yield (
        f"Order of the MLP's variants: {pairs_apart(measured['mlp'])} pairs (of one DIM and one kind of "
        f"memory) are more than {TIE:.0%} apart on the GPU; the model has {len(wrong)} of them the wrong way "
        "round" + (":" if wrong else ".")
    )
    if wrong:
        yield ""
        yield from (f"- {pair}" for pair in wrong)
    yield ""
    yield "## MLP, makespan of eight batches"
    yield ""
    yield from _table(predicted["mlp"], measured["mlp"])
    yield ""
    kinds = len({case.kernel for case in kernel_cases() if case.name in measured["kernels"]})
    yield f"## Kernels: {kinds} of them"
    yield ""
    yield from _table(predicted["kernels"], measured["kernels"])
    yield ""
    yield "## Copies"
    yield ""
    yield from _table(predicted["copies"], measured["copies"])
    yield ""
    yield from _bars()
    yield ""
    yield "## Registers of a thread"
    yield ""
    yield "The compiler's on the H200, and the interpreter's estimate. Up to 32 never limit occupancy there."
    yield ""
    yield "| kernel | compiler | estimate |"
    yield "|---|---|---|"
    counted = load()
    sizes = {case.kernel: case.name for case in kernel_cases()}
    for kernel, real in measured["registers"].items():
        yield f"| {kernel} | {real} | {counted[sizes[kernel]].registers} |"
    yield ""
    yield from _links()
    yield ""
    yield from _chains()


def _links() -> Iterator[str]:
    yield "## Links between two GPUs"
    yield ""
    yield from (f"- {key}: {value}" for key, value in links.recording()["machine"].items())
    yield f"- where it says H100: {links.recording()['machine, H100']['gpus']}, and all else the same"
    yield "- command: python tools/fidelity links record FILE"
    yield ""
    yield "| kind | half | cases | median error | worst error |"
    yield "|---|---|---|---|---|"
    found = list(links.cases())
    for name in dict.fromkeys(case.name for case in found):
        for half, word in ((True, "calibrated on"), (False, "held out")):
            of = [case for case in found if case.name == name and case.calibrated is half]
            if not of:
                continue
            off = [abs(case.error) for case in of]
            yield f"| {name} | {word} | {len(of)} | {statistics.median(off):.1%} | {max(off):.1%} |"
    yield ""
    yield (
        "| kind | runs | half of the runs lie within: median of the sizes | worst "
        "| the furthest run is off: median | worst |"
    )
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(case.name for case in found):
        of = [case.runs for case in found if case.name == name]
        if len(of[0]) == 1:
            continue
        middle, furthest = zip(*map(_spread, of), strict=True)
        cells = (f"{act(of):.1%}" for of in (middle, furthest) for act in (statistics.median, max))
        yield f"| {name} | {len(of[0])} | " + " | ".join(cells) + " |"
    yield ""
    yield "| training step of four layers of 4096 x 4096 | measured, us | predicted, us | error |"
    yield "|---|---|---|---|"
    for rows, way, us, said in links.steps():
        yield f"| batch {rows}, {way} | {us:.5g} | {said:.5g} | {said / us - 1:+.0%} |"
    yield ""
    found = [case for case in found if case.over != "links, H100"]
    names = list(dict.fromkeys(case.name for case in found))
    yield "| bytes |" + "".join(f" {name} | error |" for name in names)
    yield "|---|" + "---|---|" * len(names)
    for nbytes in sorted({case.nbytes for case in found}):
        row = {case.name: case for case in found if case.nbytes == nbytes}
        cells = (
            f" {row[name].measured:.4g} | {row[name].error:+.0%} |" if name in row else " | |"
            for name in names
        )
        yield f"| {nbytes:,} |" + "".join(cells)


def _spread(runs: list[float]) -> tuple[float, float]:
    """The width of the middle half of some runs, and how far off the furthest is: parts of the median."""
    first, middle, third = statistics.quantiles(runs, n=4, method="inclusive")
    return (third - first) / middle, max(abs(us / middle - 1) for us in runs)


def _chains() -> Iterator[str]:
    yield "## Chains of single operations"
    yield ""
    yield "Clocks of a turn for one warp (`python tools/fidelity chains record FILE`, 2026-11-24)."
    yield ""
    yield "| chain | measured | predicted | error |"
    yield "|---|---|---|---|"
    real = json.loads(FILE.read_text())
    for name, clocks in modelled().items():
        yield f"| {name} | {real[name]:.1f} | {clocks:.1f} | {clocks / real[name] - 1:+.0%} |"


def _bars() -> Iterator[str]:
    yield "## Bars of recorded programs"
    yield ""
    yield (
        "| program | pieces | overlap, measured | predicted | begins: median off | worst "
        "| ends: median off | worst |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for row in compared():
        shares = (*row.overlap, *row.begin, *row.end)
        yield f"| {row.name} | {row.pieces} | " + " | ".join(f"{s:.0%}" for s in shares) + " |"


def _table(predicted: dict[str, float], measured: dict[str, float]) -> Iterator[str]:
    yield "| case | half | measured, us | predicted, us | error |"
    yield "|---|---|---|---|---|"
    for name, us in predicted.items():
        half = "calibrated on" if calibrated(name) else "held out"
        real = measured[name]
        yield f"| {name} | {half} | {real:.5g} | {us:.5g} | {us / real - 1:+.0%} |"


def main() -> None:
    """Write the page, or compare it."""
    from .predict import everything

    text = page(everything(SPECS["h200"]))
    if "--check" in sys.argv:
        raise SystemExit(PAGE.read_text() != text)
    PAGE.write_text(text)
