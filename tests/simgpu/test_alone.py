"""simgpu by itself: its README's programs, arrays and kernels in CuPy's verbs, and no other package."""

import dataclasses
import gc
import random
import re
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import simgpu
from simgpu import errors
from simgpu.collectives import Communicator
from simgpu.cuda_c import compile_source
from simgpu.graph import Graph
from simgpu.launches import LoadedKernel
from simgpu.pieces import as_memory
from tests.tools import blocks, page, python

README = page("simgpu/README.md")
PROGRAMS = blocks(README)
ALONE = """
import sys
sys.modules["asyncgpu_tutor"] = None  # an import of it fails
before = set(sys.modules)
{}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(sorted(name for name in loaded - set(sys.stdlib_module_names) if not name.startswith("_")))
print("asyncio" in sys.modules)
"""
SAXPY = r"""
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void wild(float* y) { y[threadIdx.x + 1] = 1; }
"""


def test_the_programs_of_the_readme_run_where_the_tutor_cannot_be_imported() -> None:
    said = python("-c", ALONE.format("\n".join(PROGRAMS))).stdout.splitlines()
    assert said[0] == "[0. 2. 4. 6.]"
    assert re.fullmatch(r"\d+\.\d us, bound by \w[\w ]*", said[1])
    assert said[2:] == ["['numpy', 'simgpu']", "False"]


def test_the_three_lines_of_the_readme_find_the_race(tmp_path: Path) -> None:
    (source,), (said, _) = blocks(README, "cuda"), blocks(README, "text")
    (tmp_path / "sums.cu").write_text(source)
    draft = python("-m", "simgpu", "check", "--draft", tmp_path / "sums.cu").stdout
    (tmp_path / "sums_spec.py").write_text(draft)
    assert "simgpu check --draft sums.cu > sums_spec.py\nsimgpu check sums.cu\n" in README
    assert python("-m", "simgpu", "check", tmp_path / "sums.cu", check=False).stdout == said


def test_the_readme_quotes_the_error() -> None:
    source = re.search(r'(?s)SOURCE = """(.*?)"""', README)
    assert source is not None
    x = simgpu.asarray(np.zeros(1000, np.float32))
    wrong = simgpu.RawKernel(source[1].replace("if (i < n) ", ""), "double_it")
    wrong((4,), (256,), (x, 1000))
    with pytest.raises(errors.OutOfBoundsError) as caught:
        simgpu.asnumpy(x)
    assert str(caught.value).split("\n")[0] in README


def test_the_command_lists_the_gpus() -> None:
    told = python("-m", "simgpu").stdout.splitlines()
    assert [line.split()[0] for line in told] == list(simgpu.SPECS)


def test_a_kernel_takes_arrays_and_numbers_on_any_stream() -> None:
    gpu = simgpu.Device(spec="l4")
    stream = gpu.create_stream()
    x = simgpu.asarray(np.arange(100, dtype=np.float32), gpu)
    y = simgpu.Array.zeros(100, np.float32, gpu)
    gpu.synchronize()
    saxpy = simgpu.RawKernel(SAXPY, "saxpy")
    saxpy(1, 128, (x, y, 2, 100), stream=stream)
    saxpy(1, 128, (x, y, 1.0, 100), stream=stream)
    assert y.get(stream).tolist() == [3.0 * i for i in range(100)]
    assert gpu.now() > 0
    graph(gpu, ("memset", y.memory, 0, 400)).launch(stream)
    assert not y.get(stream).any()


def graph(gpu: simgpu.Device, *calls: tuple[object, ...]) -> Graph:
    """A graph of calls in one row: for each its name, and what it takes."""
    about = [
        {"verb": verb, "args": args, "stream": 0, "fresh": (), "named": ""} for verb, *args in calls
    ]
    return gpu.prepare([type("Call", (), each)() for each in about]).instantiate("row")


