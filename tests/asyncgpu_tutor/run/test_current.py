"""Where something runs: a policy or a stream of another device is refused, or decides."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import DeviceMismatchError
from asyncgpu_tutor.run import current


async def _spawned(op: agt.DeviceOp[Any], policy: agt.SchedulingPolicy) -> object:
    return await agt.spawn(op, policy)


async def _awaited_within(op: agt.DeviceOp[Any], policy: agt.SchedulingPolicy) -> object:
    with agt.using(policy=policy):
        return await op


WITH_A_POLICY: dict[str, Callable[[agt.DeviceOp[Any], agt.SchedulingPolicy], object]] = {
    "sync": lambda op, policy: op.sync(policy),
    "schedule": lambda op, policy: op.schedule(policy),
    "spawn": lambda op, policy: asyncio.run(_spawned(op, policy)),
    "await": lambda op, policy: asyncio.run(_awaited_within(op, policy)),
    "prepare": lambda op, policy: op.prepare().launch().sync(policy),
}


@pytest.mark.parametrize("way", list(WITH_A_POLICY))
@pytest.mark.parametrize("make", [lambda: agt.value(1), lambda: agt.ones(2)], ids=["value", "ones"])
def test_a_policy_of_another_device(
    sim: SimDevice, way: str, make: Callable[[], agt.DeviceOp[Any]]
) -> None:
    """It is refused even for an operation that touches no device, whichever way that is to run."""
    used = agt.StreamPoolRoundRobin(2)
    agt.value(1).sync(used)
    both = agt.StreamPoolRoundRobin(1, devices=["sim:2", "sim:3"])
    of_a_stream = agt.SingleStream(agt.create_stream())
    for device, policy, homes in (
        ("sim:1", used, "sim:0"), ("sim:1", of_a_stream, "sim:0"), ("sim:1", both, "sim:2 and sim:3"),
        (SimDevice(machine=SimMachine()), used, "sim:0, and .* is another device of that name"),
    ):  # fmt: skip
        told = pytest.raises(DeviceMismatchError, match=f"belongs to {homes}")
        with agt.using(device), told:
            WITH_A_POLICY[way](make(), policy)


def test_a_stream_of_another_device_says_where_to_run() -> None:
    with agt.using("sim:0"):
        stream = agt.create_stream()
    with agt.using("sim:1"):
        found = agt.ones(2).sync_on(stream), agt.ones(2).async_on(stream), agt.ones(2).sync()
    assert [array.device.name for array in found] == ["sim:0", "sim:0", "sim:1"]


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCGPU_DEVICE", "sim:3")
    with agt.using("sim:1"), agt.using() as first, agt.using("auto") as second:
        assert (first.name, second.name) == ("sim:1", "sim:3")


def test_a_policy_whose_stream_is_on_another_device() -> None:
    class Strays(agt.SchedulingPolicy):
        def next_stream(self) -> agt.types.Stream:
            return stream

    with agt.using("sim:0"):
        stream = agt.create_stream()
    with (
        agt.using("sim:1"),
        pytest.raises(DeviceMismatchError, match="not a stream that sim:1 knows"),
    ):
        agt.ones(2).sync(Strays())


@pytest.mark.parametrize("looked_up", ["resolve", "_policy_for"])
def test_a_choice_that_another_thread_makes_meanwhile_is_not_lost(
    looked_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the device or the policy is looked up for the first time; the second look finds the choice."""
    others, known = iter(["sim:1"]), getattr(current, looked_up)

    def interrupted(*given: Any) -> object:
        found = known(*given)
        for other in others:
            agt.use(other)
        return found

    monkeypatch.setattr(current, "_process", current._Choice())
    with monkeypatch.context() as patched:
        patched.setattr(current, looked_up, interrupted)
        current.current_policy()
    assert agt.current_device().name == current.current_policy().device.name == "sim:1"
