"""The rungs of chapters 20 and 20b: kernels for one matrix product, each by one idea more than the last.

Each is a file of CUDA C of its own, so that a page can show it whole and a benchmark can measure the same
text. They take square matrices, row after row, whose side is a multiple of `Rung.side`: edges would double
their lines, and teach nothing new.
"""

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.shown import shown

_FILES = Path(__file__).parent


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder, and how it's launched.

    Attributes
    ----------
    name : str
        Of the kernel, and of its file.
    tile : tuple of int
        Rows and columns of the result that a block computes.
    block : tuple of int
        Threads in a block, as x and y.
    shared : int
        Bytes of shared memory that the launch asks for, beside what the kernel declares.
    turned : bool
        Whether x of the grid counts rows, and not columns.
    unsigned : bool
        Whether its whole numbers are unsigned: the same kernel with that one change.
    text : str
        Its CUDA C, if that isn't in a file.
    """

    name: str
    tile: tuple[int, int]
    block: tuple[int, int]
    shared: int = 0
    turned: bool = False
    unsigned: bool = False
    text: str = ""

    @property
    def label(self) -> str:
        """The name by which measurements know it."""
        return f"{self.name} unsigned" if self.unsigned else self.name

    @property
    def source(self) -> str:
        """The kernel's CUDA C."""
        text = self.text or (_FILES / f"{self.name}.cu").read_text(encoding="utf-8")
        return re.sub(r"\bint\b", "unsigned int", text) if self.unsigned else text

    @property
    def lines(self) -> int:
        """How many lines that is."""
        return len(self.source.splitlines())

    @property
    def side(self) -> int:
        """What a matrix's side must be a multiple of."""
        return max(*self.tile, 32)

    def grid(self, n: int) -> tuple[int, int]:
        """Blocks for a product of two matrices of n times n, as x and y."""
        down, across = n // self.tile[0], n // self.tile[1]
        return (down, across) if self.turned else (across, down)


RUNGS = (
    Rung("naive", (32, 8), (32, 8), turned=True),
    Rung("coalesced", (8, 32), (32, 8)),
    Rung("shared", (32, 32), (32, 32)),
    Rung("registers", (128, 128), (256, 1)),
    Rung("wide", (128, 128), (256, 1)),
    Rung("warps", (128, 128), (256, 1)),
    Rung("ahead", (128, 128), (256, 1)),
    Rung("larger", (128, 128), (128, 1)),
    Rung("copies", (128, 128), (128, 1)),
    Rung("top", (128, 256), (256, 1), shared=49_664),
    Rung("top", (128, 256), (256, 1), shared=49_664, unsigned=True),
    Rung("tensor", (128, 256), (256, 1), shared=3 * 2 * (128 * 40 + 32 * 264)),
)


_OWN = Rung("own", (64, 64), (256, 1))  # an exercise of chapter 20, which has its text


def rung(name: str) -> Rung:
    """The rung of this name."""
    known = {each.label: each for each in (*RUNGS, _OWN)}
    if name not in [*known]:
        raise agt.UsageError(f"there is no rung {name!r}: there are {', '.join(known)}")
    return known[name]


def climb(name: str, n: int = 256, text: str = "") -> Any:
    """The microscope's report on a rung: its product of two matrices of n times n on the simulated device.

    What it computes is compared with NumPy's product. `text` is the CUDA C of `own`, which has no file.
    `UsageError` if n isn't a multiple of `Rung.side`.
    """
    here, random = replace(rung(name), text=text), np.random.default_rng(n)
    if n < 1 or n % here.side:
        raise agt.UsageError(f"{name} takes multiples of {here.side} as n, and got {n}")
    kind = np.float16 if name == "tensor" else np.float32
    a, b = (random.normal(size=(n, n)).astype(kind) for _ in range(2))
    with agt.using("sim"), agt.microscope() as seen:
        kernel = agt.Kernel(here.source, here.name, contract=True)
        given = [agt.h2d(it).sync() for it in (a, b)]
        out = agt.zeros((n, n)).sync()
        borrowed = [it.borrow() for it in (*given, out)]
        kernel(n, *borrowed, grid=here.grid(n), block=here.block, shared_mem=here.shared).sync()
        product = agt.d2h(out.borrow()).sync()
    if not np.allclose(product, a.astype(np.float32) @ b, atol=1e-3):
        raise AssertionError(f"{name} computes another product than NumPy")
    return seen[here.name]


@cache
def _rows() -> list[dict[str, Any]]:
    """Rows of ``benchmarks/ladder.py`` on an H200, and for `own` of ``ladder_apart.py`` (2026-11-30)."""
    return json.loads((_FILES / "h200.json").read_text(encoding="utf-8"))


def _measured(name: str, n: int) -> dict[str, Any]:
    return next(row for row in _rows() if row.get("rung") == name and row["n"] == n)


def ms(name: str, n: int = 4096) -> float:
    """Milliseconds of a rung on an H200, for matrices of n times n (``python benchmarks/ladder.py``)."""
    return _measured(name, n)["ms"]


def share(name: str, n: int = 4096) -> float:
    """What part of cuBLAS's speed it has there: cuBLAS's time, measured in turns with it, over its own."""
    return _measured(name, n)["share"]