@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_refused_leaves_nothing_behind(at_once: bool) -> None:
    """The launch reads `x` before it is refused for `y`, and in a graph it's the second one."""
    gpu, saxpy = simgpu.Device(), simgpu.RawKernel(SAXPY, "saxpy")
    x, y, z = (simgpu.Array.zeros(4, np.float32, gpu) for _ in range(3))
    one, two, three = (gpu.create_stream() for _ in range(3))
    gpu.synchronize()
    calls: list[tuple[Any, ...]] = [
        ("launch", saxpy.function(gpu), (1, 1, 1), (4, 1, 1), [x.memory, out.memory, 1.0, 4], 0)
        for out in ((z, y) if at_once else (y,))
    ]
    again = graph(gpu, *calls)
    y.set(np.ones(4), one)
    with pytest.raises(errors.StreamRaceError):
        again.launch(two) if at_once else gpu.launch(*calls[0][1:], two)
    assert two.queue.idle
    for array in (x, z):
        array.set(np.full(4, 2.0), three)
    gpu.synchronize()
    again.launch(two)
    assert (z.get(two)[0], y.get(two)[0]) == ((4, 3) if at_once else (2, 3))


def test_a_graph_runs_once_at_a_time() -> None:
    gpu = simgpu.Device()
    add = simgpu.RawKernel('extern "C" __global__ void add(int* x) { x[0] = 2 * x[0] + 1; }', "add")
    x, streams = simgpu.Array.zeros(1, np.int32, gpu), [gpu.create_stream() for _ in range(3)]
    gpu.synchronize()
    whole = graph(gpu, ("launch", add.function(gpu), (1, 1, 1), (1, 1, 1), [x.memory], 0))
    for stream in streams:
        whole.launch(stream)
    assert x.get(streams[-1])[0] == 7
    whole.launch(streams[0])
    with pytest.raises(errors.StreamRaceError):  # what is no launch of it waits for none
        add(1, 1, (x,), stream=streams[1])


SCATTER = """
extern "C" __global__ void scatter(const int* at, int* y) { y[at[0] * 32 + threadIdx.x] = 1; }
extern "C" __global__ void upper(int* y) { y[32 + threadIdx.x] = 2; }"""


@pytest.mark.parametrize("graph_first", [False, True])
@pytest.mark.parametrize(("rounds", "races"), [([0, 0], -1), ([0, 1], 1), ([1], 0), ([1, 0], 0)])
def test_the_bytes_of_a_launch_are_those_that_its_data_chooses(
    graph_first: bool, rounds: list[int], races: int
) -> None:
    """When the call is made, the data is yet to come: 0 at first, and later that of the round before."""
    gpu, upper = simgpu.Device(), simgpu.RawKernel(SCATTER, "upper")
    at, y = (simgpu.Array.zeros(n, np.int32, gpu) for n in (1, 64))
    host, one, two = gpu.pinned(1, np.int32), gpu.create_stream(), gpu.create_stream()
    scatter = simgpu.RawKernel(SCATTER, "scatter").function(gpu)
    launch = ("launch", scatter, (1, 1, 1), (32, 1, 1), [at.memory, y.memory], 0)
    host[:] = 0
    whole = graph(gpu, ("copy_from_host_async", at.memory, host), launch)
    gpu.synchronize()
    ways: list[Callable[[], None]] = [
        lambda: whole.launch(one),
        lambda: upper(1, 32, (y,), stream=two),
    ]
    for number, host[:] in enumerate(rounds):
        for way in ways if graph_first else ways[::-1]:
            way()
        told = pytest.raises(errors.StreamRaceError, match=r"'scatter'.*'upper'|'upper'.*'scatter'")
        with told if number == races else nullcontext():
            gpu.synchronize()
        if number == races:
            return
    assert y.get().tolist() == [1] * 32 + [2] * 32


PARTS = """
#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__, int k) { int i = k + threadIdx.x;
KERNEL(place, int* at) at[threadIdx.x] = i; }
KERNEL(scatter, int* y, const int* at) y[at[threadIdx.x]] = 1; }
KERNEL(gather, const int* y, const int* at, int* z) z[threadIdx.x] = y[at[threadIdx.x]]; }
KERNEL(put, int* y, const int* at) y[i] = 1; }
KERNEL(look, const int* y, const int* at, int* z) z[threadIdx.x] = y[i]; }
KERNEL(add, int* y, const int* at) atomicAdd(&y[i], 1); }"""


