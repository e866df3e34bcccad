"""An interpreter of CUDA C: all threads at once, with NumPy.

Rooms, the lower ones first; a room imports from those above it in this list, and no other:

    types, text    C's types; a source's words, macros and numbers
    syntax         words to a syntax tree
    lockstep       which threads are active, arithmetic on all of them, a batch's state
    memory         global, shared and local memory, and what is checked in them
    compile        the syntax tree to closures that compute values; builtins
    cost           what the code is charged, and counts of what ran
    run            programs, kernels, launches

It knows nothing of devices or time. No Python source is made from a kernel's text.
"""

from __future__ import annotations

from simgpu.cuda_c.compile.signature import (
    Global,
    Parameter,
    Signature,
    is_cooperative,
    read_signature,
)
from simgpu.cuda_c.cost.counts import NOT_SUMMED, Counts, LineCounts
from simgpu.cuda_c.lockstep.team import Limits
from simgpu.cuda_c.memory.allocation import GlobalMemory, MemoryState
from simgpu.cuda_c.run.kernel import Execution, LaunchResult, Traits, check_shape
from simgpu.cuda_c.run.program import Program, compile_source
from simgpu.cuda_c.text.published import device_code, for_compiler

__all__ = [
    "NOT_SUMMED",
    "Counts",
    "Execution",
    "Global",
    "GlobalMemory",
    "LaunchResult",
    "Limits",
    "LineCounts",
    "MemoryState",
    "Parameter",
    "Program",
    "Signature",
    "Traits",
    "check_shape",
    "compile_source",
    "device_code",
    "for_compiler",
    "is_cooperative",
    "read_signature",
]
