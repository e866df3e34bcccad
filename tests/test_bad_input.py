"""Bad input gets a clear error at the call: what was wrong, what was given, what to do."""

import asyncio
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
import simgpu
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import (
    ArrayDTypeError,
    ArrayShapeError,
    CaptureError,
    DeviceMismatchError,
    LaunchConfigError,
    NotAnOperationError,
    NotReadyError,
    UsageError,
)
from asyncgpu_tutor.kernels import RELU
from asyncgpu_tutor.language import Conversations, chances, slots
from asyncgpu_tutor.run.current import resolve
from tests.laws.kernels import SCALE, kernel
from tests.laws.test_waiting import awaited

scale_with: Any = kernel(SCALE)
X = np.ones(1, np.float32)
ONE: Any = (agt.relu, 1, X)


def ones(n: int = 8, dtype: Any = np.float32) -> agt.DeviceArray:
    return agt.ones((n,), dtype, name="x").sync()


def out(n: int = 8) -> agt.types.Partition:
    return agt.zeros((n,)).sync().partition(8)


async def put(data: Any) -> None:
    """On a GPU that is lost, where nothing else would be told."""
    async with agt.cluster("sim", 1) as gpus:
        gpus[0].lose("it went")
        await gpus[0].put(data)


async def run_on_the_host(op: Any) -> None:
    async with agt.hostcalls() as host:
        await host.run(op)


def warps(**more: Any) -> agt.types.Warps:
    return agt.show_warps(*ONE, X.copy(), grid=1, block=1, **more)


def in_a_context(call: Callable[[Any], object]) -> object:
    return agt.with_context(lambda context: agt.value(call(context))).sync()


# ---------------------------------------------------------------------- kernel calls
CALLS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: scale_with(8, 2.0, ones()), UsageError, r"takes 4 arguments \(n, by, x, y\), and got 3"),
    (lambda: scale_with(9, 2.0, ones(), out()),
     ArrayShapeError, r"called with n=9, so 'x' must have shape \(9,\), and array 'x' has \(8,\)"),
    (lambda: scale_with(8, 2.0, ones(8, np.float64), out()),
     ArrayDTypeError, r"float32.*'x' has dtype float64.*astype\('float32'\)"),
    (lambda: scale_with(8, 2.0, np.ones(8, np.float32), out()),
     ArrayDTypeError, r"a NumPy array of shape \(8,\): copy it with agt.h2d"),
    (lambda: scale_with(8, 2.0, [1.0], out()), ArrayDTypeError, r"a device array as 'x', and got \[1.0\]"),
    (lambda: scale_with(8.0, 2.0, ones(), out()), ArrayDTypeError, "got the float 8.0: pass an int"),
    (lambda: scale_with(-1, 2.0, ones(), out()), ArrayDTypeError, "-1 is outside of 0 to 4294967295"),
    (lambda: scale_with(10**5000, 2.0, ones(), out()),
     ArrayDTypeError, "an integer of 16610 bits is outside of 0 to 4294967295"),
    (lambda: scale_with(8, 10**400, ones(), out()),
     ArrayDTypeError, r"a float as 'by', and got an integer of 1329 bits.*is 3.4.*pass float\('inf'\)"),
    (lambda: scale_with(8, "two", ones(), out()), ArrayDTypeError, "takes a float as 'by', and got str"),
    (lambda: scale_with("8", 2.0, ones(), out()), ArrayDTypeError, "takes an unsigned int as 'n'"),
    (lambda: scale_with(8, 2.0, ones(), agt.zeros((8,)).sync()),
     LaunchConfigError, r"does not know how many threads.*out.partition\(256\)"),
    (lambda: scale_with(8, 2.0, ones(), out(), grid=0, block=8),
     LaunchConfigError, r"grid \(0, 1, 1\): every entry must be at least 1"),
    (lambda: scale_with(8, 2.0, ones(), out(), block=2048),
     LaunchConfigError, "2048 threads in a block .*at most 1024"),
    (lambda: scale_with(8, 2.0, ones(), out(), shared_mem=10**9),
     LaunchConfigError, "1000000000 bytes of shared memory"),
    (lambda: scale_with(8, 2.0, ones(), out(), grid=(1, 2, 3, 4), block=1), LaunchConfigError, "grid is one"),
    (lambda: scale_with(8, 2.0, ones(), out(), grid=1.5, block=1),
     LaunchConfigError, "grid is one to three integers.*not 1.5"),
    (lambda: scale_with(8, 2.0, agt.ones(8), out(), block=1.5),
     LaunchConfigError, "block is one to three integers.*not 1.5"),
    (lambda: scale_with(8, 2.0, ones(), agt.ones((8,)).sync().share(), grid=1, block=8),
     UsageError, "may write to 'y', and array 'ones' is shared.*an array of your own, or.*const"),
    (lambda: agt.Kernel("__global__ void k(float4 v, float* x) { }")(1.5, ones(), grid=1, block=1),
     ArrayDTypeError, r"takes a float4 as 'v', and got 1.5: pass a tuple of \(x, y, z, w\)"),
    (lambda: scale_with(8, 2.0, ones(), out(), shared_mem=1.5),
     LaunchConfigError, "a whole number of bytes as shared_mem, not 1.5"),
    (lambda: ones().partition(4, 4), LaunchConfigError, r"shape \(8,\) cannot be split.*\(4, 4\)"),
    (lambda: ones().partition(0), LaunchConfigError, "positive sizes"),
    (lambda: ones().reshape(3, -1), ArrayShapeError, r"has 8 elements, and shape \(3, 2\) needs 6"),
    (lambda: ones().reshape(np.int64(-1), 3), ArrayShapeError, r"shape \(2, 3\) needs 6"),
    (lambda: ones().reshape(-1, -1), ArrayShapeError, r"non-negative integers, not \(-1, -1\)"),
    (lambda: ones().reshape(3, 3), ArrayShapeError, r"has 8 elements, and shape \(3, 3\) needs 9"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("by", "known", "settles", "told"),
    [(4, "block", "grid", r"different numbers of blocks \(\(2, 1, 1\), \(1, 1, 1\)\)"),
     (2, "grid", "block", r"different sizes of blocks \(\(4, 1, 1\), \(2, 1, 1\)\)")],
)  # fmt: skip
def test_partitions_agree_on_what_is_not_given(
    device: Device, by: int, known: str, settles: str, told: str
) -> None:
    both: Any = agt.Kernel("__global__ void both(float* a, float* b) { a[0] = b[0] = 1; }")
    a, b = agt.zeros(8).sync().partition(4), agt.zeros(4).sync().partition(by)
    for given in ({}, {known: 1}):
        with pytest.raises(LaunchConfigError, match=told):
            both(a, b, **given)
    both(a, b, **{settles: 1}).sync()


