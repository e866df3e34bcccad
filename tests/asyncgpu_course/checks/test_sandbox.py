"""Answers are tried apart from everything else, and whatever they raise is a cause."""

import asyncio
import gc
import signal
import sys
import threading
import time
import weakref
from inspect import isgenerator
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import Rejected, several
from asyncgpu_course.checks import own_loop, patience, sandbox
from asyncgpu_course.checks.results import equal, launched
from asyncgpu_course.checks.sandbox import brief, call, observe, private_device


def test_a_private_device_is_fresh_each_time_and_leaves_the_current_one_alone() -> None:
    with agt.using("sim") as outside:
        assert [gpu.name for gpu in several(3)] == ["sim:0", "sim:1", "sim:2"]
        before = outside.now()
        for _ in range(2):
            with private_device() as device:
                assert device is not outside
                assert device.now() == 0
                agt.zeros(4).sync()
                assert device.now() > 0
        assert agt.current_device() is outside
        assert outside.now() == before


def test_a_private_device_is_gone_with_its_memory_though_nobody_waited_for_its_work() -> None:
    async def leave() -> None:
        agt.spawn(agt.ones(1 << 20))
        await asyncio.sleep(0)

    with private_device() as device:
        asyncio.run(leave())
    gone = weakref.ref(device)
    del device
    gc.collect()
    assert gone() is None


def test_what_is_made_outside_is_told_apart_and_one_error_only(sim: Any, caplog: Any) -> None:
    async def answer() -> None:
        await asyncio.gather(*[agt.spawn(agt.d2h(outside)) for _ in range(3)])

    outside = agt.ones(4).share().sync()
    with private_device(), pytest.raises(Rejected, match="on another device of that name"):
        call(answer)
    assert not caplog.records


def test_a_coroutine_is_run_on_the_same_device_also_where_a_loop_runs_already() -> None:
    async def answer() -> float:
        task = agt.spawn(agt.ones(8).to_host())
        return float((await task).sum())

    def tried() -> float:
        with private_device() as device:
            seen = observe(answer)
            assert {s.device for s in seen.trace} == {device.name}
            assert seen.trace.device_spans
        return seen.result

    async def in_a_notebook() -> float:
        return tried()

    assert tried() == asyncio.run(in_a_notebook()) == 8


def test_a_policy_or_an_array_of_an_earlier_cell_is_told_to_move_into_the_answer() -> None:
    with agt.using("sim"):
        policy, array = agt.SingleStream(), agt.zeros(4).sync()
        agt.zeros(4).sync(policy)

    def with_the_policy() -> None:
        with agt.using(policy=policy):
            agt.zeros(4).sync()

    told = pytest.raises(Rejected, match="make streams, policies and arrays in it")
    for stray in (with_the_policy, lambda: agt.d2h(array.borrow()).sync()):
        with private_device(), told:
            observe(stray)


def test_what_an_answer_raises_becomes_a_cause_of_one_line() -> None:
    async def later() -> None:
        raise KeyError("second line\nthird")

    with pytest.raises(Rejected, match=r"your code raised ZeroDivisionError: division by zero"):
        call(lambda: 1 / 0)
    with pytest.raises(Rejected, match="KeyError") as no:
        call(later)
    assert "\n" not in no.value.cause
    with pytest.raises(KeyboardInterrupt):
        call(_interrupt)


def test_also_what_ends_programs_becomes_a_cause_and_a_generator_is_not_run() -> None:
    class Odd(BaseException):
        pass

    def odd() -> None:
        raise Odd("as it is")

    async def leaves() -> None:
        sys.exit(3)

    with pytest.raises(Rejected, match="your code raised Odd: as it is"):
        call(odd)
    with pytest.raises(Rejected, match="your code raised SystemExit: 3"):
        call(leaves)
    assert isgenerator(call(lambda: (yield)))


def test_an_array_is_what_it_was_when_it_was_handed_over_and_new_memory_is_never_zero() -> None:
    def too_early(op: agt.DeviceOp[Any]) -> object:
        return [op.async_on(agt.create_stream()).buffer]

    def empty(context: Any) -> Any:
        return agt.value(context.copy_to_host(context.empty((8,), "float32")))

    with private_device():
        (early,) = observe(too_early, agt.ones(1_000_000).to_host()).result
        assert agt.with_context(empty).sync().all()
    with pytest.raises(Rejected, match="element 0 of the result was not there yet"):
        equal(early, np.ones(1_000_000, np.float32))


def test_a_list_stays_the_callers() -> None:
    given = [3, 1, 2]
    assert call(lambda found: found.append(0) or found, given) == [3, 1, 2, 0]
    with pytest.raises(Rejected, match="takes things out of its caller's list"):
        call(lambda found: found.pop(), given)
    assert given == [3, 1, 2]


def test_a_result_asked_of_what_has_not_run_says_so() -> None:
    op: Any = agt.ones(8).to_host()
    for of, cause in (
        (op, "an operation has no `max`: run it first"),
        (agt.ones(8).to_host().into_future(), "a future has no `max`: `await` it"),
    ):
        with pytest.raises(Rejected, match=cause):
            call(lambda of: of.max(), of)


