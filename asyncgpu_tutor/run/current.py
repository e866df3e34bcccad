"""The devices, the policies that choose a stream, and which of both are current."""

from __future__ import annotations

import itertools
import math
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from typing import Any

from asyncgpu_tutor.devices.opening import open_device, own_streams
from asyncgpu_tutor.devices.protocol import Device, Stream
from asyncgpu_tutor.errors import (
    DeviceMismatchError,
    DeviceUnavailableError,
    NotAnOperationError,
    UsageError,
    demand,
)

_VARIABLE = "ASYNCGPU_DEVICE"
_FORM = re.compile(r"auto|(sim|cuda)(:[0-9]+)?")
FORMS = "'auto', 'sim', 'sim:1', 'cuda' or 'cuda:1'"


class SchedulingPolicy(ABC):
    """Decides which stream an operation runs on.

    Subclass it and write `next_stream`. A policy belongs to one device: the one given, or else the one
    that is current when the policy is first used.

    Parameters
    ----------
    device : Device or str, optional
        Where its streams are.
    """

    _device: Device | None = None  # here, too: a subclass may forget super().__init__()
    _streams_in_words = ""
    devices: tuple[Device, ...] = ()  # where it deals out several; a recording has the work of each

    def __init__(self, device: Device | str | None = None) -> None:
        self._device = None if device is None else resolve(device)

    def __repr__(self) -> str:
        where = "no device yet" if self._device is None else f"on {self._device.name}"
        return f"<{type(self).__name__}{self._streams_in_words}, {where}>"

    @abstractmethod
    def next_stream(self) -> Stream:
        """The stream for the next operation. Called once for each, in the order in which they run."""

    def instead(self, stream: Stream, beside: Set[Stream]) -> Stream:
        """Another stream for an arm of an `overlap`, if `next_stream` chose one where other arms run."""
        return stream

    @property
    def device(self) -> Device:
        """The device of its streams; `UsageError` before its first use."""
        if self._device is None:
            raise UsageError(
                f"this {type(self).__name__} has no device yet: it gets one when an operation first "
                "uses it, or from its constructor"
            )
        return self._device

    @property
    def home(self) -> Device | None:
        """The device that all of its streams are on; None for one that deals them out over several."""
        return None if self.devices else self._device

    def at(self, device: Device) -> SchedulingPolicy:
        """The policy for what has to run on this device: itself, unless it deals out several."""
        return self

    def bind(self, device: Device) -> None:
        """Settle the device.

        Raises
        ------
        DeviceMismatchError
            If it is settled already, and another one.
        """
        if device in self.devices:  # of several it serves each
            return
        if self._device not in (None, device):
            home = self._device.name
            homes = " and ".join([each.name for each in self.devices]) or home
            here = "another device of that name" if home == device.name else device.name
            raise DeviceMismatchError(
                f"this {type(self).__name__} belongs to {homes}, and the current device is {here}: make one "
                f"policy for each device, or run the operation in a block of agt.using({home!r}, policy)"
            )
        self._device = device


class SingleStream(SchedulingPolicy):
    """Everything on one stream, in the order in which it was asked for.

    Parameters
    ----------
    stream : Stream, optional
        Which one, or a `cupy.cuda.Stream`; a new one by default.
    """

    def __init__(self, stream: Stream | None = None, device: Device | str | None = None) -> None:
        # A stream of another library does not tell which of our devices it is on, so it is looked at when it
        # is first used.
        known: Device | None = None if stream is None else getattr(stream, "device", None)
        super().__init__(known if hasattr(known, "create_stream") else device)
        self._stream = stream
        self._streams_in_words = "" if stream is None else f" of {stream!r}"

    def next_stream(self) -> Stream:
        """Always the same one."""
        if self._stream is None:
            self._stream = self.device.create_stream()
            self._streams_in_words = f" of {self._stream!r}"
        return self._stream


class StreamPoolRoundRobin(SchedulingPolicy):
    """A fixed number of streams, each in its turn.

    Parameters
    ----------
    size : int
        How many streams on each device, at least 1.
    devices : sequence of Device or str, optional
        Several devices, in place of one: operations go to them in turn, and so do the arms of an `overlap`.
        Their arrays have to be where they run, so let each operation make its own, or choose by
        ``context.device``.

    Raises
    ------
    UsageError
        If there would be no stream.
    """

    def __init__(
        self,
        size: int = 4,
        device: Device | str | None = None,
        *,
        devices: Sequence[Device | str] = (),
    ) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(f"a pool needs at least one stream, and {size!r} was asked for")
        pools = [StreamPoolRoundRobin(size, resolve(each)) for each in devices]
        super().__init__(pools[0].device if pools else device)
        self._pools = {pool.device: pool for pool in pools}
        self.devices = tuple(self._pools)
        self.size = size
        self._streams_in_words = f" over {size} stream{'s' if size != 1 else ''}"
        self._streams: list[Stream] = []
        self._turn = itertools.count()
        self._lock = threading.Lock()

    def next_stream(self) -> Stream:
        """The next one; streams are created when their turn first comes."""
        if self._pools:
            pools = list(self._pools.values())
            return pools[next(self._turn) % len(pools)].next_stream()
        turn = next(self._turn) % self.size
        return self._streams[turn] if turn < len(self._streams) else self._at(turn)

    def _at(self, turn: int) -> Stream:
        if turn >= len(self._streams):
            with self._lock:
                while turn >= len(self._streams):  # other threads may have taken turns before this
                    self._streams.append(self.device.create_stream())
        return self._streams[turn]

    def instead(self, stream: Stream, beside: Set[Stream]) -> Stream:
        """The first one after it, in turn, on which no other arm runs; or the same."""
        pool = self._pools.get(stream.device, self)
        place = pool._streams.index(stream) if stream in pool._streams else 0  # it may be another's
        others = (pool._at((place + n) % pool.size) for n in range(pool.size))
        return next((other for other in others if other not in beside), stream)

    def at(self, device: Device) -> SchedulingPolicy:
        """Its streams of one device."""
        return self._pools.get(device, self)


