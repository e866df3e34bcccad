"""Sliders above a timeline, which is drawn anew wherever they are dragged: the program runs once more.

Where no widget can be, there is the timeline of the first values.
"""

# ipywidgets has no types, and only the extra `lab` brings it.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context
from typing import Any

from asyncgpu_course.internals import Timeline, compare, show
from asyncgpu_tutor import Trace, UsageError


class Dragged:
    """A timeline with a slider for each parameter of its program; made by `drag`."""

    # As it was drawn last; the longest run so far gives the scale, so that lengths can be compared.
    picture: Timeline

    def __init__(
        self, program: Callable[..., Awaitable[Trace]], ranges: dict[str, list[float]]
    ) -> None:
        self._program, self._ranges = program, ranges
        self._wanted = {name: options[0] for name, options in ranges.items()}
        self._drawn: dict[str, float] = {}
        self._longest = 0.0
        self._turn = asyncio.Lock()
        self._moves: set[asyncio.Task[None]] = set()
        self._widgets: list[Any] = []

    async def move(self, **values: float) -> None:
        """Run the program for these values and draw it, unless there are newer ones when its turn comes."""
        self._wanted = {**self._wanted, **values}
        async with self._turn:
            if self._drawn == (now := self._wanted):
                return
            trace, self._drawn = await self._program(**now), now
            told = ", ".join(f"{name} = {value}" for name, value in now.items())
            self.picture = compare([trace], [f"{trace.metrics().makespan:.0f} µs with {told}"])
            (panel,) = self.picture.panels
            panel.layout.end = self._longest = max(self._longest, panel.layout.end)
            for widget in self._widgets:
                widget.view = self.picture.view()

    def _with_sliders(self, widget: Any) -> Any:
        import ipywidgets

        # Jupyter may tell of a slider in another thread, and with another choice of a device.
        loop, here = asyncio.get_running_loop(), copy_context()

        def slider(name: str, options: list[float]) -> Any:
            def move_to(value: float) -> None:
                task = loop.create_task(self.move(**{name: value}))
                self._moves.add(task)  # or the task might be collected before it is done
                task.add_done_callback(self._moves.discard)

            def moved(change: dict[str, Any]) -> None:
                loop.call_soon_threadsafe(move_to, change["new"], context=here)

            now = self._wanted[name]
            how = {"description": name, "layout": {"width": "36em"}}
            made = ipywidgets.SelectionSlider(options=options, value=now, **how)
            made.observe(moved, names="value")
            return made

        self._widgets.append(widget)
        return ipywidgets.VBox([*(slider(*item) for item in self._ranges.items()), widget])

    def __repr__(self) -> str:
        return repr(self.picture)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        still = self.picture
        words = {"html": still._repr_html_(), "text": repr(still)}
        return show(still.view, **words, around=self._with_sliders)


async def drag(program: Callable[..., Awaitable[Trace]], **ranges: Iterable[float]) -> Dragged:
    """Draw a program's timeline with sliders: whoever drags one sees what it changes, at once.

    Parameters
    ----------
    program : async function
        Called with a value for each parameter, by name; returns the trace that is drawn.
    **ranges : iterable of float
        The values of each parameter. The first ones are drawn first, and where there are no sliders.

    Raises
    ------
    UsageError
        If there is no parameter, or one without values.
    """
    sliders = {name: list(values) for name, values in ranges.items()}
    if not sliders or not all(sliders.values()):
        cause = "a slider needs a parameter and its values, as in drag(program, streams=[1, 2])"
        raise UsageError(f"{cause}: got {sliders or 'none'}")
    made = Dragged(program, sliders)
    await made.move()
    return made