@pytest.mark.parametrize("seed", range(12))
def test_launches_that_share_an_array_race_exactly_where_they_share_bytes(seed: int) -> None:
    """Held against sets of what comes before each; where a kernel writes, an earlier one may decide."""
    draw, gpu = random.Random(seed), simgpu.Device()
    streams = [gpu.create_stream(non_blocking=True) for _ in "abc"]
    y, *rest = (simgpu.Array.zeros(n, np.int32, gpu) for n in (64, *[8] * 6))
    kernels = {
        n: simgpu.RawKernel(PARTS, n) for n in ("place", "scatter", "gather", "put", "look", "add")
    }
    gpu.synchronize()
    bytes_at, before, seen = [{0}] * 3, [set[int]()] * 3, set[int]()
    event, done, racy = (streams[0].record(), set[int]()), list[tuple[str, set[int]]](), False
    try:
        for _ in range(10):
            s, what = draw.randrange(3), draw.choice(["record", "wait", "sync", *kernels, *kernels])
            k = draw.choice([20 * s, 20 * s + 5, 20 * s + 10, draw.randrange(56)])
            here = set(range(k, k + 8))
            if what == "record":
                event = streams[s].record(), before[s] | seen
            elif what == "wait":
                streams[s].wait_event(event[0])
                before[s] = before[s] | event[1]
            elif what == "sync":
                streams[s].synchronize()
                seen |= before[s]
            elif what == "place":
                bytes_at[s] = here
                kernels[what](1, 8, (rest[s], k), stream=streams[s])
            else:
                touched = bytes_at[s] if what in ("scatter", "gather") else here
                way = {"gather": "read", "look": "read", "add": "add"}.get(what, "write")
                known = before[s] | seen
                others = [one for n, one in enumerate(done) if n not in known]
                racy |= any(touched & b and (way == "write" or way != w) for w, b in others)
                before[s] = known | {len(done)}
                done.append((way, touched))
                more = (rest[3 + s],) if way == "read" else ()
                kernels[what](1, 8, (y, rest[s], *more, k), stream=streams[s])
        gpu.synchronize()
    except (errors.StreamRaceError, errors.UpstreamError):  # or it reads what a race spoiled
        assert racy
    else:
        assert not racy


READS = """struct S { int a[1]; };
extern "C" __global__ void number(long long* o, int n) { *o = n; }
extern "C" __global__ void array(long long* o, int* x) { *o = x[0]; }
extern "C" __global__ void record(long long* o, S s) { *o = s.a[0]; }
extern "C" __global__ void real(long long* o, float f) { *o = f; }"""


@pytest.mark.parametrize(
    ("name", "arg", "why"),
    [
        ("number", np.int64(5), ""),
        ("number", np.True_, ""),
        *(("number", value, "cannot be passed for 'n'")
          for value in (1 << 40, np.int64(1 << 40), np.uint32(1 << 31), 1.5, np.float32(2))),
        ("number", None, "None is no number for 'n', which is int"),
        *(("real", value, "is no number for 'f', which is float")
          for value in (np.complex64(1 + 2j), 1j, np.timedelta64(3, "s"))),
        ("record", 5, "'s' is a S of 4 bytes, and no record was given, but int"),
        ("array", np.array([5], "<i4"), ""),
        ("array", np.array([5], ">i4"), r"of >i4, .* pass x.astype\("),
        ("array", np.array([((5,),)], [("a", ">i4", (1,))]), "byte order"),
        ("record", np.array(((5,),), [("a", "<i4", (1,))])[()], ""),
        ("record", np.array(((5,),), [("a", ">i4", (1,))])[()], "byte order"),
        ("record", np.array((5,), [("a", "<i8")])[()], "'s' is a S of 4 bytes, and a record of 8"),
    ],
)  # fmt: skip
def test_an_argument_is_what_its_parameter_takes_or_is_refused_by_the_call(
    name: str, arg: Any, why: str
) -> None:
    out = simgpu.Array.zeros(1, np.int64)
    given = simgpu.asarray(arg) if name == "array" else arg
    with pytest.raises(errors.UsageError, match=why) if why else nullcontext():
        simgpu.RawKernel(READS, name)(1, 1, (out, given))
    assert out.get()[0] == (0 if why else int(np.asarray(arg).reshape(1).view("i1")[0]))


