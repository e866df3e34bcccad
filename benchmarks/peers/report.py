"""The tables and the figure of what was measured."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

Row = dict[str, Any]


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [[str(cell) for cell in row] for row in rows]
    titles = list(head)
    ruler = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (titles, ruler, *lines))


def _by_size(rows: list[Row], key: str, form: str) -> str:
    sizes = sorted({row["dim"] for row in rows})
    ways = list(dict.fromkeys(row["way"] for row in rows))
    told = {(row["way"], row["dim"]): format(row[key], form) for row in rows}
    return _table(
        ["", *(f"DIM {n}" for n in sizes)],
        ([way, *(told.get((way, n), "-") for n in sizes)] for way in ways),
    )


def text(found: dict[str, Any]) -> str:
    """Everything as Markdown."""
    where = ", ".join(f"{key} {value}" for key, value in found["machine"].items())
    latency = found["latency"]
    lengths = sorted({row["kernel_us"] for row in latency})
    ways = list(dict.fromkeys(row["way"] for row in latency))
    told = {(r["way"], r["kernel_us"]): f"{r['ratio']:.2f} ({r['us']:.1f})" for r in latency}
    set_ups = max(len(row["set_ups_us"]) for row in found["pipeline"])
    notes = dict.fromkeys((row["way"], row["note"]) for row in found["pipeline"] if row["note"])
    waits = ([way, *(told[way, n] for n in lengths)] for way in ways)
    busy = ([r["way"], r["kernel_us"], f"{r['core']:.2%}"] for r in found["processor"])
    costs = ([r["way"], f"{r['ratio']:.2f}", f"{r['us']:.2f}"] for r in found["operations"])
    parts = [
        "# Beside its peers",
        f"Measured on: {where}.",
        "## Four batches of the MLP: time as a ratio to hand-written CuPy on four streams",
        _by_size(found["pipeline"], "ratio", ".2f"),
        f"The same in microseconds, medians of runs in turns; the middle one of {set_ups} set-ups:",
        _by_size(found["pipeline"], "us", ".1f"),
        "Notes: " + "; ".join(f"{way}: {note}" for way, note in notes) + ".",
        "## Waiting for one kernel: ratio to launch and synchronize in CuPy (and microseconds)",
        _table(["", *(f"{n} us" for n in lengths)], waits),
        "## One core's share that is busy while a kernel is waited for",
        _table(["", "kernel, us", "busy"], busy),
        "## Host time of enqueueing one kernel",
        _table(["", "ratio", "us"], costs),
        "## Requests a second: ratio to a loop by hand",
        *_served(found["serving"]),
    ]
    return "\n\n".join([*parts, ""])


def _served(rows: list[Row]) -> list[str]:
    told: list[str] = []
    ways = {False: "copied into the input", True: "written to the input in place"}
    for in_place, words in ways.items():
        some = [row for row in rows if row["in_place"] is in_place]
        # The latency of `map` is not shown: it is timed from result to result, which is another thing.
        timed = [row for row in some if "server.map" not in row["way"]]
        told += [
            f"Requests are {words}. Ratio, then requests a second:",
            _by_size(some, "ratio", ".2f"),
            _by_size(some, "per_second", ",.0f"),
            "Microseconds from a request to its answer, median and 99th percentile:",
            _by_size(timed, "median_us", ",.0f"),
            _by_size(timed, "p99_us", ",.0f"),
        ]
    return told


def figure(found: dict[str, Any], path: Path) -> None:
    """Ratio to hand-written CuPy on four streams, against DIM."""
    rows = found["pipeline"]
    ways = {
        "CuPy by hand, one stream": ("#9A9A9A", "s", ":"),
        "CuPy, captured graph": ("#000000", "v", ":"),
        "cuda.core by hand, four streams": ("#56B4E9", "^", "--"),
        "PyTorch, four streams": ("#CC79A7", "D", "--"),
        "PyTorch, CUDA graph": ("#CC79A7", "x", ":"),
        "ours, built for each run": ("#E69F00", "o", "--"),
        "ours, prepared, four streams": ("#E69F00", "o", "-"),
        "ours, a graph": ("#009E73", "P", "-"),
    }
    fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for way, (colour, marker, line) in ways.items():
        points = [(row["dim"], row["ratio"]) for row in rows if row["way"] == way]
        if points:
            ax.plot(*zip(*points, strict=True), line, marker=marker, color=colour, label=way)
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(sorted({row["dim"] for row in rows}), sorted({row["dim"] for row in rows}))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("DIM")
    ax.set_ylabel("time, ratio to CuPy by hand\non four streams (less is faster)")
    ax.set_title(f"Four batches of the MLP on {found['machine']['gpu']} (measured)", fontsize=10)
    ax.legend(fontsize=8, frameon=False, ncols=2)
    ax.grid(alpha=0.3)
    fig.savefig(path, dpi=110)
