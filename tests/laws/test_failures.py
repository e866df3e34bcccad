"""Law 9: never hang. Each of the three failures reaches its own awaiter, and nobody else's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import OutOfBoundsError, UpstreamError

from .kernels import STRAY, kernel, scale


def faulty() -> agt.DeviceOp[agt.DeviceArray]:
    """Writes far outside of its array."""
    out = agt.zeros((64,)).partition(32)
    return kernel(STRAY)(2**40, out).last().unpartition().named("faulty batch")


def test_a_fault_surfaces_at_its_own_sync(sim: Device) -> None:
    with pytest.raises(OutOfBoundsError, match="stray") as caught:
        faulty().sync()
    assert "operation 'faulty batch'" in caught.value.__notes__[0]
    assert agt.ones((2,)).to_host().sync().tolist() == [1.0, 1.0]


def test_a_fault_surfaces_at_its_own_await(sim: Device) -> None:
    async def main() -> list[object]:
        good = agt.ones((2,)).and_then(lambda a: scale(a, 3.0)).to_host()
        return await asyncio.gather(good, faulty(), good, return_exceptions=True)

    first, fault, last = asyncio.run(main())
    assert isinstance(fault, OutOfBoundsError)
    assert getattr(first, "tolist")() == getattr(last, "tolist")() == [3.0, 3.0]  # noqa: B009 - object


def test_a_failed_future_stays_failed(sim: Device) -> None:
    async def main() -> None:
        future = faulty().into_future()
        for _ in range(2):
            with pytest.raises(OutOfBoundsError):
                await future
        assert future.state is agt.FutureState.FAILED

    asyncio.run(main())


def test_the_rest_of_a_failed_operation_does_not_run(sim: Device) -> None:
    with agt.record() as trace, pytest.raises(OutOfBoundsError):
        faulty().and_then(lambda a: scale(a, 2.0)).to_host().sync()
    assert [span.name for span in trace.device_spans] == ["memset"]


def test_what_a_failed_operation_should_have_written_is_not_used(sim: Device) -> None:
    stream = agt.create_stream()
    array = faulty().async_on(stream)
    with pytest.raises(UpstreamError, match="had failed"):
        agt.d2h(array).sync_on(stream)


def test_users_of_a_failed_shared_source_on_other_streams_fail_with_it(sim: Device) -> None:
    source = faulty().shared()

    async def main() -> list[object]:
        users = [source.and_then(agt.d2h) for _ in range(3)]
        return await asyncio.gather(*users, return_exceptions=True)

    first, *others = asyncio.run(main())
    assert isinstance(first, OutOfBoundsError)
    assert all(isinstance(error, UpstreamError) for error in others)


def test_a_failed_arm_fails_the_overlap(sim: Device) -> None:
    def arms() -> agt.DeviceOp[tuple[agt.DeviceArray, agt.DeviceArray]]:
        return agt.overlap(agt.ones((3,)), faulty())

    stream = agt.create_stream()
    # The arm's own failure, since nothing before it had failed.
    with pytest.raises(OutOfBoundsError, match="stray"):
        arms().sync()
    arms().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()
    agt.synchronize()  # the error has been told, so there is nothing to raise

    prepared = arms().prepare()
    for captured in (prepared, prepared.launch().graph_on(agt.create_stream())):
        with pytest.raises(OutOfBoundsError, match="stray"):
            captured.launch().sync()


def test_the_three_failures_arrive_separately(sim: Device) -> None:
    def bug(_: object) -> agt.DeviceOp[int]:
        raise KeyError("a bug in a closure")

    seen: list[str] = []

    async def main() -> None:
        slow = agt.spawn(agt.randn((40_000,)).to_host())
        await asyncio.sleep(0)
        slow.cancel()
        for task in (agt.spawn(faulty()), agt.spawn(agt.value(1).and_then(bug)), slow):
            try:
                await task
            except agt.DeviceError:
                seen.append("device")
            except KeyError as error:
                seen.append(f"closure {error.__notes__[0][:9]}")
            except asyncio.CancelledError:
                seen.append("cancelled")

    asyncio.run(main())
    assert seen == ["device", "closure while ope", "cancelled"]


def test_a_bug_after_work_was_enqueued_leaves_nothing_behind(device: Device) -> None:
    def bug(array: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise ValueError(f"no use for {array.shape}")

    before = agt.in_flight()
    with pytest.raises(ValueError, match="no use for"):
        agt.ones((1000,)).and_then(bug).sync()
    with pytest.raises(ValueError, match="no use for"):
        agt.overlap(agt.ones((1000,)), agt.ones((1000,)).and_then(bug)).sync()
    agt.synchronize()
    assert agt.in_flight() <= before
    assert agt.ones((2,)).to_host().sync().tolist() == [1.0, 1.0]


def test_an_event_behind_a_fault_raises_it_as_often_as_it_is_asked(sim: Device) -> None:
    stream, other = agt.create_stream(), agt.create_stream()
    faulty().async_on(stream)
    agt.ones((2,)).async_on(stream)  # that the fault does not concern, and no event of it
    event = stream.record()
    for _ in range(2):
        with pytest.raises(OutOfBoundsError, match="stray"):
            event.synchronize()
    assert event.done
    assert not event.succeeded
    stream.synchronize()  # the error has been told, so there is nothing to raise
    stream.record().synchronize()

    faulty().async_on(stream)
    other.wait_event(stream.record())
    assert agt.ones((2,)).to_host().sync_on(other).tolist() == [1.0, 1.0]  # the wait is for order
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()


SCRIPT = """
import asyncio, sys
import asyncgpu_tutor as agt
from tests.laws.test_failures import faulty

agt.use("cuda")

async def main():
    if sys.argv[1] == "await":
        await faulty()
    elif sys.argv[1] == "spawn":
        other = agt.spawn(agt.ones((1000,)).to_host())
        try:
            await agt.spawn(faulty())
        finally:
            await asyncio.gather(other, return_exceptions=True)
    elif sys.argv[1] == "event":
        stream = agt.create_stream()
        faulty().async_on(stream)
        stream.record().synchronize()
    else:
        faulty().sync()

try:
    asyncio.run(main())
except agt.DeviceError as error:
    print("DeviceError", error, *getattr(error, "__notes__", ()))
"""


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["sync", "await", "spawn", "event"])
def test_a_real_fault_is_reported_and_never_hangs(way: str) -> None:
    from tests.conftest import open_or_skip

    open_or_skip("cuda")
    # It runs in a process of its own, because after a fault the process's CUDA context is dead.
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, way],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "DeviceError" in done.stdout, done.stdout + done.stderr
    if way != "event":  # an event does not know whose work is before it
        assert "stray" in done.stdout
        assert "faulty batch" in done.stdout