def test_an_array_is_no_number_and_a_number_no_pointer() -> None:
    out = simgpu.Array.zeros(1, np.int64)
    for name, arg, why in (
        ("number", out, "an array is no number"),
        ("array", 5, "'x' is a pointer"),
    ):
        with pytest.raises(errors.ArrayDTypeError, match=why):
            simgpu.RawKernel(READS, name)(1, 1, (out, arg))


@pytest.mark.parametrize("first", ["null", "other"])
@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("by_way", ["", "null"])
def test_the_null_stream_is_ordered_with_blocking_streams(
    first: str, non_blocking: bool, by_way: str
) -> None:
    """As CUDA's legacy default stream; an event on it comes between two others."""
    gpu = simgpu.Device()
    null = gpu.default_stream
    other, third = (gpu.create_stream(non_blocking=non_blocking) for _ in "ab")
    x, y = simgpu.Array.zeros(100, np.float32, gpu), simgpu.Array.zeros(100, np.float32, gpu)
    gpu.synchronize()
    saxpy = simgpu.RawKernel(SAXPY, "saxpy")
    streams = [other, third] if by_way else [null, other]
    one, two = streams if first == "null" else streams[::-1]
    saxpy(1, 128, (x, y, 2, 100), stream=one)
    if by_way:
        null.record()
    with pytest.raises(errors.StreamRaceError) if non_blocking else nullcontext():
        saxpy(1, 128, (x, y, 2, 100), stream=two)
    gpu.synchronize()


@pytest.mark.parametrize("wait", ["synchronize", "settle", "", "other"])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_work_of_a_stream_that_is_no_more_is_ordered_as_that_of_others(
    wait: str, non_blocking: bool
) -> None:
    """By a wait for the device, and with the null stream if it was a blocking one."""
    gpu = simgpu.Device()
    x, other = simgpu.Array.zeros(100, np.float32, gpu), gpu.create_stream()
    gpu.synchronize()
    gone = gpu.create_stream(non_blocking=non_blocking)
    simgpu.RawKernel(SAXPY, "saxpy")(1, 128, (x, x, 2, 100), stream=gone)
    gpu.spend(1e4)  # its work is done, and the host doesn't know
    known = weakref.ref(gone)
    del gone
    gc.collect()
    assert known() is None
    if wait in ("synchronize", "settle"):
        getattr(gpu, wait)()
    racy = wait == "other" or (not wait and non_blocking)
    with pytest.raises(errors.StreamRaceError) if racy else nullcontext():
        x.get(other if wait else None)


@pytest.mark.parametrize(
    ("atomic", "other", "commute"),
    [("Add", "unsigned", True), ("Min", "int", True), ("Min", "unsigned", False),
     ("Max", "unsigned", False), ("Add", "unsigned long long", False)],
)  # fmt: skip
def test_an_atomic_commutes_with_itself_on_numbers_of_one_kind(
    atomic: str, other: str, commute: bool
) -> None:
    x = simgpu.Array.zeros(4, np.int32, gpu := simgpu.Device())
    gpu.synchronize()
    streams = [gpu.create_stream(non_blocking=True) for _ in "ab"]
    one, two = (
        simgpu.RawKernel(f"__global__ void k({t}* x, {t} v) {{ atomic{atomic}(x, v); }}", "k")
        for t in ("int", other)
    )
    one(1, 1, (x, -1), stream=streams[0])
    with nullcontext() if commute else pytest.raises(errors.StreamRaceError):
        two(1, 1, (x, 5), stream=streams[1])


def test_two_large_fills_share_the_memory_and_two_small_ones_run_side_by_side() -> None:
    def took(nbytes: int, many: int) -> float:
        gpu = simgpu.Device(spec="t4")
        arrays = [simgpu.Array.empty(nbytes, np.uint8, gpu) for _ in range(many)]
        streams = [gpu.create_stream(non_blocking=True) for _ in arrays]
        begun = gpu.now()
        for array, stream in zip(arrays, streams, strict=True):
            gpu.memset_async(array.memory, 0, nbytes, stream)
        gpu.settle()
        return gpu.now() - begun - many * gpu.spec.call_memset_us

    assert took(1 << 23, 2) > 1.6 * took(1 << 23, 1)
    assert took(1 << 10, 2) == pytest.approx(took(1 << 10, 1))


