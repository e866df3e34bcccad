"""Variables of a file, set and read from the host."""

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device

SOURCE = """
struct Pair { int a; float2 b; short c[2]; };
__constant__ float weights[2][2];
__constant__ Pair pair;
__constant__ int known = 5;
__constant__ float4 corner;
__device__ int counter;
__device__ float* place;
__global__ void use(float* x) {
    int i = threadIdx.x;
    x[i] = weights[i / 2][i % 2] + pair.a + pair.b.y + pair.c[1] + known + corner.w;
    atomicAdd(&counter, 1);
}
"""
PAIR = np.dtype([("a", "<i4"), ("b", [("x", "<f4"), ("y", "<f4")]), ("c", "<i2", (2,))])


def launched(kernel: agt.Kernel, n: int = 4, dtype: type = np.float32) -> np.ndarray:
    return kernel(agt.zeros((n,), dtype), grid=1, block=n).output().to_host().sync()


def test_what_is_set_is_used_and_read(device: Device) -> None:
    kernel = agt.Kernel(SOURCE)
    assert list(kernel.constants) == ["weights", "pair", "known", "corner", "counter", "place"]
    kernel.constants["weights"] = [[1, 2], [3, 4]]
    pair = np.zeros((), kernel.constants["pair"].dtype)
    pair["a"], pair["b"]["y"], pair["c"] = 10, 0.5, [7, 20]
    kernel.constants["pair"] = pair
    kernel.constants["corner"] = [0, 0, 0, 100]
    assert launched(kernel).tolist() == [136.5, 137.5, 138.5, 139.5]
    kernel.constants["known"] = 6
    assert launched(kernel).tolist() == [137.5, 138.5, 139.5, 140.5]
    assert kernel.constants["counter"] == 8
    assert kernel.constants["weights"].tolist() == [[1, 2], [3, 4]]
    assert kernel.constants["pair"]["c"].tolist() == [7, 20]


def test_a_pointer_is_set_by_an_address(device: Device) -> None:
    source = "__device__ float* place; __global__ void k(float* x) { x[0] = place[1]; }"
    kernel, array = agt.Kernel(source), agt.arange(4, dtype=np.float32).sync()
    kernel.constants["place"] = array.memory.ptr + 4
    assert kernel.constants["place"] == array.memory.ptr + 4
    assert launched(kernel, 1).tolist() == [2]


def test_what_was_enqueued_before_sees_the_old_value(device: Device) -> None:
    kernel = agt.Kernel("__constant__ int c;\n__global__ void k(int* x) { x[0] = c; }")
    kernel.constants["c"] = 1
    op = kernel(agt.zeros((1,), np.int32), grid=1, block=1).output().to_host()
    before = op.async_on(agt.create_stream())
    kernel.constants["c"] = 2
    assert (before.tolist(), op.sync().tolist()) == ([1], [2])


def test_each_kernel_has_variables_of_its_own(device: Device) -> None:
    source = "__constant__ int c;\n__global__ void k(int* x) { x[0] = c; }\n"
    source += "__global__ void other(int* x) { x[0] = -c; }"
    one, two = agt.Kernel(source, "k"), agt.Kernel(source, "other")
    one.constants["c"], two.constants["c"] = 3, 4
    assert agt.Kernel(source, "k").constants["c"] == 3  # the same one
    for kernel, value in ((one, 3), (two, -4)):
        assert launched(kernel, 1, np.int32)[0] == value


def test_a_constant_that_nobody_set_and_what_does_not_fit_is_refused(sim: Device) -> None:
    kernel = agt.Kernel(SOURCE)
    says = r"kernel\.constants\['weights'\] = array"
    with pytest.raises(errors.UninitialisedReadError, match=says):
        launched(kernel)
    with pytest.raises(errors.ArrayShapeError, match=r"float\[2\]\[2\].*shape \(3,\)"):
        kernel.constants["weights"] = [1, 2, 3]
    with pytest.raises(errors.UsageError, match=r"has no __constant__ .* 'weight'.*weights, pair"):
        kernel.constants["weight"] = 1
    whole = agt.Kernel("__constant__ int c; __global__ void k(int* x) { x[0] = c; }")
    for wrong in (2.5, 2**40, np.int64(2**40), "a", None):
        with pytest.raises(errors.ArrayDTypeError, match=r"k\.constants\['c'\] is a int"):
            whole.constants["c"] = wrong
    whole.constants["c"] = 2.0
    assert whole.constants["c"] == 2


