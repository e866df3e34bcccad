"""CUDA C as the host reads it, without any device: parameters, variables, and what is for the device."""

from asyncgpu_tutor.devices.simgpu_errors import translated
from simgpu import cuda_c

Global = cuda_c.Global
Parameter = cuda_c.Parameter
Signature = cuda_c.Signature

device_code = translated(cuda_c.device_code)
for_compiler = translated(cuda_c.for_compiler)
is_cooperative = translated(cuda_c.is_cooperative)
read_signature = translated(cuda_c.read_signature)


def is_sized(parameter: Parameter) -> bool:
    """Tell whether only the size of a parameter is known, because our parser could not read the kernel."""
    return parameter.record is None and parameter.dtype is not None and parameter.dtype.kind == "V"