def test_a_wrong_call_moves_nothing(device: Device) -> None:
    x, gone = ones(), ones()
    gone.share()
    with pytest.raises(agt.errors.UseAfterMoveError):
        agt.memcpy(x, gone)
    assert not x.moved


def test_a_wrong_out_moves_nothing(device: Device) -> None:
    x: Any = ones()
    for host, error in (
        ([0.0] * 8, ArrayDTypeError),
        (agt.pinned((8,), np.float64), ArrayDTypeError),
        (agt.pinned((3,)), ArrayShapeError),
        (agt.pinned((8, 2))[:, 0], UsageError),
        (np.broadcast_to(np.float32(0), (8,)), UsageError),
    ):
        with pytest.raises(error):
            agt.d2h(x, out=host)
    assert agt.d2h(x).sync()[0] == 1


def test_arguments_that_only_the_run_reveals_are_checked_there(device: Device) -> None:
    for n, x, message in (
        (8, agt.ones((8,), np.float64), "has dtype float64"),
        (8, agt.value(3), "a device array as 'x', and got 3"),
        (agt.value(8.5), agt.ones((8,)), "got the float 8.5"),
    ):
        with pytest.raises(ArrayDTypeError, match=message):
            scale_with(n, 2.0, x, out()).sync()
    assert scale_with(agt.value(8), agt.value(2.0), ones(), out()).sync()


