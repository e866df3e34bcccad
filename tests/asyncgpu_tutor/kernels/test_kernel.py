"""What a `Kernel` can be made of and launched with: templates, arithmetic that is the source's, limits."""

from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Device
from asyncgpu_tutor.errors import ArrayDTypeError, LaunchConfigError, OutOfBoundsError
from asyncgpu_tutor.kernels import SGEMM_NAIVE
from asyncgpu_tutor.kernels.launching import check_limits

TEMPLATE = r"""
#define THREADS 64
template <typename T, int TIMES>
__global__ void scale(unsigned int n, const T* x, T* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)TIMES * x[i];
}
extern "C" __global__ void plain(unsigned int n, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
"""

INSTANCES = {
    "scale<float, 3>": "float32", "scale<double, 3>": "float64", "scale<int, 3>": "int32",
    "scale<float, 5>": "float32", "plain": "float32",
}  # fmt: skip


def test_instances_of_a_template_and_a_plain_kernel_beside_them(device: Device) -> None:
    kernels = {name: agt.Kernel(TEMPLATE, name) for name in INSTANCES}
    for name, dtype in INSTANCES.items():
        x = np.arange(100).astype(dtype)
        y = kernels[name](100, agt.h2d(agt.pin(x)), agt.zeros((100,), dtype).partition(64))
        expected = x + 1 if name == "plain" else int(name[-2]) * x
        np.testing.assert_array_equal(y.output().to_host().sync(), expected)


def test_an_instance_takes_the_type_that_it_names_which_has_to_exist(device: Device) -> None:
    kernel = agt.Kernel(TEMPLATE, "scale<double, 3>")
    with pytest.raises(ArrayDTypeError, match=r"double\* \(float64\) as 'x'"):
        kernel(10, agt.ones((10,)).sync(), agt.zeros((10,), "float64").partition(64))
    for name, says in (
        ("scale", "template of T, TIMES: name an instance"),
        ("scale<real, 3>", "real"),
    ):
        with pytest.raises(agt.errors.KernelCompileError, match=says):
            agt.Kernel(TEMPLATE, name)


ARITHMETIC = r"""
extern "C" __global__ void tiny(unsigned int n, const float* x, const float* y, float* out) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[4 * i] = x[i] * y[i];
        out[4 * i + 1] = x[i] / y[i];
        out[4 * i + 2] = sqrtf(x[i]);
        out[4 * i + 3] = x[i] * y[i] + 0.1f;
    }
}
"""


def test_arithmetic_is_numpys_below_the_normal_floats_too(device: Device) -> None:
    rng = np.random.default_rng(3)
    n = 4096
    # Products from far below the smallest normal float, 1.2e-38, to far above it; some inputs are below.
    x = (rng.random(n) * 10.0 ** rng.uniform(-42, 0, n)).astype(np.float32)
    y = (rng.random(n) * 10.0 ** rng.uniform(-42, 0, n)).astype(np.float32)
    kernel = agt.Kernel(ARITHMETIC)
    out = kernel(n, agt.h2d(agt.pin(x)), agt.h2d(agt.pin(y)), agt.zeros(4 * n).partition(128))
    found = out.last().unpartition().to_host().sync().reshape(n, 4)
    with np.errstate(all="ignore"):
        expected = np.stack([x * y, x / y, np.sqrt(x), x * y + np.float32(0.1)], axis=1)
    below = (expected[:, 0] > 0) & (expected[:, 0] < np.finfo(np.float32).tiny)
    assert below.sum() > 100, "these inputs test nothing"
    np.testing.assert_array_equal(found, expected)


DYNAMIC = r"""
extern "C" __global__ void dynamic(float* x) {
    extern __shared__ char room[];
    room[0] = 1;
    x[0] = room[0];
}
"""