SMALL = dataclasses.replace(simgpu.SPECS["t4"], sms=1)  # it has places for 1024 threads
FLAGS = """extern "C" __global__ void until(int* flag) { while (atomicAdd(flag, 0) == 0) { } }
extern "C" __global__ void raise_it(int* flag) { atomicAdd(flag, 1); }"""


@pytest.mark.parametrize(("threads", "hangs"), [(512, False), (1024, True)])
def test_a_kernel_that_fills_the_device_waits_in_vain_for_another(
    threads: int, hangs: bool
) -> None:
    gpu = simgpu.Device(spec=SMALL)
    flag, x = simgpu.Array.zeros(1, np.int32, gpu), simgpu.Array.empty(8, np.int32, gpu)
    one, two, three = (gpu.create_stream(non_blocking=True) for _ in range(3))
    gpu.synchronize()
    simgpu.RawKernel(FLAGS, "until")(1, threads, (flag,), stream=one)
    gpu.spend(30)
    simgpu.RawKernel(FLAGS, "raise_it")(1, 1, (flag,), stream=two)
    x.set(np.arange(8), stream=three)  # a copy needs no place
    gpu.spend(100)
    assert (three.done, one.done) == (True, not hangs)
    with pytest.raises(errors.DeadlockError) if hangs else nullcontext():
        gpu.synchronize()


TOTAL = """__device__ int total;
extern "C" __global__ void put(int v) { total += v; }
extern "C" __global__ void get(int* x) { *x = total; }"""


def test_kernels_of_one_source_share_its_variables() -> None:
    """As in CuPy, whose modules are told apart by their text and options, and by their device."""
    gpu, other = simgpu.Device(), simgpu.Device()
    x, y, z = (simgpu.Array.zeros(1, np.int32, place) for place in (gpu, gpu, other))
    put, get, also = (simgpu.RawKernel(TOTAL, name) for name in ("put", "get", "get"))
    apart = simgpu.RawKernel(TOTAL, "get", enable_cooperative_groups=True)
    for value in (3, 4):
        put(1, 1, (value,), stream=gpu.default_stream)
    for kernel, out in ((get, x), (also, y), (also, z)):
        kernel(1, 1, (out,))
    assert [x.get()[0], y.get()[0], z.get()[0]] == [7, 7, 0]
    apart(1, 1, (x,))
    assert x.get()[0] == 0


PLACED = """
__device__ int total, table[64];
__constant__ int given[4];
__device__ void bump(int* at) { atomicAdd(at, 1); }
__device__ int seen() { return total; }
#define KERNEL extern "C" __global__ void
KERNEL add(int* x) { atomicAdd(&total, 2); }
KERNEL also(int* x) { bump(&total); }
KERNEL most(int* x) { atomicMax(&total, 1); }
KERNEL put(int* x) { total = 3; }
KERNEL get(int* x) { *x = seen(); }
KERNEL use(int* x) { *x = given[0]; }
KERNEL size(int* x) { *x = 7; }
KERNEL low(int* x) { table[threadIdx.x] = 1; }
KERNEL high(int* x) { table[32 + threadIdx.x] = 1; }
KERNEL until(int* x) { while (atomicAdd(&total, 0) == 0) { } }"""


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [("add", "also", ""), ("add", "most", "total"), ("put", "put", "total"), ("add", "get", "total"),
     ("get", "get", ""), ("get", "put", "total"), ("put", "use", ""), ("use", "use", ""),
     ("use", "given", "given"), ("given", "use", "given"), ("given", "size", ""), ("low", "high", ""),
     ("low", "low", "table"), ("until", "add", "")],
)  # fmt: skip
def test_variables_of_a_file_race_as_arrays_do(first: str, second: str, races: str) -> None:
    gpu = simgpu.Device()
    kernels = {
        name: simgpu.RawKernel(PLACED, name) for name in ("use", first, second) if name != "given"
    }
    place = partial(gpu.variable, kernels["use"].function(gpu), "given", 16)
    gpu.copy_from_host_async(place(), np.zeros(4, np.int32), gpu.default_stream)
    gpu.synchronize()
    told = pytest.raises(errors.StreamRaceError, match=f"race on array '{races}'")
    with told if races else nullcontext():
        for name in (first, second):
            x, stream = simgpu.Array.empty(1, np.int32, gpu), gpu.create_stream(non_blocking=True)
            if name == "given":
                gpu.copy_from_host_async(place(), np.ones(4, np.int32), stream)
            else:
                kernels[name](1, 32, (x,), stream=stream)
    gpu.synchronize()