# ---------------------------------------------------------------------- other calls
OTHERS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: agt.zeros((-1,)), ArrayShapeError, r"non-negative integers, not \(-1,\)"),
    (lambda: agt.zeros((2.5,)), ArrayShapeError, "non-negative integers"),
    (lambda: agt.h2d(np.array(["a"])), ArrayDTypeError, "h2d makes arrays of bool, integers or floats"),
    (lambda: agt.h2d(np.ones(2, complex)), ArrayDTypeError, "complex128"),
    (lambda: agt.full((2,), [1, 2]), ArrayDTypeError, r"with one number, and got \[1, 2\]"),
    (lambda: agt.full((2,), "a"), ArrayDTypeError, "with one number, and got 'a'"),
    (lambda: agt.full((2,), None), ArrayDTypeError, "got None: that is no number"),
    (lambda: agt.full((2,), 300, np.uint8), ArrayDTypeError, "300 out of bounds for uint8"),
    (lambda: agt.full((2,), np.int64(300), np.uint8), ArrayDTypeError, "300.*300 out of bounds for uint8"),
    (lambda: agt.full((2,), np.array(300), np.uint8), ArrayDTypeError, "300.*300 out of bounds for uint8"),
    (lambda: agt.full((2,), 1.5, np.int32), ArrayDTypeError, "got 1.5: that would become 1, so round it"),
    (lambda: agt.arange(4, np.int32, step=0.5), ArrayDTypeError, "arange .* got 0.5: that would become 0"),
    (lambda: agt.full((2,), np.nan, np.int32), ArrayDTypeError, "int32 with one number, and got nan"),
    (lambda: agt.randn((2,), seed=-1), UsageError, "seed of randn is an integer.*got -1"),
    (lambda: agt.randn((2,), seed=1.5), UsageError, "seed of randn is an integer.*got 1.5"),
    (lambda: agt.randn((2,), std="a"), ArrayDTypeError, "randn fills .* with one number, and got 'a'"),
    (lambda: agt.arange(4, np.uint32, start=-1), ArrayDTypeError, "arange .* uint32 .* got -1"),
    (lambda: agt.arange(4, np.int32, step=np.nan), ArrayDTypeError, "arange .* int32 .* got nan"),
    (lambda: agt.arange(4, ">i4"), ArrayDTypeError, "arange makes int32.*got >i4"),
    (lambda: agt.arange(4, np.int8), ArrayDTypeError, "arange makes int32"),
    (lambda: agt.d2h(np.ones(2)), ArrayDTypeError, "d2h copies a DeviceArray to the host, and got ndarray"),
    (lambda: agt.d2h(agt.ones(2)),
     ArrayDTypeError, r"got an operation: use op\.to_host\(\)"),
    (lambda: agt.relu(2, agt.ones(2), (ones(2), ones(2))),
     ArrayDTypeError, r"'output', and got 2 results at once: a launch gives back all its arrays"),
    (lambda: in_a_context(lambda c: c.copy(c.empty((2,)), np.ones(2))),
     UsageError, "takes a device array, and got ndarray: .* in copy_from_host"),
    (lambda: agt.d2h(out()), ArrayDTypeError, r"got Partition. Call unpartition\(\)"),
    (lambda: agt.memcpy(ones(3), ones(4)), ArrayShapeError, r"\(3,\), and array 'x' has \(4,\)"),
    (lambda: agt.memcpy(ones().share(), ones()),
     UsageError, "memcpy writes to array 'x', which is shared"),
    (lambda: agt.dup(3), ArrayDTypeError, "dup takes device arrays, and got int"),
    (lambda: agt.zip(agt.ones(4), agt.ones(4)).to_host().sync(),
     ArrayDTypeError, r"got tuple. A launch yields all its arrays.*launch.output\(\)"),
    (lambda: agt.zip([agt.ones(4), agt.ones(4)]),
     NotAnOperationError, r"\(list\), where a DeviceOp is needed: agt.zip\(\*these\) makes one of them"),
    (lambda: list(agt.ones(4)), TypeError, r"<DeviceOp ones> has no entries.*unzip\(n\)"),
    (lambda: agt.ones(4)[0], TypeError, r"<DeviceOp ones> has no entries"),
    (lambda: in_a_context(lambda c: c.copy_from_host(np.ones(2), c.empty(2))),
     UsageError, "takes a device array, and got ndarray"),
    (lambda: agt.create_stream().wait_event(agt.create_stream()),
     DeviceMismatchError, r"cannot wait for <stream.*stream.record\(\) makes one"),
    (agt.zip, UsageError, "zip needs at least one operation"),
    (agt.overlap, UsageError, "overlap needs at least one operation"),
    (lambda: agt.zip(agt.value(1), 2), NotAnOperationError, r"got 2 \(int\).*agt.value"),
    (lambda: agt.StreamPoolRoundRobin(0), UsageError, "at least one stream, and 0 was asked for"),
    (lambda: agt.StreamPoolRoundRobin(True), UsageError, "at least one stream"),
    (lambda: agt.value(1).sync(4), NotAnOperationError, "4 is not a scheduling policy"),
    (lambda: agt.use("sim", 4), NotAnOperationError, "4 is not a scheduling policy"),
    (lambda: agt.using("sim", 4).__enter__(), NotAnOperationError, "4 is not a scheduling policy"),
    (lambda: agt.zeros(3, "foo"), ArrayDTypeError, "'foo' is no element type"),
    (lambda: agt.arange(3, "foo"), ArrayDTypeError, "'foo' is no element type"),
    (lambda: agt.pinned(3, "foo"), ArrayDTypeError, "'foo' is no element type"),
    (lambda: agt.pinned(3, object), ArrayDTypeError, "dtype object are Python objects"),
    (lambda: agt.pin([None]), ArrayDTypeError, "dtype object are Python objects"),
    (lambda: agt.value(1).sync_on("fast"), DeviceMismatchError, "'fast' is not a stream that"),
    (lambda: agt.value(1).sync(agt.SingleStream("fast")), DeviceMismatchError, "'fast' is not a stream that"),
    (lambda: agt.work(float("inf")), UsageError, "microseconds, 0 or more, and got inf"),
    (lambda: agt.value(1).and_then(agt.value(2)),
     NotAnOperationError, r"take a function, and got <DeviceOp value.*agt.zip\(a, b\)"),
    (lambda: agt.work(-1.0), UsageError, "microseconds, 0 or more, and got -1.0"),
    (lambda: asyncio.run(agt.sleep(np.inf)), UsageError, "sleep takes microseconds, 0 or more, and got inf"),
    (lambda: agt.memcpy(np.ones(8), ones()), ArrayDTypeError, r"the target is a NumPy array: .*out=host"),
    (lambda: agt.value(1).and_then(lambda _: np.ones(3)).sync(),
     NotAnOperationError, r"returned a NumPy array of shape \(3,\), where a DeviceOp is needed"),
    (lambda: agt.Kernel("__global__ void f(int) {}")(1, grid=1, block=1).first(),
     UsageError, "'f' yields an empty tuple: it has no entry"),
    (lambda: scale_with(8, 2.0, agt.value(1).map(lambda _: agt.ones(8)), out()).sync(),
     UsageError, "an operation that yields another operation: make it with and_then"),
    (agt.group, UsageError, "at least one device, and each once"),
    (lambda: agt.group("sim:1", "sim:1"), UsageError, "at least one device, and each once"),
    (lambda: agt.spawn(3), NotAnOperationError, r"got 3 \(int\), where a DeviceOp is needed"),
    (lambda: agt.errors.CallRefusedError(2**31), UsageError, "from 1 to .* and got 2147483648"),
    (lambda: agt.ones(8).into_future().result(), NotReadyError, "has no result yet: await it"),
    (lambda: agt.CudaGraph("g", agt.create_stream()).launch().sync(),
     CaptureError, "'g' is not captured yet"),
    (lambda: pickle.dumps(agt.group("sim:1")), TypeError, "of this process alone: the group.. of a cluster"),
    (lambda: agt.Kernel("int twice(int x) { return 2 * x; }"),
     UsageError, "no kernel.*functions and variables of the host: twice"),
    (lambda: agt.asarray(np.ones(2)), DeviceMismatchError, "ndarray is not an array on .*agt.h2d"),
    (lambda: agt.Kernel(RELU, contract=True), UsageError, "KernelSource 'relu' has its own"),
    (lambda: agt.Kernel(RELU, "relu"), UsageError, "KernelSource 'relu' has its own"),
    (lambda: agt.Kernel(RELU, shapes={"x": ("n",)}), UsageError, "KernelSource 'relu' has its own"),
    (lambda: agt.Kernel(RELU, reference=abs), UsageError, "KernelSource 'relu' has its own"),
    (lambda: np.asarray(ones()), UsageError, r"where the host cannot read it: run agt.d2h"),
    (lambda: agt.SingleStream().device, UsageError, "has no device yet"),
    (lambda: agt.Kernel(3), UsageError, "CUDA C in a string, and a kernel's name, and got int"),
    (lambda: agt.Kernel(RELU.source, ["relu"]), UsageError, "a kernel's name, and got list"),
    (lambda: agt.Kernel(replace(RELU, name=b"relu")), UsageError, "a kernel's name, and got bytes"),
    (lambda: simgpu.RawKernel(RELU.source, None), UsageError, "name, as strings, and got NoneType"),
    (lambda: simgpu.RawKernel({}, "relu"), UsageError, "a RawKernel is made of CUDA C.*and got dict"),
    (lambda: agt.Kernel("int x;"), UsageError, "the source has no kernel"),
    (lambda: ones().borrow().share(), UsageError, "only borrowed here, so it cannot be shared"),
    (lambda: agt.zeros((4,)).partition(4).shared().sync(),
     UsageError, r"a partition is for writing.*unpartition\(\) before shared\(\)"),
    (lambda: agt.memcpy(ones(), np.ones(8)), ArrayDTypeError, "float64"),
    (lambda: agt.memcpy(ones(), np.ones(3, np.float32)), ArrayShapeError, r"\(3,\)"),
    (lambda: agt.Kernel(SCALE.source, "nothing"), agt.errors.KernelCompileError, r"nothing"),
    (lambda: agt.Kernel(SCALE.source + SCALE.source.replace("scale", "scale2")),
     UsageError, r"has 2 kernels \(scale, scale2\).*Kernel\(source, name\)"),
    (lambda: agt.Trace().plot().save("a.xyz"), UsageError, "name has to end in .svg"),
    (lambda: agt.cluster(None), UsageError, "'sim', 'cuda', or the address .*and got None"),
    (lambda: agt.cluster("sim", "2"), UsageError, "the number of GPUs is an integer, 1 or more, and got '2'"),
    (lambda: agt.cluster("sim", 1.5), UsageError, "number of GPUs is an integer"),
    (lambda: agt.cluster("sim", machines=None), UsageError, "number of machines is an integer"),
    (lambda: agt.Server(abs, 4, lanes="2"), UsageError, "number of lanes is an integer, 1 or more, and got"),
    (lambda: agt.Server(abs, 4, waiting=None), UsageError, "requests that may wait is an integer, 0 or more"),
    (lambda: agt.Server(abs, 4, "foo"), ArrayDTypeError, "'foo' is no element type"),
    (lambda: agt.hostcalls({"a": abs}), UsageError, "the number of a service of yours is .* 16 to .*got 'a'"),
    (lambda: agt.hostcalls([abs]), UsageError, r"functions by numbers, as in \{16: function\}, and got \["),
    (lambda: agt.hostcalls({16: 1}), UsageError, "handler of service 16 is a function, and got 1"),
    (lambda: agt.hostcalls(packets=1.5), UsageError, "number of packets is an integer, 1 or more"),
    (lambda: agt.hostcalls(files="letters"), UsageError, "files .* are in a list, and got 'letters'"),
    (lambda: agt.hostcalls(addresses=[80]), UsageError, "addresses of hostcalls are in a list, and got 80"),
    (lambda: agt.hostcalls(folder=3), UsageError, "the folder of hostcalls is a path, and got 3"),
    (lambda: Conversations(MODEL, slots=1.5),
     UsageError, "number of slots is an integer, 1 or more, and got 1.5"),
    (lambda: Conversations(None), UsageError, "with a LanguageModel, and got None"),
    (lambda: agt.litmus(["message passing"]), UsageError, r"\['message passing'\] is not one of"),
    (lambda: agt.litmus("message passing", runs=2.5), UsageError, "number of runs is an integer"),
    (lambda: agt.show_threads(abs, 1), UsageError, "show_threads takes a Kernel, and got <built-in"),
    (lambda: agt.show_warps(None), UsageError, "show_warps takes a Kernel, and got None"),
    (lambda: agt.Kernel(SCALE.source, shapes=["x"]), UsageError, r"names by names, .*and got \['x'\]"),
    (lambda: agt.Kernel(SCALE.source, reference=3), UsageError, "of a Kernel is a function, and got 3"),
    (lambda: agt.Kernel(SCALE.source, contract=[]), UsageError, r"contract is True or False, and got \[\]"),
    (lambda: agt.CudaGraph("g", None), DeviceMismatchError, "None is not a stream that"),
    (lambda: agt.StreamPoolRoundRobin(2, 3), UsageError, "3 is not a device: say"),
    (lambda: agt.work("1"), UsageError, "work takes microseconds, 0 or more, and got '1'"),
    (lambda: agt.analyse([]), UsageError, r"takes a trace, such as agt.record\(\) makes, and got \[\]"),
    (lambda: agt.compare_timelines(agt.Trace(), None), UsageError, "takes a list of at least one trace"),
    (lambda: agt.errors.CallRefusedError("2"), UsageError, "of a refusal is an integer from 1 to .*'2'"),
    (lambda: agt.h2d([[1], [1, 2]]), ArrayDTypeError, r"h2d copies an array of numbers, and got \[\[1"),
    (lambda: agt.pin([[1], [1, 2]]), ArrayDTypeError, "pin copies an array of numbers"),
    (lambda: agt.pinned(4, "U"), ArrayDTypeError, "elements of dtype <U0 are of no bytes"),
    (lambda: asyncio.run(put(None)), ArrayDTypeError, "Python objects, and a device has none"),
    (lambda: asyncio.run(put("a")), ArrayDTypeError, "put makes arrays of bool.*and got <U1"),
    (lambda: agt.Trace().between("a", 2), UsageError, "earlier one first, and got 'a' and 2"),
    (lambda: agt.Trace.load_recording(["a"]), UsageError, r"there is no recording \['a'\]"),
    (lambda: agt.value((1, 2)).unzip("2"), UsageError, "number of entries is an integer, 0 or more"),
    (lambda: agt.value((1, 2)).unzip(-1), UsageError, "number of entries is .*got -1"),
    (lambda: agt.DeviceClock(3), UsageError, "3 is not a device"),
    (lambda: scale_with.constants[["c"]], UsageError, r"no __constant__ or __device__ variable \['c'\]"),
    (lambda: agt.Kernel(SCALE.source, include="abc"), UsageError, "folders .* in a list, and got 'abc'"),
    (lambda: asyncio.run(run_on_the_host(3)), UsageError, "run takes an operation, and got 3"),
    (lambda: Conversations(MODEL).say(3), UsageError, "a prompt is a text, or tokens, and got 3"),
    (lambda: slots(None, 2), UsageError, "slots are of a LanguageModel, and got None"),
    (lambda: chances(MODEL, "7"), UsageError, "the seed is an integer, and got '7'"),
    (lambda: slots(MODEL, 2).sync().admit(None), ArrayShapeError, r"have shape \(2, 15\), and got \(\)"),
    (lambda: agt.Trace().plot(lanes="streams"), UsageError, "lanes are in a list, and got 'streams'"),
    (lambda: agt.with_context(agt.value(2)), NotAnOperationError, "takes a function, and got <DeviceOp"),
    (lambda: agt.data.seed_inputs("4"), UsageError, "dim is an integer, and got '4'"),
    (lambda: MODEL.encode(None), UsageError, "encode takes a text, and got None"),
    (lambda: MODEL.decode(3), UsageError, "tokens are in a list, and got 3"),
    (lambda: MODEL.decode([1.0]), UsageError, "tokens are 0 to 26, and got 1.0"),
    (lambda: agt.show_warps(RELU, until="1"), UsageError, "until='1' is no time above 0"),
    (lambda: agt.show_warps(RELU, until=np.inf), UsageError, "until=inf is no time above 0"),
    (lambda: warps(lesson=3), UsageError, "lesson of a picture is a text, and got 3"),
    (lambda: warps().waits(-1), UsageError, "a warp is an integer from 0 to 0, and got -1"),
    (lambda: warps().waits(0, "loads"), UsageError, "'loads' is not one of 'compute', 'load'"),
    (lambda: agt.show_threads(*ONE, X.copy(), grid=1, block=1).step(-1),
     UsageError, "a step is an integer from 0 to 1, and got -1"),
    (lambda: agt.Trace(3), UsageError, "spans of a trace are in a list, and got 3"),
    (lambda: agt.Trace().of([]), UsageError, r"names of devices are in a list, and got \[\]"),
    (lambda: [*agt.Trace().each(3)], UsageError, "names of devices are in a list, and got 3"),
    (lambda: agt.Trace().from_first([1]), UsageError, "spans are in a list, and got 1"),
    (lambda: agt.Trace().with_lane("a", None), UsageError, "stretches are in a list, and got None"),
    (lambda: agt.Trace().with_lane(["a"], ()), UsageError, r"a lane has a name, and got \['a'\]"),
    *((lambda given=given: agt.Trace().with_lane("a", [given]), UsageError, "two times in us and a text")
      for given in ((1, np.nan, "b"), ("0", 1, "b"), (0, 1, 3), (0, np.inf, "b"), (0, 1))),
    (lambda: agt.Trace().overlap_between([1], "k"), UsageError, "spans are in a list, and got 1"),
    (lambda: agt.Trace().happens_before("a", "b"), UsageError, "takes two spans, and got 'a'"),
    (lambda: agt.Trace().plot(title=3), UsageError, "title of a picture is a text, and got 3"),
    (lambda: agt.Trace().plot(lesson=3), UsageError, "lesson of a picture is a text, and got 3"),
    (lambda: agt.compare_timelines([agt.Trace()], "a"), UsageError, "titles are in a list, and got 'a'"),
    (lambda: agt.Trace.from_nsys("a.sqlite", limit="9"), UsageError, "limit is an integer, 1 or more"),
    (lambda: agt.ranges.end("a"), UsageError, "end takes what start returned, and got 'a'"),
    (lambda: agt.ranges.across(3), UsageError, "the name of a range is a text, and got 3"),
    (lambda: agt.ranges.span(3).__enter__(), UsageError, "the name of a range is a text, and got 3"),
    (lambda: agt.mapped(3), UsageError, "takes a pinned NumPy array, as agt.pin makes one, and got 3"),
    (lambda: agt.work(1.0, 3), UsageError, "work has a name, and got 3"),
    (lambda: agt.SimDevice(["a"]), UsageError, r"ordinal of a device is an integer, and got \['a'\]"),
    (lambda: agt.SimDevice(machine=3), UsageError, "machine of a device is a Machine, and got 3"),
    (lambda: agt.SimDevice(adversary="a"), UsageError, "adversary of a device is an integer, and got 'a'"),
    (lambda: agt.Trace(about=3), UsageError, "says about itself is a dict, and got 3"),
    (lambda: agt.data.reference_say(MODEL, [1], None, 1.0, X), UsageError, "the last place is an integer"),
    (lambda: agt.SimDevice(0, None), UsageError, "None is not a GPU that can be simulated"),
    (lambda: agt.data.Quality.of([1, 0], [1]), ArrayShapeError, r"\(2,\) answers do not fit a"),
    (lambda: agt.data.load_digits().quality([[1.0]]), ArrayShapeError, r"scores have shape \(1, 1\)"),
    (lambda: agt.data.reference_features(MODEL, []), UsageError, "has 1 to 10 tokens, and got 0"),
    (lambda: agt.data.reference_features(MODEL, [1] * 11), UsageError, "1 to 10 tokens, and got 11"),
    (lambda: agt.data.reference_say(MODEL, [-1], 3, 1.0, X), UsageError, "are 0 to 26, and got -1"),
    # No fallback.
    (lambda: agt.use("cuda:99"),
     agt.errors.DeviceUnavailableError, r"cuda:99 is .*doctor .*--device sim on the comm"),
    *((lambda name=name: resolve(name), UsageError, r"is not a device: say 'auto', 'sim'")
      for name in ("gpu", "sim:x", "cuda:-1", "auto:1", "", "sim:", 0)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), CALLS + OTHERS)
