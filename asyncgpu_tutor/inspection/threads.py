"""The threads of a launch as a picture: cells of the grid, cells of the arrays, and who touches what.

The ground (all cells) is drawn once. Each step of the kernel is laid over it: the threads that take part,
the elements that they touch, and lines between the two; what went wrong is red. Still and live views lay the
same steps over the same ground.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.devices.fresh_errors import fresh, freshly
from asyncgpu_tutor.devices.simulated.report import AccessSite, Watched, memory_of
from asyncgpu_tutor.errors import ArrayDTypeError, OutOfBoundsError, UsageError, demand, whole
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.kernels.launching import configuration
from asyncgpu_tutor.ops.array_operations import d2h
from asyncgpu_tutor.traces.live import show
from asyncgpu_tutor.traces.pictures.scene import fitting, text_width
from asyncgpu_tutor.traces.pictures.svg import framed, told_below
from asyncgpu_tutor.traces.spans.vocabulary import count

_WIDTH, _TALL, _ROOM = 760, 330, 130  # pixels: the picture; the grid, and an array, at most
_SIZES = (28, 20, 16, 13, 11, 9, 7, 6, 5, 4, 3)  # of a cell
_GAP, _LABEL = 8, 16
_MOST_LINES = 64  # threads, or warps, or blocks, with an arrow each
_NUMBERED = 16  # pixels: cells of this size have their numbers in them
_STILLS = 4
_MOST_THREADS = 4096
_HEAD = 44  # what is said above
_HALF = np.array([0.0, 0.5])  # of a cell, downwards

_Points = NDArray[np.float64]  # x and y of the upper left corners of cells


@dataclass
class _Cells:
    """Places of some cells. An array with more elements than cells has several in each."""

    at: _Points
    size: float
    each: int = 1

    @property
    def end(self) -> _Points:
        """The lower right corner of them all."""
        return self.at.max(axis=0) + self.size

    def centres(self, numbers: NDArray[np.int64]) -> _Points:
        """Middles of the cells of these elements; those that do not exist lie beside the others."""
        found = np.clip(numbers // self.each, -1, len(self.at) + 1)
        inside = np.clip(found, 0, len(self.at) - 1)
        points = self.at[inside] + self.size / 2
        points[:, 0] += (found - inside) * (self.size + 3)
        return np.minimum(points, (_WIDTH - self.size / 2, np.inf))


@dataclass(frozen=True)
class Threads:
    """A launch seen by `show_threads`. As the last line of a cell it shows the kernel step by step."""

    watched: Watched
    lesson: str = ""
    # The cells of each array, by its name. Those of the grid have the name "".
    _places: dict[str, _Cells] = field(default_factory=dict[str, _Cells], repr=False)

    @property
    def steps(self) -> list[AccessSite]:
        """All loads and stores, in order."""
        return self.watched.steps

    def __repr__(self) -> str:
        return f"<{self.words}>"

    @property
    def words(self) -> str:
        """The picture in words, for those who cannot see it."""
        return f"{self.lesson} {self._facts}".strip()

    @property
    def _facts(self) -> str:
        seen = self.watched
        blocks = seen.threads // seen.block_threads
        busy = {int(thread) for step in seen.steps for thread in np.unique(step.threads)}
        idle = seen.threads - len(busy)
        text = (
            f"Threads of {seen.kernel}: {count(blocks, 'block')} of {count(seen.block_threads, 'thread')}, "
            f"{count(len(seen.steps), 'step')}, {count(idle, 'thread')} that touch nothing."
        )
        if seen.left_out:
            text += f" The first are shown: there were {seen.left_out} more steps."
        return f"{text} {' '.join(str(seen.fault).split())}" if seen.fault else text

    def step(self, number: int) -> str:
        """One step in words; the first is 0."""
        step = self.steps[whole("a step", number, 0, len(self.steps) - 1)]
        code = self.watched.source.splitlines()[step.line - 1].strip()
        idle = self.watched.threads - len(step.threads)
        verb = _verb(step, len(step.threads) == 1)
        bad = f", {beyond} of them out of bounds" if (beyond := self._beyond(number).sum()) else ""
        return (
            f"Step {number + 1} of {len(self.steps)}, line {step.line}: {code}\n"
            f"{count(len(step.threads), 'thread')} {verb} {step.array}{bad}, {idle:,} idle"
        )

    def svg(self, number: int) -> str:
        """The still picture of one step, from 0."""
        ground, height = self._ground
        told = self.step(number) if self.steps else self._facts
        return self._framed(ground + self._over(number) + self._numbers(), height, told)

    def _repr_html_(self) -> str:
        return told_below("".join(map(self.svg, self._telling())), self.lesson, self.words)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return show(self._view, html=self._repr_html_(), text=repr(self))

    def _telling(self) -> list[int]:
        """The steps of the still: the first of each line and array, and the last if it failed."""
        first: dict[tuple[int, str, bool], int] = {}
        for number, step in enumerate(self.steps):
            first.setdefault((step.line, step.array, step.write), number)
        found = list(first.values())[:_STILLS]
        if self.watched.fault and found:
            found = [*found[: _STILLS - 1], len(self.steps) - 1]
        return list(dict.fromkeys(found)) or [0]

    def _view(self) -> dict[str, Any]:
        ground, height = self._ground
        seen = self.watched
        return {
            "view": "threads",
            "words": self.words,
            "lesson": self.lesson,
            "svg": self._framed(f'{ground}<g class="agt-over"></g>{self._numbers()}', height, ""),
            "source": seen.source.splitlines(),
            "fault": str(seen.fault or ""),
            "grid": seen.grid,
            "block": seen.block,
            "at": self._places[""].at.tolist(),
            "size": self._places[""].size,
            "steps": [
                {
                    "line": step.line,
                    "told": self.step(number),
                    "over": self._over(number),
                    "verb": _verb(step, True),
                    "threads": step.threads.tolist(),
                    "elements": step.elements.tolist(),
                    "links": self._ends(step).round(1).tolist(),
                    "array": step.array,
                }
                for number, step in enumerate(self.steps)
            ],
        }

    # ------------------------------------------------------------------ the ground
    def _framed(self, inner: str, height: float, told: str) -> str:
        lines = told.split("\n")
        looks = (("agt-title agt-code", 18, 17), ("agt-facts", 34, 11.5))
        above = "".join(
            f'<text class="{css}" x="8" y="{y}">{escape(fitting(line, _WIDTH - 16, size))}</text>'
            for line, (css, y, size) in zip(lines, looks, strict=False)
        )
        return framed(above + inner, f"{told} {self.words}".strip(), _WIDTH, height)

    @cached_property
    def _ground(self) -> tuple[str, float]:
        """All cells, and where the picture ends."""
        parts, fault = list(self._grid(_HEAD + _LABEL)), self.watched.fault
        grid, gap = self._places[""], (26 if fault else 4) * _GAP  # for what does not exist
        x, y = 0.0, float(grid.end[1]) + _GAP + 3 * _LABEL
        below = y
        for name, shape in self.watched.shapes.items():
            cells = self._places[name] = _array(shape, grid.size)
            wide, tall = cells.end
            several = f", {cells.each} elements in a cell" if cells.each > 1 else ""
            told = f"{name}: {' x '.join(map(str, shape))}{several}"
            wide = max(wide, text_width(told, 11))
            if x and x + wide > _WIDTH:
                x, y = 0.0, below + 2 * _LABEL
            site = self.watched.site
            below_0 = site and site.array == name and (site.index or 0) < 0
            cells.at += (x + _GAP + (cells.size + 3 if below_0 else 0), y)
            parts.append(svg_text("agt-words", x + _GAP, y + tall + 13, told))
            parts.append(_squares("agt-cell", cells.at + cells.size / 2, cells.size))
            x, below = x + wide + gap, max(below, y + tall)
        below += 3 * _LABEL if fault else 2 * _LABEL
        return "".join([*parts, self._legend(below)]), below + 2 * _LABEL

    def _grid(self, y: float) -> Iterator[str]:
        seen = self.watched
        flat = seen.block[1] * seen.block[2] == 1
        columns = min(seen.block[0], 32) if flat else seen.block[0]
        rows = -(-seen.block_threads // columns)
        blocks = seen.threads // seen.block_threads
        size, wide, tall, across = _SIZES[-1], 0, 0, 1
        for size in _SIZES:
            wide, tall = columns * size, rows * size + _LABEL + _GAP
            across = max(min(int((_WIDTH - _GAP) // (wide + _GAP)), seen.grid[0]), 1)
            if wide <= _WIDTH - 2 * _GAP and -(-blocks // across) * tall <= _TALL:
                break
        block, own = np.divmod(np.arange(seen.threads), seen.block_threads)
        x = _GAP + block % across * (wide + _GAP) + own % columns * size
        at = np.column_stack([x, y + block // across * tall + own // columns * size])
        self._places[""] = _Cells(at.astype(np.float64), size)
        for i in range(blocks):
            corner = at[i * seen.block_threads]
            told = seen.name(i * seen.block_threads).partition(", thread")[0]
            told = f"block {i}" if seen.grid[1] * seen.grid[2] == 1 else told
            told = told if len(told) * 6 <= wide else f"{i}"
            yield svg_text("agt-words", corner[0], corner[1] - 4, told)
        yield _squares("agt-cell", at + size / 2, size)

    def _numbers(self) -> str:
        """The number of each thread in its block, and of each element in its array, where there is room."""
        per_block, said = self.watched.block_threads, list[str]()
        for name, cells in self._places.items():
            if cells.size >= _NUMBERED and cells.each == 1:
                for i, (x, y) in enumerate(cells.at + cells.size / 2):
                    said.append(svg_text("agt-number", x, y + 4, str(i if name else i % per_block)))
        return "".join(said)

    def _legend(self, y: float) -> str:
        seen = {"atomics" if s.atomic else "writes" if s.write else "reads" for s in self.steps}
        looks = {"reads": "reads", "writes": "writes", "atomics": "an atomic"}
        parts = [("agt-cell", "idle, or not touched")]
        parts += [(f"agt-{kind}", told) for kind, told in looks.items() if kind in seen]
        if self.watched.fault:
            parts.append(("agt-wrong", type(self.watched.fault).__name__))
        return "".join(
            f'<rect class="{css}" x="{8 + 150 * i}" y="{y:.0f}" width="12" height="12"/>'
            + svg_text("agt-words", 26 + 150 * i, y + 10, words)
            for i, (css, words) in enumerate(parts)
        )

    # ------------------------------------------------------------------ a step
    def _ends(self, step: AccessSite) -> NDArray[np.float64]:
        """Both ends of each arrow: from an element to its reader, or from a writer to its element."""
        grid, array = self._places[""], self._places[step.array]
        threads = grid.centres(step.threads) + _HALF * grid.size
        elements = array.centres(step.elements) - _HALF * array.size
        return np.hstack([threads, elements] if step.write else [elements, threads])

    def _beyond(self, number: int) -> NDArray[np.bool]:
        """Which accesses of a step lie outside of the array: only the step that failed has any."""
        step, site = self.steps[number], self.watched.site
        bound = site.bound if site and site.array == step.array else None
        return (step.elements < 0) | (step.elements >= (bound or np.inf))

    def _over(self, number: int) -> str:
        if not self.steps:
            return ""
        step = self.steps[number]
        css = "agt-atomics" if step.atomic else "agt-writes" if step.write else "agt-reads"
        grid, array = self._places[""], self._places[step.array]
        cells = np.unique(array.centres(step.elements), axis=0)
        parts = [_squares(css, grid.centres(step.threads), grid.size)]
        parts.append(_squares(css, cells, array.size))
        ends, (block, own) = self._ends(step), np.divmod(step.threads, self.watched.block_threads)
        # An arrow for each thread; where these are too many for each warp, then for each block.
        for group in (step.threads, block * 32 + own // 32, block):
            which = np.unique(group)
            if len(which) <= _MOST_LINES:
                parts += [_line("agt-link", ends[group == i].mean(axis=0)) for i in which]
                break
        if self.watched.fault and number == len(self.steps) - 1:
            parts += self._wrong(step)
        return "".join(parts)

    def _wrong(self, step: AccessSite) -> Iterator[str]:
        culprits = np.array(self.watched.culprits, np.int64)
        site = self.watched.site
        if not len(culprits) or site is None:
            return
        grid, array = self._places[""], self._places.get(site.array or step.array)
        elements, beyond = np.full(len(culprits), site.index or 0, np.int64), self._beyond(-1)
        if beyond.any():  # all that failed at once, and not only the first, which the message names
            culprits, elements = step.threads[beyond], step.elements[beyond]
        threads = grid.centres(culprits)
        yield _squares("agt-wrong", threads, grid.size)
        if array is None or site.index is None:
            return
        element = array.centres(elements)
        yield _squares("agt-wrong", np.unique(element, axis=0), array.size)
        below, above = threads + _HALF * grid.size, element - _HALF * array.size
        each = zip(culprits.tolist(), elements.tolist(), strict=True)
        wrote = [[self._wrote(site.array or step.array, *one)] for one in each]
        ends = np.where(wrote, np.hstack([below, above]), np.hstack([above, below]))
        yield from (_line("agt-wrong-link", end) for end in ends)
        what = f"{site.array}[{site.index}]"
        if (last := elements[(elements < 0) == (elements[0] < 0)].max()) > site.index:
            what += f" to {site.array}[{last}] do not exist"
        elif isinstance(self.watched.fault, OutOfBoundsError):
            what += " does not exist"
        most = _WIDTH - _GAP - text_width(what, 13.5)  # it is bold
        left = max(min(element[0][0] - array.size / 2, most), _GAP)
        yield svg_text("agt-bad", left, array.end[1] + 26, what)

    def _wrote(self, array: str, thread: int, element: int) -> bool:
        """Whether the last step in which this thread touched this element is a write."""
        for step in reversed(self.steps):
            its = (step.threads == thread) & (step.elements == element)
            if step.array == array and its.any():
                return step.write
        return self.steps[-1].write


def _array(shape: tuple[int, ...], most: float) -> _Cells:
    """The cells of an array, as large as they fit, each of one element or of as many as it takes."""
    each, room = 1, _WIDTH - 4 * _GAP
    while True:
        cells = -(-max(int(np.prod(shape)), 1) // each)
        for size in (s for s in _SIZES if s <= most):
            # A flat array gets rows of 32, 64 and so on, as many as fit, so that no warp breaks.
            across = min(cells, max(room // size // 32, 1) * 32)
            if len(shape) > 1:
                across = min(-(-max(shape[-1], 1) // each), room // size)
            if across * size <= room and -(-cells // across) * size <= _ROOM:
                row, column = np.divmod(np.arange(cells), across)
                return _Cells(np.column_stack([column, row]) * float(size), size, each)
        each *= 2


def _verb(step: AccessSite, one: bool) -> str:
    verb = "use" if step.atomic else "write" if step.write else "read"
    return f"{verb}{'s' if one else ''}{' an atomic on' if step.atomic else ''}"


def svg_text(css: str, x: float, y: float, said: str) -> str:
    """A line of text of a class of `style.css`."""
    return f'<text class="{css}" x="{x:.0f}" y="{y:.0f}">{escape(said)}</text>'


def _squares(css: str, centres: _Points, size: float) -> str:
    """One path for all of them: thousands of cells are one element."""
    side = size - 1.2
    path = "".join(
        f"M{x - side / 2:.1f} {y - side / 2:.1f}h{side:.1f}v{side:.1f}h{-side:.1f}z"
        for x, y in centres
    )
    return f'<path class="{css}" d="{path}" pointer-events="none"/>'


def _line(css: str, ends: NDArray[np.float64]) -> str:
    x, y, u, v = ends
    back = np.hypot(u - x, v - y) or 1.0
    dx, dy = (u - x) / back * 6, (v - y) / back * 6  # the head is six pixels long
    return (
        f'<path class="{css}" d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}'
        f"M{u - dx + dy / 2:.1f} {v - dy - dx / 2:.1f}L{u:.1f} {v:.1f}"
        f'L{u - dx - dy / 2:.1f} {v - dy + dx / 2:.1f}" pointer-events="none"/>'
    )


def show_threads(
    kernel: Kernel,
    *args: Any,
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
    shared_mem: int = 0,
    lesson: str = "",
) -> Threads:
    """Run one launch and see its threads: which take part in each step, and what they read and write.

    The launch runs in the interpreter, on copies, also of the kernel's `constants`: nothing runs on a device,
    and no array is changed or moved. An access out of bounds, a race or another fault is no error here but in
    the picture, in red, at the very thread.

    Parameters
    ----------
    kernel : Kernel
        What to launch.
    *args
        As for a call of the kernel: numbers, and for pointers NumPy arrays or device arrays.
    grid, block : int or tuple of int
        As for a call of the kernel; at most 4096 threads. May be left out if an argument is a partition.
    shared_mem : int
        Bytes of `extern __shared__` memory.
    lesson : str
        What is to be seen, in a sentence or two, as for `plot`.

    Returns
    -------
    Threads
        As the last line of a cell a live view of all steps; where nothing can be live, a picture of up to
        three.

    Raises
    ------
    UsageError
        If an argument is missing, or the launch has too many threads to be drawn.

    Examples
    --------
    >>> import asyncgpu_tutor as agt, numpy as np
    >>> x = np.arange(40, dtype=np.float32)
    >>> seen = agt.show_threads(agt.relu, 40, x, np.zeros_like(x), grid=2, block=32)
    >>> print(seen.step(0).splitlines()[1])
    40 threads read input, 24 idle
    """
    arrays, given = copied("show_threads", kernel, args, lesson)
    chosen = configuration(kernel.name, args, grid, block)
    seen = Watched(kernel.name, kernel.source, *chosen)
    if seen.threads > _MOST_THREADS:
        raise UsageError(
            f"show_threads draws every thread, at most {_MOST_THREADS}, and this launch has {seen.threads}: "
            "show a smaller one. What holds for four blocks holds for a thousand"
        )
    for name, array in arrays.items():
        seen.shapes[name], seen.sizes[name] = array.shape, array.itemsize
    freshly(seen.run)(given, shared_mem, variables_of(kernel))
    seen.fault = seen.fault and fresh(seen.fault)
    return Threads(seen, lesson)


def copied(
    verb: str, kernel: Kernel, args: Sequence[Any], lesson: str
) -> tuple[dict[str, NDArray[Any]], list[Any]]:
    """The arrays of a launch by name, and its arguments with copies of them, for the interpreter."""
    demand(kernel, Kernel, f"{verb} takes a Kernel")
    demand(lesson, str, "the lesson of a picture is a text")
    parameters = kernel._signature.parameters
    if len(args) != len(parameters):
        raise UsageError(kernel._signature.miscounted(args))
    arrays: dict[str, NDArray[Any]] = {}
    given: list[Any] = []
    known: dict[int, Any] = {}  # copies, by what they are of: one array that is given twice is one
    for parameter, arg in zip(parameters, args, strict=True):
        if not parameter.pointer:
            given.append(arg)
            continue
        array = arrays[parameter.name] = _on_host(verb, kernel.name, parameter.name, arg)
        if parameter.dtype is not None and array.dtype != parameter.dtype:
            raise ArrayDTypeError(
                f"{verb}: '{parameter.name}' of {kernel.name}() is {array.dtype}, and the kernel takes "
                f"{parameter.dtype}: convert it with astype(np.{parameter.dtype})"
            )
        held = arg.array if isinstance(arg, Partition) else arg
        of = id(held.memory if isinstance(held, DeviceArray) else held)
        if of not in known:
            known[of] = memory_of(array, parameter.name)
        given.append(known[of])
    return arrays, given


def variables_of(kernel: Kernel) -> dict[str, Any]:
    """Copies of a kernel's variables, as they are on the current device, for the interpreter."""
    return {name: memory_of(value, name) for name, value in kernel.constants.known().items()}


def _on_host(verb: str, kernel: str, name: str, given: Any) -> NDArray[Any]:
    array = given.array if isinstance(given, Partition) else given
    if isinstance(array, DeviceArray):
        return d2h(array.borrow()).sync()
    if not isinstance(array, np.ndarray):
        raise ArrayDTypeError(
            f"{verb}: the parameter '{name}' of {kernel}() is a pointer: give it a NumPy array or a "
            f"DeviceArray, not {type(given).__name__}"
        )
    return cast("NDArray[Any]", array)