GRID = """#include <cooperative_groups.h>
extern "C" __global__ void meet(int* x) { cooperative_groups::this_grid().sync(); x[blockIdx.x] = 1; }"""


def test_a_cooperative_launch_has_as_many_blocks_as_the_device_holds_at_once() -> None:
    gpu = simgpu.Device(spec=dataclasses.replace(SMALL, sms=5))
    x = simgpu.Array.zeros(64, np.int32, gpu)
    meet = simgpu.RawKernel(GRID, "meet", enable_cooperative_groups=True)
    meet(20, 256, (x,))
    assert x.get().sum() == 20
    with pytest.raises(errors.LaunchConfigError):
        meet(21, 256, (x,))


def test_a_host_array_that_a_kernel_sees_is_left_alone_until_it_is_done() -> None:
    gpu, saxpy = simgpu.Device(), simgpu.RawKernel(SAXPY, "saxpy")
    host, y = gpu.pinned(100, np.float32), simgpu.Array.zeros(100, np.float32, gpu)
    for late in (False, True):
        host[:] = 1
        args = gpu.map_host(host, "x"), y.memory, 2.0, 100
        gpu.launch(saxpy.function(gpu), (1, 1, 1), (128, 1, 1), args, 0, gpu.default_stream)
        host[:] = 2 if late else 1
        told = pytest.raises(errors.HostBufferError, match="'x' was changed while its kernel")
        with told if late else nullcontext():
            gpu.synchronize()


def test_a_kernel_sees_a_whole_array_in_its_order() -> None:
    gpu = simgpu.Device()
    whole = gpu.pinned((3, 2), np.int8)
    for part in (whole[:2], whole.T, np.zeros(6)):
        with pytest.raises(errors.UsageError, match="a pinned array in place, as a whole"):
            gpu.map_host(part, "x")
    assert gpu.map_host(whole, "x").nbytes == 6


def test_the_current_device_is_where_arrays_are_made() -> None:
    before = simgpu.device_in_use()
    try:
        gpu = simgpu.use_device(simgpu.Device(spec="t4"))
        assert simgpu.Array.empty((2, 3)).device is gpu
        assert simgpu.Array.empty((2, 3)).nbytes == 48
    finally:
        simgpu.use_device(before)