def test_a_launch_by_a_context_has_the_shared_memory_that_it_asks_for(sim: Device) -> None:
    def op(**options: Any) -> agt.DeviceOp[Any]:
        def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[Any]:
            function = context.device.get_function(DYNAMIC, "dynamic")
            x = context.empty((1,))
            context.launch(function, (1, 1, 1), (1, 1, 1), [x], **options)
            return agt.value(x)

        return agt.with_context(enqueue).to_host()

    assert op(shared_mem=1).sync().tolist() == [1.0]
    with pytest.raises(OutOfBoundsError, match="room"):
        op().sync()


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((2**31, 1, 1), 1), ((1, 65536, 1), 1), ((1, 1, 65536), 1), (1, (1, 1, 65)), ((0, 1, 1), 1),
        ((1, 0, 1), 1), ((1, 1, 0), 1), (1, (1, 1, 0)),
    ],
)  # fmt: skip
def test_each_dimension_has_limits_of_its_own(device: Device, grid: Any, block: Any) -> None:
    x = agt.zeros((1,)).sync()
    kernel = agt.Kernel('extern "C" __global__ void one(float* x) { x[0] = 1.0f; }')
    with pytest.raises(LaunchConfigError, match=r"is the limit|at least 1"):
        kernel(x, grid=grid, block=block)
    for most in ((1024, 1, 1), (1, 1024, 1), (16, 1, 64)):  # to the limit, and no further
        check_limits("one", USUAL_LIMITS.grid, most, USUAL_LIMITS.shared_bytes, USUAL_LIMITS)
    assert kernel(x, grid=1, block=1).output().to_host().sync().tolist() == [1.0]


TOGETHER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void together(unsigned int* present, unsigned int* sum) {
    cg::grid_group grid = cg::this_grid();
    if (threadIdx.x == 0) present[blockIdx.x] = 1;
    grid.sync();
    if (grid.thread_rank() == 0) {
        for (unsigned int i = 0; i < gridDim.x; i++) sum[0] += present[i];
    }
}"""


def test_a_barrier_of_the_grid_built_prepared_and_captured(device: Device) -> None:
    present, total = agt.zeros(8, np.uint32).sync(), agt.zeros(1, np.uint32).sync()
    op = agt.Kernel(TOGETHER)(present.borrow(), total.borrow(), grid=8, block=64)
    op.sync()
    op.prepare().launch().sync()
    op.graph_on(agt.create_stream()).launch().sync()
    assert agt.d2h(total).sync()[0] == 24


# All of `a` is in registers, from one turn to the next.
HEAVY = """
__global__ void heavy(float* x, int turns) {
    float a[120], sum = 0;
    #pragma unroll
    for (int i = 0; i < 120; i++) a[i] = x[i];
    for (int t = 0; t < turns; t++) {
        #pragma unroll
        for (int i = 0; i < 120; i++) a[i] = a[i] * a[(i + 7) % 120] + x[threadIdx.x];
    }
    #pragma unroll
    for (int i = 0; i < 120; i++) sum += a[i];
    x[threadIdx.x] = sum;
}"""


@pytest.mark.gpu
def test_a_block_that_needs_too_many_registers_is_told_so(cuda: Device) -> None:
    heavy = agt.Kernel(HEAVY)
    with pytest.raises(LaunchConfigError, match=r"heavy.*registers.*smaller blocks"):
        heavy(agt.zeros(1024), 2, grid=1, block=1024).sync()
    assert heavy(agt.zeros(1024), 2, grid=1, block=256).output().to_host().sync().sum() == 0


def test_the_matrix_product_computes_what_its_reference_does(device: Device) -> None:
    random = np.random.default_rng(1)
    a, b, c = (random.random(n * m, np.float32) for n, m in ((3, 5), (5, 4), (3, 4)))
    on_device = [
        agt.h2d(agt.pin(array.reshape(shape))).sync() for array, shape in ((a, (3, 5)), (b, (5, 4)))
    ]
    out = agt.h2d(agt.pin(c.reshape(3, 4))).sync()
    assert (out.ndim, out.size) == (2, 12)
    found = agt.sgemm_naive(3, 4, 5, 2.0, *on_device, -0.5, out.partition((16, 16))).output()
    (wanted,) = SGEMM_NAIVE.reference(3, 4, 5, 2.0, a, b, -0.5, c)
    np.testing.assert_allclose(found.to_host().sync(), wanted, rtol=1e-5)


def test_references_are_what_the_kernels_do(sim: Device) -> None:
    a, b, c, x = (
        np.arange(np.prod(n), dtype=np.float32).reshape(n) - 9 for n in ((5, 7), (7, 3), (5, 3), 7)
    )
    for kernel, args, block in (
        (agt.relu, (7, x, x), 8),
        (agt.matvec_naive, (5, 7, a, x, x[:5]), 8),
        (agt.sgemm_naive, (5, 3, 7, 2.0, a, b, 0.5, c), (8, 8)),
    ):
        given = [agt.h2d(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        found = kernel(*given, grid=1, block=block).output().to_host().sync()
        reference: Any = kernel._facts.reference
        assert found.tolist() == reference(*args)[0].tolist()
