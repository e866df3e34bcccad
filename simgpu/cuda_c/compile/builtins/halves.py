"""`half` and `half2`, of cuda_fp16.h: conversions and arithmetic."""

from collections.abc import Callable
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import BuiltinHandler, by_thread, by_value
from simgpu.cuda_c.compile.builtins.mathematics import greater, lesser
from simgpu.cuda_c.compile.form import Price
from simgpu.cuda_c.lockstep.values import COMPARISONS, arithmetic, converter, fused

HALF2 = types.VECTORS["half2"]
FLOAT2 = types.VECTORS["float2"]


def _convert(source: types.Scalar, target: types.Scalar, first: Any = None) -> BuiltinHandler:
    """Convert a number, of which `first` makes a whole one."""
    change = converter(source, target)
    assert change is not None
    convert: Callable[[Any], Any] = change if first is None else lambda x: change(first(x))
    return by_thread([source], target, convert)


def _numbers(
    count: int, result: types.Scalar, function: Callable[..., Any], flops: int
) -> BuiltinHandler:
    return by_thread([types.HALF] * count, result, function, Price(flops=flops))


def _pairs(count: int, function: Callable[..., Any], flops: int) -> BuiltinHandler:
    def both(*values: Any) -> Any:
        return [function(*[v[k] for v in values]) for k in range(2)]

    return by_value([HALF2] * count, HALF2, both, Price(flops=flops))


def _from(source: Any, result: Any, function: Callable[[Any], Any]) -> BuiltinHandler:
    return by_value([source], result, function)


def _from_two(source: Any, result: Any, function: Callable[[Any, Any], Any]) -> BuiltinHandler:
    return by_value([source, source], result, function)


def _as_half(x: Any) -> Any:
    return np.asarray(x).astype(np.float16)[()]


def _as_float(x: Any) -> Any:
    return np.asarray(x).astype(np.float32)[()]


def _in_float(function: Any) -> Callable[[Any], Any]:
    return lambda x: _as_half(function(_as_float(x)))


def _build() -> dict[str, BuiltinHandler]:
    table: dict[str, BuiltinHandler] = {
        "__float2half": _convert(types.FLOAT, types.HALF),
        "__float2half_rn": _convert(types.FLOAT, types.HALF),
        "__double2half": _convert(types.DOUBLE, types.HALF),
        "__half2float": _convert(types.HALF, types.FLOAT),
        "__hfma": _numbers(3, types.HALF, fused(types.HALF), 2),
        "__hneg": _numbers(1, types.HALF, np.negative, 0),
        "__habs": _numbers(1, types.HALF, np.abs, 0),
        "__hmax": _numbers(2, types.HALF, greater, 1),
        "__hmin": _numbers(2, types.HALF, lesser, 1),
        "__hisnan": _numbers(1, types.BOOL, np.isnan, 0),
        "__hfma2": _pairs(3, fused(types.HALF), 4),
        "__hneg2": _pairs(1, np.negative, 0),
        "__hmax2": _pairs(2, greater, 2),
        "__hmin2": _pairs(2, lesser, 2),
        "__half_as_ushort": _from(types.HALF, types.USHORT, lambda x: x.view(np.uint16)),
        "__ushort_as_half": _from(types.USHORT, types.HALF, lambda x: x.view(np.float16)),
        "make_half2": _from_two(types.HALF, HALF2, lambda a, b: [a, b]),
        "__halves2half2": _from_two(types.HALF, HALF2, lambda a, b: [a, b]),
        "__half2half2": _from(types.HALF, HALF2, lambda a: [a, a]),
        "__float2half2_rn": _from(types.FLOAT, HALF2, lambda a: [_as_half(a)] * 2),
        "__floats2half2_rn": _from_two(types.FLOAT, HALF2, lambda a, b: [_as_half(a), _as_half(b)]),
        "__half22float2": _from(HALF2, FLOAT2, lambda p: [_as_float(x) for x in p]),
        "__float22half2_rn": _from(FLOAT2, HALF2, lambda p: [_as_half(x) for x in p]),
        "__low2half": _from(HALF2, types.HALF, lambda p: p[0]),
        "__high2half": _from(HALF2, types.HALF, lambda p: p[1]),
        "__low2float": _from(HALF2, types.FLOAT, lambda p: _as_float(p[0])),
        "__high2float": _from(HALF2, types.FLOAT, lambda p: _as_float(p[1])),
        "__lowhigh2highlow": _from(HALF2, HALF2, lambda p: [p[1], p[0]]),
    }
    for word, kind in (("int", types.INT), ("uint", types.UINT), ("short", types.SHORT),
                       ("ushort", types.USHORT), ("ll", types.LLONG), ("ull", types.ULLONG)):  # fmt: skip
        table[f"__{word}2half_rn"] = _convert(kind, types.HALF)
        for end, whole in (("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil)):
            table[f"__half2{word}_{end}"] = _convert(types.HALF, kind, whole)
    for word, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")):
        table[f"__h{word}"] = _numbers(2, types.HALF, arithmetic(op, types.HALF), 1)
        table[f"__h{word}2"] = _pairs(2, arithmetic(op, types.HALF), 2)
    table["__h2div"] = table["__hdiv2"]
    for word, op in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"),
                     ("ge", ">=")):  # fmt: skip
        table[f"__h{word}"] = _numbers(2, types.BOOL, COMPARISONS[op], 0)
    functions: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("hexp", np.exp), ("hlog", np.log), ("hsqrt", np.sqrt), ("hsin", np.sin), ("hcos", np.cos),
        ("htanh", np.tanh), ("hfloor", np.floor), ("hceil", np.ceil), ("htrunc", np.trunc),
        ("hlog2", np.log2), ("hlog10", np.log10), ("hexp2", np.exp2),
        ("hexp10", lambda x: np.float32(10) ** x), ("hrint", np.rint), ("hrcp", lambda x: np.float32(1) / x),
        ("hrsqrt", lambda x: np.float32(1) / np.sqrt(x)),
    )  # fmt: skip
    for name, function in functions:
        table[name] = _numbers(1, types.HALF, _in_float(function), 1)
    return table


HALF_FUNCTIONS = _build()
