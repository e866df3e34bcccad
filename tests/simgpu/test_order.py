"""Bugs that a GPU hides by luck fail on the simulated device every time: races between streams, and
host arrays that change under a copy."""

import weakref
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import HostBufferError, StreamRaceError
from tests.laws.kernels import SCALE, kernel

Host = npt.NDArray[Any]


def fill(x: agt.DeviceArray) -> agt.DeviceOp[object]:
    return kernel(SCALE)(8, 2.0, agt.ones((8,)), x.borrow().partition(8)).named("fill")


def read(x: agt.DeviceArray) -> agt.DeviceOp[object]:
    return agt.d2h(x.borrow()).named("read")


def fetch(host: Host) -> agt.DeviceOp[object]:
    """Writes a host array by a copy."""
    return agt.ones(host.shape).and_then(lambda x: agt.d2h(x, out=host)).named("fetch")


def send(host: Host) -> agt.DeviceOp[object]:
    """Reads it by a copy."""
    return agt.h2d(host).named("send")


SET = 'extern "C" __global__ void set(float* y, float v) { y[threadIdx.x] = v; }'


def put(host: Host) -> agt.DeviceOp[object]:
    """Writes it from a kernel, which sees it in place."""
    return agt.Kernel(SET)(agt.mapped(host).partition(8), 2.0).named("put")


def on_device() -> agt.DeviceArray:
    return agt.zeros((8,), name="x").sync()


def on_host() -> Host:
    return agt.pin(np.zeros(8, np.float32))


RACES = [
    (on_device, fill, read, r"race on array 'x'.*'scale' of operation 'fill'.*writes it, 'd2h'.*reads it"),
    (on_device, read, fill, r"race on array 'x'.*'d2h' of operation 'read'.*reads it, 'scale'.*writes it"),
    (on_device, fill, fill, r"race on array 'x'.*writes it.*writes it"),
    *((on_host, first, second, "race on the host array of") for first, second in (
        (fetch, fetch), (fetch, send), (send, fetch), (put, put), (put, fetch), (fetch, put))),
]  # fmt: skip


@pytest.mark.parametrize(("make", "first", "second", "message"), RACES)
@pytest.mark.parametrize("late", [0.0, 1e6])  # long done, and still nobody has looked
def test_two_streams_and_no_order(
    sim: SimDevice, make: Any, first: Any, second: Any, message: str, late: float
) -> None:
    memory = make()
    first(memory).async_on(agt.create_stream())
    agt.work(late)
    with pytest.raises(StreamRaceError, match=message):
        second(memory).async_on(agt.create_stream())
    agt.synchronize()
    second(memory).async_on(agt.create_stream())  # the host has seen the first
    agt.synchronize()


@pytest.mark.parametrize("what", ["array", "host array"])
def test_what_orders_two_streams(sim: SimDevice, what: str) -> None:
    x, host = on_device(), on_host()
    one, two = agt.create_stream(), agt.create_stream()

    def event(through: Any = one) -> None:
        if through is not one:
            through.wait_event(one.record())
        two.wait_event(through.record())

    def poll() -> None:
        mark = one.record()
        while not mark.done:
            pass

    by_a_third = partial(event, agt.create_stream())
    for order in (event, by_a_third, poll, one.synchronize, agt.synchronize):
        (fill(x) if what == "array" else fetch(host)).async_on(one)
        order()
        (read(x) if what == "array" else send(host)).async_on(two)
        two.synchronize()


async def test_awaiting_orders(sim: SimDevice) -> None:
    x = agt.zeros((8,), name="x").sync()
    for _ in range(4):  # another stream each time
        await fill(x)
        await read(x)


COUNT = """
extern "C" __global__ void count(float* spare, unsigned int* x)
{
    atomicADD(&x[threadIdx.x % 4], 1u);
    atomicADD(x + 1, 2u);
}
"""


def count(x: agt.DeviceArray, by: str = "Add") -> agt.DeviceOp[object]:
    """Adds to x, and to nothing else."""
    kernel = agt.Kernel(COUNT.replace("ADD", by))
    return kernel(agt.zeros(8), x.borrow(), grid=1, block=8).named("count")


STEP = st.sampled_from(["write", "read", "add", "top", "record", "wait", "sync"])
EIGHT = np.ones(8, np.uint32)


@given(st.lists(st.tuples(STEP, st.integers(0, 2)), max_size=14))
@example([("read", 0), ("read", 1), ("read", 2)])
@example([("record", 0), ("write", 0), ("wait", 1), ("read", 1)])  # recorded before the write
@example([("add", 0), ("top", 1)])
@example([("top", 0), ("add", 0), ("add", 1)])  # nothing orders the first with the last
def test_a_race_is_reported_exactly_where_there_is_one(steps: list[tuple[str, int]]) -> None:
    """Against a model that keeps, for each piece of work, the set of all that comes before it."""
    with agt.using(SimDevice(machine=SimMachine())):
        take(steps)
        agt.synchronize()  # else what is in flight would stay so, for all tests to come


