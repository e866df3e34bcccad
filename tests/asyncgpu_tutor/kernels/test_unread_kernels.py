"""Kernels that a GPU's compiler reads and our parser does not: only the sizes of parameters are known."""

from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.cuda_source import Parameter, Signature, for_compiler
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine

READ = """extern "C" __global__ void scale(unsigned int n, float factor, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}"""
SIZES = (4, 4, 8, 8)


class UnreadingDevice(SimDevice):
    """A simulated device that takes itself for one which knows no types, as a driver does."""

    def signature(self, source: str, name: str) -> Signature:
        parameters = [
            Parameter(f"argument {i}", f"{size} bytes", False, False, np.dtype(f"V{size}"))
            for i, size in enumerate(SIZES)
        ]
        return Signature(name, tuple(parameters))


@pytest.fixture
def scale() -> Any:
    with agt.using(UnreadingDevice(machine=SimMachine())):
        yield agt.Kernel(READ)


@pytest.mark.parametrize("number", [np.uint32(100), 100])
@pytest.mark.parametrize("by", [np.float32(3), 3.0])
def test_arguments_give_the_types(scale: agt.Kernel, number: Any, by: Any) -> None:
    x, out = agt.arange(100, dtype=np.float32), agt.zeros((100,)).partition(32)
    done = scale(number, by, x, out).output("argument 3").to_host().sync()
    np.testing.assert_array_equal(done, 3 * np.arange(100, dtype=np.float32))


def test_what_does_not_fit_is_refused(scale: agt.Kernel) -> None:
    for args, said in (
        ((100, 2.0, 5.0), "takes 4 arguments"),
        ((np.int64(100), 2.0, None, None), "4 bytes as 'argument 0', and got int64"),
        ((2**40, 2.0, None, None), "4 bytes as 'argument 0', and got int"),
        (("many", 2.0, None, None), "and got str"),
        ((True, 2.0, None, None), "and got bool"),
    ):
        with pytest.raises(errors.UsageError, match=said):
            scale(*args, grid=4, block=32)


VARIADIC = """
template <typename T> concept Number = requires(T a) { a + a; };
template <Number T> __device__ T total(T x) { return x; }
template <Number T, Number... More> __device__ T total(T x, More... more) { return x + total(more...); }
template <Number... T> __global__ void add(unsigned int n, float* out, T... parts) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = out[i] + total(parts...);
}"""


@pytest.mark.gpu
def test_a_gpu_takes_variadic_templates_and_concepts(cuda: Device) -> None:
    add = agt.Kernel(VARIADIC, "add<float, int, double>")
    # Each sum has the type of its first number: 0.5f + (2 + 0.25 as an int).
    done = add(100, agt.ones((100,)).partition(32), 0.5, 2, 0.25).output("argument 1")
    np.testing.assert_array_equal(done.to_host().sync(), np.full(100, 3.5, np.float32))
    with pytest.raises(errors.UsageError, match="takes 5 arguments"):
        add(100, agt.ones((100,)).partition(32))


@pytest.mark.gpu
def test_what_no_compiler_reads_is_told_with_its_line(cuda: Device) -> None:
    with pytest.raises(errors.KernelCompileError, match=r"\.cu:2: error"):
        agt.Kernel('extern "C" __global__ void k(float* x) {\n  x[0] = ;\n}')


COOPERATIVE = """#include <cooperative_groups.h>
__device__ void meet() { cooperative_groups::this_grid().sync(); }
__global__ void together(float* x) { x[0] = 1.0f; meet(); }
__global__ void apart(float* x) { x[blockIdx.x % 2] = 1.0f; }
"""


def test_a_barrier_of_the_grid_binds_the_kernels_that_have_it_and_no_other(device: Any) -> None:
    """One file holds both: too many blocks are refused by the one, and no business of the other."""
    many = 2**17
    together, apart = (agt.Kernel(COOPERATIVE, name) for name in ("together", "apart"))
    with pytest.raises(errors.LaunchConfigError, match="barrier of the grid"):
        together(agt.zeros((2,)), grid=many, block=1).sync()
    if device.simulated:
        many = 2**12  # all of them are interpreted
    apart(agt.zeros((2,)), grid=many, block=1).sync()


def test_a_concept_that_a_kernel_names_is_for_the_device(sim: Any) -> None:
    unused = "template <class T> concept Unused = true;"
    assert "concept Number" in for_compiler(VARIADIC)
    assert "concept Unused" not in for_compiler(VARIADIC + unused)
    with pytest.raises(errors.KernelCompileError):  # which a simulated one cannot read
        agt.Kernel(VARIADIC, "add<float, int, double>")
