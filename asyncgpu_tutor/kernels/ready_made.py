"""The course's own kernels, and what NumPy would compute. The CUDA C of each is in a file of its name.

All arrays are row-major.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asyncgpu_tutor.kernels.kernel import KernelSource


def _kernel(reference: Callable[..., tuple[Any, ...]], **shapes: tuple[str, ...]) -> KernelSource:
    name = reference.__name__.removeprefix("_")
    text = Path(__file__).with_name(f"{name}.cu").read_text("utf-8")
    return KernelSource(name, f"\n{text}", shapes, reference)


def _relu(n: int, input: Any, output: Any) -> tuple[Any, ...]:
    return (np.fmax(input, np.float32(0)),)


def _matvec_naive(m: int, n: int, mat: Any, vec_in: Any, vec_out: Any) -> tuple[Any, ...]:
    return (mat.reshape(m, n) @ vec_in.reshape(n),)


def _sgemm_naive(
    m: int, n: int, k: int, alpha: float, a: Any, b: Any, beta: float, c: Any
) -> tuple[Any, ...]:
    return (alpha * (a.reshape(m, k) @ b.reshape(k, n)) + beta * c.reshape(m, n),)


# One thread for each element, which reads and writes the same index: input and output may be one array.
RELU = _kernel(_relu, input=("n",), output=("n",))
# One thread for each row: neighbours read addresses a whole row apart, and nothing coalesces, on purpose.
MATVEC_NAIVE = _kernel(_matvec_naive, mat=("m", "n"), vec_in=("n",), vec_out=("m",))
# One thread for each element of the result.
SGEMM_NAIVE = _kernel(_sgemm_naive, a=("m", "k"), b=("k", "n"), c=("m", "n"))
