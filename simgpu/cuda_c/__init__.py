"""An interpreter of CUDA C: all threads at once, with NumPy.

It knows nothing of devices or time. No Python source is made from a kernel's text.
"""

from simgpu.cuda_c.compile.signature import GlobalVariable, KernelParameter, KernelSignature
from simgpu.cuda_c.cost.counts import NOT_SUMMED, Counts, LineCounts, combined, counted_since
from simgpu.cuda_c.lockstep.team import InterpreterLimits
from simgpu.cuda_c.memory.allocation import GlobalMemory, MemoryState
from simgpu.cuda_c.run.execution import Execution, LaunchResult
from simgpu.cuda_c.run.kernel import CompiledKernel, check_byte_order, check_shape, passed
from simgpu.cuda_c.run.program import Program, compile_source, meets_as_a_grid, parse_signature
from simgpu.cuda_c.text.joined import join_headers
from simgpu.cuda_c.text.published import device_part, text_for_compiler

__all__ = [
    "NOT_SUMMED", "CompiledKernel", "Counts", "Execution", "GlobalMemory", "GlobalVariable",
    "InterpreterLimits", "KernelParameter", "KernelSignature", "LaunchResult", "LineCounts", "MemoryState",
    "Program", "check_byte_order", "check_shape", "combined", "compile_source", "counted_since",
    "device_part", "join_headers", "meets_as_a_grid", "parse_signature", "passed", "text_for_compiler",
]  # fmt: skip
