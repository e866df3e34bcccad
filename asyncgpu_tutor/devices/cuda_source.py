"""CUDA C as the host reads it, without any device: parameters, variables, and what is for the device."""

from asyncgpu_tutor.devices.fresh_errors import freshly
from simgpu import cuda_c
from simgpu.cuda_c.text.source import Source

Global = cuda_c.GlobalVariable
Parameter = cuda_c.KernelParameter
Signature = cuda_c.KernelSignature

device_code = freshly(cuda_c.device_part)
for_compiler = freshly(cuda_c.text_for_compiler)
is_cooperative = freshly(cuda_c.meets_as_a_grid)
read_signature = freshly(cuda_c.parse_signature)
with_headers = freshly(cuda_c.join_headers)


def place_in_source(source: str, line: int) -> tuple[str, int]:
    """The file that a line of a joined source is from, and the number that it has there."""
    return Source(source).place(line)


def is_sized(parameter: Parameter) -> bool:
    """Tell whether only the size of a parameter is known, because our parser could not read the kernel."""
    return parameter.record is None and parameter.dtype is not None and parameter.dtype.kind == "V"
