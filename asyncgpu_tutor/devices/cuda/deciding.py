"""Conditional nodes: while a graph is captured, the bodies among which the device will choose.

CuPy has no words for them, so they are made by NVIDIA's own bindings, into the capture that CuPy has begun.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import cupy
from cupy.cuda import driver as cupy_driver

from asyncgpu_tutor.devices.cuda.packing import Bound
from asyncgpu_tutor.errors import UsageError

# Only a kernel can set a condition. The declaration is the one of CUDA's own device_functions.h, which NVRTC
# does not read.
SETTER = r"""
typedef unsigned long long cudaGraphConditionalHandle;
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(
    cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void decide(cudaGraphConditionalHandle handle, const int* number)
{
    cudaGraphSetConditional(handle, (unsigned int)*number);
}
"""
_KINDS = {"while_loop": "WHILE", "cond": "IF", "switch": "SWITCH"}


class Decision:
    """A conditional node, ready to be captured: how it decides, by which number, and the calls of each body.

    Each body is captured on a stream of its own, on which its calls were bound.
    """

    def __init__(
        self, what: str, number: int, bodies: Sequence[tuple[cupy.cuda.Stream, list[Bound]]]
    ) -> None:
        self._what, self._number, self._bodies = what, number, bodies
        self._driver = _bindings()
        self._setter = _setter(cupy.cuda.runtime.getDevice())

    def __call__(self, stream: int) -> None:
        """Add it to the capture of a stream."""
        driver = self._driver
        (context,) = _asked(driver.cuCtxGetCurrent())
        graph = _asked(driver.cuStreamGetCaptureInfo(stream))[2]
        (handle,) = _asked(driver.cuGraphConditionalHandleCreate(graph, context, 0, 0))
        self._set(handle, stream)
        params = driver.CUgraphNodeParams()
        params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        node_type = driver.CUgraphConditionalNodeType
        params.conditional.type = getattr(node_type, f"CU_GRAPH_COND_TYPE_{_KINDS[self._what]}")
        params.conditional.handle = handle
        params.conditional.size = len(self._bodies)
        params.conditional.ctx = context
        # Between CUDA 12 and 13 the dependencies have got data for each edge: what one function says, the
        # others take.
        *before, count = _asked(driver.cuStreamGetCaptureInfo(stream))[3:]
        (node,) = _asked(driver.cuGraphAddNode(graph, *before, count, params))
        after = [[node], *[None for _ in before[1:]]]
        replaced = driver.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
        _asked(driver.cuStreamUpdateCaptureDependencies(stream, *after, 1, int(replaced)))
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        graphs = params.conditional.phGraph_out
        for place, (side, calls) in enumerate(self._bodies):
            begin = driver.cuStreamBeginCaptureToGraph
            _asked(begin(side.ptr, graphs[place], None, None, 0, relaxed))
            try:
                for call, args in calls:
                    call(*args)
                if self._what == "while_loop":
                    self._set(handle, side.ptr)
            finally:
                ended = driver.cuStreamEndCapture(side.ptr)
            _asked(ended)

    def _set(self, handle: Any, stream: int) -> None:
        args = (ctypes.c_uint64 * 2)(int(handle), self._number)
        first = ctypes.addressof(args)
        table = (ctypes.c_void_p * 2)(first, first + 8)
        one = 1, 1, 1
        cupy_driver.launchKernel(self._setter, *one, *one, 0, stream, ctypes.addressof(table), 0)


def _asked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a driver's call, or CuPy's error for it."""
    status, *results = answer
    if int(status):
        raise cupy_driver.CUDADriverError(int(status))
    return tuple(results)


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise UsageError(
            "a graph that decides needs NVIDIA's own bindings on a GPU, and they are not installed: pip "
            "install cuda-bindings, of the CUDA version that CuPy is for"
        ) from None
    return driver


@cache
def _setter(device: int) -> int:
    """The kernel that sets a condition, loaded before a capture begins."""
    return cupy.RawModule(code=SETTER).get_function("decide").kernel.ptr
