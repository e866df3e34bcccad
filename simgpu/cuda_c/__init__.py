"""An interpreter of CUDA C: all threads at once, with NumPy.

It knows nothing of devices or time. No Python source is made from a kernel's text.
"""

from __future__ import annotations

from simgpu.cuda_c.compile.signature import GlobalVariable as GlobalVariable
from simgpu.cuda_c.compile.signature import KernelParameter as KernelParameter
from simgpu.cuda_c.compile.signature import KernelSignature as KernelSignature
from simgpu.cuda_c.cost.counts import NOT_SUMMED as NOT_SUMMED
from simgpu.cuda_c.cost.counts import Counts as Counts
from simgpu.cuda_c.cost.counts import LineCounts as LineCounts
from simgpu.cuda_c.cost.counts import combined as combined
from simgpu.cuda_c.cost.counts import counted_since as counted_since
from simgpu.cuda_c.lockstep.team import InterpreterLimits as InterpreterLimits
from simgpu.cuda_c.memory.allocation import GlobalMemory as GlobalMemory
from simgpu.cuda_c.memory.allocation import MemoryState as MemoryState
from simgpu.cuda_c.run.execution import Execution as Execution
from simgpu.cuda_c.run.execution import LaunchResult as LaunchResult
from simgpu.cuda_c.run.kernel import CompiledKernel as CompiledKernel
from simgpu.cuda_c.run.kernel import check_byte_order as check_byte_order
from simgpu.cuda_c.run.kernel import check_shape as check_shape
from simgpu.cuda_c.run.kernel import passed as passed
from simgpu.cuda_c.run.program import Program as Program
from simgpu.cuda_c.run.program import compile_source as compile_source
from simgpu.cuda_c.run.program import meets_as_a_grid as meets_as_a_grid
from simgpu.cuda_c.run.program import parse_signature as parse_signature
from simgpu.cuda_c.text.joined import join_headers as join_headers
from simgpu.cuda_c.text.published import device_part as device_part
from simgpu.cuda_c.text.published import text_for_compiler as text_for_compiler
