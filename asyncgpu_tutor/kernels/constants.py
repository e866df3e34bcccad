"""A kernel's `__constant__` and `__device__` variables, set and read from the host."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncgpu_tutor.devices.cuda_source import Global
from asyncgpu_tutor.devices.protocol import Device, DeviceMemory, KernelFunction
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.run.current import current_device


class Constants:
    """The variables of a kernel's file, by name, on the current device.

    Each kernel has variables of its own, as each module on a GPU has; each `Kernel` of the same name and
    source is the same kernel. To set or to read one waits for the device: what was enqueued before sees the
    old value, what comes after it the new one.

    Examples
    --------
    >>> import asyncgpu_tutor as agt, numpy as np
    >>> kernel = agt.Kernel('''
    ... __constant__ float weights[2];
    ... __global__ void weighted(float* x) { x[threadIdx.x] *= weights[threadIdx.x]; }''')
    >>> kernel.constants["weights"] = [2, 3]
    >>> kernel(agt.ones((2,)), grid=1, block=2).output().to_host().sync()
    array([2., 3.], dtype=float32)
    """

    def __init__(
        self, kernel: str, variables: Sequence[Global], load: Callable[[Device], KernelFunction]
    ) -> None:
        self._kernel = kernel
        self._variables = {variable.name: variable for variable in variables}
        self._load = load

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __repr__(self) -> str:
        listed = ", ".join(f"{n}: {v.dtype}{list(v.shape)}" for n, v in self._variables.items())
        return f"<constants of {self._kernel}: {listed or 'none'}>"

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        """Copy numbers to a variable: as many as it has, and of its type, so not 2.5 for an int."""
        variable = self._find(name)
        try:
            given = np.asarray(value, variable.dtype)
            if variable.dtype.kind in "iu" and not np.array_equal(given, value):
                raise ValueError("give whole numbers that fit")
        except (TypeError, ValueError, OverflowError) as error:
            raise ArrayDTypeError(
                f"{self._kernel}.constants[{name!r}] is a {variable.ctype}, and got {value!r}: {error}"
            ) from None
        size = int(np.prod(variable.shape, dtype=np.int64))
        if given.size != size:
            raise ArrayShapeError(
                f"{self._kernel}.constants[{name!r}] is a {variable.ctype}, of shape {variable.shape}, "
                f"and got an array of shape {given.shape}"
            )
        device, memory = self._place(name, given.nbytes)
        device.copy_from_host_async(memory, np.ascontiguousarray(given), device.default_stream)
        device.default_stream.synchronize()  # of the GPU that CUDA takes for current, maybe another one

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the value of a variable; `UsageError` if there is none of this name."""
        variable = self._find(name)
        out = np.empty(variable.shape, variable.dtype)
        device, memory = self._place(name, out.nbytes)
        device.copy_to_host_async(out, memory, device.default_stream)
        device.default_stream.synchronize()
        return out

    def known(self) -> dict[str, NDArray[Any]]:
        """The values of all variables; a simulated device knows which ones nobody has given any."""
        sizes = {name: variable.dtype.itemsize for name, variable in self._variables.items()}
        places = {name: self._place(name, size)[1] for name, size in sizes.items()}
        return {n: self[n] for n, at in places.items() if getattr(at, "initialised", True)}

    def _place(self, name: str, nbytes: int) -> tuple[Device, DeviceMemory]:
        device = current_device()
        device.synchronize()
        return device, device.variable(self._load(device), name, nbytes)

    def _find(self, name: str) -> Global:
        if name not in [*self._variables]:
            raise UsageError(
                f"{self._kernel}() has no __constant__ or __device__ variable {name!r} that can be set: "
                f"it has {', '.join(self._variables) or 'none'}"
            )
        return self._variables[name]