def take(steps: list[tuple[str, int]]) -> None:
    x = agt.zeros((8,), np.uint32, name="x").sync()
    streams = [agt.create_stream() for _ in range(3)]
    event, carried = streams[0].record(), frozenset[int]()
    before = [frozenset[int]()] * 3  # what precedes the next work on each stream
    seen = frozenset[int]()  # what the host knows to be complete
    accesses: list[tuple[int, str]] = []
    ops = {
        "write": lambda: agt.memcpy(x.borrow(), agt.pin(EIGHT)),
        "read": lambda: read(x),
        "add": lambda: count(x),
        "top": lambda: count(x, "Max"),
    }
    for number, (step, index) in enumerate(steps):
        stream = streams[index]
        if step == "record":
            event, carried = stream.record(), before[index]
        elif step == "wait":
            stream.wait_event(event)
            before[index] |= carried
        elif step == "sync":
            stream.synchronize()
            seen |= before[index]
        else:
            known = before[index] | seen
            unordered = [other for earlier, other in accesses if earlier not in known]
            op = ops[step]()
            if any(step == "write" or step != other for other in unordered):
                with pytest.raises(StreamRaceError):
                    op.async_on(stream)
                return
            op.async_on(stream)
            accesses.append((number, step))
            before[index] = known | {number}


@pytest.mark.parametrize("staged", [False, True])
def test_a_host_array_may_change_after_its_copy(sim: SimDevice, staged: bool) -> None:
    host, stream = np.ones(10, np.float32), agt.create_stream()
    host = host if staged else agt.pin(host)
    with pytest.warns(agt.errors.PageableCopyWarning) if staged else nullcontext():
        copy = agt.h2d(host).to_host().async_on(stream)
    if not staged:
        stream.synchronize()
    host[5] = 7.0
    stream.synchronize()
    assert np.asarray(copy).tolist() == [1.0] * 10


def test_chunks_of_one_host_array_do_not_race(sim: SimDevice) -> None:
    host = agt.pin(np.zeros(32, np.float32))
    for start in range(0, 32, 8):
        fetch(host[start : start + 8]).async_on(agt.create_stream())
    with pytest.raises(StreamRaceError):
        send(host[7:9]).async_on(agt.create_stream())
    agt.synchronize()
    assert (host == 1).all()


def test_a_host_array_that_is_gone_is_not_held(sim: SimDevice) -> None:
    stream = agt.create_stream()
    host = agt.pinned(8)
    gone = weakref.ref(host.base)
    fetch(host).async_on(stream)
    agt.work(1e6)  # done, and nobody has looked
    agt.synchronize()
    del host
    assert gone() is None


def test_a_program_that_never_waits_keeps_no_host_arrays(sim: SimDevice) -> None:
    stream = agt.create_stream()
    sent: list[weakref.ref[Host]] = []
    for _ in range(1000):
        host = agt.pinned(8)
        sent.append(weakref.ref(host.base))
        host[:] = 1
        send(host).async_on(stream)
        agt.work(100)
    del host
    assert sum(one() is not None for one in sent) < 300
    agt.synchronize()


@pytest.mark.parametrize("copy", [send, fetch])
def test_a_change_under_a_copy_is_told_although_nobody_waits(sim: SimDevice, copy: Any) -> None:
    stream, host = agt.create_stream(), agt.pinned(8)
    host[:] = 1
    copy(host).async_on(stream)
    copy(host).async_on(stream)  # in order, so one may write over what the other has written
    host[:] = 2
    ops = [send(agt.pin(np.ones(8, np.float32))) for _ in range(300)]
    with pytest.raises(HostBufferError, match=r"behind '\w+' was changed while.*in flight"):
        _ = [op.async_on(stream) for op in ops]


def test_streams_may_share_an_array_and_no_byte_of_it(sim: SimDevice) -> None:
    x, one, two, three = agt.zeros(64).sync(), *(agt.create_stream() for _ in range(3))
    part = agt.Kernel("__global__ void part(float* y, int k) { y[k + threadIdx.x] += k; }")
    for first, count, stream in ((1, 31, one), (32, 32, two), (1, 9, one)):
        part(x.borrow(), first, grid=1, block=count).async_on(stream)
    three.wait_event(two.record())
    for first, stream in ((31, two), (1, three)):  # all count who wrote, and not the last one alone
        with pytest.raises(StreamRaceError):
            part(x.borrow(), first, grid=1, block=8).async_on(stream)
    three.wait_event(one.record())
    assert agt.d2h(x).sync_on(three).tolist() == [0, *[2] * 9, *[1] * 22, *[32] * 32]


