"""Compiling and launching on a GPU as the CUDA device does, and which results have no bits to compare."""

from typing import Any

import numpy as np

# Sums whose order a GPU chooses, and functions that it rounds otherwise: not to the last bit.
INEXACT = {
    "gelu": 1e-6, "reduce_shuffle": 1e-4, "sum_in_last_block": 1e-4, "dot": 1e-10, "softmax_online": 1e-5,
    "layer_norm": 1e-5, "nbody_forces": 1e-4, "normal_numbers": 1e-5,
}  # fmt: skip
UNORDERED = {"compact_positive", "hash_insert"}


def nvrtc(text: str, names: list[str], *, fmad: bool = True, options: tuple[str, ...] = ()) -> Any:
    """Compile as the CUDA device does."""
    from asyncgpu_tutor.devices.cuda.compile import compile_module  # only where there is CuPy

    return compile_module(text, names, fmad=fmad, options=options)


def on_gpu(cp: Any, compiled: Any, name: str, case: Any, args: list[Any], shared: int = 0) -> None:
    """Launch by CuPy; arrays are changed in place."""
    grid, block = case
    ready = [cp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    ready = [
        np.int32(a) if type(a) is int else np.float64(a) if type(a) is float else a for a in ready
    ]
    module, mapping = compiled
    module.get_function(mapping[name])(grid, block, tuple(ready), shared_mem=shared)
    for mine, theirs in zip(args, ready, strict=True):
        if isinstance(mine, np.ndarray):
            mine[...] = cp.asnumpy(theirs)
