"""An interpreter of CUDA C: all threads at once, with NumPy.

It knows nothing of devices or time. No Python source is made from a kernel's text.
"""

from __future__ import annotations

from simgpu.cuda_c.compile.signature import GlobalVariable, KernelParameter, KernelSignature
from simgpu.cuda_c.cost.counts import NOT_SUMMED, Counts, LineCounts
from simgpu.cuda_c.lockstep.team import InterpreterLimits
from simgpu.cuda_c.memory.allocation import GlobalMemory, MemoryState
from simgpu.cuda_c.run.execution import Execution, LaunchResult
from simgpu.cuda_c.run.kernel import CompiledKernel, check_shape
from simgpu.cuda_c.run.program import Program, compile_source, meets_as_a_grid, parse_signature
from simgpu.cuda_c.text.published import device_part, text_for_compiler

__all__ = [
    "NOT_SUMMED",
    "CompiledKernel",
    "Counts",
    "Execution",
    "GlobalMemory",
    "GlobalVariable",
    "InterpreterLimits",
    "KernelParameter",
    "KernelSignature",
    "LaunchResult",
    "LineCounts",
    "MemoryState",
    "Program",
    "check_shape",
    "compile_source",
    "device_part",
    "meets_as_a_grid",
    "parse_signature",
    "text_for_compiler",
]
