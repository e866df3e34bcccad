"""Large launches: values by the kernel's reference, checked on a sample, and a trace that says so."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import (
    OutOfBoundsError,
    ReferenceMismatchError,
    UninitialisedReadError,
)
from asyncgpu_tutor.kernels import SGEMM_NAIVE
from simgpu.sampled_reference import LARGE

AXPY = r"""
extern "C" __global__ void axpy(unsigned int n, float a, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
COUNT = r"""
extern "C" __global__ void count(unsigned int n, const float* x, int* total) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.0f) atomicAdd(total, 1);
}
"""
N = 50_000  # not a multiple of the block
Make = Callable[..., Any]


def axpy(n: int, a: float, x: Any, y: Any) -> tuple[Any, ...]:
    return (np.float32(a) * x + y,)


@pytest.fixture
def eager() -> Iterator[SimDevice]:
    """A device on which the reference stands in wherever it may."""
    with agt.using(SimDevice(machine=SimMachine(), stand_in_above=0)) as device:
        yield device


def inputs() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(N, dtype=np.float32) for _ in range(2))
    return x, y


def launched(kernel: Make, x: Any, y: Any, block: int = 64) -> tuple[Any, agt.types.Span]:
    """Result, and the span of the launch."""
    given = agt.h2d(agt.pin(x)).sync(), agt.h2d(agt.pin(y)).sync()
    with agt.record() as trace:
        out = kernel(N, 2.0, given[0], given[1].partition(block)).last().unpartition().to_host()
        result = out.sync()
    (span,) = [span for span in trace.spans if span.kind == "kernel"]
    return result, span


def test_values_are_the_references_and_the_trace_says_so(eager: SimDevice) -> None:
    x, y = inputs()
    for reference in (axpy, None):
        result, span = launched(agt.Kernel(AXPY, reference=reference), x, y)
        np.testing.assert_array_equal(result, np.float32(2) * x + y)
        told = str(span.detail.get("computed", ""))
        if reference:
            assert "NumPy reference" in told
            assert "64 of 782 blocks" in told
    assert "computed" not in span.detail  # without a reference every block is interpreted


@pytest.mark.parametrize(("above", "block"), [(LARGE, 64), (0, 256)])  # little work, or few blocks
def test_small_launches_are_interpreted_whole(above: float, block: int) -> None:
    called: list[int] = []

    def reference(n: int, a: float, x: Any, y: Any) -> tuple[Any, ...]:
        called.append(n)
        return axpy(n, a, x, y)

    x, y = inputs()
    with agt.using(SimDevice(machine=SimMachine(), stand_in_above=above)):
        result, span = launched(agt.Kernel(AXPY, reference=reference), x, y, block)
    np.testing.assert_array_equal(result, np.float32(2) * x + y)
    assert not called
    assert "computed" not in span.detail


def test_counts_are_extrapolated_to_those_of_all_blocks() -> None:
    n = 256
    a = np.random.default_rng(1).standard_normal((n, n), dtype=np.float32)
    counts: list[Any] = []
    for above in (math.inf, 0.0):
        device = SimDevice(machine=SimMachine(), stand_in_above=above)
        with agt.using(device):
            device.observers.append(counts.append)
            np.testing.assert_allclose(product(a, a, 8), a @ a, rtol=1e-3, atol=1e-3)
    whole, sampled = (
        next(item for item in counts if item.kernel == "sgemm_naive" and item.extrapolated is kind)
        for kind in (False, True)
    )
    for name in whole.counts.__dataclass_fields__:
        if name != "lines":
            expected = getattr(whole.counts, name)
            # New sectors are followed at some turns only, and at others where fewer blocks run.
            near = 0.06 if "fresh" in name else 0.01
            assert getattr(sampled.counts, name) == pytest.approx(expected, rel=near), name
    assert sampled.time.us == pytest.approx(whole.time.us, rel=0.03)
    line = max(whole.counts.lines, key=lambda number: whole.counts.lines[number].warp_instructions)
    assert sampled.counts.lines[line] == whole.counts.lines[line]


def product(a: Any, b: Any, tile: int) -> Any:
    n = len(a)
    left, right = (agt.h2d(agt.pin(m)).sync() for m in (a, b))
    out = agt.zeros((n, n)).partition(tile, tile)
    return agt.sgemm_naive(n, n, n, 1.0, left, right, 0.0, out).output().to_host().sync()


def short(n: int, a: float, x: Any, y: Any) -> tuple[Any, ...]:
    """A reference that forgets the last block."""
    (whole,) = axpy(n, a, x, y)
    whole[-(n % 64) :] = 0
    return (whole,)