def test_what_goes_wrong_with_tasks_is_told_with_its_cure() -> None:
    async def too_early(op: agt.DeviceOp[Any]) -> object:
        return agt.spawn(op).result()

    async def never(op: agt.DeviceOp[Any]) -> object:
        return agt.spawn(op)

    async def in_a_group(op: Any) -> object:
        async with asyncio.TaskGroup() as group:
            return group.create_task(op)

    with private_device():
        with pytest.raises(Rejected, match="a task was asked for its result before it was done"):
            call(too_early, agt.ones(8).to_host())
        with pytest.raises(Rejected, match=r"and not a Task: `await` it"):
            equal(call(never, agt.ones(8).to_host()), np.ones(8))
        with pytest.raises(Rejected, match=r"ExceptionGroup.*TypeError: a coroutine was expected"):
            call(in_a_group, agt.ones(8).to_host())


nap = time.sleep  # as another cell may call it


def test_only_a_task_may_not_sleep_by_the_clock_on_the_wall() -> None:
    async def answer() -> None:
        time.sleep(0)  # noqa: ASYNC251 - it is what is refused

    async def by_another_name() -> None:
        nap(0)

    for wrong in (answer, by_another_name):
        with pytest.raises(Rejected, match=r"`time.sleep` blocks the event loop"):
            call(wrong)
    assert nap is time.sleep
    call(nap, 0)
    call(asyncio.sleep, 1e-6)  # for which the loop itself sleeps


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_what_no_thread_wrote_is_told_from_a_wrong_number() -> None:
    head = "__global__ void k(unsigned int n, float* y) { if (threadIdx.x < n"
    with private_device():
        half, added = (
            launched(agt.Kernel(f"{head} {rest}= 1.0f; }}"), [8], (8,), (8,))
            for rest in ("/ 2) y[threadIdx.x] ", ") y[threadIdx.x] +")
        )
    ones = np.ones(8, np.float32)
    for got, right, cause in (
        (half, ones, "no thread wrote element 4 of the output"),
        (added, ones, "element 0 was added to whatever the output held before"),
        (np.ones(3), np.array([1.0, 2.0, 3.0]), "element 1 is 1, and should be 2"),
        (np.array([1 / 3]), np.array([2 / 3]), "element 0 is 0.333333, and should be 0.666667"),
        (np.array([12345678]), np.array([87654321]), "0 is 12345678, and should be 87654321"),
        (np.ones(3), np.ones((1, 3)), r"shape \(3,\), and should have \(1, 3\)"),
        (np.ma.masked_all(3), np.ones(3), "elements of the result are masked"),
        (None, np.ones(3), r"a NumPy array should come out, and not None"),
    ):
        with pytest.raises(Rejected, match=cause):
            equal(got, right)
    equal(np.ones(3) + 1e-7, np.ones(3))


def test_an_endless_loop_of_python_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.2)

    async def answer() -> None:
        task = agt.spawn(agt.ones(8))
        while not task.done():
            pass

    with pytest.raises(Rejected) as caught, private_device(), patience.not_for_ever():
        observe(answer)
    assert "was interrupted" in caught.value.cause
    with private_device():
        assert observe(lambda: 7).result == 7


def test_a_wait_for_what_never_comes_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.2)
    lock, before = threading.Lock(), signal.signal(signal.SIGALRM, signal.SIG_IGN)
    with pytest.raises(Rejected, match="was interrupted"), patience.not_for_ever():
        call(lambda: lock.acquire() and lock.acquire())
    after = signal.signal(signal.SIGALRM, before), signal.getitimer(signal.ITIMER_REAL)
    assert after == (signal.SIG_IGN, (0, 0))  # as it was before


def test_a_timer_that_was_on_goes_on_after_a_check() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 500, 3)
    try:
        with patience.not_for_ever():
            pass
        left, again = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert again == 3
    assert 0 < left <= 500


async def _gated() -> Any:
    raise RuntimeError(f"{object()!r} is bound to a different event loop")


@pytest.mark.parametrize("thing", [_gated, object(), [object()]])
def test_no_words_name_an_address_since_each_run_has_others(thing: Any) -> None:
    for tried in (lambda: call(thing), lambda: equal(thing, np.zeros(1))):
        with pytest.raises(Rejected) as rejected:
            tried()
        assert "0x" not in rejected.value.cause
    assert "0x" not in brief(thing)


async def test_a_loop_of_its_own_leaves_the_notebooks_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_loop, "_PATIENCE_S", 0.01)
    loop, task, turns = asyncio.get_running_loop(), asyncio.current_task(), list[int]()
    loop.call_soon(turns.append, 1)

    async def inside() -> int:
        assert asyncio.get_running_loop() is not loop
        await asyncio.sleep(0.02)  # longer than patience, with a timer
        return 7

    async def fails() -> None:
        raise ZeroDivisionError

    assert own_loop.completed(inside()) == 7
    with pytest.raises(ZeroDivisionError):
        own_loop.completed(fails())
    with pytest.raises(agt.UsageError, match="waits for something that will never happen"):
        own_loop.completed(asyncio.Event().wait())
    assert turns == []
    assert asyncio.get_running_loop() is loop
    assert asyncio.current_task() is task
    await asyncio.sleep(0)
    assert turns == [1]


def test_a_block_that_fails_leaves_no_neighbour_behind() -> None:
    async def fails() -> set[asyncio.Task[Any]]:
        with pytest.raises(LookupError):
            async with sandbox.neighbour(3) as turns:
                raise LookupError(turns())
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert not asyncio.run(fails())
