"""The CUDA device. Importing this package does not import CuPy; opening a device does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncgpu_tutor.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

_ADVICE = (
    "asyncgpu-tutor doctor says whether this machine has an NVIDIA GPU, and what to install for it. Without "
    "one, take the simulated device: agt.use('sim') in Python, --device sim on the command line."
)


def open_cupy_device(ordinal: int) -> CupyDevice:
    """The CUDA device of that number; `DeviceUnavailableError` if CuPy, the driver or a GPU is missing."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceUnavailableError(
            f"cuda:{ordinal} is not available: no GPU can be used without CuPy ({error}). {_ADVICE}"
        ) from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceUnavailableError(
            f"cuda:{ordinal} is not available: CuPy finds no NVIDIA GPU ({error}). {_ADVICE}"
        ) from error
    if ordinal >= count:
        raise DeviceUnavailableError(
            f"cuda:{ordinal} is not available: this machine has {count} CUDA device(s), counted from 0. "
            f"{_ADVICE}"
        )
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

    return CupyDevice(ordinal)
