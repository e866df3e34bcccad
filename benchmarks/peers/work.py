"""The work of all peers: four batches of ``relu(x @ w0 @ w1)``, with the same kernels and buffers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt

BATCHES = 4
TILE, BLOCK = 16, 256
KERNELS = {name: getattr(agt, name).source for name in ("sgemm_naive", "matvec_naive", "relu")}

Host = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Work:
    """One size of the problem, in pinned host memory."""

    dim: int
    w0: Host
    w1: Host
    xs: list[Host]

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of the matrix product."""
        blocks = -(-self.dim // TILE)
        return (blocks, blocks, 1)

    @property
    def line(self) -> tuple[int, int, int]:
        """Blocks of the other two kernels."""
        return (-(-self.dim // BLOCK), 1, 1)


def make_work(dim: int) -> Work:
    """Random batches and weights."""
    rng = np.random.default_rng(dim)

    def draw(*shape: int) -> Any:
        return agt.pin(rng.standard_normal(shape, dtype=np.float32))

    return Work(dim, draw(dim, dim), draw(dim), [draw(dim, dim) for _ in range(BATCHES)])


@dataclass
class Contender:
    """One way to do it."""

    name: str
    run: Callable[[], object]  # computes all batches, and returns when the results are on the host
    results: Callable[[], list[Host]]  # what the last run has computed
    note: str = ""  # what has to be known of it
