"""Groups of simulated devices, which wait for each other on the device's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import cast

import simgpu
from asyncgpu_tutor.devices.protocol import Collective, Stream
from asyncgpu_tutor.devices.simgpu_errors import translated
from asyncgpu_tutor.devices.simulated.sim_device import SimDevice, SimStream
from simgpu.pieces import Piece

# Simgpu's call of a rank has the same words for the same things.
_FIELDS = [field.name for field in fields(simgpu.Collective)]


def _call(part: Collective) -> simgpu.Collective:
    return simgpu.Collective(**{name: getattr(part, name) for name in _FIELDS})


class SimCommunicator:
    """Ranks that are simulated devices of one machine."""

    @translated
    def __init__(self, devices: Sequence[SimDevice]) -> None:
        self._inner = simgpu.Communicator(devices)

    @translated
    def enqueue(self, parts: Sequence[tuple[Collective, Stream]], ranks: int) -> None:
        """Enqueue each part; a rank that comes first holds its SMs until the others are there."""
        for part, stream in parts:
            self._inner.enqueue(part.rank, _call(part), cast(SimStream, stream))

    def together(self, parts: Sequence[Collective], home: SimDevice) -> Piece:
        """All parts as one piece of work, for a replay."""
        return self._inner.together({part.rank: _call(part) for part in parts}, home)

    @translated
    def fail(self, message: str) -> None:
        """Let whoever waits fail."""
        self._inner.fail(message)

    def check(self) -> None:
        """An error of the work surfaces where the work is waited for."""
