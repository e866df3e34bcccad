"""One program for many values of its parameters, on a simulated device."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, cast

from asyncgpu_tutor.devices.event_loop import completed
from asyncgpu_tutor.devices.simulated import Machine, SimDevice
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.current import current_device, using
from asyncgpu_tutor.run.recording import record
from asyncgpu_tutor.traces.live import show
from asyncgpu_tutor.traces.pictures import Timeline, compare_timelines
from asyncgpu_tutor.traces.pictures.scene import fitting, text_width, ticks
from asyncgpu_tutor.traces.pictures.style import COLOURS, darker
from asyncgpu_tutor.traces.pictures.svg import framed
from asyncgpu_tutor.traces.spans.notebook_output import Lines
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait
from asyncgpu_tutor.traces.trace import Trace

_MOST = 100  # runs
_STILLS = 3  # timelines in the still picture
_WIDTH, _LOWEST = 760, 142  # pixels: of all, and how tall the curves are at least
_NAME = 14  # pixels from one line's name to the next
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 34, 44  # pixels around the curves
_RADIUS = 4  # pixels, of a point

_Values = tuple[Any, ...]


@dataclass(frozen=True)
class Exploration:
    """The runs of `explore`. As the last line of a cell it has a slider for each parameter.

    Attributes
    ----------
    parameters : mapping of str to tuple
        Their values, in the order in which they were given.
    traces : mapping of tuple to Trace
        One for each combination of values, in the order of `parameters`.
    """

    parameters: Mapping[str, _Values]
    traces: Mapping[_Values, Trace]

    @cached_property
    def makespans(self) -> Mapping[_Values, float]:
        """For each combination, from the first start to the last end, in us."""
        return {values: trace.metrics().makespan for values, trace in self.traces.items()}

    @property
    def best(self) -> dict[str, Any]:
        """The values with the shortest makespan; of equals the first."""
        return dict(zip(self.parameters, self._least, strict=True))

    def __getitem__(self, values: Any) -> Trace:
        """The trace for these values: one, or a tuple in the order of the parameters."""
        key: _Values = cast(_Values, values) if isinstance(values, tuple) else (values,)
        if key not in self.traces:
            raise UsageError(f"{key!r} was not explored; there are {self._ranges}")
        return self.traces[key]

    def __repr__(self) -> str:
        least = self.makespans[self._least]
        return f"<Exploration of {self._ranges}: shortest is {least:.1f} µs, with {self._told(self._least)}>"

    def table(self) -> Lines:
        """Makespans as text, in us, a line for each combination; the shortest is marked."""
        wide = max(len(self._told(values)) for values in self.makespans)
        lines = (
            f"{self._told(values):<{wide}}  {us:10.1f}{'  <-' * (values == self._least)}"
            for values, us in self.makespans.items()
        )
        return Lines("\n".join(lines))

    @property
    def _least(self) -> _Values:
        return min(self.makespans, key=lambda values: self.makespans[values])

    @property
    def _ranges(self) -> str:
        return ", ".join(
            f"{name} in ({', '.join(map(str, values))})" for name, values in self.parameters.items()
        )

    def _told(self, values: _Values) -> str:
        return ", ".join(f"{n} = {v}" for n, v in zip(self.parameters, values, strict=True))

    # ------------------------------------------------------------------ pictures
    def _timelines(self, chosen: list[_Values]) -> Timeline:
        made = compare_timelines([self.traces[v] for v in chosen], [self._told(v) for v in chosen])
        for panel in made.panels:  # one scale for all, also for those that are not shown
            panel.layout.begin, panel.layout.end = 0.0, max(self.makespans.values()) or 1.0
        return made

    def _curve(self) -> str:
        first, *others = self.parameters
        lines: dict[str, list[tuple[str, float]]] = {}
        for values, us in self.makespans.items():
            name = ", ".join(f"{n} = {v}" for n, v in zip(others, values[1:], strict=True))
            lines.setdefault(name, []).append((self._key(values), us))
        up = "\u00b5s, simulated clock: modelled, not measured"
        picture = Curve("Makespan", first, up, list(map(str, self.parameters[first])), lines)
        return picture.svg(f"Makespan against {self._ranges}. {self!r}")

    def _key(self, values: _Values) -> str:
        numbers = (p.index(v) for p, v in zip(self.parameters.values(), values, strict=True))
        return ",".join(str(number) for number in numbers)

    def _repr_html_(self) -> str:
        run = list(self.traces)
        shown = list(dict.fromkeys([run[0], self._least, run[-1]]))[:_STILLS]
        fold = f"<details><summary>All numbers</summary><pre>{escape(self.table())}</pre></details>"
        return self._curve() + self._timelines(shown)._repr_html_() + fold

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return show(self._view, html=self._repr_html_(), text=repr(self))

    def _view(self) -> dict[str, Any]:
        makespans = self.makespans
        return {
            "view": "explore",
            "sliders": [[n, [str(v) for v in values]] for n, values in self.parameters.items()],
            "start": self._key(self._least),
            "curve": self._curve(),
            "frames": {self._key(v): self._timelines([v]).view() for v in self.traces},
            "told": {
                self._key(v): f"{self._told(v)}: {makespans[v]:.1f} \u00b5s" for v in self.traces
            },
        }


def explore(function: Callable[..., Any], **parameters: Iterable[Any]) -> Exploration:
    """Run a program on a simulated device for each value of its parameters: how many streams are best?

    Each run has a device of its own, which imitates the same GPU as the current device does if that is
    simulated, and an H200 otherwise; the current device is not touched.

    Parameters
    ----------
    function : callable
        Called with a value for each of the parameters, by name. It may do the work itself, return an
        operation, which is then run, or be an ``async def``.
    **parameters
        For each parameter of `function` its values, such as ``streams=range(1, 9)``. With several, all
        combinations are run, at most 100.

    Returns
    -------
    Exploration
        As the last line of a cell it has a slider for each parameter, the timeline, and the makespans as a
        curve. Where nothing can be live, it is the curve and three of the timelines.

    Raises
    ------
    UsageError
        If there is no parameter, one without a value or with a list as a value, or too many combinations.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> def program(streams):
    ...     pool = [agt.create_stream() for _ in range(streams)]
    ...     for i in range(4):
    ...         agt.zeros((1024, 1024)).async_on(pool[i % streams])
    ...     agt.synchronize()
    >>> sorted(agt.explore(program, streams=[1, 2]).traces)
    [(1,), (2,)]
    """
    forbid_nested_wait("explore")
    try:
        ranges = {name: tuple(dict.fromkeys(values)) for name, values in parameters.items()}
    except TypeError as error:
        raise UsageError(
            "explore takes several values for each parameter, such as range(1, 9), and each must be a "
            f"possible key of a dictionary: use tuples instead of lists ({error})"
        ) from None
    runs = list(itertools.product(*ranges.values()))
    if not ranges or not runs:
        raise UsageError(
            "explore needs at least one parameter with values, as in explore(program, streams=range(1, 9))"
        )
    if len(runs) > _MOST:
        raise UsageError(
            f"explore would run the program {len(runs)} times, and at most {_MOST} are useful: give the "
            "parameters fewer values"
        )
    here = current_device()
    spec = here.spec if isinstance(here, SimDevice) else "h200"
    traces = {run: _run(function, dict(zip(ranges, run, strict=True)), spec) for run in runs}
    return Exploration(ranges, traces)


def _run(function: Callable[..., Any], values: Mapping[str, Any], spec: Any) -> Trace:
    with using(SimDevice(spec=spec, machine=Machine())), record() as trace:
        found = function(**values)
        if asyncio.iscoroutine(found):
            found = completed(found)
        if isinstance(found, DeviceOp):
            cast("DeviceOp[Any]", found).sync()
    return trace.from_first()


@dataclass(frozen=True)
class Curve:
    """A curve as SVG: one number against a parameter, a line for each setting of the others."""

    # `title`, `across` and `up`: above it, and along its axes.
    title: str
    across: str
    up: str
    values: Sequence[str]  # along the axis, at equal distances: they need not be numbers
    # Each line by its name: for each value a key, which a live view marks, and the number.
    lines: Mapping[str, Sequence[tuple[str, float]]]

    def svg(self, words: str) -> str:
        """One SVG element; `words` describe it."""
        inner, tall = _WIDTH - _LEFT - _RIGHT, max(_LOWEST, _NAME * len(self.lines))
        most = max((y for line in self.lines.values() for _, y in line), default=0.0) * 1.08 or 1.0
        step = inner / max(len(self.values) - 1, 1)
        parts: list[str] = []
        for y in ticks(0.0, most, tall / 30):
            at = tall - y / most * tall
            parts.append(f'<path class="agt-grid" d="M0 {at:.1f}h{inner}"/>')
            parts.append(f'<text class="agt-tick agt-end" x="-6" y="{at + 4:.1f}">{y:.12g}</text>')
        # No two of them may touch.
        every = math.ceil((max(text_width(value, 11) for value in self.values) + 4) / step)
        for i, value in list(enumerate(self.values))[::every]:
            at = f'x="{i * step:.1f}" y="{tall + 15}"'
            parts.append(f'<text class="agt-tick" {at}>{escape(value)}</text>')
        parts += self._lines(step, tall, most)
        parts.append(f'<path class="agt-rule" d="M0 {tall}h{inner}"/>')
        at = f'x="{inner / 2:.0f}" y="{tall + 34}"'
        parts.append(f'<text class="agt-axis" {at}>{escape(self.across)}</text>')
        inside = (
            f'<text class="agt-title" x="8" y="18">{escape(self.title)}</text>'
            f'<text class="agt-facts" x="8" y="{_TOP - 3}">{escape(self.up)}</text>'
            f'<g transform="translate({_LEFT} {_TOP + 6})">{"".join(parts)}</g>'
        )
        return framed(inside, words, _WIDTH, _TOP + tall + _BOTTOM)

    def _lines(self, step: float, tall: float, most: float) -> Iterator[str]:
        names: list[tuple[float, str, str]] = []
        told = self._tips(tall, most)
        for number, (name, line) in enumerate(self.lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            points = [(i * step, tall - y / most * tall, key) for i, (key, y) in enumerate(line)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            yield f'<polyline points="{path}" style="fill:none;stroke:{colour};stroke-width:2"/>'
            for x, y, key in points:
                yield (
                    f'<circle class="agt-point" data-key="{escape(key)}" cx="{x:.1f}" cy="{y:.1f}" '
                    f'r="{_RADIUS}" style="fill:{colour};stroke:{darker(colour)}">'
                    f"<title>{escape(told[key])}</title></circle>"
                )
            names.append((points[-1][1], name, colour))
        # Names that would lie on each other go below each other, so each has its line's colour; and there has
        # to be room for those that follow.
        last, x = -20.0, (len(self.values) - 1) * step
        for number, (y, name, colour) in enumerate(sorted(names), 1):
            last = max(min(y, tall - _NAME * (len(names) - number)), last + _NAME)
            if name:
                box = f'<rect x="{x + 10:.1f}" y="{last - 4:.1f}" width="9" height="9" fill="{colour}"/>'
                told = escape(fitting(name, _RIGHT - 32, 11))
                yield f'{box}<text x="{x + 24:.1f}" y="{last + 4:.1f}">{told}</text>'

    def _tips(self, tall: float, most: float) -> dict[str, str]:
        """By key, what a point says under the mouse: its line and number, and those of points it covers."""
        told: dict[str, str] = {}
        for i in range(len(self.values)):
            here = [(name, *line[i]) for name, line in self.lines.items() if i < len(line)]
            for _, key, y in here:
                near = [p for p in here if abs(p[2] - y) / most * tall < 2 * _RADIUS]
                lines = (f"{name}: {us:.1f}".removeprefix(": ") for name, _, us in near)
                told[key] = "\n".join(lines)
        return told
