"""The GPU's timeline while it talks: a few steps, and who sat where in them."""

import asyncio

import asyncgpu_tutor as agt
from asyncgpu_tutor.language import Conversations

_STEPS = 3


class SeatTimeline:
    """Pictures of the steps of an engine. To record makes steps slower, so one picture is made at a time."""

    def __init__(self, engine: Conversations) -> None:
        self._engine = engine
        self._turn = asyncio.Lock()

    async def draw(self) -> str | None:
        """The next few steps as SVG; None if nobody talks."""
        engine = self._engine
        async with self._turn:
            with agt.record() as trace:
                steps = 0
                while steps < _STEPS and await engine.step():
                    steps += 1
        if not steps:
            return None
        times = dict[int, tuple[float, float]]()
        for span in trace.device_spans:
            if span.op is not None:
                begin, end = times.get(span.op, (span.start, span.end))
                times[span.op] = min(begin, span.start), max(end, span.end)
        seen = [(step.seats, times[step.op]) for step in engine.steps if step.op in times]
        for slot in range(engine.slots):
            sat = [(talk, when) for seats, when in seen if (talk := seats[slot]) is not None]
            stretches = [(*when, engine.model.decode(talk.prompt).strip()) for talk, when in sat]
            if stretches:
                trace = trace.with_lane(f"seat {slot}", stretches)
        trace = trace.from_first(trace.device_spans)
        return trace.plot(title="The latest steps", lanes=("host", "streams")).svg()
