"""Workers in other processes, each with a simulated GPU, reached by Dask."""

import asyncio
import gc
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.clusters.guests import Guest
from asyncgpu_tutor.clusters.recipes import packed, ready_to_travel
from asyncgpu_tutor.errors import CannotTravelError, ClusterError, OutOfBoundsError, WorkerLostError
from asyncgpu_tutor.traces.spans import SpanLog

distributed = pytest.importorskip("distributed", reason="pip install 'asyncgpu_tutor[cluster]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
NUMBERS = np.arange(8, dtype=np.float32)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a scheduler with two workers."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as local:
        yield local.scheduler_address


def inside(address: str, act: Callable[[Any], Awaitable[Any]], **how: Any) -> Any:
    """What `act` returns, which gets the GPUs of a cluster of these workers."""

    async def run() -> Any:
        async with agt.cluster(address, device="sim", **how) as gpus:
            return await act(gpus)

    return asyncio.run(run())


def twice(x: agt.DeviceArray) -> agt.DeviceOp[agt.DeviceArray]:
    kernel = agt.Kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    return kernel(x, grid=1, block=8).output()


def test_recipes_run_there_and_arrays_stay(address: str) -> None:
    kernel = agt.Kernel("__global__ void half(float* x) { x[threadIdx.x] /= 2; }")

    async def act(gpus: Any) -> Any:
        x = await gpus[1].put(NUMBERS)
        y = await gpus[1](x.op().and_then(agt.dup).last().and_then(twice))
        y = await gpus[1](y.op().and_then(twice))
        z = await gpus[1](kernel(y.op(), grid=1, block=8).output())  # one that was made here
        with pytest.raises(agt.errors.DeviceMismatchError, match="is on gpu 1"):
            await gpus[0](y.op().to_host())
        pids = [await gpu(agt.value(None).map(lambda _: os.getpid())) for gpu in gpus]
        assert len({os.getpid(), *pids}) == 3
        return await gpus[1](agt.zip(x.op().to_host(), z.op().to_host()))

    x, z = inside(address, act)
    assert (x.tolist(), z.tolist()) == (NUMBERS.tolist(), (2 * NUMBERS).tolist())


def test_a_failure_there_is_an_error_here(address: str) -> None:
    async def act(gpus: Any) -> Any:
        kernel = agt.Kernel("__global__ void bad(float* x) { x[99] = 1; }")
        with pytest.raises(OutOfBoundsError, match="bad") as caught:
            await gpus[0](kernel(agt.zeros(4), grid=1, block=1))
        assert caught.value.site.index == 99
        with pytest.raises(FileNotFoundError) as missing:
            await gpus[0](agt.value("no such file").map(open))
        assert "on gpu 0" in missing.value.__notes__[-1]
        return await gpus[0](agt.ones(1).to_host())

    assert inside(address, act).tolist() == [1.0]


def kept(_: Any) -> int:
    """How many arrays the stores of a worker's process hold."""
    from asyncgpu_tutor.clusters.remote import workers

    return sum(len(worker.arrays) for worker in workers.values())


def test_arrays_that_nobody_has_a_handle_to_are_freed_there(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(gpus: Any) -> Any:
        x = await gpus[0].put(NUMBERS)
        assert await gpus[0](agt.value(None).map(kept)) == 1
        del x
        gc.collect()
        while await gpus[0](agt.value(None).map(kept)):
            pass
        task = asyncio.create_task(gpus[0](agt.ones(4)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        monkeypatch.setattr(gpus[0], "_compared", lambda calls: "gpu 1 called something else")
        for wrong in agt.ones(4), agt.zeros(1).map(lambda _: 1 // 0):
            with pytest.raises(agt.errors.CollectiveError, match="Their results are wrong"):
                await gpus[0](wrong)
        monkeypatch.undo()
        while await gpus[0](agt.value(None).map(kept)):
            pass

    inside(address, act)
    assert inside(address, lambda gpus: gpus[0](agt.value(None).map(kept))) == 0


def test_one_recording_has_the_work_of_all_workers_in_an_order_that_can_be(address: str) -> None:
    async def act(gpus: Any) -> Any:
        with agt.record() as trace:
            x = await gpus[0].put(NUMBERS)
            with pytest.raises(ZeroDivisionError):
                await gpus[1](agt.value(0).map(lambda n: 1 / n))
            y = await gpus[0](x.op().and_then(twice).named("doubled"))
            await gpus[1](agt.ones(8).named("later"))
        await gpus[0](y.op().named("after"))
        return trace

    with agt.using("sim"):
        trace = inside(address, act)
    assert (trace.devices, trace.about["clocks_within_us"]) == (["gpu 0", "gpu 1"], 0)
    calls = [span for span in trace if span.kind == "range"]
    assert [span.name for span in calls[2:]] == ["gpu 0: doubled", "gpu 1: later"]
    for rank, (call, label) in enumerate(zip(calls[2:], ("doubled", "later"), strict=True)):
        own = trace.of(f"gpu {rank}")
        assert {span.host for span in own if not span.on_device} == {f"gpu {rank}"}
        work = [span for span in own if span.label == label]
        assert {span.kind for span in work} == {"call", "kernel"}
        assert all(call.start < span.start and span.end < call.end for span in work)
    assert calls[2].end <= calls[3].start


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(*[st.floats(0, 1e4)] * 3), min_size=1, max_size=9))
def test_a_clock_is_set_within_its_bound(ahead: float, trips: list[tuple[float, ...]]) -> None:
    guest, now = Guest("there", cast(Any, None), SpanLog("here")), 0.0
    for there, back, pause in trips:
        guest.heard(now, now + there + ahead, now + there + back)
        now += there + back + pause
    assert abs(guest.ahead - ahead) <= guest.within + 1e-6
    assert guest.within <= min(there + back for there, back, _ in trips) / 2 + 1e-6


def test_what_cannot_be_pickled_is_named(address: str) -> None:
    lock = threading.Lock()

    def locked(x: Any) -> Any:
        with lock:
            return x

    async def act(gpus: Any) -> Any:
        named = r"variable 'lock' of function .*locked.*lock"
        for op in (agt.ones(2).map(locked), agt.zip(agt.ones(2), agt.ones(2).map(locked))):
            with pytest.raises(CannotTravelError, match=named):
                await gpus[0](op)
        with pytest.raises(agt.errors.DeviceUnavailableError, match="no common clock"):
            await gpus.group()

    inside(address, act)


class Holder:
    """Of a lock, or an array."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def use(self, _: object) -> Any:
        return self._held


CELL: dict[str, Any] = {"__name__": "__main__"}
exec("use = lambda x: held or x; given = lambda x, y: x", CELL)
WAYS: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda held: CELL.update(held=held) or CELL["use"],
        r"the global 'held' of function '<lambda>'",
    ),
    (lambda held: Holder(held).use, "its held"),
    (lambda held: partial(print, {"k": [held]}), "an entry"),
    (lambda held: partial(print, end=held), "an argument"),
    (
        lambda held: setattr(CELL["given"], "__defaults__", (held,)) or CELL["given"],
        "a default of it of",
    ),
]


@pytest.mark.parametrize(("way", "name"), WAYS)
def test_it_is_found_however_it_is_held(way: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(CannotTravelError, match=f"{name}.* is a _thread.lock"):
        packed(agt.value(1).map(way(threading.Lock())))
    with agt.using("sim"), pytest.raises(CannotTravelError, match="array 'x'"):
        ready_to_travel(agt.value(1).map(way(agt.ones(1, name="x").sync())), "gpu 1")


def test_a_lost_worker_is_an_error_of_those_who_need_it(address: str) -> None:
    async def act(gpus: Any) -> Any:
        x = await gpus[1].put(NUMBERS)
        pid = await gpus[1](agt.value(None).map(lambda _: os.getpid()))
        never = agt.value(None).map(lambda _: __import__("time").sleep(60))
        waiting = [asyncio.create_task(gpus[1](op)) for op in (never, x.op().to_host())]
        await asyncio.sleep(0)  # they are sent
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(5):  # what law 21 promises
            for error in await asyncio.gather(*waiting, return_exceptions=True):
                with pytest.raises(WorkerLostError, match=r"gpu 1 .*is gone"):
                    raise error
            with pytest.raises(WorkerLostError, match="gpu 1"):
                await gpus[1](x.op().to_host())
        return await gpus[0](agt.ones(2).to_host())

    assert inside(address, act, gpus=2).tolist() == [1.0, 1.0]


def test_a_stopped_worker_is_lost(address: str) -> None:
    async def act(gpus: Any) -> Any:
        pid = await gpus[1](agt.value(None).map(lambda _: os.getpid()))
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(5):  # what law 21 promises
                for _ in range(2):
                    with pytest.raises(WorkerLostError, match=r"gpu 1 .*its process is stopped"):
                        await gpus[1](agt.ones(1))
            return await gpus[0](agt.ones(2).to_host())
        finally:
            os.kill(pid, signal.SIGKILL)

    assert inside(address, act, gpus=2).tolist() == [1.0, 1.0]


async def test_only_who_has_the_certificates_gets_in() -> None:
    pytest.importorskip("cryptography", reason="pip install 'asyncgpu_tutor[cluster]'")
    # At ":0", since without an address Dask opens port 8787, which may be in use.
    how = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    async with distributed.LocalCluster(asynchronous=True, security=True, **how) as local:
        address = local.scheduler_address
        async with agt.cluster(address, device="sim", security=local.security) as gpus:
            assert (await gpus[0](agt.ones(1).to_host())).tolist() == [1.0]
        for where in (address, address.replace("tls:", "tcp:")):
            with pytest.raises(ClusterError, match=r"certificates|no Dask scheduler answers"):
                async with agt.cluster(where, device="sim"):
                    pass


def test_who_does_not_answer_or_does_not_fit_is_said(address: str, monkeypatch: Any) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    for where, wait, version, gpus, says in (
        ("tls://127.0.0.1:1", 0.5, "", None, r"certificates for tls://127.0.0.1:1.*security="),
        (nowhere, 0.5, "", None, "no Dask scheduler answers"),
        (address, 0.5, "", 9, "you asked for 9 GPUs"),
        (address, 10.0, "9.9.9", None, r"here it is 9\.9\.9"),
    ):
        monkeypatch.setattr("asyncgpu_tutor.clusters.over_dask.CONNECT_S", wait)
        monkeypatch.setattr(agt, "__version__", version or agt.__version__)
        with pytest.raises(ClusterError, match=says):
            inside(where, lambda gpus: gpus[0](agt.ones(1)), gpus=gpus)
