"""Draw the pictures of docs/from_pytorch.md, by running its listings on a GPU with PyTorch.

    python tools/torch_pictures.py --out FOLDER

writes its three pictures there, which belong in docs/, and two recordings: handlers that block, and that
await. These belong in asyncgpu_tutor/traces/recordings/torch. What the page speaks of is then written into
the pictures: names, a length of time, and the streams as PyTorch's users call them.
"""

from __future__ import annotations

import argparse
import os
import re
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import record_course

import asyncgpu_tutor as agt

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/from_pytorch.md"


def run_page(folder: Path) -> dict[str, Any]:
    """Run the listings in a folder; what they define."""
    text = (ROOT / PAGE).read_text("utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    folder.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        listings = re.findall(r"(?ms)^```python\n(.*?)^```", text)
        for listing in (each for each in listings if "starlette" not in each):
            exec(compile(listing, PAGE, "exec"), names)
    finally:
        os.chdir(here)
    return names


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


def plain(svg: str) -> str:
    """The picture without kinds in the legend whose bars are hairlines, and PyTorch's names for streams."""
    wide = "\n".join(bar.tip.split("\n")[0] for bar in drawn(svg) if bar.wide >= 1)
    seen = re.findall(r"(?m)(?:: |most of it )([^:,\n]*)(?:,.*)?$", wide)
    box = r'<rect class="agt-bar" style="[^"]*" x="([\d.]+)"[^>]*/>'
    item = box + r'<text class="agt-words" x="[^>]*>([^<]*)</text>'
    gone, moved = 0.0, ""
    items = list(re.finditer(item, svg))
    for one, after in zip(items, [*items[1:], None], strict=True):
        if one[2] in seen:
            parts = re.split(r' x="([\d.]+)"', one[0])
            parts[1::2] = [f' x="{float(x) - gone:.1f}"' for x in parts[1::2]]
            moved += "".join(parts)
        elif after:
            gone += float(after[1]) - float(one[1])
    svg = svg[: items[0].start()] + moved + svg[items[-1].end() :]
    return svg.replace(">stream 0</text>", ">default</text>").replace(
        ">stream 1</text>", ">side</text>"
    )


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
    return plain(svg)


def reuse(svg: str) -> str:
    """The names of the three kernels, and not of cuBLAS's, and times in ms, as on the page."""
    svg = re.sub(
        r'<rect [^>]*/><text class="agt-name"[^>]*>(?:sm\d+|[^<]*gemm)[^<]*</text>', "", svg
    )
    for name, words in (("ones", "ones"), ("zeros", "zeros, in the same memory"), ("sum", "sum")):
        bar = next(
            b for b in drawn(svg) if ": kernel," in b.tip and f"\nin the range {name}\n" in b.tip
        )
        x, css = (bar.x - 6, "text-anchor:end") if name == "sum" else (bar.x + bar.wide + 4, "")
        svg = written(svg, x, bar.y + 13.5, words, css)
    model = [bar for bar in drawn(svg) if bar.wide > 20 and "\nin the range model\n" in bar.tip]
    middle = (model[0].x + model[-1].x) / 2
    svg = written(svg, middle, model[0].y + 13.5, "model", "text-anchor:middle;font-weight:400")
    number = r'(<text class="agt-tick"[^>]*>)([\d.]+)<'
    svg = re.sub(number, lambda found: f"{found[1]}{float(found[2]) / 1000:g}<", svg)
    facts = r"  \u00b7  ([\d.]+) \u00b5s"
    svg = re.sub(facts, lambda found: f"  \u00b7  {float(found[1]) / 1000:.2f} ms", svg, count=1)
    return plain(svg.replace("(\u00b5s)</text>", "(ms)</text>"))


def capture(svg: str) -> str:
    """Where the first replay has no copy."""
    kernel = min((bar for bar in drawn(svg) if ": kernel," in bar.tip), key=lambda bar: bar.y)
    words = "no copy: it ran in the capture"
    return plain(written(svg, kernel.x + kernel.wide + 8, kernel.y + 13.5, words))


def main() -> None:
    """Run, and write the files."""
    options = argparse.ArgumentParser(description="Draw the pictures of docs/from_pytorch.md.")
    options.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    folder = options.parse_args().out.resolve()
    names = run_page(folder)
    facts = {**record_course.machine_facts(), "torch": metadata.version("torch")}
    facts |= {"command": "python tools/torch_pictures.py", "kind": "recorded"}
    for name, trace in zip(("torch_blocking", "torch_awaiting"), names["traces"], strict=True):
        trace.about = {**trace.about, **facts, "run": name}
        record_course.write(trace, folder / f"{name}.json")
    for name, write in (("item", item), ("reuse", reuse), ("capture", capture)):
        picture = folder / f"torch_{name}.svg"
        picture.write_text(write(picture.read_text("utf-8")), "utf-8")
    print("reused", names["reused"].table(), sep="\n")
    for trace in (*names["traces"], *names["replays"]):
        print(agt.analyse(trace).table(), agt.diagnose(trace), trace.table(), sep="\n")


if __name__ == "__main__":
    main()
