"""Laws 4, 11 and 12: handles, not data; spawn safety; use after move."""

import asyncio
import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import BorrowedSpawnError, NotReadyError, UseAfterMoveError

from .kernels import SCALE, kernel
from .test_waiting import awaited

READS: list[Callable[[Any], object]] = [
    np.asarray, list, np.sum, float, bool, lambda host: host[0], lambda host: host + 1,
    lambda host: 1 + host, lambda host: host.sum(), lambda host: host.tolist(), lambda host: host == 1,
    lambda host: np.sum([1], where=host),
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_no_reading_while_it_is_submitted(device: Device, read: Callable[[Any], object]) -> None:
    op = agt.ones((1,)).to_host().named("the answer").map(read)
    with pytest.raises(NotReadyError, match=r"'the answer'.*on the host yet"):
        op.named("the answer").sync()


def test_shape_and_dtype_are_known_from_the_start_and_numbers_not(device: Device) -> None:
    seen = agt.ones((2, 3)).to_host().named("mine")
    facts = seen.map(lambda host: (host.shape, host.ndim, host.size, str(host.dtype), host.nbytes))
    assert facts.sync() == ((2, 3), 2, 6, "float32", 24)
    with pytest.raises(NotReadyError, match="operation 'mine', which is captured and not run"):
        seen.map(lambda host: host[0]).named("mine").prepare()


def test_whoever_runs_it_gets_numpy_arrays_wherever_they_are(device: Device) -> None:
    one = agt.ones((2,)).to_host()
    result = agt.zip(one, agt.value(7)).map(lambda t: {"a": t[0], "b": [t[1], (t[0],)]}).sync()
    assert type(result["a"]) is np.ndarray
    assert type(result["b"][1][0]) is np.ndarray
    assert result["a"].tolist() == [1.0, 1.0]


def test_a_named_tuple_may_have_a_constructor_of_its_own(device: Device) -> None:
    class Labelled(NamedTuple("Labelled", [("host", Any), ("label", str)])):
        def __new__(cls, host: Any) -> Any:
            return super().__new__(cls, host, "mine")

    result = agt.ones((2,)).to_host().map(Labelled).sync()
    assert (type(result), type(result.host), result.label) == (Labelled, np.ndarray, "mine")


def test_after_async_on_the_handle_becomes_readable(device: Device) -> None:
    stream = agt.create_stream()
    host, one = (agt.ones(shape).to_host().async_on(stream) for shape in (4, ()))
    square = host.reshape(2, 2)
    stream.synchronize()
    assert np.asarray(host).tolist() == [1.0] * 4
    square[:, 1] = [1.0, 1.0]
    assert square.tolist() == [[1.0] * 2] * 2
    assert (int(one), float(one), bool(one), len(host), [*host]) == (1, 1.0, True, 4, [1.0] * 4)
    assert (host + host).tolist() == [2.0] * 4
    assert np.shares_memory(np.asarray(host, copy=False), np.asarray(host))
    assert np.asarray(host, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(host, np.float64, copy=False)
    for copied in (pickle.loads(pickle.dumps(host)), copy.deepcopy(host)):
        assert type(copied) is np.ndarray
        assert copied.tolist() == [1.0] * 4
    host += 1
    host *= host
    assert np.asarray(host).tolist() == [4.0] * 4


@pytest.mark.parametrize("how", ["built", "prepared", "graph"])
def test_on_the_simulated_device_a_handle_is_not_readable_before(sim: SimDevice, how: str) -> None:
    op = agt.ones((1_000_000,)).to_host()
    captured: Any = op.prepare() if how != "built" else None
    if how == "graph":
        captured = captured.launch().graph_on(agt.create_stream())
    agt.synchronize()
    before = agt.in_flight()
    host = (captured.launch() if captured else op).named("mine").async_on(agt.create_stream())
    assert agt.in_flight() == before + 1
    for read, us in ((np.asarray, 0.0), (pickle.dumps, 0.0), (copy.copy, 1000.0)):
        agt.work(us)  # the copy is over at last, but on a GPU that would be luck
        with pytest.raises(NotReadyError, match="mine"):
            read(host)
    agt.synchronize()
    assert np.asarray(host).min() == 1.0
    assert agt.in_flight() == before


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_python_cannot_copy_an_array(device: Device, copying: Callable[[object], object]) -> None:
    x = agt.ones((4,), name="x").sync().share()
    with pytest.raises(agt.UsageError, match=r"'x' cannot be copied or pickled.*agt.dup"):
        copying(x)
    assert x.share_count == 1


# ---------------------------------------------------------------------- moves
def test_an_owned_array_is_moved_by_a_kernel_call(device: Device) -> None:
    x = agt.ones((8,), name="x").sync()
    y = agt.zeros((8,), name="y").sync()
    op = kernel(SCALE)(8, 2.0, x, y.partition(8))
    with pytest.raises(UseAfterMoveError, match=r"'x' was moved into scale\(\)"):
        agt.d2h(x)
    with pytest.raises(UseAfterMoveError, match=r"'y' was moved by partition\(\)"):
        y.memory  # noqa: B018 - reading it is the point
    back, part = op.sync()
    assert back.mode == "owned"
    assert agt.d2h(part.unpartition()).sync().tolist() == [2.0] * 8
    assert agt.d2h(back).sync().tolist() == [1.0] * 8


def test_the_handle_from_before_share_says_to_keep_the_new_one(device: Device) -> None:
    x = agt.ones((8,), name="x").sync()
    handle = x.share()
    for ask in (x.share, x.borrow):
        with pytest.raises(UseAfterMoveError, match=r"'x' was moved by share\(\).*= x\.share\(\)"):
            ask()
    assert agt.d2h(handle.share()).sync().tolist() == [1.0] * 8


def test_a_recipe_that_took_an_array_works_once_and_ends_its_borrows(device: Device) -> None:
    x = agt.ones((4,), name="x").sync()
    loans = x.borrow(), x.borrow().borrow()
    op = agt.d2h(x)
    op.sync()
    with pytest.raises(UseAfterMoveError, match=r"into an earlier run of d2h\(\)"):
        op.sync()
    for loan in loans:
        with pytest.raises(UseAfterMoveError, match=r"borrowed, and its owner was moved into d2h"):
            agt.d2h(loan)


# ---------------------------------------------------------------------- spawning
async def test_a_borrowed_input_cannot_be_spawned(device: Device) -> None:
    x = agt.ones((4,), name="x").sync()
    loan = x.borrow()
    for op in (
        agt.d2h(loan),
        agt.value(1).and_then(lambda _: agt.d2h(loan)),
        agt.zip(agt.value(1), agt.ones((4,)).and_then(lambda _: agt.d2h(loan))),
        agt.value((1, loan)).and_then(lambda pair: agt.d2h(pair[1])),
        agt.value(1).and_then(lambda _, array=loan: agt.d2h(array)),
    ):
        with pytest.raises(BorrowedSpawnError, match=r"'x' is borrowed.*x\.share\(\)"):
            agt.spawn(op)
    hidden = {"x": x}
    task = agt.spawn(agt.value(1).and_then(lambda _: agt.d2h(hidden["x"].borrow())))
    with pytest.raises(BorrowedSpawnError, match="'x' is borrowed"):  # the run reveals it
        await task
    assert (await agt.d2h(x.borrow())).tolist() == [1.0] * 4
    assert (await agt.spawn(agt.d2h(x.share()))).tolist() == [1.0] * 4


async def test_a_borrow_in_a_task_of_ones_own_is_its_owners_promise(device: Device) -> None:
    """Nobody can tell such a task from one that is waited for; what goes wrong is found all the same."""
    x, y = agt.ones((4,), name="x").sync(), agt.ones((4,), name="y").sync()
    kept = asyncio.create_task(awaited(agt.d2h(x.borrow())))
    async with asyncio.TaskGroup() as group:
        group.create_task(awaited(agt.d2h(x.borrow())))
    assert (await kept).tolist() == [1.0] * 4
    given_away = asyncio.create_task(awaited(agt.d2h(y.borrow())))
    taker = agt.d2h(y)
    with pytest.raises(UseAfterMoveError, match="'y' is borrowed, and its owner was moved"):
        await given_away
    await taker
    alone = asyncio.create_task(awaited(agt.d2h(x.borrow())))
    del x  # the last name of it, and the array lives until the copy is done
    gc.collect()
    assert (await alone).tolist() == [1.0] * 4


@pytest.mark.parametrize("verb", [
    lambda c, x: c.memset(x), lambda c, x: c.copy_to_host(x),
    lambda c, x: c.copy_from_host(x, np.ones(4, np.float32)),
])  # fmt: skip
async def test_a_verb_of_a_context_looks_at_its_array(
    device: Device, verb: Callable[[Any, agt.DeviceArray], object]
) -> None:
    x = agt.ones((4,), name="x").sync()

    def using(array: agt.DeviceArray) -> agt.DeviceOp[None]:
        return agt.with_context(lambda c: agt.value(verb(c, array)).map(lambda _: None))

    with pytest.raises(BorrowedSpawnError, match=r"'x' is borrowed.*x\.share\(\)"):
        await agt.spawn(using(x.borrow()))
    old, x = x, x.share()
    with pytest.raises(UseAfterMoveError, match=r"'x' was moved by share\(\)"):
        using(old).sync()
    using(x.borrow()).sync()


def test_an_array_copied_to_itself_is_refused_and_stays(device: Device) -> None:
    x = agt.ones((4,)).sync()
    for other in (lambda: x, x.borrow):
        with pytest.raises(UseAfterMoveError):
            agt.memcpy(x, other())
    assert agt.d2h(x).sync().tolist() == [1.0] * 4


def test_a_copy_that_is_refused_takes_none_of_its_arrays(device: Device) -> None:
    target, source = agt.zip(agt.zeros(4), agt.ones(4)).sync()
    op = agt.memcpy(target, source.borrow())
    source.share()
    for _ in range(2):
        with pytest.raises(UseAfterMoveError, match=r"its owner was moved by share"):
            op.sync()