def registers_of(name: str) -> int:
    """How many registers a thread of a rung has on an H200."""
    return _measured(name, 4096)["registers"]


def stairs(*names: str) -> None:
    """Draw the rungs so far, the last one dark: how fast each is on an H200 at 4096 x 4096, beside cuBLAS."""
    import matplotlib.pyplot as plt

    drawn = plt.subplots(figsize=(7.5, 0.8 + 0.35 * len(names)), layout="constrained")
    figure, axes = cast(tuple[Any, Any], drawn)  # Matplotlib's own types are unknown in part
    shares = [100 * share(name) for name in names]
    axes.barh(names, shares, color=["#9fc9e8"] * (len(names) - 1) + ["#0072b2"])
    axes.axvline(100, color="#d55e00", linestyle="--", zorder=0)
    axes.invert_yaxis()
    for place, (name, part) in enumerate(zip(names, shares, strict=True)):
        at, side = (part - 1, "right") if part > 40 else (part + 1, "left")
        colour = "white" if part > 40 and place == len(names) - 1 else "black"
        took = ms(name)
        text = f"{part:.0f} %, {took:.{0 if took >= 100 else 1 if took >= 10 else 2}f} ms"
        axes.text(at, place, text, va="center", ha=side, color=colour, fontsize=9)
    title = "4096 x 4096, on an H200"
    axes.set(xlim=(0, 110), xlabel="% of cuBLAS's speed (dashed)", title=title)
    told = ", ".join(f"{name} {part:.0f} %" for name, part in zip(names, shares, strict=True))
    shown(figure, f"Matrices of {title}, in per cent of cuBLAS: {told}.")


def needs(*reports: Any) -> None:
    """Draw what rungs ask of each memory: the clocks that it needs where the arithmetic needs one.

    Counts of the kernels as they are written, whose arithmetic does 128 multiply-adds in a clock of an SM.
    Global memory is counted where the SM asks for it: a clock for each line of 128 bytes that a load touches.
    Of shared memory, a pass is a clock. Beside them stands what the H200 took for all of it at 4096 x 4096.
    """
    import matplotlib.pyplot as plt

    drawn = plt.subplots(figsize=(7.5, 1.1 + 0.75 * len(reports)), layout="constrained")
    figure, axes = cast(tuple[Any, Any], drawn)
    axes.axvspan(1, 500, color="#f7f0ea", zorder=0)
    axes.axvline(1, color="#d55e00", linestyle="--", zorder=1)
    kinds = ("global memory", "#e69f00", "o"), ("shared memory", "#009e73", "s")
    told: list[str] = []
    for place, report in enumerate(reports):
        counts, per_clock = report.counts, 64 * report.spec.issue_per_clock
        least, peak = report.flops / per_clock, per_clock * report.spec.clock_mhz * report.spec.sms
        took = ms(report.name) / (2 * 4096**3 / peak / 1000)
        found = counts.load_lines / least, counts.shared_wavefronts / least, took
        words: list[str] = []
        for k, (name, colour, mark) in enumerate((*kinds, ("all of it, measured", "black", "D"))):
            y, at = place + 0.25 * k, max(found[k], 0.01)
            number = f"{round(found[k], 0 if found[k] >= 100 else 2 if k < 2 else 1):g}"
            axes.plot([0.01, at], [y, y], color=colour, lw=1, zorder=2)
            axes.plot(at, y, mark, color=colour, ms=7, label=name if not place else None, zorder=3)
            card = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.7}
            text = number if found[k] else "nothing"
            axes.text(at * 1.25, y, text, va="center", fontsize=9, bbox=card)
            words.append(f"{name} {number}")
        told.append(f"{report.name}: {', '.join(words)}")
    axes.set_yticks([k + 0.25 for k in range(len(reports))], [it.name for it in reports])
    label = "clocks of an SM, for one clock of arithmetic (dashed); each tick is ten times the last"
    axes.set(xscale="log", xlim=(0.01, 500), xlabel=label)
    axes.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_ylim(len(reports) - 0.3, -0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    head = "Clocks of an SM for each clock of arithmetic, which is the dashed line. "
    shown(figure, f"{head}{'; '.join(told)}.")


def in_a_row(n: int, first: str) -> agt.Trace:
    """An H200's trace of the rungs from `first` on, one after the other, and of cuBLAS: 256, 1024 or 4096."""
    trace = agt.Trace.load(agt.Trace.recorded_file(f"rungs_{n}.json"))
    kernels = [replace(span, name=span.label) for span in trace.device_spans]
    chosen = kernels[[span.name for span in kernels].index(first) :]
    return replace(trace, spans=chosen).from_first()


def attention_source(head: int) -> str:
    """The kernel of attention for heads of 64 or 128 numbers."""
    return f"#define HEAD {head}\n" + (_FILES / "attention.cu").read_text(encoding="utf-8")


def attention_launch(head: int) -> tuple[int, int, int]:
    """Queries of a block, its threads, and the bytes of shared memory that it asks for."""
    queries, keys = 2 * head, 4096 // head
    room = queries * head + keys * (head + 4) + keys * head + keys * (queries + 4)
    return queries, queries, 4 * room


def attention_share(head: int) -> float:
    """How fast attention is with heads of so many numbers: a part of PyTorch's memory-efficient speed."""
    return next(row["share"] for row in _rows() if row.get("head") == head)
