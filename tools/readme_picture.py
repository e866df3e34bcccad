"""The moving picture in README.md: a recording of an H200 on one queue, and the question how long four take.

``python tools/readme_picture.py`` writes docs/overlap.svg. A veil draws back from the timeline as the clock
passes. Where nothing moves (a picture viewer, a reader who asked for less motion) the whole is to be seen.
The letters are large, because a phone shows 800 pixels as 340.
"""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path

from matplotlib.figure import Figure

from asyncgpu_tutor.traces.pictures.style import KIND_LOOKS, darker
from asyncgpu_tutor.traces.spans import SpanKind
from asyncgpu_tutor.traces.trace import Trace

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/overlap.svg"
RUNS = (("02_one_stream", "One queue"), ("02_streams_and_events", "Four queues"))

WIDTH, LEFT, RIGHT = 800, 108, 22
LANE, BAR, TITLE = 30, 22, 52
SLOWER, PAUSE = 9000, 3.0  # times as slow as the GPU was; seconds that the whole stands
NAMES: dict[SpanKind, str] = {
    "call": "Python asks",
    "wait": "Python waits",
    "h2d": "copy in",
    "kernel": "compute",
    "d2h": "copy back",
}

# An image on GitHub has no page around it whose colours it could take: it brings paper for both.
STYLE = """
text{font:18px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#222}
.head{font-size:25px;font-weight:600}.lane,.small{fill:#555}.lane{text-anchor:end}
.paper{fill:#fff}.band{fill:#f3f4f6}.edge{fill:none;stroke:#ccd}.clock{stroke:#b00040;stroke-width:2}
.gain{fill:#b00040;font-size:72px;font-weight:600;text-anchor:middle}.wait{fill:#fff;stroke:#999}.call{fill:#b9bec6;stroke:#777}
@media(prefers-color-scheme:dark){text{fill:#eee}.lane,.small{fill:#b4b4b4}.paper{fill:#14171b}
.band{fill:#1f2329}.edge{stroke:#444}.wait{fill:#14171b;stroke:#888}.call{fill:#5c626b;stroke:#999}
.gain{fill:#ff8fae}.clock{stroke:#ff8fae}}
"""


def traces() -> list[Trace]:
    """What is drawn: both recordings, the slower one first."""
    return [Trace.load_recording(name) for name, _ in RUNS]


def makespans() -> list[int]:
    """How long each took, in microseconds."""
    return [round(trace.metrics().makespan) for trace in traces()]


def words() -> str:
    """The picture for those who do not see it."""
    slow, _ = makespans()
    return (
        f"A timeline of an NVIDIA H200. On one queue, four copies in, four kernels and four copies back run "
        f"one after the other, and take {slow} microseconds. Below it are four queues for the same work, "
        f"still empty, and a question mark."
    )


