"""CUDA C as the host reads it, without any device: parameters, variables, and what is for the device."""

from asyncgpu_tutor.devices.simgpu_errors import translated
from simgpu import cuda_c
from simgpu.cuda_c import Global, Parameter, Signature

device_code = translated(cuda_c.device_code)
for_compiler = translated(cuda_c.for_compiler)
read_signature = translated(cuda_c.read_signature)

__all__ = [
    "Global",
    "Parameter",
    "Signature",
    "device_code",
    "for_compiler",
    "read_signature",
]