def test_what_goes_by_the_number_of_an_address_may_touch_any_byte(sim: SimDevice) -> None:
    """A copy, in which one could see what it touches, is at another address."""
    x = agt.zeros(64).sync()
    source = "__global__ void part(float* x, int k) { x[threadIdx.x + ((long long)x >> 20 ? k : 0)] = k; }"
    agt.Kernel(source)(x.borrow(), 0, grid=1, block=32).async_on(agt.create_stream())
    with pytest.raises(StreamRaceError):
        agt.Kernel(source)(x.borrow(), 32, grid=1, block=32).async_on(agt.create_stream())


def test_a_race_of_two_devices_names_both(sim: SimDevice) -> None:
    host, other = agt.pin(np.zeros(8, np.float32)), SimDevice(1, machine=sim.machine)
    fetch(host).async_on(agt.create_stream())
    with agt.using(other), pytest.raises(StreamRaceError, match=r"on stream 1 of sim:1 reads"):
        send(host).async_on(agt.create_stream())
    agt.synchronize()


def test_counts_from_several_streams_add_up(sim: SimDevice) -> None:
    x = agt.zeros(4, np.uint32, name="x").sync()
    for _ in range(3):
        count(x).async_on(agt.create_stream())
    agt.synchronize()
    assert list(agt.d2h(x).sync()) == [6, 54, 6, 6]


OWN = "void atomicAdd(unsigned* p, unsigned v) { *p = 3 * *p + v; }"
MORE = [
    ("", "x[8 + threadIdx.x] = atomicAdd(&x[0], 1u);"),  # asks what was there
    ("", "atomicAdd(&x[x[8] % 8], 1u);"),  # reads
    ("", "atomicAdd(&x[0], 1u); atomicMax(&x[1], 3u);"),
    ("", "unsigned int* y = x; atomicAdd(&y[0], *x);"),
    ("", "atomicAdd_block(&x[0], 1u);"),  # for others of its block alone
    ("", "atomicExch(&x[0], 1u);"),
    ("", "atomicAdd(&x[0], 1.0f);"),  # which rounds
    # Names that promise nothing:
    (f"struct S {{ static __device__ {OWN} }};", "S::atomicAdd(&x[0], 1u);"),
    (f"namespace n {{ __device__ {OWN} }}", "n::atomicAdd(&x[0], 1u);"),
    ("struct S { __device__ void operator()(unsigned* p, unsigned v) const { *p += v; } };",
     "S atomicAdd; atomicAdd(&x[0], 1u);"),
    ("", "auto atomicAdd = [](unsigned* p, unsigned v) { *p += v; }; atomicAdd(&x[0], 1u);"),
]  # fmt: skip


def test_adding_is_adding_by_any_name(sim: SimDevice) -> None:
    before = "template <class T> __device__ void bump(T* at) { atomicAdd(at, 1u); }"
    lines = "unsigned* y = x + 1; bump(y); bump(&x[2]);"
    more = agt.Kernel(f'{before} extern "C" __global__ void more(unsigned* x) {{ {lines} }}')
    x = agt.zeros(4, np.uint32, name="x").sync()
    for _ in range(2):
        more(x.borrow(), grid=1, block=1).async_on(agt.create_stream())
    agt.synchronize()
    assert agt.d2h(x).sync().tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize(("before", "lines"), MORE)
def test_what_is_more_than_adding_is_a_race(sim: SimDevice, before: str, lines: str) -> None:
    ctype, dtype = ("float", np.float32) if "1.0f" in lines else ("unsigned", np.uint32)
    more = agt.Kernel(f'{before} extern "C" __global__ void more({ctype}* x) {{ {lines} }}')
    x = agt.zeros(64, dtype, name="x").sync()
    more(x.borrow(), grid=1, block=1).async_on(agt.create_stream())
    with pytest.raises(StreamRaceError):
        more(x.borrow(), grid=1, block=1).async_on(agt.create_stream())
    agt.synchronize()


def test_a_refused_upload_has_neither_written_nor_read(sim: SimDevice) -> None:
    x, y = (agt.zeros(8, name=name).sync() for name in "xy")
    host, free = agt.pinned(8), agt.pinned(8)
    agt.d2h(x.borrow(), out=host).async_on(agt.create_stream())
    with pytest.raises(StreamRaceError, match="host array"):
        agt.memcpy(y.borrow(), host).async_on(agt.create_stream())
    read(y).async_on(agt.create_stream())
    with pytest.raises(StreamRaceError, match="array 'x'"):
        agt.memcpy(x.borrow(), free).async_on(agt.create_stream())
    fetch(free).async_on(agt.create_stream())
    agt.synchronize()
