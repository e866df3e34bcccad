"""Streams of others: each device knows its own, and those that it can make its own."""

from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import Machine, SimDevice
from asyncgpu_tutor.errors import DeviceMismatchError


class Foreign:
    """A stream of another library."""


class Hospitable(SimDevice):
    """Takes foreign streams for its default one."""

    def adopt_stream(self, foreign: object) -> Any:
        return (
            self.default_stream if isinstance(foreign, Foreign) else super().adopt_stream(foreign)
        )


def test_a_device_knows_its_own_streams_alone() -> None:
    machine = Machine()
    one, other = SimDevice(0, machine=machine), SimDevice(1, machine=machine)
    assert one.adopt_stream(one.default_stream) is one.default_stream
    assert one.adopt_stream(other.default_stream) is None
    assert one.adopt_stream(Foreign()) is None


def test_work_runs_on_a_foreign_stream_that_the_device_takes() -> None:
    with agt.using(Hospitable(machine=Machine())):
        assert agt.ones(4).to_host().sync_on(Foreign()).tolist() == [1, 1, 1, 1]
    with agt.using(SimDevice(machine=Machine())), pytest.raises(DeviceMismatchError):
        agt.ones(4).to_host().sync_on(Foreign())
