"""One program for many values of its parameters, on a simulated device."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
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
from asyncgpu_tutor.traces.pictures.curve import Curve
from asyncgpu_tutor.traces.spans.notebook_output import Lines
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait
from asyncgpu_tutor.traces.trace import Trace

_MOST = 100  # runs
_STILLS = 3  # timelines in the still picture

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
