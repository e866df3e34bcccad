"""What a way has to run: the batches, and what there is for them on each device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp, SchedulingPolicy
from asyncgpu_tutor.commands.mlp.pipeline import network_forward
from asyncgpu_tutor.types import Device, Stream

Array = npt.NDArray[np.float32]
Shares = dict[tuple[str, str], int]  # how many handles there are, by device and weight


@dataclass(frozen=True, eq=False)
class Side:
    """What a job has on one device."""

    device: Device
    policy: SchedulingPolicy  # deals out the streams, to those ways that use several
    weights: tuple[DeviceArray, ...]  # shared

    @cached_property
    def stream(self) -> Stream:
        """The one stream of those ways that need just one."""
        return self.device.create_stream()

    def chosen(self) -> AbstractContextManager[Device]:
        """A block of code in which operations run here, on streams of the policy."""
        return agt.using(self.device, self.policy)


@dataclass(frozen=True, eq=False)
class Job:
    """Batches, dealt out over devices: where there are two, odd ones go to the second."""

    batches: Sequence[Array]  # in pinned memory
    sides: Sequence[Side]  # one for each device
    streams: int  # how many the policy of each side has
    # `softmax` and `tiled`: see `asyncgpu_tutor.commands.mlp.pipeline.Network`.
    softmax: bool = False
    tiled: bool = False

    @property
    def numbers(self) -> range:
        """Of the batches."""
        return range(len(self.batches))

    def side(self, number: int) -> Side:
        """Where a batch is computed."""
        return self.sides[number % len(self.sides)]

    def batch(self, number: int) -> DeviceOp[Array]:
        """One batch as an operation, made anew."""
        op = network_forward(
            self.batches[number],
            self.side(number).weights,
            softmax=self.softmax,
            tiled=self.tiled,
        )
        return op.named(f"batch {number}")

    def prepared(self, number: int) -> agt.types.Prepared[Array]:
        """One batch, prepared on its device."""
        with self.side(number).chosen():
            return self.batch(number).prepare()

    def synchronize(self) -> None:
        """Wait for all devices, and let go of what they have done."""
        for side in self.sides:
            with side.chosen():
                agt.synchronize()

    def shares(self) -> Shares:
        """How many handles there are to each weight."""
        return {
            (side.device.name, weight.name): weight.share_count
            for side in self.sides
            for weight in side.weights
        }
