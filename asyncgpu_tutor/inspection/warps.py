"""The warps of a block as a picture: when each computes, when it waits, and what is under way meanwhile.

All of it is from the model of time, so it needs no device: `simgpu.report.block_timeline` says how.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from asyncgpu_tutor.devices.fresh_errors import freshly
from asyncgpu_tutor.devices.simulated import SPECS, SimDevice
from asyncgpu_tutor.devices.simulated.report import BlockTimeline, WarpState, block_timeline
from asyncgpu_tutor.errors import UsageError, whole
from asyncgpu_tutor.inspection.threads import copied, svg_text, variables_of
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.kernels.launching import Size, configuration
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.traces.pictures.scene import fitting, text_width, ticks
from asyncgpu_tutor.traces.pictures.svg import framed, painted, told_below
from asyncgpu_tutor.traces.spans import SpanKind
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count

_WIDTH, _LEFT, _INNER, _TOP = 760, 64, 680, 48  # pixels
_LANE, _BAR, _THIN = 26, 13, 4  # of a warp: its lane, its state, and each thing under way to it
_LEAST = 3  # of a state, or its bar would be little more than its border
_MOST_LANES = 16
_STATES: Mapping[WarpState, tuple[str, SpanKind]] = {  # its meaning, and the span it looks like
    "compute": ("computes", "kernel"),
    "load": ("waits for global memory", "h2d"),
    "shared": ("waits for shared memory", "d2h"),
    "barrier": ("waits at a barrier", "wait"),
}
_COPY = 'class="agt-reads"'


@dataclass(frozen=True)
class Warps:
    """The warps of a block, seen by `show_warps`. As the last line of a cell it is a picture of them."""

    kernel: str
    gpu: str
    timeline: BlockTimeline
    until: float  # us: where the picture ends
    lesson: str = ""

    def waits(self, warp: int = 0, state: WarpState = "load") -> list[tuple[float, float]]:
        """From when to when a warp waits for global memory, in us, or is in another state."""
        if state not in [*_STATES]:
            raise UsageError(f"{state!r:.99} is not one of {', '.join(map(repr, _STATES))}")
        seen = self.timeline.warps[whole("a warp", warp, 0, len(self.timeline.warps) - 1)]
        return [(since, end) for its, since, end in seen if its == state]

    def __repr__(self) -> str:
        return f"<{self.words}>"

    @property
    def words(self) -> str:
        """The picture in words, for those who cannot see it."""
        said = list[str]()
        for state, (meaning, _) in _STATES.items():
            if pieces := self.waits(0, state):
                us = sum(end - since for since, end in pieces)
                said.append(f"{meaning} {count(len(pieces), 'time')}, {us:.2f} \u00b5s in all")
        if copies := len(self.timeline.flights[0]):
            said.append(f"starts asynchronous copies that it waits for later: {copies}")
        return f"{self.lesson} {self._facts}. Warp 0 {'; '.join(said)}.".strip()

    @property
    def _facts(self) -> str:
        what, us = count(len(self.timeline.warps), "warp"), self.timeline.us
        said = f"{us:.2f} \u00b5s on the {self.gpu} ({clock_words('simulated')})"
        part = f", of which the first {self.until:.2f} are shown" if self.until < us else ""
        return f"A block of {self.kernel}: {what}, {said}{part}"

    def svg(self) -> str:
        """The picture: it stands alone, and is light or dark as the page is."""
        words, seen, flights = self.words, self.timeline, self.timeline.flights
        paints, defs = painted((kind for _, kind in _STATES.values()), words)
        looks = {
            kind: f'style="fill:{p["paint"]};stroke:{p["line"]}"' for kind, p in paints.items()
        }
        shown = range(0, len(seen.warps), -(-len(seen.warps) // _MOST_LANES))
        bottom = _TOP + _LANE * len(shown)
        parts = [svg_text("agt-title agt-code", 8, 20, fitting(self.kernel, _WIDTH - 16, 17))]
        parts.append(svg_text("agt-facts", 8, 38, fitting(self._facts, _WIDTH - 16, 11.5)))
        parts.append(
            svg_text("agt-axis", _LEFT + _INNER / 2, bottom + 31, "simulated time (\u00b5s)")
        )
        for tick in ticks(0.0, self.until, _INNER / 70):
            x = _LEFT + tick / self.until * _INNER
            parts.append(f'<path class="agt-grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
            parts.append(svg_text("agt-tick", x, bottom + 14, f"{tick:.12g}"))
        legend = dict[str, tuple[str, int]]()
        for lane, warp in enumerate(shown):
            y = _TOP + lane * _LANE + 3
            parts.append(svg_text("agt-lane", _LEFT - 8, y + 11, f"warp {warp}"))
            for state, since, end in self._seen(warp):
                meaning, kind = _STATES[state]
                legend[meaning] = looks[kind], _BAR
                parts.append(self._bar(looks[kind], since, end, y, _BAR))
            for number, (since, end) in enumerate(flights[warp]):
                row = y + _BAR + 1 + number % 2 * (_THIN + 1)  # the next may begin before one ends
                if since < self.until and flights[warp] not in [flights[w] for w in shown[:lane]]:
                    legend["copy under way"] = _COPY, _THIN
                    parts.append(self._bar(_COPY, since, end, row, _THIN))
        x, y = float(_LEFT), bottom + 47
        for meaning, (look, tall) in legend.items():
            wide = 44 + text_width(meaning, 11)
            if x + wide > _WIDTH:
                x, y = float(_LEFT), y + 20
            parts.append(_box(look, x, y - tall / 2, 24, tall))
            parts.append(svg_text("agt-words", x + 29, y + 4, meaning))
            x += wide
        return framed("".join(parts), words, _WIDTH, y + 15, defs)

    def _bar(self, look: str, since: float, end: float, y: float, tall: float) -> str:
        x, right = (min(at / self.until, 1.0) * _INNER for at in (since, end))
        return _box(look, _LEFT + x, y, right - x, tall)

    def _seen(self, warp: int) -> list[tuple[WarpState, float, float]]:
        """The states of a warp; neighbours too short to be seen are one, which most of it is."""
        begin, took, seen = 0.0, dict[WarpState, float](), list[tuple[WarpState, float, float]]()
        pieces = [it for it in self.timeline.warps[warp] if it[1] < self.until]
        for state, since, end in pieces:
            begin = begin if took else since
            took[state] = took.get(state, 0.0) + end - since
            if end - begin >= _LEAST * self.until / _INNER or end == pieces[-1][2]:
                longest = max(took, key=took.__getitem__)
                if seen and seen[-1][0] == longest:
                    begin = seen.pop()[1]
                seen.append((longest, begin, end))
                took = {}
        return seen

    def _repr_html_(self) -> str:
        return told_below(self.svg(), self.lesson, self.words)


def _box(look: str, x: float, y: float, wide: float, tall: float) -> str:
    return f'<rect {look} x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall}"/>'


def show_warps(
    kernel: Kernel, *args: Any, grid: Size = None, block: Size = None, shared_mem: int = 0,
    until: float | None = None, lesson: str = "",
) -> Warps:  # fmt: skip
    """Draw the warps of one block over time: when they compute, and when they wait for what.

    It's the block that takes longest. The launch runs in the interpreter, on copies: no device is used, and
    no array is changed or moved. Times are modelled: for the current device if it's simulated, else an H200.

    Parameters
    ----------
    kernel, *args, grid, block, shared_mem
        As for `show_threads`, but with no more blocks than the device holds at once.
    until : float, optional
        Where the picture ends, in us: for the first turns alone, or for two pictures on one scale.
    lesson : str
        What is to be seen, in a sentence or two, as for `plot`.

    Raises
    ------
    UsageError
        If an argument is missing, `until` isn't above 0, the launch is too large or too long to be drawn, or
        threads wait for what others write.

    Examples
    --------
    >>> import asyncgpu_tutor as agt, numpy as np
    >>> x = np.ones(1024, np.float32)
    >>> len(agt.show_warps(agt.relu, 1024, x, np.zeros_like(x), grid=4, block=256).waits())
    1
    """
    if until is not None and not (isinstance(until, Real) and 0 < until < inf):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise UsageError(f"until={until!r} is no time above 0, in us, for a picture to end at")
    _, given = copied("show_warps", kernel, args, lesson)
    shape, device = configuration(kernel.name, args, grid, block), current_device()
    spec = device.spec if isinstance(device, SimDevice) else SPECS["h200"]
    launch = spec, kernel.source, kernel.name, shape, given, shared_mem, kernel._facts.contract
    seen = freshly(block_timeline)(*launch, variables_of(kernel))
    return Warps(kernel.name, spec.name, seen, until or seen.us, lesson)