@dataclass(eq=False, slots=True)
class _Choice:
    device: Device | None = None
    policy: SchedulingPolicy | None = None
    default: SchedulingPolicy | None = None  # of a device that nobody else knows
    # The policy that was found with this choice in a scope, and with what choice of the process.
    found: tuple[_Choice, SchedulingPolicy] | None = None


_devices: dict[str, Device] = {}
_policies: dict[str, SchedulingPolicy] = {}
_process = _Choice()
_NOTHING = _Choice()
_openings: list[Callable[[Device], None]] = []
_opening = threading.RLock()  # opening a GPU takes long enough for a second thread to ask for it
_scoped: ContextVar[_Choice] = ContextVar("asyncgpu_choice", default=_NOTHING)


def resolve(name: str | Device) -> Device:
    """The device of that name; it is created when first asked for.

    Parameters
    ----------
    name : str or Device
        ``"sim"`` or ``"sim:N"``: simulated, any number of them; the environment variable
        ``ASYNCGPU_SPEC`` says which GPU they imitate (``h200``, ``t4``, ``l4``, ``a100``, ``rtx4090``, or
        a file that ``tools/calibrate.py`` wrote). ``"cuda"`` or ``"cuda:N"``: an NVIDIA
        GPU. ``"auto"``: what ``ASYNCGPU_DEVICE`` says where it is set, else the first GPU where there is
        one, else ``"sim"``.

    Raises
    ------
    DeviceUnavailableError
        If it is not on this machine. There is no fallback.
    """
    if not isinstance(name, str) and hasattr(name, "create_stream"):
        return name
    if not isinstance(name, str) or not _FORM.fullmatch(name):
        raise UsageError(f"{name!r} is not a device: say {FORMS}")
    if name == "auto":
        name = _from_environment()
    if name == "auto":
        try:
            return resolve("cuda:0")
        except DeviceUnavailableError:
            return resolve("sim:0")
    kind, _, number = name.partition(":")
    ordinal = int(number or "0")
    key = f"{kind}:{ordinal}"
    if key not in _devices:
        with _opening:
            if key not in _devices:  # no other thread has opened it meanwhile
                device = _devices[key] = open_device(kind, ordinal)
                for opened in _openings:
                    opened(device)
    return _devices[key]


@contextmanager
def on_open(callback: Callable[[Device], None]) -> Generator[None]:
    """Call `callback` for each device that is first used while a block runs."""
    _openings.append(callback)
    try:
        yield
    finally:
        _openings.remove(callback)


def _from_environment() -> str:
    name = os.environ.get(_VARIABLE, "") or "auto"
    if not _FORM.fullmatch(name):
        raise UsageError(
            f"the environment variable {_VARIABLE} is {name!r}, which is not a device: say {FORMS}"
        )
    return name


def known_devices() -> list[Device]:
    """The devices that have been used so far, and those of the policy in use; the current one first."""
    policy = _scoped.get().policy
    others = () if policy is None else policy.devices
    return list(dict.fromkeys([current_device(), *others, *_devices.values()]))


def current_device() -> Device:
    """The device that operations run on unless told otherwise.

    It is the one of the innermost `using`, else of the last `use`, else what the environment variable
    ``ASYNCGPU_DEVICE`` says, else ``"auto"``.
    """
    global _process  # noqa: PLW0603 - the process has one choice
    choice = _scoped.get()
    if choice.device is not None:
        return choice.device
    if _process.device is None:
        found = resolve("auto")
        with _opening:
            if _process.device is None:  # no other thread has chosen meanwhile
                _process = _Choice(found)
    assert _process.device is not None
    return _process.device


def policy_for(device: Device) -> SchedulingPolicy:
    """The policy that operations on this device use unless told otherwise.

    It is the one that was chosen with the device, else `StreamPoolRoundRobin(4)`, made when first needed.
    """
    return _policy_for(device, _scoped.get(), _process)