BY_VALUE = """
struct Shape { int rows, columns; float scale; unsigned char flags[3]; double shift; };
__global__ void fill(float4 by, Shape shape, const float* start, float* x, int3 more, float* spare) {
    int i = threadIdx.x;
    if (spare) spare[i] = 1;
    x[i] = (start == nullptr ? 0 : start[i]) + by.x + by.w * i + shape.columns * shape.scale + shape.flags[2]
        + shape.shift + more.z;
}
"""


class TestByValue:
    def test_vectors_structs_and_null_pointers(self, device: Device) -> None:
        kernel = agt.Kernel(BY_VALUE)
        shape = (2, 3, 0.5, (7, 8, 9), 0.25)
        one = agt.h2d(np.arange(4, dtype=np.float32) * 100).sync()
        for start, spare in ((None, None), (one.borrow(), None), (None, agt.zeros((4,)).sync())):
            out = kernel((1, 2, 3, 10), shape, start, agt.zeros((4,)), np.array([1, 2, 3]), spare,
                         grid=1, block=4)  # fmt: skip
            got = out.output("x").to_host().sync()
            base = 1 + np.arange(4) * 10 + 1.5 + 9 + 0.25 + 3
            want = base + (0 if start is None else np.arange(4) * 100)
            np.testing.assert_array_equal(got, want)

    def test_records_of_numpy(self, device: Device) -> None:
        source = "struct P { char c; double d; }; __global__ void k(P p, double* x) { x[0] = p.c * p.d; }"
        record = np.dtype([("c", "i1"), ("d", "f8")], align=True)
        kernel = agt.Kernel(source)
        got = kernel(np.array((3, 1.5), record), agt.zeros((1,), np.float64), grid=1, block=1)
        assert got.output().to_host().sync().tolist() == [4.5]

    def test_what_is_no_vector_and_a_null_pointer_that_is_followed(self, sim: Device) -> None:
        kernel = agt.Kernel("__global__ void k(float4 v, float* x) { x[0] = v.x; }")
        says = r"(?s)takes a float4 as 'v'.*tuple of \(x, y, z, w\)"
        swapped = np.array((1, 2, 3, 4), [(name, "f4") for name in "wzyx"])
        for given in (1.0, (1, 2), "abcd", "1234", b"1234", {4, 3, 2, 1}, swapped, None):
            with pytest.raises(errors.ArrayDTypeError, match=says):
                kernel(given, agt.zeros((1,)), grid=1, block=1)
        whole = agt.Kernel("__global__ void k(int2 v, float* x) { x[0] = v.x - v.y; }")
        for pair in (
            (2.5, 1),
            (2**40, 1),
            ("2", 1),
            np.array((2.5, 1), [("x", "f4"), ("y", "f4")]),
        ):
            with pytest.raises(
                errors.ArrayDTypeError, match=r"takes an? int2 as 'v', with int32 as 'x'"
            ):
                whole(pair, agt.zeros((1,)), grid=1, block=1)
        kernel = agt.Kernel("__global__ void k(const float* a, float* x) { x[0] = a[0]; }")
        with pytest.raises(errors.OutOfBoundsError, match="null pointer"):
            kernel(None, agt.zeros((1,)), grid=1, block=1).sync()

    def test_an_operation_cannot_yield_a_null_pointer(self, device: Device) -> None:
        kernel = agt.Kernel("__global__ void k(const float* a, float* x) { x[0] = a ? a[0] : 7; }")
        assert kernel(None, agt.zeros(1), grid=1, block=1).output().to_host().sync() == 7
        late = kernel(agt.value(None), agt.zeros(1), grid=1, block=1)
        with pytest.raises(errors.UsageError, match=r"array as 'a'.*yields None.*pass None itself"):
            late.sync()