def svg() -> str:
    """The whole picture."""
    slow, _ = makespans()
    scale = (WIDTH - LEFT - RIGHT) / slow
    lasts = slow * SLOWER / 1e6 + PAUSE
    body: list[str] = []
    below = 8
    for (_, title), trace, asked in zip(RUNS, traces(), (False, True), strict=True):
        top = below + TITLE
        begin = min(span.start for span in trace)
        lanes: list[int | None] = [None, *trace.streams]
        bands: list[str] = []
        tall = LANE * len(lanes)
        took = "how long?" if asked else f"{slow} µs"
        body.append(f'<text class="head" x="14" y="{top - 14}">{title}: {took}</text>')
        for number, lane in enumerate(lanes):
            y = top + LANE * number
            name = "Python" if lane is None else f"queue {lane}"
            bands.append(
                f'<rect class="band" {_where(LEFT - 1, y, WIDTH - LEFT - RIGHT + 3, LANE - 2)}/>'
            )
            body.append(bands[-1])
            body.append(f'<text class="lane" x="{LEFT - 9}" y="{y + 20}">{name}</text>')
            for span in trace:
                if span.stream == lane and not asked:
                    x = LEFT + (span.start - begin) * scale
                    body.append(_bar(span.kind, x, y + 3, max(span.duration * scale, 1.5)))
        if asked:
            middle, half = LEFT + slow * scale / 2, top + tall / 2
            body.append(f'<text class="gain" x="{middle:.0f}" y="{half + 24:.0f}">?</text>')
        else:
            body += [band.replace("band", "band veil") for band in bands]
            body.append(f'<path class="clock hand" d="M{LEFT} {top}v{tall}"/>')
        below = top + tall
    for at, kind in zip(count(14, 155), NAMES, strict=False):
        body.append(_bar(kind, at, below + 19, 24))
        body.append(f'<text class="small" x="{at + 31}" y="{below + 36}">{NAMES[kind]}</text>')
    height = below + 58
    opened = 100 * (1 - PAUSE / lasts)
    loop, far = f"{lasts:.1f}s linear infinite", f"translateX({slow * scale:.1f}px)"
    moving = (
        f".veil{{transform:scaleX(0);transform-box:fill-box;transform-origin:right;animation:open {loop}}}"
        f"@keyframes open{{0%{{transform:scaleX(1)}}{opened:.1f}%,100%{{transform:scaleX(0)}}}}"
        f".hand{{opacity:0;animation:go {loop}}}"
        f"@keyframes go{{0%{{opacity:1;transform:none}}{opened:.1f}%{{opacity:1;transform:{far}}}"
        f"{opened + 0.1:.1f}%,100%{{opacity:0;transform:{far}}}}}"
        "@media(prefers-reduced-motion:reduce){.veil,.hand{animation:none}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img"><title>{words()}</title><style>{STYLE.strip()}{moving}</style>'
        f'<rect class="paper" width="100%" height="100%" rx="8"/>'
        f'<rect class="edge" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>'
        f"{''.join(body)}</svg>\n"
    )


def _where(x: float, y: float, wide: float, tall: float) -> str:
    return f'x="{x:.1f}" y="{y:.0f}" width="{wide:.1f}" height="{tall}"'


def _bar(kind: SpanKind, x: float, y: float, wide: float) -> str:
    where = _where(x, y, wide, BAR)
    if kind in ("call", "wait"):
        return f'<rect class="{kind}" {where}/>'
    colour = KIND_LOOKS[kind].colour
    return f'<rect {where} fill="{colour}" stroke="{darker(colour)}"/>'


def card(path: Path) -> None:
    """Draw the same as a bitmap of 1200 by 630, which is what a chat shows of a link to the site."""
    made = Figure(figsize=(12, 6.3))
    slow, _ = makespans()
    told = "Same GPU, same work. Guess first, then look."
    made.text(0.05, 0.88, told, fontsize=28, fontweight="bold")
    made.text(
        0.05, 0.06, "asyncgpu_tutor: asynchronous GPU programming in Python, taught", fontsize=20
    )
    for (_, title), trace, bottom in zip(RUNS, traces(), (0.66, 0.19), strict=True):
        tall = 0.075 * len(trace.streams)
        ax = made.add_axes(
            (0.05, bottom, 0.9, tall), xlim=(0, slow), ylim=(max(trace.streams) + 0.5, 0.5)
        )
        ax.set_axis_off()
        asked = title == RUNS[1][1]
        took = "how long?" if asked else f"{slow} µs"
        ax.set_title(f"{title}: {took}", loc="left", fontsize=24)
        begin = min(span.start for span in trace)
        for span in () if asked else trace.device_spans:
            look, place = KIND_LOOKS[span.kind].colour, [(span.start - begin, span.duration)]
            ax.broken_barh(
                place, ((span.stream or 1) - 0.4, 0.8), facecolor=look, edgecolor=darker(look)
            )
    made.savefig(path, dpi=100)


def main() -> int:
    """Write the picture, and say in words what it shows."""
    argparse.ArgumentParser(description="Draw docs/overlap.svg.").parse_args()
    PICTURE.write_text(svg(), encoding="utf-8")
    print(words())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
