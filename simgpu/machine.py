"""One simulated host: its clock, its devices' common engine, and who waits for what."""

import math
import threading
import time
import weakref
from _signal import SIGINT, getsignal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from simgpu.common import BytePlaces, HostBytes, Pinned, as_element_type, as_lengths
from simgpu.engine import Engine
from simgpu.errors import DeviceError, HostBufferError, UsageError
from simgpu.interrupts import held_back, hold
from simgpu.links import Wiring
from simgpu.order import BufferAccess, Clock, HostHistory
from simgpu.queues import Command, EngineEvent, Queue

P = ParamSpec("P")
R = TypeVar("R")

Wake = Callable[[BaseException | None], None]

# How long, in seconds, a kernel may wait for a host that does nothing but wait too. Only a program that is
# about to fail, or whose host has other things to wait for, takes that long, and no time of the model depends
# on it.
_PATIENCE_S = 1.0

# How many host arrays are watched for changes under a copy that is done, when nobody looks whether it is: a
# program that never waits would keep all of them.
MOST_LENT = 256


class _OnMachine(Protocol):
    lock: threading.RLock


M = TypeVar("M", bound=_OnMachine)


def exclusive(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Let one thread at a time into the machine, whose lock the method's object has, and no interrupt."""

    @wraps(method)
    def alone(self: M, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            if getsignal(SIGINT) is hold:
                return method(self, *args, **kwargs)
            return held_back(method, self, *args, **kwargs)

    return alone


@dataclass(frozen=True, eq=False, slots=True)
class _Waiter:
    owner: object  # who is gone when nobody is to be woken any more: see `Machine.gone`
    event: EngineEvent
    before: Clock  # the work that is complete once it has passed
    wake: Wake
    delay: float  # us that the host needs, from the event to whoever awaits it


@dataclass(eq=False, slots=True)
class _Lent:
    """A host array that a device reads or writes, or is yet to."""

    access: BufferAccess
    before: Clock  # what comes before that
    source: HostBytes
    what: str  # for the message
    held: int  # a checksum of what it holds until then

    def check(self) -> None:
        if crc32(self.source.data) != self.held:
            raise HostBufferError(
                f"the pinned host array behind {self.what} may have been in flight: leave it alone until the "
                "operation has completed, or give each copy a host array of its own"
            )


class Machine:
    """A host and the engine behind it.

    The host's clock stands still while Python runs, and moves by what each call costs, by explicit work,
    and by waiting. What is called by devices, streams and events only is not `exclusive`, because their own
    methods, which call it, are.
    """

    pinned_by = "device.pinned"  # what a program calls for pinned memory, for messages

    def __init__(self) -> None:
        # Held by whoever uses the machine. Nothing here starts a thread, but programs do.
        self.lock = threading.RLock()
        # The host's clock, in us. Never behind `engine.now`.
        self.host = 0.0
        self.seen = Clock()  # the work that the host knows to be complete
        self._done = Clock()  # the work that is complete, known or not
        self.engine = Engine()
        # The bytes of each, and how many were asked for.
        self._pinned: dict[int, tuple[weakref.ref[HostBytes], int]] = {}
        # For each array that a kernel can see, by the `id` of its room: see `GlobalMemory.looked`.
        self.looks = weakref.WeakValueDictionary[int, deque[BytePlaces]]()
        self.calls = 0  # of the host, to any of its devices
        self.host_history = HostHistory()
        self._lent: list[_Lent] = []
        self._waiters: list[_Waiter] = []
        # How many things the host is at work on for the sake of a kernel that waits for them.
        self.answering = 0
        self.patience_s = _PATIENCE_S
        self.wiring = Wiring()  # how its devices reach each other
        self._patient_since: float | None = None

    @property
    def patient(self) -> bool:
        """True while a kernel waits for the host, which is given time to answer."""
        return self._patient_since is not None

    @exclusive
    def spend(self, us: float) -> tuple[float, float]:
        """The host is busy for `us` microseconds; start and end."""
        if not 0 <= us < math.inf:
            raise UsageError(f"the host can't be busy for {us} us: a time is a number, not below 0")
        self.calls += 1
        start, self.host = self.host, self.host + us
        self.engine.run_until(self.host)
        return start, self.host

    def block_on(self, event: EngineEvent, delay: float) -> tuple[float, float]:
        """The host waits for `event`, and needs `delay` us to notice; start and end."""
        self.calls += 1
        self._forget_gone()
        start, failed = self.host, len(self.engine.failures)
        try:
            passes = self.engine.run_to(event)
        except KeyboardInterrupt:
            if len(self.engine.failures) > failed:  # what was interrupted, and the rest is skipped
                self.engine.run_to(event)
            raise
        while not passes and self.engine.give_up():  # since the host is blocked, and will not help
            passes = self.engine.run_to(event)
        if not passes:
            raise DeviceError("the simulated device waits for something that can never happen")
        self.host = max(self.host, event.at) + delay
        return start, self.host

    # Pinned for one device is pinned for all: CUDA Driver API, "Unified Addressing".
    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> HostBytes:
        """A host array that counts as page-locked."""
        what = "a pinned array"
        lengths, dtype = as_lengths(shape, what), as_element_type(dtype, what)
        nbytes = math.prod(lengths) * dtype.itemsize
        # A multiple of 16 bytes, for `GlobalMemory` to lie on.
        room: HostBytes = np.empty(max(-(-nbytes // 16), 1) * 16, np.uint8)
        key = id(room)
        known = self._pinned
        # The callback has no bytecode for Ctrl-C to end.
        known[key] = weakref.ref(room, partial(known.pop, key)), nbytes
        array = room[:nbytes].view(dtype).reshape(lengths).view(Pinned)
        array.look = self.look
        return array

    def look(self, array: HostBytes, chosen: NDArray[np.bool_] | None = None) -> None:
        """The host reads an array, or elements of it: `HostBufferError` if a device may be writing there."""
        self.host_history.look(array, chosen)
        room = self._pinned_room(array) if self.looks else None
        if room is not None and (known := self.looks.get(id(room))) is not None:
            start, begins = (x.__array_interface__["data"][0] for x in (array, room))
            first, steps = start - begins, (*[8 * step for step in array.strides], 8)
            if array.flags.forc and chosen is None:
                known.append(slice(first, first + array.nbytes))
            else:  # the view that it is of its bytes, of their numbers
                shape, numbers = (*array.shape, array.itemsize), np.arange(room.nbytes)
                places = np.ndarray(shape, np.int64, numbers, 8 * first, steps)
                known.append((places if chosen is None else places[chosen]).ravel())

    def room_of(self, array: HostBytes) -> HostBytes:
        """The bytes of a whole pinned array, and its padding."""
        found = self._pinned_room(array)
        asked = None if found is None else self._pinned[id(found)][1]
        if found is not None and array.nbytes == asked and array.flags.c_contiguous:
            return found
        raise UsageError(
            f"a kernel sees a pinned array in place, as a whole: {self.pinned_by}(shape, dtype) makes one, "
            f"and this one, of shape {array.shape}, is a part of another, not C-contiguous or not pinned"
        )

    def is_pinned(self, array: HostBytes) -> bool:
        """True if `pinned` made this array or the one that it is a view of, or if it has no bytes."""
        return array.nbytes == 0 or self._pinned_room(array) is not None

    def _pinned_room(self, array: Any) -> HostBytes | None:
        while array is not None:
            known = self._pinned.get(id(array))
            if known is not None and known[0]() is array:
                return cast(HostBytes, array)
            array = getattr(array, "base", None)
        return None

    def make_room(self) -> None:
        """Take back what is over, where much is lent: `HostBufferError` if that was changed too early."""
        if len(self._lent) >= MOST_LENT:
            self._take_back(self._done)

    def lend(self, access: BufferAccess, before: Clock, source: HostBytes, what: str) -> None:
        """A device uses a host array; it is checked when the host has seen that `access` is complete."""
        # A checksum, because copies of all arrays in flight would take as much memory again.
        self._lent.append(_Lent(access, before, source, what, crc32(source.data)))

    def fill(
        self, access: BufferAccess, before: Clock, targets: list[HostBytes], write: Callable[[], R]
    ) -> R:
        """A device writes to host arrays. Where one is lent, and the two are in order, it may."""
        found = [
            lent
            for lent in self._lent
            if (before.covers(lent.access) or lent.before.covers(access))
            and any(np.may_share_memory(lent.source, target) for target in targets)
            and crc32(lent.source.data) == lent.held
        ]
        out = write()
        for lent in found:
            lent.held = crc32(lent.source.data)
        return out

    def observe(self, before: Clock) -> None:
        """The host learns that the work `before` a point is complete.

        Raises `HostBufferError` if a host array was changed while that work may have been reading it.
        """
        self.seen.merge(before)
        self._take_back(self.seen)

    def over(self, access: BufferAccess) -> None:
        """This work is complete, or was skipped."""
        self._done.add(access)

    def _take_back(self, known: Clock) -> None:
        """Host arrays may be changed again when what used them is over."""
        self.host_history.forget(known)
        if not self._lent:
            return
        back = [lent for lent in self._lent if known.covers(lent.access)]
        if back:
            self._lent = [lent for lent in self._lent if not known.covers(lent.access)]
            for lent in back:
                lent.check()

    def settle(self) -> None:
        """Simulate until nothing is left; the host's clock follows."""
        self.calls += 1
        self._forget_gone()
        self.engine.run_dry()
        self.host = max(self.host, self.engine.now)

    @exclusive
    def watch(self, event: EngineEvent, before: Clock, wake: Wake, delay: float) -> None:
        """Call `wake` once, when `event` has passed and `advance` or `wake` is called."""
        self._forget_gone()
        self._waiters.append(_Waiter(self.who_waits(), event, before, wake, delay))

    def who_waits(self) -> object:
        """Whoever asks to be woken, and may be `gone` by then."""
        return None

    def unwatch(self, wake: Wake) -> None:
        """Nobody waits for it any more."""
        with self.lock:
            self._waiters = [waiter for waiter in self._waiters if waiter.wake is not wake]

    def gone(self, owner: object) -> bool:
        """True if nobody is left to wake for `owner`, because its event loop is closed, for example."""
        return False

    def waits(self, owner: object) -> bool:
        """True while something is still watched for `owner`."""
        return any(waiter.owner is owner for waiter in self._waiters)

    def _forget_gone(self) -> None:
        """Nobody comes any more for what a closed loop has waited for, and it holds on to arrays."""
        self._waiters = [w for w in self._waiters if not self.gone(w.owner)]

    @exclusive
    def timer(self, us: float) -> tuple[EngineEvent, Queue]:
        """An event that passes in `us` microseconds, and the queue that holds it until then."""
        event = EngineEvent()
        queue = self.engine.queue(device=-1)
        self.engine.submit(queue, Command("none", self.host + us, records=event))
        queue.orphaned = True
        return event, queue

    @exclusive
    def advance(self) -> None:
        """Move to the next event that somebody waits for, and wake them."""
        waiters = self._waiters
        looks = self.engine.looks
        if self.engine.paused:
            # What the host has written until now, a kernel sees no sooner than now.
            self.engine.run_until(self.host, ask=False)
        passes = self.engine.run_to(*[w.event for w in waiters])
        if passes or looks != self.engine.looks:
            self._patient_since = None
        if not passes and self.engine.paused:  # only the host could help, which may do so later
            now = time.monotonic()
            if self.answering or self._patient_since is None:
                self._patient_since = now
            elif now - self._patient_since > self.patience_s:
                self._patient_since = None
                self.engine.give_up()
            return
        if not passes:
            self._waiters = []
            for waiter in waiters:
                waiter.wake(DeviceError("the simulated device waits for what can never happen"))
            return
        self.wake()

    @exclusive
    def wake(self) -> None:
        """Wake those whose event has passed, in the order of the events."""
        passed = [w for w in self._waiters if w.event.passed]
        for waiter in sorted(passed, key=lambda w: w.event.at):  # stable: ties in order of asking
            self._waiters.remove(waiter)
            self.host = max(self.host, waiter.event.at) + waiter.delay
            error = waiter.event.error
            self.engine.told(error)
            try:
                self.observe(waiter.before)
            except HostBufferError as changed:
                error = error or changed
            waiter.wake(error)