def test_a_wrong_call(
    device: Device, call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_context_takes_any_shape(device: Device) -> None:
    for shape, right in ((5, (5,)), ([2, 3], (2, 3)), ((2, 3), (2, 3))):
        op = agt.with_context(lambda context, shape=shape: agt.value(context.empty(shape)))
        assert op.sync().shape == right


async def test_a_closure_that_returns_no_operation(device: Device) -> None:
    def forgets(n: int) -> Any:
        return n + 1

    op = agt.value(1).and_then(forgets)
    with pytest.raises(NotAnOperationError, match=r"returned 2 \(int\).*agt.value.*or use map"):
        op.sync()
    with pytest.raises(NotAnOperationError, match=r"returned None"):
        await agt.spawn(agt.with_context(lambda _: None))


# ---------------------------------------------------------------------- devices
def test_the_variable_that_names_no_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCGPU_DEVICE", "gpu")
    with pytest.raises(UsageError, match=r"ASYNCGPU_DEVICE is 'gpu', which is not a device"):
        agt.use("auto")


def test_a_shared_operation_of_another_device(sim: SimDevice) -> None:
    source = agt.ones((2,)).shared()
    source.sync()
    with agt.using("sim:1"), pytest.raises(UsageError, match=r"on sim:0, .* called sim:1"):
        source.sync()


# ---------------------------------------------------------------------- pageable memory
def test_a_pageable_copy_that_should_be_asynchronous_is_named(device: Device) -> None:
    host = np.ones(1000, np.float32)
    stream = agt.create_stream()
    with pytest.warns(agt.errors.PageableCopyWarning, match=r"'weights' \(4,000 bytes\)") as caught:
        agt.h2d(host, "weights").async_on(stream)
    assert caught[0].filename == __file__
    with pytest.warns(agt.errors.PageableCopyWarning, match="'result'") as caught:
        agt.ones(1000, name="result").and_then(lambda x: agt.d2h(x, out=host)).async_on(stream)
    assert caught[0].filename == __file__
    stream.synchronize()


def test_no_warning_where_it_makes_no_difference(device: Device) -> None:
    host = np.ones(1000, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agt.h2d(host).sync()
        pinned = agt.pin(host)
        stream = agt.create_stream()
        agt.h2d(pinned).async_on(stream)
        agt.h2d(pinned[:500]).async_on(stream)
        stream.synchronize()


@pytest.mark.parametrize("how", ["sync", "await", "sync_on"])
@pytest.mark.parametrize("chain", ["function", "lambda"])
def test_arms_that_could_overlap_are_warned_however_they_are_waited_for(
    device: Device, how: str, chain: str
) -> None:
    upload = agt.h2d if chain == "function" else lambda host: agt.h2d(host, "x")

    ways: dict[str, Callable[[Any], object]] = {
        "sync": lambda op: op.sync(),
        "await": lambda op: asyncio.run(awaited(op)),
        "sync_on": lambda op: op.sync_on(agt.create_stream()),
    }

    def run(hosts: list[np.ndarray]) -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ways[how](agt.overlap(*(agt.value(host).and_then(upload) for host in hosts)))
        return sum(w.category is agt.errors.PageableCopyWarning for w in caught)

    hosts = [np.ones(1000, np.float32) for _ in range(2)]
    assert run(hosts) == 2
    assert run([agt.pin(host) for host in hosts]) == 0
    if how != "await":
        assert run(hosts[:1]) == 0  # beside nothing


def test_a_pageable_copy_holds_up_the_host(sim: SimDevice) -> None:
    host = np.ones(1_000_000, np.float32)
    pinned = agt.pin(host)
    stream = agt.create_stream()
    with agt.record() as slow, pytest.warns(agt.errors.PageableCopyWarning):
        agt.h2d(host).async_on(stream)
    with agt.record() as fast:
        agt.h2d(pinned).async_on(stream)
    (held,) = slow.find("enqueue h2d")
    (free,) = fast.find("enqueue h2d")
    assert held.duration > 10 * free.duration


def launch(context: agt.types.ExecutionContext, _: agt.DeviceArray) -> None:
    function = context.device.get_function(SCALE.source, SCALE.name)
    context.launch(function, (1, 1, 1), (8, 1, 1), (np.uint32(8),))


VERBS: list[tuple[Callable[[Any, agt.DeviceArray], object], str]] = [
    (lambda c, a: c.memset(a, 256), "from -128 to 255, and not 256: agt.full"),
    (lambda c, a: c.memset(a, 0.5), "and not 0.5"),
    (lambda c, a: c.memset(3), "takes a device array, and got int"),
    (lambda c, a: c.copy_from_host(a, [1.0] * 4), "from a NumPy array, and got list"),
    (lambda c, a: c.copy_from_host(a, np.ones(3, np.float32)), r"\(4,\), and the host array has \(3,\)"),
    (lambda c, a: c.copy(a, c.empty(3)), r"\(4,\), and array 'array' has \(3,\)"),
    (lambda c, a: c.copy_to_host(a, [1.0] * 4), "into a NumPy array, and out is list"),
    (lambda c, a: c.memset(a.share()), "memset writes to array 'array', which is shared"),
    (lambda c, a: c.copy_from_host(a.share(), agt.pinned(4)), "copy_from_host writes to .*which is shared"),
    (lambda c, a: c.copy(a.share(), c.empty(4)), "copy writes to array 'array', which is shared"),
    (lambda c, a: c.empty((-1, -4)), r"non-negative integers, not \(-1, -4\)"),
    (lambda c, a: c.empty((2.5,)), r"non-negative integers, not \(2.5,\)"),
    (lambda c, a: c.empty(4, object), "dtype object are Python objects"),
    *((verb, "takes a device array, and got ndarray: make one with") for verb in (
        lambda c, a: c.copy_from_host(np.ones(4), np.ones(4)), lambda c, a: c.copy_to_host(np.ones(4)))),
    (launch, r"scale\(\) takes 4 arguments \(n, by, x, y\), and got 1"),
]  # fmt: skip


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize(("verb", "says"), VERBS)
def test_a_wrong_call_of_a_context_is_told_in_a_run_and_in_a_capture(
    device: Device, verb: Callable[[Any, agt.DeviceArray], object], says: str, capture: bool
) -> None:
    if verb is launch and not device.simulated:
        pytest.skip("a GPU's function does not say how many arguments it takes")
    op = agt.with_context(lambda context: agt.value(verb(context, context.empty((4,)))))
    with pytest.raises(UsageError, match=says):
        op.prepare() if capture else op.sync()


def test_a_memset_may_be_negative_as_in_cuda(device: Device) -> None:
    def fill(context: agt.types.ExecutionContext) -> agt.DeviceOp[agt.DeviceArray]:
        array = context.empty((4,), np.int32)
        context.memset(array, -1)
        return agt.value(array)

    op = agt.with_context(fill).to_host()
    assert op.sync().tolist() == op.prepare().launch().sync().tolist() == [-1] * 4


# ---------------------------------------------------------------------- blocks
MODEL = untrained_model(32, heads=1, layers=1, context=10, vocabulary=27)
BLOCKS: dict[str, Callable[[], Any]] = {
    "these hostcalls were open before": agt.hostcalls,
    "this server is open already": lambda: agt.Server(lambda h: agt.h2d(h).to_host(), 4),
    "this server of conversations is open already": lambda: Conversations(MODEL),
    "this cluster is open already": lambda: agt.cluster("sim", machines=2),
}


@pytest.mark.parametrize("told", BLOCKS)
async def test_a_block_is_entered_by_one_task_at_a_time(sim: SimDevice, told: str) -> None:
    one = BLOCKS[told]()

    async def enter() -> None:
        async with one:
            await agt.sleep(100)

    first, second = await asyncio.gather(enter(), enter(), return_exceptions=True)
    assert first is None
    with pytest.raises(UsageError, match=told):
        raise second
    if "before" not in told:
        await enter()
