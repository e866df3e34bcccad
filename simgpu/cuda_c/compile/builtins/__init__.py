"""The functions that CUDA C brings along, by name."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import NoReturn

from simgpu.cuda_c.compile.builtins.atomics import ATOMIC_FUNCTIONS
from simgpu.cuda_c.compile.builtins.bits import BIT_FUNCTIONS
from simgpu.cuda_c.compile.builtins.bulk import BULK_FUNCTIONS
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler
from simgpu.cuda_c.compile.builtins.copies import COPY_FUNCTIONS, PHASE_FUNCTIONS
from simgpu.cuda_c.compile.builtins.halves import HALF_FUNCTIONS
from simgpu.cuda_c.compile.builtins.mathematics import MATH_FUNCTIONS
from simgpu.cuda_c.compile.builtins.misc import MISC_FUNCTIONS
from simgpu.cuda_c.compile.builtins.synchronisation import SYNC_FUNCTIONS
from simgpu.cuda_c.compile.builtins.tensor_cores import TENSOR_FUNCTIONS
from simgpu.cuda_c.compile.builtins.warps import WARP_FUNCTIONS
from simgpu.cuda_c.compile.builtins.xorwow import XORWOW_FUNCTIONS
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.syntax.assembly import FROM_ASSEMBLY
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.syntax.tokens_and_types import TEXTURES

_TABLE: dict[str, BuiltinHandler] = {
    **MATH_FUNCTIONS,
    **BIT_FUNCTIONS,
    **HALF_FUNCTIONS,
    **ATOMIC_FUNCTIONS,
    **WARP_FUNCTIONS,
    **SYNC_FUNCTIONS,
    **MISC_FUNCTIONS,
    **XORWOW_FUNCTIONS,
    **COPY_FUNCTIONS,
    **PHASE_FUNCTIONS,
    **BULK_FUNCTIONS,
    **TENSOR_FUNCTIONS,
}

_MATHEMATICS = (
    r"(frexp|modf|(erf|erfc|normcdf)(inv|x)|[jy][01n]|ilogb|logb|scalbl?n|r?norm([34]d)?|rhypot|rcbrt|remquo|"
    r"sincospi|cyl_bessel_i[01]|fdivide|llabs)f?"
)
_REFUSED = {
    "malloc": "malloc in device code is not supported: allocate from the host",
    "free": "free in device code is not supported",
    r"cuda(DeviceSynchronize|Malloc|Free|Mem(cpy|set)\w*|(Stream|Event)\w*|(Get|PeekAt)LastError)": (
        "device code cannot call the CUDA runtime here"
    ),
    "__float_to_tf32": "the simulated device has matrices of half and __nv_bfloat16",
    r"curand\w*": (
        "of cuRAND the generators XORWOW and Philox4_32_10 are there, with their uniform, normal and "
        "log-normal numbers, and this is not supported: pass random numbers as an array"
    ),
    **TEXTURES,
    "this_cluster|map_shared_rank|cluster_group": (
        "clusters of blocks are not supported: let blocks meet at a barrier of the grid (this_grid().sync())"
    ),
    r"__nv_cvt_\w*fp[468]\w*": "numbers of 4, 6 and 8 bits are not supported: take half or float",
    r"(labeled|binary)_partition|(in|ex)clusive_scan(_update)?|invoke_one(_broadcast)?": (
        "this function of cooperative groups is not supported: ballot() and shfl_up() do the same"
    ),
    r"__fma_r[duz]": "this rounding of a product and a sum at once is supported for float alone (__fmaf_rz)",
    _MATHEMATICS: (
        "this function of the CUDA math library is not supported: pass its values as an array, or write out "
        "its series"
    ),
    r"__v(abs|add|avg|cmp|max|min|neg|sad|set|sub)\w*[24]": (
        "this instruction for several small numbers in one word is not supported: take them apart by shifts"
    ),
    r"__\w+2b?(half|float16)2?\w*|__b?(half|float16)2?\w+|__\w+_as_b?(half|float16)|h2?(ceil|cos|exp|exp2|exp10|floor|"
    r"log|log2|log10|rcp|rint|rsqrt|sin|sqrt|tanh|trunc)(_approx)?|"
    r"__h(add|sub|mul|fma|cmadd|abs|max|min|isinf|isnan|b?(eq|ne|lt|le|gt|ge)u?)2?\w*": (
        "this function of halves is not supported: go by way of float"
    ),
    r"__u?ll2(float|double)_r[duz]|__vi(add)?m\w+|__vibm\w+|__fns|"
    r"__(nv|builtin)_bswap\d+|__is(Global|Shared|Local|Constant)": (
        "this function for single instructions is not supported: write it with operators"
    ),
    r"cudaGraphLaunch|cudaGetCurrentGraphExec|cudaGraph(KernelNode)?Set\w+": (
        "a kernel that launches or changes a graph is not supported: launch it from the host, or let a node "
        "of the graph decide"
    ),
    r"cp_async\w*": (
        "this form of an asynchronous copy is not supported: take cuda::memcpy_async() with a barrier or "
        "a pipeline"
    ),
}
_PIPELINES = re.compile(r"cuda_pipeline|cuda/pipeline|cooperative_groups/memcpy_async")
_BARRIERS = re.compile(
    r"cuda_awbarrier|cuda/(barrier|pipeline|ptx)|cooperative_groups/memcpy_async"
)
_CURAND = r"curand(4|_init|_(log_)?(uniform|normal)\w*)?|skipahead\w*"
# What to write where a header is missing that has a function, or where CUDA has it no more.
_INSTEAD = {
    _CURAND: "#include <curand_kernel.h> first",
    "this_thread_block|this_grid|tiled_partition|coalesced_threads": (
        "#include <cooperative_groups.h> first, and name its namespace"
    ),
    "__(shfl(_down|_up|_xor)?|ballot|any|all)": (
        "write {}_sync(0xffffffff, ...); the form without a mask was removed"
    ),
    "|".join(COPY_FUNCTIONS): "#include <cuda_pipeline.h> first",
    "|".join(PHASE_FUNCTIONS): "#include <cuda_awbarrier_primitives.h> first",
    "memcpy_async": (
        "#include <cuda/barrier>, <cuda/pipeline> or <cooperative_groups/memcpy_async.h> first"
    ),
    "|".join([*HALF_FUNCTIONS, r"__half\w*"]): "#include <cuda_fp16.h> first",
}


def find_builtin(name: str, headers: Collection[str]) -> BuiltinHandler | None:
    """Handler of a built-in function, if the headers have been included that declare it."""
    if name.startswith(FROM_ASSEMBLY):  # which needs no header
        return _TABLE[name.removeprefix(FROM_ASSEMBLY)]
    missing = name in HALF_FUNCTIONS and "cuda_fp16.h" not in headers
    missing |= name in COPY_FUNCTIONS and not any(map(_PIPELINES.match, headers))
    missing |= name in PHASE_FUNCTIONS and not any(map(_BARRIERS.match, headers))
    return None if missing else _TABLE.get(name)


def taken_by_cuda(name: str) -> bool:
    """Tell whether CUDA declares a function of this name as extern "C", so that nothing else can be one."""
    own = name in MATH_FUNCTIONS and name not in ("isfinite", "isinf", "isnan", "signbit")
    others = rf"{_MATHEMATICS}|sincosf?|nanf?|printf|malloc|free"
    return own or re.fullmatch(others, name) is not None


def add(name: str, handler: BuiltinHandler) -> None:
    """One more built-in function, for a header that asks whether `__SIMGPU__` is defined."""
    _TABLE[name] = handler


def refuse_unknown(c: Context, node: CallExpr) -> NoReturn:
    """Say of an unknown function that only a GPU has it, where it may come from, or what to write instead."""
    name = node.name
    instead = next((cure for kind, cure in _INSTEAD.items() if re.fullmatch(kind, name)), None)
    # Where the header is missing that has it, a GPU's compiler asks for it, too.
    known = {**HALF_FUNCTIONS, **COPY_FUNCTIONS, **PHASE_FUNCTIONS}
    if name not in known and not re.fullmatch(_CURAND, name):
        for kind, why in _REFUSED.items():
            if re.fullmatch(kind, name):
                c.unsupported(node.at, why)
    if name in c.file.text.aside:
        cure = "write __device__ in front, so that a kernel can call it"
        hint = f"{c.elsewhere(name)}: {cure}"
    elif instead is not None:
        hint = f": {instead.format(name)}"
    else:
        near = get_close_matches(name, sorted({*c.file.functions, *_TABLE}), 1, 0.75)
        hint = f" (did you mean '{near[0]}'?)" if near else c.elsewhere(name)
    c.fail(node.at, f"there is no function '{name}'{hint}")