def test_wrong_launches_are_refused() -> None:
    y, other = simgpu.Array.zeros(4, np.float32), simgpu.Array.zeros(4, np.float32, simgpu.Device())
    saxpy = simgpu.RawKernel(SAXPY, "saxpy")
    shapes = [(1, 2048, "2048.* too large"), ((1, 0), 4, "above 0"), ((1,) * 4, 4, "one to three")]
    for grid, block, why in shapes:
        with pytest.raises(errors.LaunchConfigError, match=why):
            saxpy(grid, block, (y, y, 1.0, 4))
    with pytest.raises(errors.DeviceMismatchError):
        saxpy(1, 4, (y, other, 1.0, 4))
    with pytest.raises(errors.DeviceMismatchError, match="same machine"):
        y.device.default_stream.wait_event(other.device.default_stream.record())
    with pytest.raises(errors.UsageError, match="takes 4 arguments"):
        saxpy(1, 4, (y, y, 1.0))
    gpu, strange = y.device, cast("Any", "a string")
    asks: list[tuple[Callable[[], object], str]] = [
        (lambda: gpu.watch(strange, strange), "is not an event"),
        (lambda: gpu.own(other.device.default_stream), "is not a stream of"),
        (lambda: gpu.own_function(strange), "was not compiled"),
        (lambda: gpu.enqueue_peer_copy(y, y, 4, (gpu, other.device), None), "nothing links them"),
        (lambda: as_memory(strange), "is not memory"),
    ]
    for ask, why in asks:
        with pytest.raises(errors.DeviceMismatchError, match=why):
            ask()
    for devices in ([gpu, gpu], [gpu, other.device]):
        with pytest.raises(errors.UsageError, match="a group takes different devices"):
            Communicator(devices)
    with pytest.raises(errors.UsageError, match=r"a tuple, as \(x,\) for one, and got Array"):
        saxpy(1, 4, cast("Any", y))
    source = "__constant__ int c[4]; __device__ int d; __global__ void k(int* y) { *y = c[0] + d; }"
    for text, there in ((SAXPY, "none"), (source, "c, d")):
        found = gpu.get_function(text, "saxpy" if text == SAXPY else "k")
        with pytest.raises(errors.UsageError, match=f"is called 'e': it has {there}"):
            gpu.variable(found, "e", 4)
    with pytest.raises(errors.KernelCompileError):
        simgpu.RawKernel(SAXPY, "absent")(1, 4, (y,))


@pytest.mark.parametrize("whole", [np.uint8, np.int16, np.int64])
def test_narrow_numbers_of_numpy_are_as_large_a_launch_as_pythons(whole: Any) -> None:
    source = """extern "C" __global__ void count(int* n) {
        extern __shared__ int own[];
        atomicAdd(n, 1);
    }"""
    n = simgpu.Array.zeros(1, np.int32, simgpu.Device(spec="t4"))
    count, small, large = simgpu.RawKernel(source, "count"), whole(1), whole(20)
    count((large, large), (large, large), (n,), shared_mem=large)
    count((whole(100), whole(100), small), (small,) * 3, (n,))
    assert n.get()[0] == 20**4 + 100**2
    with pytest.raises(errors.LaunchConfigError, match="1600 threads"):
        count(1, (whole(40), whole(40)), (n,))
    with pytest.raises(errors.LaunchConfigError, match=r"200,000 dynamic.*T4 has 65,536"):
        count(1, 1, (n,), shared_mem=np.int64(200_000))


def test_a_copy_that_cannot_be_made_is_refused_by_the_call_and_the_stream_goes_on() -> None:
    gpu = simgpu.Device()
    x, y = (simgpu.asarray(np.arange(4, dtype=np.float32), gpu).memory for _ in "xy")
    other = simgpu.Device(1, machine=gpu.machine)
    far, stream = simgpu.Array.zeros(3, np.float32, other).memory, gpu.default_stream
    saxpy = simgpu.RawKernel(SAXPY, "saxpy")
    host, fixed = np.zeros(8, np.float32), np.zeros(4, np.float32)
    fixed.flags.writeable = False
    asks: list[tuple[Callable[[], object], str]] = [
        *((partial(gpu.memset_async, x, 1, n, stream), "'array of .4,.', which has 16")
          for n in (17, -3)),
        (lambda: gpu.copy_to_host_async(host, x, stream), "32 bytes cannot be copied"),
        (lambda: gpu.copy_from_host_async(x, host, stream), "32 bytes cannot be copied"),
        (lambda: gpu.copy_from_device_async(x, y, 20, stream), "20 bytes"),
        (lambda: gpu.enqueue_peer_copy(far, x, 16, (gpu, other), stream), "which has 12"),
        (lambda: gpu.copy_to_host_async(host[::2], x, stream), "not: np.ascontiguousarray"),
        (lambda: gpu.copy_from_host_async(x, host[::2], stream), "not: np.ascontiguousarray"),
        (lambda: gpu.copy_to_host_async(fixed, x, stream), "read-only"),
        (lambda: gpu.copy_from_host_async(x, np.array([None]), stream), "Python's objects"),
        (lambda: gpu.pinned(4, object), "Python's objects"),
        (partial(gpu.memset_async, x, cast("Any", 1.5), 8, stream), "a whole number.* not to 1.5"),
        (partial(gpu.memset_async, x, 1, cast("Any", 8.0), stream), "8.0 bytes cannot be .*set"),
        (partial(gpu.malloc, cast("Any", 8.0), "z", stream), "memory of 8.0 is not possible"),
        (partial(gpu.work, -1.0, "w"), "can't be busy for -1.0 us"),
        (partial(gpu.spend, float("nan")), "can't be busy for nan us"),
        (partial(saxpy, 1, 1, (), stream=cast("Any", "first")), "'first' is not a stream"),
    ]  # fmt: skip
    for ask, why in asks:
        with pytest.raises(errors.UsageError, match=why):
            ask()
    gpu.memset_async(x, -2, 8, stream)
    gpu.copy_to_host_async(host[:4], x, stream)
    gpu.synchronize()
    assert host.view(np.uint8)[:16].tolist() == [254] * 8 + [0, 0, 0, 64, 0, 0, 64, 64]