def _policy_for(device: Device, scoped: _Choice, process: _Choice) -> SchedulingPolicy:
    for chosen in (scoped.policy, process.policy, scoped.default, process.default):
        if chosen is not None and (chosen.device is device or chosen.at(device) is not chosen):
            return chosen
    policy = _policies.get(device.name)
    if policy is None or policy.device is not device:
        policy = StreamPoolRoundRobin(4, device)
        if _devices.get(device.name) is device:
            _policies[device.name] = policy
    return policy


def check_policy(policy: SchedulingPolicy) -> SchedulingPolicy:
    """The policy; `NotAnOperationError` if it is none."""
    if not isinstance(policy, SchedulingPolicy):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise NotAnOperationError(
            f"{policy!r} is not a scheduling policy: use agt.StreamPoolRoundRobin(4), "
            "agt.SingleStream(), or a subclass of agt.SchedulingPolicy"
        )
    return policy


def _choose(device: Device, policy: SchedulingPolicy | None) -> _Choice:
    """The choice of both. A device that was not made here has a default policy for as long as that."""
    if policy is not None:
        check_policy(policy).bind(device)
    private = _devices.get(device.name) is not device
    return _Choice(device, policy, StreamPoolRoundRobin(4, device) if private else None)


def current_policy() -> SchedulingPolicy:
    """The policy that operations use unless told otherwise."""
    scoped = _scoped.get()
    found = scoped.found
    if found is None or found[0] is not _process:
        # The choice is looked at once, since another thread may choose something else any time.
        device, process = current_device(), _process
        policy = _policy_for(scoped.device or process.device or device, scoped, process)
        found = scoped.found = (process, policy)
    return found[1]


def use(device: str | Device = "auto", policy: SchedulingPolicy | None = None) -> Device:
    """Choose the device, and optionally the policy, for the whole process.

    Parameters
    ----------
    device : str or Device
        ``"sim:1"``, ``"cuda:1"``, or ``"auto"``: what ``ASYNCGPU_DEVICE`` says where it is set, else the
        first GPU where there is one, else ``"sim"``. See `resolve`.
    policy : SchedulingPolicy, optional
        Default: four streams in turn.

    Returns
    -------
    Device
        What was chosen; show it, so that a reader knows.
    """
    global _process  # noqa: PLW0603 - the process has one choice
    chosen = resolve(device)
    with _opening:
        _process = _choose(chosen, policy)
    return chosen


@contextmanager
def using(
    device: str | Device | None = None, policy: SchedulingPolicy | None = None
) -> Generator[Device]:
    """Choose device or policy, or both, for a block of code and for the tasks that it starts."""
    chosen = current_device() if device is None else resolve(device)
    token = _scoped.set(_choose(chosen, policy))
    try:
        yield chosen
    finally:
        _scoped.reset(token)


def adopt_stream(stream: object, device: Device | None = None) -> Stream:
    """Our view of a stream: one of ours, or a `cupy.cuda.Stream`; `DeviceMismatchError` if nobody knows it.

    It has to be the `device`'s, or by default that of any device in use, the current one first.
    """
    known: Any = stream
    if type(stream) in own_streams and (device is None or known.device is device):
        return known
    home = current_device() if device is None else device
    adopted = home.adopt_stream(stream)
    if adopted is not None:
        return adopted
    for owner in known_devices() if device is None else ():
        adopted = owner.adopt_stream(stream)
        if adopted is not None:
            return adopted
    raise DeviceMismatchError(
        f"{stream!r} is not a stream that {home.name} knows: use agt.create_stream(), or a "
        "cupy.cuda.Stream on a CUDA device"
    )


def create_stream() -> Stream:
    """A new stream on the current device, not ordered with any other."""
    return of_this_process(current_device()).create_stream()


_forked: list[bool] = []  # not empty in a forked child
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forked.append(True))


def of_this_process(device: Device) -> Device:
    """The device, unless this process is a fork of the one that opened it."""
    if _forked and device.process != (here := os.getpid()):
        raise UsageError(
            f"{device.name} was opened in process {device.process}, and this is process {here}, forked from "
            "it: CUDA works on one side of a fork only. Start processes by multiprocessing's method 'spawn', "
            "as in ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')), or fork before a "
            "device is opened"
        )
    return device


def work(us: float, name: str = "host work") -> None:
    """Keep the host busy for `us` microseconds: virtual on a simulated device, real otherwise.

    It stands for whatever a program does on the host between its GPU calls, and shows in a trace.
    """
    _check_us("work", us)
    demand(name, str, "work has a name")
    current_device().work(us, name)


async def sleep(us: float) -> None:
    """Let other tasks run for `us` microseconds: virtual on a simulated device, real otherwise."""
    _check_us("sleep", us)
    await current_device().sleep(us)


def _check_us(what: str, us: float) -> None:
    if not isinstance(us, Real) or not 0 <= us < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise UsageError(f"{what} takes microseconds, 0 or more, and got {us!r:.99}")
