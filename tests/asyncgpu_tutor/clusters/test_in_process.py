"""A cluster in this process: recipes go to its GPUs, and arrays stay there."""

import asyncio
import gc
import warnings
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.errors import ByValueWarning, CannotTravelError, DeviceMismatchError, UsageError
from tests.conftest import open_or_skip

KINDS = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]
NUMBERS = np.arange(8, dtype=np.float32)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Of a cluster of two; skipped where there are not so many GPUs."""
    open_or_skip(f"{request.param}:1")
    return request.param


def double(array: agt.DeviceArray) -> agt.DeviceOp[agt.DeviceArray]:
    kernel = agt.Kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    return kernel(array, grid=1, block=array.size).output()


async def test_an_array_stays_where_it_is_and_enters_the_next_recipe(kind: str) -> None:
    async with agt.cluster(kind, gpus=2) as gpus:
        x = await gpus[1].put(NUMBERS, "numbers")
        assert (x.shape, x.dtype, x.name) == ((8,), np.float32, "numbers")
        assert "gpu 1" in repr(x)
        y = await gpus[1](x.op().and_then(agt.dup).last().and_then(double))
        assert isinstance(y, agt.types.RemoteArray)
        assert (await gpus[1](y.op().to_host())).tolist() == (2 * NUMBERS).tolist()
        assert (await gpus[1](x.op().to_host())).tolist() == NUMBERS.tolist()


async def test_results_of_any_shape_have_handles_in_the_place_of_arrays(kind: str) -> None:
    async with agt.cluster(kind, gpus=2) as gpus:
        both = agt.zip(agt.ones(4), agt.zeros(4))
        relu = both.and_then(lambda xs: agt.relu(4, xs[0], xs[1].partition(4)))
        one, part = await gpus[0](relu)
        host, number = await gpus[0](agt.zip(part.op().to_host(), agt.value(7)))
        assert (host.tolist(), number, one.shape) == ([1.0] * 4, 7, (4,))


async def test_dropping_the_last_handle_frees_the_memory() -> None:
    async with agt.cluster("sim", gpus=2) as gpus:
        heap = gpus[1].device.heap

        def there() -> bool:
            gc.collect()
            return "mine" in {memory.name for memory in heap.alive()}

        x = await gpus[1].put(NUMBERS, "mine")
        op = x.op()
        del x
        assert there()  # the operation has a handle
        await gpus[1](op)
        del op
        await gpus[1](agt.ones(1))
        assert not there()


async def test_cancelling_stops_the_waiting_and_the_recipe_goes_on() -> None:
    async with agt.cluster("sim", gpus=2) as gpus:
        with agt.record() as trace:
            task = asyncio.create_task(gpus[1](agt.ones(4).to_host()))
            await asyncio.sleep(0)  # it is submitted
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert [span.kind for span in trace.device_spans] == ["kernel", "d2h"]


async def test_recipes_of_one_gpu_overlap_and_so_do_gpus() -> None:
    def work() -> agt.DeviceOp[Any]:
        n = 2048
        out = agt.zeros(n).partition(256)
        return agt.matvec_naive(n, n, agt.ones((n, n)), agt.ones(n), out).output()

    async with agt.cluster("sim", gpus=2) as gpus:
        with agt.record() as trace:
            await asyncio.gather(*(gpus[rank](work()) for rank in (0, 0, 1, 1)))
    spans = trace.find("matvec_naive")
    assert len({(span.device, span.stream) for span in spans}) == 4
    assert max(span.start for span in spans) < min(span.end for span in spans)


async def test_one_recipe_for_all_ranks_of_a_group(kind: str) -> None:
    async with agt.cluster(kind, gpus=2) as gpus:
        group = await gpus.group()

        def mine(context: agt.types.ExecutionContext) -> agt.DeviceOp[Any]:
            return agt.full(4, group.rank(context) + 1.0)

        recipe = group.all_reduce(agt.with_context(mine)).to_host()
        found = await asyncio.gather(*(gpu(recipe) for gpu in gpus))
        assert [values.tolist() for values in found] == [[3.0] * 4] * 2


async def test_ranks_that_do_not_come_are_an_error_of_those_that_wait(kind: str) -> None:
    async with agt.cluster(kind, gpus=2) as gpus:
        group = await gpus.group()
        with pytest.raises(agt.errors.CollectiveError, match=r"all_reduce of 4 float32 .*py:\d+"):
            await gpus[0](group.all_reduce(agt.ones(4)))
        assert (await gpus[0](agt.ones(2).to_host())).tolist() == [1.0, 1.0]


def test_between_machines_is_a_network() -> None:
    async def reduce(machines: int) -> float:
        async with agt.cluster("sim", gpus=4, machines=machines) as gpus:
            group = await gpus.group()
            with agt.record() as trace:
                await asyncio.gather(*(gpu(group.all_reduce(agt.ones(1 << 18))) for gpu in gpus))
            if machines == 2:
                x = await gpus[0](agt.ones(4))
                with pytest.raises(DeviceMismatchError, match="different machines"):
                    await gpus[0](x.op().to("sim:3"))
        return min(span.duration for span in trace.find("all_reduce"))

    assert asyncio.run(reduce(2)) > 10 * asyncio.run(reduce(1))


CACHED = cache(abs)
CACHED.__module__ = "__main__"  # as if a notebook had defined it
REFUSED: list[tuple[Callable[[Any], agt.DeviceOp[Any]], type[Exception], str]] = [
    (lambda _: agt.d2h(agt.ones(2).sync()), CannotTravelError, "array 'ones', which is on sim:0"),
    (lambda _: agt.ones(2).and_then(partial(agt.memcpy, agt.ones(2).sync())),
     CannotTravelError, r"await gpu\.put"),
    (lambda _: agt.value(deque([agt.ones(2).sync()])), CannotTravelError, "array 'ones', which is on sim:0"),
    (lambda _: agt.value({agt.ones(2).sync(): 1}), CannotTravelError, "array 'ones', which is on sim:0"),
    (lambda x: agt.value(x).map(lambda y: y), CannotTravelError, r"put its op\(\)"),
    (lambda x: x.op().to_host(), DeviceMismatchError, "is on gpu 1"),
    (lambda x: agt.value(None).map(partial(print, x.gpus)), CannotTravelError, "the workers stay here"),
    (lambda _: agt.value(1).map(CACHED), CannotTravelError, "'abs', of which only the name"),
    (lambda _: 7, agt.errors.NotAnOperationError, "DeviceOp is needed"),  # type: ignore[return-value, list-item]
]  # fmt: skip


@pytest.mark.parametrize(("build", "error", "message"), REFUSED)
async def test_what_cannot_travel_is_refused(build: Any, error: Any, message: str) -> None:
    with agt.using("sim:0"):
        async with agt.cluster("sim", gpus=2) as gpus:
            x: Any = await gpus[1].put(NUMBERS)
            x.gpus = gpus
            with pytest.raises(error, match=message):
                await gpus[0](build(x))


async def test_an_array_that_goes_along_by_value_is_said() -> None:
    async with agt.cluster("sim", gpus=2) as gpus:
        host = agt.pin(NUMBERS)
        with pytest.warns(ByValueWarning, match=r"32 bytes along to gpu 0 .*\(8,\) float32"):
            await gpus[0](agt.value(None).and_then(lambda _: agt.h2d(host)))
        with pytest.warns(ByValueWarning) as caught:
            await asyncio.gather(gpus[0](agt.h2d(host)))
        assert caught[0].filename == __file__  # and not asyncio's, which runs it
        with warnings.catch_warnings(action="error"):
            await gpus[0].put(host)


@pytest.mark.parametrize("apart", [False, True])
async def test_host_arrays_travel_as_they_are_then_and_are_the_receivers_own(apart: bool) -> None:
    async with agt.cluster("sim", gpus=1, apart=apart) as gpus:
        mine = agt.pin(NUMBERS)
        putting = asyncio.create_task(gpus[0].put(mine))
        await asyncio.sleep(0)  # it is on its way
        mine[:] = 7
        x = await putting
        assert (await gpus[0](x.op().to_host())).tolist() == NUMBERS.tolist()
        with pytest.warns(ByValueWarning):
            found = await gpus[0](agt.value([mine]))
        found[0][:] = 8  # no array here
        assert mine.tolist() == [7] * 8


async def test_what_a_recipe_carries_is_found_in_defaults_and_inner_functions() -> None:
    def by_keyword(x: object, *, held: Any = NUMBERS) -> agt.DeviceOp[Any]:
        return agt.value(held)

    names: dict[str, Any] = {"__name__": "__main__", "held": NUMBERS, "agt": agt}
    exec("def nested(x):\n    return agt.value((lambda: held.sum())())", names)
    async with agt.cluster("sim", gpus=2) as gpus:
        for recipe in (by_keyword, names["nested"]):
            with pytest.warns(ByValueWarning, match="32 bytes along"):
                await gpus[0](agt.value(None).and_then(recipe))


async def test_a_recipe_that_was_sent_needs_no_run_here() -> None:
    async with agt.cluster("sim", gpus=2) as gpus:
        with warnings.catch_warnings(action="error", category=agt.errors.NeverRunWarning):
            await gpus[0](agt.ones(4).named("sent"))
            x = await gpus[0](agt.ones(4))
            with pytest.raises(DeviceMismatchError):
                await gpus[1](x.op())
            gc.collect()


def test_a_cluster_lasts_as_long_as_its_block() -> None:
    async def use() -> Any:
        async with agt.cluster("sim", gpus=2, machines=2) as gpus:
            with pytest.raises(UsageError, match="open already"):
                await gpus.__aenter__()
            x = await gpus[0](agt.ones(4, name="kept"))
        assert "kept" not in {memory.name for memory in gpus[0].device.heap.alive()}
        copy = await agt.ones(2).on("sim:0").to("sim:1")  # they are of one machine again
        assert copy.device.name == "sim:1"
        with pytest.raises(UsageError, match="closed"):
            await gpus[0](x.op())
        with pytest.raises(UsageError, match="outside of async with"):
            _ = agt.cluster("sim")[0]

    asyncio.run(use())


@pytest.mark.parametrize(
    ("where", "how", "message"),
    [
        ("nowhere", {}, "not a cluster: say 'sim', 'cuda', or the address"),
        ("sim", {"gpus": 0}, "GPUs is an integer, 1 or more, and got 0"),
        ("sim", {"device": "tpu"}, "and got 'tpu'"),
        ("cuda", {"apart": True}, "is for a simulated cluster"),
    ],
)
def test_no_such_cluster(where: str, how: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agt.cluster(where, **how)


async def test_gpus_that_are_apart_charge_for_each_call_and_for_all_bytes_on_one_link() -> None:
    megabyte = agt.pin(np.zeros(1 << 18, np.float32))
    async with agt.cluster("sim", gpus=2, apart=True) as gpus:
        with agt.record() as trace:
            puts = (gpus[rank].put(megabyte, name) for rank, name in enumerate(("one", "two")))
            one, _ = await asyncio.gather(*puts)
            await gpus[0](one.op().to_host())
    calls = [span for span in trace if span.kind == "range"]
    facts = [(s.name, *(s.detail[k] for k in ("gpu", "sent", "received", "kept"))) for s in calls]
    assert facts == [
        ("gpu 0: put one", 0, megabyte.nbytes, 0, 1),
        ("gpu 1: put two", 1, megabyte.nbytes, 0, 1),
        ("gpu 0: remote array", 0, 0, megabyte.nbytes, 1),
    ]
    first, second, home = (span.duration for span in calls)
    way = megabyte.nbytes / (64e6 / 0.15e6)  # us
    assert first == pytest.approx(1000 + way, rel=0.1)
    assert second == pytest.approx(1000 + 2 * way, rel=0.1)  # it waits until the first has left
    assert home == pytest.approx(first, rel=0.1)


async def test_a_failure_far_away_is_an_error_here_and_takes_as_long() -> None:
    async with agt.cluster("sim", gpus=1, apart=True) as gpus:
        kernel = agt.Kernel("__global__ void bad(float* x) { x[99] = 1; }")
        with agt.record() as trace, pytest.raises(agt.errors.OutOfBoundsError):
            await gpus[0](kernel(agt.zeros(4), grid=1, block=1))
    assert [span.duration > 1000 for span in trace if span.kind == "range"] == [True]


@pytest.mark.parametrize("apart", [False, True])
async def test_a_worker_that_is_lost_is_an_error_of_those_who_need_it(apart: bool) -> None:
    async with agt.cluster("sim", gpus=2, apart=apart) as gpus:
        heap = gpus[1].device.heap
        x = await gpus[1].put(NUMBERS, "lost with it")
        with agt.record() as trace:
            waiting = [asyncio.create_task(gpu(agt.ones(2).to_host())) for gpu in gpus]
            await asyncio.sleep(0)
            gpus[1].lose("the plug is out")
            here, there = await asyncio.gather(*waiting, return_exceptions=True)
        assert here.tolist() == [1.0, 1.0]
        for error in (there, *(await asyncio.gather(gpus[1](x.op()), return_exceptions=True))):
            with pytest.raises(agt.errors.WorkerLostError, match=r"gpu 1 \(sim:1\) is gone .*plug"):
                raise error
        assert "lost with it" not in {memory.name for memory in heap.alive()}
        worked = {"sim:0"} if apart else {"sim:0", "sim:1"}
        assert {span.device for span in trace.find("fill")} == worked
        assert (await gpus[0](agt.ones(1).to_host())).tolist() == [1.0]


async def test_what_nobody_waits_for_any_more_is_freed_when_it_comes() -> None:
    async with agt.cluster("sim", gpus=1, apart=True) as gpus:
        with agt.record() as trace:
            task = asyncio.create_task(gpus[0](agt.ones(4)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            await gpus[0](agt.value(None))
        kept = [span.detail["kept"] for span in trace if span.kind == "range"]
        assert (task.cancelled(), trace.find("fill") != [], kept) == (True, True, [1, 0])


def test_it_is_the_same_every_time() -> None:
    async def run() -> list[float]:
        async with agt.cluster("sim", gpus=4) as gpus:
            group = await gpus.group()
            with agt.record() as trace:
                await asyncio.gather(*(gpu(group.all_reduce(agt.ones(1 << 16))) for gpu in gpus))
        return [round(span.start, 6) for span in trace]

    assert asyncio.run(run()) == asyncio.run(run())