def test_two_threads_that_are_first_get_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, found, alone = simgpu.Device(), list[LoadedKernel](), [True]

    def first() -> None:
        found.append(gpu.get_function(SAXPY, "saxpy"))

    def slow(source: str, **more: Any) -> Any:
        if alone:  # while this thread compiles, another one begins, and is done before
            alone.clear()
            other = threading.Thread(target=first)
            other.start()
            other.join()
        return compile_source(source, **more)

    monkeypatch.setattr("simgpu.device.compile_source", slow)
    first()
    assert found[0] is found[1] is gpu.get_function(SAXPY, "saxpy")


def test_an_error_comes_with_its_wait_and_the_array_is_spoiled() -> None:
    gpu = simgpu.Device()
    y = simgpu.Array.zeros(4, np.float32, gpu)
    simgpu.RawKernel(SAXPY, "wild")(1, 4, (y,))
    with pytest.raises(errors.OutOfBoundsError, match="'y'"):
        gpu.synchronize()
    with pytest.raises(errors.UpstreamError):
        y.get()


def test_a_pinned_array_takes_what_numpy_takes() -> None:
    device = simgpu.Device()
    assert device.pinned((2, 3), np.float32).nbytes == device.pinned(6, "f4").nbytes == 24


def test_an_arrays_lengths_are_whole_numbers_of_any_kind() -> None:
    device, wrong = (
        simgpu.Device(),
        cast("list[Any]", [-1, (2, -3), 2.5, "ab", None, (np.int8(-1),)]),
    )
    for make in (device.pinned, partial(simgpu.Array.empty, device=device)):
        for shape in (np.int64(3), np.array([3]), [np.uint8(3)], (3,)):
            assert make(cast("Any", shape), np.float32).shape == (3,)
        for shape in wrong:
            with pytest.raises(errors.UsageError, match="a length is a whole number, none below 0"):
                make(shape, np.float32)
    with pytest.raises(errors.UsageError, match="Python's objects"):
        simgpu.asarray([None, 1], device)


def test_values_that_no_array_takes_are_refused_in_words() -> None:
    gpu = simgpu.Device()
    x = simgpu.Array.zeros((2, 3), np.int32, gpu)
    wrong: list[Any] = ["a", [[1, 2], [3]], np.zeros(4), np.nan, 1 << 40, 1j]
    for values in wrong:
        with pytest.raises(
            errors.UsageError, match=r"array of \(2, 3\) int32 .* cannot take these values: "
        ):
            x.set(values)
    x.set([5, 6, 7])
    assert x.get().tolist() == [[5, 6, 7]] * 2
    for make in (gpu.pinned, partial(simgpu.Array.empty, device=gpu)):
        with pytest.raises(errors.ArrayDTypeError, match=r"array of 'nope' is not possible"):
            make(3, "nope")
    ways: list[tuple[Any, str]] = [
        (lambda: simgpu.asarray([[1], [2, 3]]), "these values are no array"),
        (lambda: simgpu.Device(spec=cast("Any", None)), "None is not a GPU"),
        (lambda: simgpu.Device(adversary=-1), "seed is not below 0, and -1 is"),
    ]
    for way, why in ways:
        with pytest.raises(errors.UsageError, match=why):
            way()
