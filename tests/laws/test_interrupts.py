"""Law 18: an interrupt ends what the simulated device does, and leaves it usable."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from types import FrameType

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice
from tests.conftest import LOOPS

from .test_waiting import awaited

LONG = agt.Kernel(
    """extern "C" __global__ void endless(int* x) {
    for (long long i = 0; i >= 0; i++) x[threadIdx.x] += 1;
}"""
)


FINITE = agt.Kernel(LONG.source.replace("i >= 0", "i < 6000"))
LATER = """extern "C" __global__ void later(volatile int* flag, int* x) {
    while (*flag == 0) { }
    for (int i = 0; i < 6000; i++) x[threadIdx.x] += 1;
}"""


class TestInterrupts:
    """A signal arrives when the interpreter has taken its first look at the clock."""

    @pytest.fixture(autouse=True)
    def interrupted(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        from simgpu.cuda_c.lockstep.team import LaunchState

        def look(launch: LaunchState) -> None:
            if not launch.told:
                launch.told = True
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(LaunchState, "look", look)
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
        assert "i >= 0" in caught.value.__notes__[0]
        with pytest.raises(agt.DeviceError, match="KeyboardInterrupt"):
            stream.synchronize()
        assert agt.ones((2,)).to_host().sync_on(stream).tolist() == [1.0, 1.0]
        agt.synchronize()
        assert agt.in_flight() <= before

    def test_a_kernel_that_has_waited_does_not_go_on(
        self, sim: SimDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from simgpu.cuda_c.lockstep.team import LaunchState

        look, stream = LaunchState.look, sim.default_stream
        flag, x = sim.pinned(1, np.int32), sim.malloc(128, "x", stream)
        monkeypatch.setattr(LaunchState, "look", lambda launch: look(launch) if flag[0] else None)
        flag[:] = 0
        sim.memset_async(x, 0, 128, stream)
        args, one = (sim.map_host(flag, "flag"), x), (1, 1, 1)
        sim.launch(sim.get_function(LATER, "later"), one, (32, 1, 1), args, 0, stream)
        sim.spend(100)
        assert sim.machine.engine.paused
        flag[:] = 1
        with pytest.raises(KeyboardInterrupt):
            sim.spend(100)
        assert not sim.machine.engine.paused
        with pytest.raises(agt.DeviceError, match="KeyboardInterrupt"):
            sim.synchronize()
        assert x.cells.data.view(np.int32)[0] < 6000

    def test_what_it_leaves_goes_although_nobody_waits_for_that(self, sim: SimDevice) -> None:
        def enqueued(_: agt.DeviceArray) -> agt.DeviceOp[int]:
            agt.work(1000.0)  # in which the kernel begins, and is interrupted
            return agt.value(1)

        before = agt.in_flight()
        with pytest.raises(KeyboardInterrupt):
            LONG(agt.zeros(32, np.int32), grid=1, block=32).last().and_then(enqueued).sync()
        for _ in range(10_000):  # of these, one in some looks at the oldest
            agt.value(1).sync()
            if agt.in_flight() <= before:
                break
        gc.collect()
        assert agt.in_flight() <= before
        assert sim.heap.live == 0

    async def test_a_server_that_lets_kernels_finish_gets_its_results(self, sim: SimDevice) -> None:
        class Server:
            lets_kernels_finish, stopping = True, 0

            def stop(self, number: int, frame: FrameType | None) -> None:
                self.stopping += 1

        server = Server()
        signal.signal(signal.SIGINT, server.stop)
        x = await agt.zeros(32, np.int32)
        await FINITE(x.borrow(), grid=1, block=32)
        assert ((await agt.d2h(x.borrow()))[0], server.stopping) == (6000, 1)

    @pytest.mark.parametrize("way", [*LOOPS, "a loop by hand", "a handler of one's own"])
    def test_the_first_one_ends_what_is_awaited_and_the_program(
        self, sim: SimDevice, way: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async def main() -> None:
            while True:  # as servers do
                with suppress(agt.DeviceError):
                    await LONG(agt.zeros(32, np.int32), grid=1, block=32)

        async def cancelled_by_hand() -> None:
            task = asyncio.ensure_future(main())
            signal.signal(signal.SIGINT, lambda *_: task.cancel() and None)
            await task

        def run() -> None:
            if way in LOOPS:
                LOOPS[way](main)
            with closing(asyncio.new_event_loop()) as loop:
                loop.run_until_complete(main() if way == "a loop by hand" else cancelled_by_hand())

        before, handler = agt.in_flight(), signal.getsignal(signal.SIGINT)
        with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)) as caught:
            run()
        assert caught.type is (asyncio.CancelledError if "own" in way else KeyboardInterrupt)
        notes = getattr(caught.value, "__notes__", ())
        assert "kernel 'endless'" in " ".join([capsys.readouterr().err, *notes])
        signal.signal(signal.SIGINT, handler)

        assert asyncio.run(awaited(agt.ones((2,)).to_host())).tolist() == [1.0, 1.0]
        assert signal.getsignal(signal.SIGINT) is handler
        with pytest.raises(agt.DeviceError, match="KeyboardInterrupt") as told:
            agt.synchronize()
        assert isinstance(told.value.__cause__, KeyboardInterrupt | agt.DeviceError)
        gc.collect()
        assert agt.in_flight() <= before


def relu() -> agt.DeviceOp[np.ndarray]:
    target = agt.zeros(256).partition(64)
    return agt.relu(256, agt.full(256, 2.0), target).output().to_host()


@pytest.mark.parametrize("way", [lambda: relu().sync(), lambda: asyncio.run(awaited(relu()))])
def test_one_between_any_two_calls_of_the_engine_arrives_once(
    sim: SimDevice, way: Callable[[], object]
) -> None:
    calls, handler = 0, signal.getsignal(signal.SIGINT)

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        name = frame.f_code.co_name  # Python lets nothing that is raised in a finalizer through
        if "/simgpu/" in frame.f_code.co_filename and name not in ("_give_back", "<lambda>"):
            calls += 1
            if calls == at:
                signal.raise_signal(signal.SIGINT)

    def interrupted() -> bool:
        nonlocal calls
        calls = 0
        sys.setprofile(interrupt)
        try:
            way()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        at = 0
        assert [interrupted() for _ in range(3)] == [False] * 3
        before = agt.in_flight()  # which earlier tests may have left behind
        for at in range(1, calls, 11):
            assert interrupted() == (calls >= at)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert (relu().sync() == 2.0).all()
            try:
                agt.synchronize()
            except agt.DeviceError as told:
                assert "interrupted by KeyboardInterrupt" in str(told)  # noqa: PT017
            agt.synchronize()
            assert agt.in_flight() <= before
    finally:
        signal.signal(signal.SIGINT, handler)


def test_long_interpretation_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    from simgpu.cuda_c import InterpreterLimits
    from tests.simgpu.cuda_c.support import launch

    source = "__global__ void slow(int* x) { for (int i = 0; i < 100; i++) x[0] += 1; }"
    for patience, times in ((0.0, 1), (3600.0, 0)):
        limits = InterpreterLimits(patience=patience)
        launch(source, "slow", 1, 1, np.zeros(1, np.int32), limits=limits)
        said = capsys.readouterr().err
        assert [said.count(w) for w in ("at kernel 'slow'", "1 of 1 blocks", "in `")] == [times] * 3
        assert bool(said) == bool(times)
