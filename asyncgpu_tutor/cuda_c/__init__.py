"""An interpreter of CUDA C: all threads at once, with NumPy.

Layout, from the text to the result:

    source, lexer, preprocessor, condition, literals     text to tokens
    ast, parse_types .. parser                           tokens to a syntax tree
    types, typed, lower_costs, lower_base,
    lower_storage, lower_places, lower_operators,
    lower_braces, lower_expressions,
    lower_declarations, lower_statements, loops,
    lower_loops, lower_calls, builtins                   the tree to closures, floor by floor
    arrays, values, masks, team                          arithmetic, active threads, a batch's state
    pointers, regions, global_memory, shared_memory,
    local_memory, access, races                          memory, and what is checked in it
    memory                                               what the host allocates
    counts, tally                                        what was done
    signature, arguments, compiled, program              kernels, launches

It knows nothing of devices or time. No Python source is made from a kernel's text.
"""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.compiled import LaunchResult
from asyncgpu_tutor.cuda_c.counts import NOT_SUMMED, Counts, LineCounts
from asyncgpu_tutor.cuda_c.memory import GlobalMemory, GlobalPointer, MemoryState
from asyncgpu_tutor.cuda_c.program import Program, compile_source
from asyncgpu_tutor.cuda_c.signature import Parameter, Signature, read_signature
from asyncgpu_tutor.cuda_c.team import Limits

__all__ = [
    "NOT_SUMMED",
    "Counts",
    "GlobalMemory",
    "GlobalPointer",
    "LaunchResult",
    "Limits",
    "LineCounts",
    "MemoryState",
    "Parameter",
    "Program",
    "Signature",
    "compile_source",
    "read_signature",
]
