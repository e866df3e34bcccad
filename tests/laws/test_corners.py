"""Corners of the laws: programs that are odd and allowed, and errors that must not get lost."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import pickle
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import Machine, SimDevice
from asyncgpu_tutor.errors import (
    HostBufferError,
    NestedSyncError,
    NotReadyError,
    OutOfBoundsError,
    OutOfMemoryError,
    UseAfterMoveError,
)

from .kernels import add, scale
from .test_failures import faulty
from .test_waiting import slow


# ---------------------------------------------------------------------- no error gets lost
def test_a_stream_reports_a_fault_that_comes_after_the_call(sim: Device) -> None:
    stream = agt.create_stream()
    slow().async_on(stream)  # holds the faulty kernel back until the host waits
    faulty().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()
    stream.synchronize()  # it is told once


def test_a_stream_reports_a_fault_that_later_work_follows(sim: Device) -> None:
    stream = agt.create_stream()
    faulty().async_on(stream)
    agt.ones((3,)).async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        stream.synchronize()


def test_the_device_waits_for_all_streams_before_it_reports(sim: SimDevice) -> None:
    before = agt.in_flight()
    faulty().async_on(agt.create_stream())
    stream = agt.create_stream()
    rest = slow().to_host().async_on(stream)
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()
    assert np.asarray(rest)[0] == 256.0
    assert agt.in_flight() <= before
    agt.synchronize()


def test_a_fault_of_a_forgotten_stream_is_reported_by_the_device(sim: SimDevice) -> None:
    faulty().async_on(agt.create_stream())
    for _ in range(200):  # after so many, work that nobody waited for has been let go
        agt.ones((3,)).async_on(agt.create_stream())
    with pytest.raises(OutOfBoundsError, match="stray"):
        agt.synchronize()


def test_what_was_told_once_is_not_told_again(sim: Device) -> None:
    async def main() -> None:
        with pytest.raises(OutOfBoundsError):
            await faulty()

    asyncio.run(main())
    with pytest.raises(OutOfBoundsError):
        faulty().sync()
    with pytest.raises(agt.DeviceError):
        agt.overlap(agt.ones((3,)), faulty()).sync()
    agt.synchronize()


def test_a_kept_error_keeps_no_device_memory(sim: SimDevice) -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        faulty().sync()
    error = caught.value.with_traceback(None)
    del caught
    assert isinstance(error, OutOfBoundsError)
    assert sim.heap.live == 0


def test_a_told_error_keeps_no_device_memory(sim: SimDevice) -> None:
    async def main() -> None:
        results = await asyncio.gather(slow(), faulty(), return_exceptions=True)
        assert isinstance(results[1], OutOfBoundsError)

    asyncio.run(main())
    gc.collect()
    assert sim.heap.live == 0


def test_an_interrupted_kernel_counts_as_failed(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncgpu_tutor.cuda_c import Program

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    x = agt.ones((8,)).sync()
    stream = agt.create_stream()
    op = scale(x, 2.0).to_host()
    with monkeypatch.context() as patch:
        patch.setattr(Program, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            op.sync_on(stream)
    with pytest.raises(agt.DeviceError, match="interrupted by KeyboardInterrupt"):
        stream.synchronize()
    assert agt.ones((2,)).to_host().sync_on(stream).tolist() == [1.0, 1.0]


LONG = agt.Kernel(
    """extern "C" __global__ void endless(int* x) {
    for (long long i = 0; i >= 0; i++) x[threadIdx.x] += 1;
}"""
)


class TestInterrupts:
    """A signal arrives when the interpreter has taken its first look at the clock."""

    @pytest.fixture(autouse=True)
    def interrupted(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        from asyncgpu_tutor.cuda_c.lockstep.team import Launch

        def look(launch: Launch) -> None:
            if not launch.told:
                launch.told = True
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Launch, "look", look)
        # What was started in the background ignores the signal until told otherwise.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def test_a_blocking_call_ends_and_leaves_nothing(self, sim: SimDevice) -> None:
        before = agt.in_flight()
        stream = agt.create_stream()
        with pytest.raises(KeyboardInterrupt) as caught:
            LONG(agt.zeros(32, np.int32), grid=1, block=32).sync_on(stream)
        assert "kernel 'endless'" in caught.value.__notes__[0]
        assert "line 2" in caught.value.__notes__[0]
        assert agt.in_flight() <= before
        with pytest.raises(agt.DeviceError, match="KeyboardInterrupt"):
            stream.synchronize()
        assert agt.ones((2,)).to_host().sync_on(stream).tolist() == [1.0, 1.0]

    def test_an_await_ends_with_the_cause(self, sim: SimDevice) -> None:
        async def main() -> list[float]:
            with pytest.raises(agt.DeviceError, match="KeyboardInterrupt") as caught:
                await LONG(agt.zeros(32, np.int32), grid=1, block=32)
            assert isinstance(caught.value.__cause__, BaseException)
            assert any("kernel 'endless'" in note for note in _notes(caught.value))
            return (await agt.ones((2,)).to_host()).tolist()

        before = agt.in_flight()
        handler = signal.getsignal(signal.SIGINT)
        assert asyncio.run(main()) == [1.0, 1.0]
        assert signal.getsignal(signal.SIGINT) is handler
        assert agt.in_flight() <= before


def _notes(error: BaseException | None) -> list[str]:
    return [] if error is None else [*getattr(error, "__notes__", ()), *_notes(error.__cause__)]


def test_long_interpretation_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    from asyncgpu_tutor.cuda_c import Limits
    from tests.cuda_c.support import launch

    source = (
        """extern "C" __global__ void slow(int* x) { for (int i = 0; i < 100; i++) x[0] += 1; }"""
    )
    launch(source, "slow", 1, 1, np.zeros(1, np.int32), limits=Limits(patience=0.0))
    said = capsys.readouterr().err
    assert said.count("kernel 'slow' has been interpreted") == 1
    assert "1 of 1 blocks" in said
    launch(source, "slow", 1, 1, np.zeros(1, np.int32), limits=Limits(patience=3600.0))
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- loops and threads
def test_a_loop_that_was_closed_on_a_sleeper_disturbs_no_other(sim: Device) -> None:
    async def abandon() -> asyncio.Task[None]:
        task = asyncio.ensure_future(agt.sleep(10.0))
        await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(abandon())
    loop.close()

    async def main() -> list[float]:
        return (await asyncio.wait_for(slow().to_host(), 20)).tolist()[:1]

    assert asyncio.run(main()) == [256.0]
    task._log_destroy_pending = False  # the task stays pending for ever, since its loop is closed


def test_a_loop_can_be_left_and_entered_again(sim: Device) -> None:
    async def start() -> asyncio.Task[agt.DeviceArray]:
        task = agt.spawn(slow(1024))
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    async def short() -> list[float]:
        return (await agt.ones((2,)).to_host()).tolist()

    async def finish(task: asyncio.Task[agt.DeviceArray]) -> tuple[int, ...]:
        return (await asyncio.wait_for(task, 20)).shape

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(start())
    assert asyncio.run(short()) == [1.0, 1.0]
    assert loop.run_until_complete(finish(task)) == (1024,)
    loop.close()


def test_threads_may_run_operations_at_the_same_time(device: Device) -> None:
    wrong: list[object] = []

    def run(number: int) -> None:
        try:
            with agt.using(device):
                for _ in range(15):
                    op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
                    result = agt.overlap(op, agt.ones((3,))).first().sync()
                    if not (result == 2 * number).all():
                        wrong.append(result)
        except Exception as error:  # noqa: BLE001 - a thread cannot raise it
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change so often that they do meet
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(usual)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


# ---------------------------------------------------------------------- once, and handles
def test_a_user_of_a_shared_host_result_does_not_wait_for_the_first_user(device: Device) -> None:
    source = agt.ones((4,)).to_host().shared()

    async def main() -> list[float]:
        first = agt.spawn(source.and_then(lambda _: slow(1024)))
        second = agt.spawn(source.map(lambda host: host))
        result = await second
        assert type(result) is np.ndarray
        await first
        return result.tolist()

    assert asyncio.run(main()) == [1.0] * 4


def test_a_shared_host_result_cannot_be_read_early_by_any_user(device: Device) -> None:
    source = agt.ones((4,)).to_host().shared()
    source.sync()
    with pytest.raises(NotReadyError, match="'second'"):
        source.map(np.asarray).named("second").sync()


def test_a_shared_operation_that_needs_itself_says_so(device: Device) -> None:
    ops: list[agt.DeviceOp[int]] = []
    ops.append(agt.value(1).and_then(lambda _: ops[0]).shared().named("loop"))
    for _ in range(2):
        with pytest.raises(agt.UsageError, match="'loop' needs its own result"):
            ops[0].sync()


def test_arrays_in_lists_and_dicts_come_out_shared_too(device: Device) -> None:
    source = agt.ones((3,)).map(lambda a: {"arrays": [a]}).shared()
    for _ in range(2):
        assert source.and_then(lambda d: agt.d2h(d["arrays"][0])).sync().tolist() == [1.0] * 3


def test_a_source_that_ran_in_an_arm_that_failed_is_good(device: Device) -> None:
    def bug(_: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise LookupError("after the source")

    source = agt.ones((4,)).and_then(lambda a: scale(a, 3.0)).shared()
    with pytest.raises(LookupError):
        agt.overlap(agt.ones((4,)), source.and_then(bug)).sync()
    assert source.and_then(agt.d2h).sync().tolist() == [3.0] * 4


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_overlap_in_overlap_with_few_streams(device: Device, streams: int) -> None:
    source = agt.full((40,), 2).shared()

    def tree(depth: int) -> agt.DeviceOp[agt.DeviceArray]:
        if depth == 0:
            return source.and_then(lambda a: add(a, a, 40))
        both = agt.overlap(tree(depth - 1), tree(depth - 1))
        return both.and_then(lambda pair: add(pair[0], pair[1], 40))

    result = tree(3).to_host().sync(agt.StreamPoolRoundRobin(streams, device))
    assert result.tolist() == [32.0] * 40


def test_a_host_array_that_is_ready_can_be_changed_in_place(device: Device) -> None:
    stream = agt.create_stream()
    host = agt.ones((4,)).to_host().async_on(stream)
    stream.synchronize()
    host += 1
    host *= host
    assert np.asarray(host).tolist() == [4.0] * 4


def test_a_loan_that_is_lent_on_ends_with_its_owner(device: Device) -> None:
    x = agt.ones((4,), name="x").sync()
    second = x.borrow().borrow()
    agt.d2h(x).sync()
    with pytest.raises(UseAfterMoveError, match="borrowed, and its owner was moved"):
        agt.d2h(second)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_python_cannot_copy_an_array(device: Device, copying: Callable[[object], object]) -> None:
    x = agt.ones((4,), name="x").sync().share()
    with pytest.raises(agt.UsageError, match=r"'x' cannot be copied or pickled.*agt.dup"):
        copying(x)
    assert x.share_count == 1


def test_the_handles_of_async_on_go_without_the_garbage_collector(device: Device) -> None:
    stream = agt.create_stream()
    gc.collect()
    gc.disable()
    try:
        host = agt.ones((8,)).to_host().async_on(stream)
        stream.synchronize()
        agt.synchronize()
        gone = weakref.ref(host)
        del host
        assert gone() is None
    finally:
        gc.enable()


def test_a_task_that_a_function_starts_may_run_operations(device: Device) -> None:
    async def other() -> list[float]:
        return agt.ones((2,)).to_host().sync().tolist()

    async def main() -> tuple[list[float], list[float]]:
        tasks: list[asyncio.Task[Any]] = []

        def start(n: int) -> agt.DeviceOp[int]:
            tasks.append(asyncio.create_task(other()))
            tasks.append(agt.spawn(agt.ones((2,)).to_host()))
            return agt.value(n)

        await agt.value(1).and_then(start)
        return await tasks[0], (await tasks[1]).tolist()

    assert asyncio.run(main()) == ([1.0, 1.0], [1.0, 1.0])


# ---------------------------------------------------------------------- recordings and policies
def test_a_recording_ends_even_where_its_devices_complain(sim: Device) -> None:
    def change_under_copy(then: Exception | None = None) -> None:
        host = agt.pin(np.ones(1000, np.float32))
        agt.h2d(host).async_on(agt.create_stream())
        host[0] = 5.0
        if then is not None:
            raise then

    with pytest.raises(HostBufferError), agt.record() as first:
        change_under_copy()
    assert [span.name for span in first.device_spans] == ["h2d"]
    with pytest.raises(LookupError) as caught, agt.record():
        change_under_copy(then=LookupError("in the block"))
    assert "leaving record(): the pinned host array" in caught.value.__notes__[0]
    assert sim.log is None  # nobody records any more


def test_no_recording_inside_of_a_submission(device: Device) -> None:
    def nested(n: int) -> agt.DeviceOp[int]:
        with agt.record():
            return agt.value(n)

    with pytest.raises(NestedSyncError, match=r"record\(\) was called while operation"):
        agt.value(1).and_then(nested).sync()


def test_a_device_that_is_first_used_in_a_recording_is_recorded() -> None:
    with agt.using("sim:0"), agt.record() as outer, agt.record() as inner, agt.using("sim:41"):
        agt.ones((3,)).sync()
    assert [(span.device, span.name) for span in inner.device_spans] == [("sim:41", "fill")]
    assert len(outer.device_spans) == 1


def test_arms_on_a_given_stream_ask_the_current_policy(device: Device) -> None:
    stream, policy = agt.create_stream(), agt.SingleStream(agt.create_stream())
    op = agt.overlap(agt.ones((3,)), agt.ones((3,)))
    with agt.using(policy=policy), agt.record() as trace:
        op.sync_on(stream)
        op.async_on(stream)
    assert trace.streams == [policy.next_stream().number]


def test_memory_of_completed_work_is_there_for_the_next(sim: SimDevice) -> None:
    small = SimDevice(0, dataclasses.replace(sim.spec, memory_bytes=1_000_000), Machine())
    with agt.using(small):
        stream = agt.create_stream()
        for _ in range(30):  # nobody looks at the results, which are 100 kB each
            agt.zeros((25_000,)).async_on(stream)
            agt.work(100.0)
        with pytest.raises(OutOfMemoryError):  # what is still at work is not taken away
            agt.zip(*[agt.zeros((25_000,)) for _ in range(12)]).sync()


# ---------------------------------------------------------------------- nothing is left behind
@given(cancelled=st.lists(st.integers(0, 19), max_size=20), patience=st.integers(0, 30))
def test_a_storm_of_cancellations_leaves_nothing(cancelled: list[int], patience: int) -> None:
    before = agt.in_flight()
    own = SimDevice(machine=Machine())

    async def one(number: int) -> list[float]:
        op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
        return (await op).tolist()

    async def main() -> list[object]:
        tasks = [asyncio.create_task(one(n)) for n in range(20)]
        for _ in range(patience):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with agt.using(own):
        for number, result in enumerate(asyncio.run(main())):
            assert isinstance(result, asyncio.CancelledError) or result == [2.0 * number] * 64
        agt.synchronize()
    assert agt.in_flight() <= before
    assert own.heap.live == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError])
def test_whatever_a_function_raises_arrives_and_leaves_nothing(
    sim: SimDevice, kind: type[BaseException]
) -> None:
    def fail(_: agt.DeviceArray) -> agt.DeviceOp[int]:
        raise kind("on purpose")

    before = agt.in_flight()
    for op in (
        agt.ones((100,)).and_then(fail),
        agt.overlap(agt.ones((3,)), agt.ones((100,)).and_then(fail)),
        agt.ones((100,)).and_then(fail).shared(),
    ):
        with pytest.raises(kind, match="on purpose"):
            op.sync()
    agt.synchronize()
    del op
    gc.collect()
    assert agt.in_flight() <= before
    assert sim.heap.live == 0


def test_recordings_that_cross_see_what_ran_while_they_were_open(sim: Device) -> None:
    async def one(runs: int) -> int:
        with agt.record() as trace:
            for _ in range(runs):
                await agt.ones((8,)).to_host()
        return len(trace.device_spans)

    async def main() -> list[int]:
        return await asyncio.gather(one(2), one(5))

    short, long = asyncio.run(main())
    assert short >= 4
    assert long == 2 * (1 + 5)  # it has missed the other's first operation, which came before it
    assert sim.log is None


def test_operations_that_nest_too_deeply_say_what_to_do(device: Device) -> None:
    op = agt.ones((8,))
    for _ in range(2000):
        op = add(op, agt.ones((8,)), 8)
    with pytest.raises(RecursionError) as caught:
        op.sync()
    assert any("chain them with and_then" in note for note in caught.value.__notes__)


def test_a_result_may_pass_through_many_tasks_before_time_moves_on(sim: SimDevice) -> None:
    async def relay(depth: int) -> None:
        if depth:
            await asyncio.create_task(relay(depth - 1))
        else:
            await agt.sleep(50.0)

    async def main() -> float:
        other = asyncio.create_task(agt.sleep(5000.0))
        await relay(30)
        reached = sim.now()
        await other
        return reached

    assert asyncio.run(main()) < 100.0
