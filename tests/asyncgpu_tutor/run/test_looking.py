"""Parts of a run that usually only a GPU has: looking before being woken, and several sources of times.

A simulated device stands in for one, so that they are tested everywhere.
"""

import asyncio
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import DeviceError, UsageError
from tests.laws.test_failures import faulty
from tests.laws.test_waiting import awaited


class Watched(list[Any]):
    """The events that a device was asked to watch, and how much was in flight before."""

    def __init__(self) -> None:
        super().__init__()
        agt.synchronize()  # lets go of what earlier tests left, where it is over
        self.in_flight = agt.in_flight()


@pytest.fixture
def patient(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Who awaits looks at the event for a while."""
    monkeypatch.setattr(SimDevice, "patience_us", 10e6)
    watched = Watched()
    watch = SimDevice.watch

    def noted(self: SimDevice, event: Any, wake: Any) -> None:
        watched.append(event)
        watch(self, event, wake)

    monkeypatch.setattr(SimDevice, "watch", noted)
    return watched


@pytest.mark.parametrize("patience", [10e6, 1e-6])
async def test_only_who_is_out_of_patience_is_woken(
    patient: Watched, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(SimDevice, "patience_us", patience)
    several = [agt.full((1 << 20,), float(number)).to_host() for number in range(3)]
    assert [float(result[-1]) for result in await asyncio.gather(*several)] == [0.0, 1.0, 2.0]
    assert bool(patient) is (patience < 1)
    assert agt.in_flight() == patient.in_flight


def test_what_failed_is_told_who_looked(patient: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    # The event of what failed never succeeds, so looking has to end.
    monkeypatch.setattr(SimDevice, "patience_us", 500.0)
    with pytest.raises(DeviceError, match="stray"):
        asyncio.run(awaited(faulty()))
    assert agt.in_flight() == patient.in_flight


async def test_who_is_cancelled_while_looking_leaves_the_end_to_others(patient: Watched) -> None:
    task = agt.spawn(agt.full((1 << 22,), 1.0).to_host())
    await asyncio.sleep(0)  # its first step submits it, and looks
    assert agt.in_flight() == patient.in_flight + 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    agt.synchronize()
    await asyncio.sleep(0)
    assert agt.in_flight() == patient.in_flight


# ---------------------------------------------------------------------- sources of times
@pytest.mark.parametrize(
    ("clock", "same", "other"), [("CUPTI", "cupti", "events"), ("events", "events", "cupti")]
)
def test_a_recording_inside_of_another_has_its_source(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch, clock: str, same: Any, other: Any
) -> None:
    with pytest.raises(UsageError, match="times of sim:0 are modelled"), agt.record(source=same):
        pass
    monkeypatch.setattr(SimDevice, "simulated", False)
    monkeypatch.setattr(SimDevice, "clock", clock)
    with agt.record(source=same) as trace:
        with agt.record(source=same) as inner:
            agt.zeros((4,)).sync()
        with agt.record() as free:
            agt.zeros((4,)).sync()
        with (
            pytest.raises(UsageError, match=f"with times from {clock}.*cannot begin inside"),
            agt.record(source=other),
        ):
            pass
    assert [len(one.device_spans) for one in (trace, inner, free)] == [2, 1, 1]
    assert inner.clock == clock
