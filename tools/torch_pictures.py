"""Draw the pictures of the two pages on PyTorch, by running their listings on a GPU with PyTorch.

    python tools/torch_pictures.py --out FOLDER

writes four pictures there, which belong in docs/, and two recordings: handlers that block, and that await.
These belong in asyncgpu_tutor/traces/recordings/torch. What the pages speak of is then written into the
pictures: names, a length of time, and the streams as PyTorch's users call them.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection
from importlib import metadata
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import record_course

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces.pictures.panel import LOW

ROOT = Path(__file__).resolve().parents[1]
MISTAKES, SEE = "docs/torch_mistakes.md", "docs/see_batches.py"


def listings(page: str) -> list[str]:
    """The listings of a page."""
    return re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"))


def run_pages(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run them in a folder: what the mistakes define, and what the look at the service does."""
    mistakes: dict[str, Any] = {"__name__": "__main__"}
    seen: dict[str, Any] = {"__name__": "__main__"}
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "docs"))  # for answers.py
    here = Path.cwd()
    os.chdir(folder)
    try:
        for listing in listings(MISTAKES):
            exec(compile(listing, MISTAKES, "exec"), mistakes)
        exec(compile((ROOT / SEE).read_text("utf-8"), SEE, "exec"), seen)
    finally:
        os.chdir(here)
    return mistakes, seen


class Drawn(NamedTuple):
    """A bar of a picture, in pixels."""

    x: float
    y: float
    wide: float
    tip: str  # its name and kind, its times and more, in lines


def drawn(svg: str) -> list[Drawn]:
    """All bars of a picture, from the left."""
    numbers = r'x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+"'
    found = re.findall(rf"(?s)<rect {numbers}><title>(.*?)</title>", svg)
    return sorted(Drawn(float(x), float(y), float(wide), tip) for x, y, wide, tip in found)


def written(svg: str, x: float, y: float, words: str, css: str = "") -> str:
    """The picture with words on it, which begin at `x`, or as `css` says."""
    style = f"text-anchor:start;font-weight:600;{css}"
    text = f'<text class="agt-number" style="{style}" x="{x:.1f}" y="{y:.1f}">{words}</text>'
    return svg.replace("</svg>", f"{text}</svg>")


def plain(svg: str, *streams: str, keep: Collection[str] = ()) -> str:
    """The picture without other kinds in the legend whose bars are hairlines, and with names for its streams.

    Of low bars the caption speaks.
    """
    svg = svg.replace(f"  \u00b7  {LOW}", "")
    wide = "\n".join(bar.tip.split("\n")[0] for bar in drawn(svg) if bar.wide >= 1)
    seen = re.findall(r"(?m)(?:: |most of it )([^:,\n]*)(?:,.*)?$", wide)
    box = r'<rect class="agt-bar" style="[^"]*" x="([\d.]+)"[^>]*/>'
    item = box + r'<text class="agt-words" x="[^>]*>([^<]*)</text>'
    gone, moved = 0.0, ""
    items = list(re.finditer(item, svg))
    for one, after in zip(items, [*items[1:], None], strict=True):
        if one[2] in seen or one[2] in keep:
            parts = re.split(r' x="([\d.]+)"', one[0])
            parts[1::2] = [f' x="{float(x) - gone:.1f}"' for x in parts[1::2]]
            moved += "".join(parts)
        elif after:
            gone += float(after[1]) - float(one[1])
    svg = svg[: items[0].start()] + moved + svg[items[-1].end() :]
    numbers = sorted({int(number) for number in re.findall(r">stream (\d+)</text>", svg)})
    for number, name in zip(numbers, streams, strict=True):
        svg = svg.replace(f">stream {number}</text>", f">{name}</text>")
    return svg


