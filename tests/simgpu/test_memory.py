"""The memory of a simulated GPU has an end, and what is given back can be had again."""

from __future__ import annotations

import pytest

from simgpu import Device, Machine
from simgpu.errors import OutOfMemoryError


def test_two_arrays_have_to_fit_beside_each_other() -> None:
    device = Device(machine=Machine())
    device.heap.capacity = 1 << 20
    first = device.malloc(600_000, "first", device.default_stream)
    with pytest.raises(OutOfMemoryError, match=r"'second' do not fit"):
        device.malloc(600_000, "second", device.default_stream)
    del first
    assert device.malloc(600_000, "second", device.default_stream).cells.nbytes == 600_000
