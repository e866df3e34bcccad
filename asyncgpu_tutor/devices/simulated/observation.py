"""What a simulated device tells those who watch its kernels."""

from __future__ import annotations

from dataclasses import dataclass

from asyncgpu_tutor.cuda_c import Counts
from asyncgpu_tutor.devices.protocol import Dim3
from asyncgpu_tutor.devices.simulated.model import KernelTime

__all__ = ["Launched"]


@dataclass(frozen=True)
class Launched:
    """One launch, as it was executed.

    Attributes
    ----------
    kernel, source : str
        Name and CUDA C.
    grid, block : tuple of int
        (x, y, z).
    counts : Counts
        What it did.
    time : KernelTime
        What the model makes of that.
    extrapolated : bool
        Whether only a sample of its blocks was interpreted; see `stand_in`.
    """

    kernel: str
    source: str
    grid: Dim3
    block: Dim3
    counts: Counts
    time: KernelTime
    extrapolated: bool = False
