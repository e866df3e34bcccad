"""Policies: each makes one decision, which stream comes next."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from asyncgpu_tutor.errors import DeviceMismatchError, UsageError

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.protocol import Device, Stream


class SchedulingPolicy(ABC):
    """Decides which stream an operation runs on.

    Subclass it and write `next_stream`. A policy belongs to one device: the one given, or else the one
    that is current when the policy is first used.

    Parameters
    ----------
    device : Device, optional
        Where its streams are.
    """

    _device: Device | None = None  # here, too: a subclass may forget super().__init__()

    def __init__(self, device: Device | None = None) -> None:
        self._device = device

    def __repr__(self) -> str:
        where = "no device yet" if self._device is None else f"on {self._device.name}"
        return f"<{type(self).__name__}{self._streams_in_words()}, {where}>"

    def _streams_in_words(self) -> str:
        return ""

    @abstractmethod
    def next_stream(self) -> Stream:
        """The stream for the next operation. Called once for each, in the order in which they run."""

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
    def bound(self) -> bool:
        """True if it has a device."""
        return self._device is not None

    def bind(self, device: Device) -> None:
        """Settle the device.

        Raises
        ------
        DeviceMismatchError
            If it is settled already, and another one.
        """
        if self._device not in (None, device):
            raise DeviceMismatchError(
                f"this {type(self).__name__} belongs to {self._device.name}, and the operation is to run on "
                f"{device.name}: make one policy for each device"
            )
        self._device = device


class SingleStream(SchedulingPolicy):
    """Everything on one stream, in the order in which it was asked for.

    Parameters
    ----------
    stream : Stream, optional
        Which one, or a `cupy.cuda.Stream`; a new one by default.
    """

    def __init__(self, stream: Stream | None = None, device: Device | None = None) -> None:
        # A stream of another library does not tell which of our devices it is on, so it is looked at when it
        # is first used.
        known: Device | None = None if stream is None else getattr(stream, "device", None)
        super().__init__(known if hasattr(known, "create_stream") else device)
        self._stream = stream

    def _streams_in_words(self) -> str:
        return "" if self._stream is None else f" of {self._stream!r}"

    def next_stream(self) -> Stream:
        """Always the same one."""
        if self._stream is None:
            self._stream = self.device.create_stream()
        return self._stream


class StreamPoolRoundRobin(SchedulingPolicy):
    """A fixed number of streams, each in its turn.

    Parameters
    ----------
    size : int
        How many streams, at least 1.

    Raises
    ------
    UsageError
        If there would be no stream.
    """

    def __init__(self, size: int = 4, device: Device | None = None) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(f"a pool needs at least one stream, and {size!r} was asked for")
        super().__init__(device)
        self.size = size
        self._streams: list[Stream] = []
        self._turn = itertools.count()
        self._lock = threading.Lock()

    def _streams_in_words(self) -> str:
        return f" over {self.size} stream{'s' if self.size != 1 else ''}"

    def next_stream(self) -> Stream:
        """The next one; streams are created when their turn first comes."""
        turn = next(self._turn) % self.size
        if turn >= len(self._streams):
            with self._lock:
                while turn >= len(self._streams):  # other threads may have taken turns before this
                    self._streams.append(self.device.create_stream())
        return self._streams[turn]