WRONG: list[tuple[str, Make, type[Exception], str]] = [
    (AXPY, lambda n, a, x, y: (np.float32(a) * x - y,), ReferenceMismatchError,
     r"'axpy' and its reference disagree: 'y'\[0\]"),
    (AXPY.replace("+ y[i]", "- y[i]"), axpy, ReferenceMismatchError, "of the 4,048 elements compared differ"),
    (AXPY, short, ReferenceMismatchError, r"'y'\[49984\]"),
    (AXPY.replace("if (i < n) ", ""), axpy, OutOfBoundsError, r"block \(781, 0, 0\)"),
    *((AXPY, reference, ReferenceMismatchError, what) for reference, what in (
        (lambda n, a, x, y: (x, y), r"returned 2 arrays, and the kernel may write to 1 \(y\)"),
        (lambda n, a, x, y: (x[:5],), "returned 5 elements of float32 for 'y', which holds 50000"),
        (lambda n, a, x, y: (x.astype(complex),), "of complex128 for 'y'"),
        (lambda n, a, x, y: y.fill(0), "failed: ValueError.*read-only"),
        (lambda n, x: (x,), "failed: TypeError"))),
]  # fmt: skip


@pytest.mark.parametrize(("source", "reference", "kind", "what"), WRONG)
def test_a_wrong_kernel_or_reference_is_caught(
    eager: SimDevice, source: str, reference: Make, kind: type[Exception], what: str
) -> None:
    with pytest.raises(kind, match=what):
        launched(agt.Kernel(source, reference=reference), *inputs())


FEWER = AXPY.replace("y[i] = a * x[i] + y[i]", "y[i + 2] = a * x[i]")
FIRST = 'extern "C" __global__ void first(const float* y, float* out) { out[0] = y[0]; }'


def test_what_no_thread_writes_stays_as_it_is(eager: SimDevice) -> None:
    """The kernel writes a part of `y`, and its reference all of it."""
    double = agt.Kernel(FEWER, reference=lambda n, a, x, y: (np.float32(a) * np.roll(x, 2),))
    x, n = inputs()[0], N - 100
    given, expected = agt.h2d(agt.pin(x)).sync(), np.full(N, 7, np.float32)
    expected[2 : n + 2] = 2 * x[:n]
    y = agt.full(N, 7.0).sync()
    out = double(n, 2.0, given.borrow(), y, grid=782, block=64).last().to_host().sync()
    np.testing.assert_array_equal(out, expected)
    y = agt.empty(N).sync()  # of which nobody can say that the reference changes it
    double(n, 2.0, given, y.borrow(), grid=782, block=64).sync()
    with pytest.raises(UninitialisedReadError, match=r"'y'\[0\]"):
        agt.Kernel(FIRST)(y, agt.zeros(1), grid=1, block=1).sync()


@pytest.mark.parametrize("number", [0, 3])
def test_numbers_are_pythons_in_a_reference(eager: SimDevice, number: int) -> None:
    """As NumPy's, of 32 bits, they would turn its arrays of bytes into wider ones."""
    add = """extern "C" __global__ void add(unsigned char* y, const unsigned char* x, int v) {
        y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x] + v;
    }"""
    kernel = agt.Kernel(add, reference=lambda y, x, v: x + v)
    x = agt.h2d(np.arange(N // 64 * 64).astype(np.uint8)).sync()
    y = agt.zeros(x.shape, np.uint8).sync().partition(64)
    out = kernel(y, x, number).output().to_host().sync()
    assert np.array_equal(out, np.arange(len(out)).astype(np.uint8) + np.uint8(number))


def test_blocks_that_meet_in_an_atomic_are_all_interpreted(eager: SimDevice) -> None:
    x, _ = inputs()
    kernel = agt.Kernel(COUNT, reference=lambda n, x, total: (np.array([-1]),))
    given = agt.h2d(agt.pin(x)).sync()
    total = kernel(N, given, agt.zeros(1, "int32").partition(1), grid=782, block=64).last()
    assert total.unpartition().to_host().sync()[0] == (x > 0).sum()


def test_the_microscope_says_that_counts_are_extrapolated(eager: SimDevice) -> None:
    with agt.microscope() as report:
        launched(agt.Kernel(AXPY, reference=axpy), *inputs())
    assert "extrapolated" in report.table()


@pytest.mark.slow
def test_a_product_of_large_matrices(sim: SimDevice) -> None:
    n = 1024
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    with agt.record() as trace:
        result = product(a, b, 16)
    np.testing.assert_allclose(result, a @ b, rtol=1e-3, atol=1e-3)
    told = [span.detail.get("computed") for span in trace.spans if span.name == SGEMM_NAIVE.name]
    assert any("64 of 4096 blocks" in str(line) for line in told)