def item(svg: str) -> str:
    """How long the heart stood still, above each line of the host."""
    beats = [bar for bar in drawn(svg) if bar.tip.startswith("beat: ")]
    for y in sorted({bar.y for bar in beats}):
        row = [bar for bar in beats if bar.y == y]
        times = [float(re.findall(r"\n([\d.]+) to", bar.tip)[0]) for bar in row]
        long, at = max((after - one, at) for at, (one, after) in enumerate(pairwise(times)))
        left, right, above = row[at].x, row[at + 1].x, y - 6.4
        path = f"M{left} {above - 3}v6m0-3H{right}m0-3v6"
        svg = svg.replace(
            "</svg>", f'<path d="{path}" style="fill:none;stroke:var(--agt-ink)"/></svg>'
        )
        svg = written(svg, right + 4, above + 4, f"{long / 1000:.1f} ms")
    return plain(svg, "default")


def reuse(svg: str) -> str:
    """The names of the three kernels, and not of cuBLAS's, and times in ms, as on the page."""
    svg = re.sub(
        r'<rect [^>]*/><text class="agt-name"[^>]*>(?:sm\d+|[^<]*gemm)[^<]*</text>', "", svg
    )
    for name, words in (("ones", "ones"), ("zeros", "zeros, in the same memory"), ("sum", "sum")):
        bar = next(
            b for b in drawn(svg) if ": kernel," in b.tip and f"\nin the range {name}\n" in b.tip
        )
        x, css = (bar.x - 6, "text-anchor:end") if bar.x > 500 else (bar.x + bar.wide + 4, "")
        svg = written(svg, x, bar.y + 13.5, words, css)
    model = [bar for bar in drawn(svg) if bar.wide > 20 and "\nin the range model\n" in bar.tip]
    middle = (model[0].x + model[-1].x) / 2
    svg = written(svg, middle, model[0].y + 13.5, "model", "text-anchor:middle;font-weight:400")
    number = r'(<text class="agt-tick"[^>]*>)([\d.]+)<'
    svg = re.sub(number, lambda found: f"{found[1]}{float(found[2]) / 1000:g}<", svg)
    facts = r"  \u00b7  ([\d.]+) \u00b5s.*?</text>"
    svg = re.sub(
        facts, lambda found: f"  \u00b7  {float(found[1]) / 1000:.2f} ms</text>", svg, count=1
    )
    return plain(svg.replace("(\u00b5s)</text>", "(ms)</text>"), "default", "side")


def capture(svg: str) -> str:
    """What the kernel is, and where the first replay has no copy."""
    kernel = min((bar for bar in drawn(svg) if ": kernel," in bar.tip), key=lambda bar: bar.y)
    words = "no copy: it ran in the capture"
    svg = written(svg, kernel.x + kernel.wide + 8, kernel.y + 13.5, words)
    for name, told in (("vectorized_elementwise_kernel", "x * 2"), ("d2d", "copy")):
        svg = svg.replace(f">{name}</text>", f">{told}</text>")
    return plain(svg, "default")


def batches(svg: str) -> str:
    """Lanes by their number, of both services; the copies are hairlines, but the page speaks of them."""
    lanes = cycle(("lane 1", "lane 2"))
    svg = re.sub(r">stream \d+<", lambda _: f">{next(lanes)}<", svg)
    return plain(svg, keep=("copy H2D", "copy D2H"))


def main() -> None:
    """Run, and write the files."""
    options = argparse.ArgumentParser(description="Draw the pictures of the pages on PyTorch.")
    options.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    folder = options.parse_args().out.resolve()
    names, seen = run_pages(folder)
    facts = {**record_course.machine_facts(), "torch": metadata.version("torch")}
    facts |= {"command": "python tools/torch_pictures.py", "kind": "recorded"}
    for name, trace in zip(("torch_blocking", "torch_awaiting"), names["traces"], strict=True):
        trace.about = {**trace.about, **facts, "run": name}
        record_course.write(trace, folder / f"{name}.json")
    for name, write in (
        ("item", item),
        ("reuse", reuse),
        ("capture", capture),
        ("batches", batches),
    ):
        picture = folder / f"torch_{name}.svg"
        picture.write_text(write(picture.read_text("utf-8")), "utf-8")
    print("reused", names["reused"].table(), sep="\n")
    for trace in (*names["traces"], *names["replays"], *seen["traces"]):
        print(agt.analyse(trace).table(), agt.diagnose(trace), trace.table(), sep="\n")


if __name__ == "__main__":
    main()
