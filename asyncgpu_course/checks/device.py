"""The device on which answers are tried: it knows who waited, and who made the numbers that came back."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.internals import SimDevice, SimMachine

_Array = npt.NDArray[Any]
ASIDE = "aside"  # in the detail of what another thread than the check's did, or waited for
GOES_ON = "goes on"  # as above, of a wait for a further stream in one `synchronize` of the device
ELSEWHERE_S = 0.02  # for which other threads may go on before one waits
_CURE = "Have kernels do all of the work"
_STEPS = 30_000  # loop iterations; right answers need 9,000, and an endless loop is told in seconds
STALE, GARBAGE = b"\x7f", b"\x7e"  # the bytes of host and device memory that nobody has written yet
SAMPLE = 97  # of so many numbers of a result one is looked at, where there are many


@dataclass
class Moved:
    """The bytes that were copied to a device, and those that came from memory which kernels had written."""

    # In the order of the copies: true for one to the device.
    copies: list[tuple[bool, _Array]] = field(default_factory=list[tuple[bool, _Array]])
    # The pinned arrays that copies to the device came from; None for pageable memory.
    sources: list[Any] = field(default_factory=list[Any])
    # Memory of which somebody wants to know what each kernel leaves there, and that.
    kept: Any = None
    left: list[_Array] = field(default_factory=list[_Array])

    def by_kernels(self, results: object, *given: object) -> None:
        """Refuse numbers that the host computed, not kernels from what was `given`; it may send them back."""
        parts = [part.astype(np.float32) for part in host_arrays(results)]
        total = _bits(parts)
        every = SAMPLE if total.size > 1e6 else 1
        numbers = np.unique(total[::every])
        cause = "what came out, or a part of it, is in no copy from memory that a kernel has "
        cause += f"written: the host has computed it, or kept it from an earlier call. {_CURE}"
        came = _sorted([array for up, array in self.copies if not up])
        must(bool(_among(numbers, came).all()), cause)
        known, down = [np.zeros(1, np.float32), *host_arrays(given)], list[_Array]()
        made, uploads, theirs, back = set[int](), set[bytes](), _sorted(known), None
        whole = {part.tobytes() for part in known}
        for up, array in self.copies:
            if not up:
                down, back = [*down, array], None
            new = np.unique(_bits([array] if up else [])[::every])
            new = new[~_among(new, theirs)]
            if new.size:
                back = _sorted(down) if back is None else back
                made |= set(new[~_among(new, back)].tolist())
            (uploads if up and array.tobytes() not in whole else whole).add(array.tobytes())
        copied = any(part.tobytes() in uploads for part in parts)
        cause = "the results, or what they are made of, were on the host first, and were copied to "
        cause += "the device from there: the host has computed them, or copied them before their "
        must(2 * len(made) <= len(numbers) and not copied, cause + f"time. {_CURE}")


def host_arrays(things: object) -> list[_Array]:
    """The arrays among these things, which may be handles, or lists of others."""
    if isinstance(things, list | tuple):
        return [array for thing in cast(Sequence[Any], things) for array in host_arrays(thing)]
    if isinstance(things, agt.types.HostArray):
        return [things.numpy()]
    numbers = isinstance(things, np.ndarray) and not cast(_Array, things).dtype.hasobject
    return [cast(_Array, things)] if numbers else []


def _bits(parts: Sequence[_Array]) -> npt.NDArray[np.uint32]:
    flat = [np.ascontiguousarray(part).view(np.uint8).ravel() for part in parts]
    words = [part[: part.size // 4 * 4].view(np.uint32) for part in flat]
    return np.concatenate([np.zeros(0, np.uint32), *words])


def _sorted(parts: Sequence[_Array]) -> _Array:
    return np.sort(np.append(_bits(parts), np.uint32(0xFFFFFFFF)))  # which no float is


def _among(numbers: _Array, found: _Array) -> _Array:
    """Which numbers, best in order, are among the sorted ones; `numpy.isin` takes ten times as long."""
    return found[np.searchsorted(found, numbers)] == numbers


class CheckDevice(SimDevice):
    """A simulated device on a machine of its own, unless it shares one with others."""

    step_budget = _STEPS
    most_turns = 500  # right answers need 32

    def __init__(self, ordinal: int = 0, **options: Any) -> None:
        self.moved: Moved | None = None  # while somebody wants to know
        self.fleet: Sequence[CheckDevice] = (self,)  # it, and those of its machine
        self._waited_for: int | None = None  # streams, while the device is waited for
        self._room = 0  # bytes of the array that is being made
        self._home = threading.get_ident()
        options.setdefault("machine", SimMachine())
        super().__init__(ordinal, **options)

    def synchronize(self) -> None:
        """Wait for stream after stream, which is one wait of the host's."""
        self._waited_for = 0
        try:
            super().synchronize()
        finally:
            self._waited_for = None

    def _host_span(self, kind: Any, *what: Any, **more: Any) -> int | None:
        if kind in ("wait", "work") and threading.get_ident() != self._home:
            more["detail"] = {**(more.get("detail") or {}), ASIDE: True}
        if kind == "wait" and self._waited_for is not None:
            if self._waited_for:
                more["detail"] = {**(more.get("detail") or {}), GOES_ON: True}
            self._waited_for += 1
        if str(what[0]).startswith("malloc "):
            more["detail"] = {"bytes": self._room}
        return super()._host_span(kind, *what, **more)

    def block(self, *what: Any, **more: Any) -> None:
        """Wait as the simulated device does, whose time goes on; other threads have a turn before."""
        if threading.get_ident() != self._home:
            threading.Condition(self.lock).wait(ELSEWHERE_S)
        super().block(*what, **more)

    def enqueue(self, piece: Any, *where: Any, **how: Any) -> None:
        """Enqueue as the simulated device does, and note who writes what."""
        computed = piece.kind == "kernel" or any(m.computed for m in piece.reads)
        for memory in piece.writes:
            memory.computed = computed
        if self.moved is not None:
            self.moved.sources += [piece.lent] if piece.kind == "h2d" else []
            piece = _noted(piece, self.moved, computed)
        super().enqueue(piece, *where, **how)

    def malloc(self, nbytes: int, name: str, stream: object) -> Any:
        """Allocate memory that holds no zeros by luck."""
        self._room = nbytes
        memory = super().malloc(nbytes, name, stream)
        memory.cells.data[:] = ord(GARBAGE)
        return memory

    def pinned(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> _Array:
        """Make a pinned array that does not hold, by luck, what is to be copied there."""
        array = super().pinned(shape, dtype)
        array.reshape(-1).view(np.uint8)[:] = ord(STALE)
        return array

    def memory_of(self, cells: Any, ptr: int) -> Any:
        """Return memory whose bytes no kernel has written yet."""
        memory: Any = super().memory_of(cells, ptr)
        memory.computed = False
        return memory


def _noted(piece: Any, moved: Moved, computed: bool) -> Any:
    """Have a piece of work write down what it moves between device and host."""

    def begin(found: Any) -> Any:
        work = piece.begin(found)
        if piece.kind == "h2d":
            moved.copies.append((True, piece.writes[0].cells.data[: piece.detail["bytes"]].copy()))
        if piece.kind == "kernel":
            moved.left += [m.cells.data.copy() for m in piece.writes if m is moved.kept]
            moved.copies += [(False, m.cells.data.copy()) for m in piece.writes if m.cells.mapped]
        return work

    def at_end() -> None:
        piece.at_end()
        moved.copies.append((False, piece.fills.copy()))

    down = piece.kind == "d2h" and computed
    return replace(piece, begin=begin, at_end=at_end if down else piece.at_end)


@contextmanager
def moved() -> Generator[Moved]:
    """Note what is moved between the host and the devices in the block."""
    devices = cast(CheckDevice, agt.current_device()).fleet
    noted = Moved()
    for device in devices:
        device.moved = noted
    try:
        yield noted
    finally:
        for device in devices:
            device.moved = None
