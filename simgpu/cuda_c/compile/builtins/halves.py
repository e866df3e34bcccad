"""`half` and `half2`, of cuda_fp16.h: conversions and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins.common import Handler, by_thread, typed
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import value
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import arithmetic, comparison, converter, fused
from simgpu.cuda_c.syntax.ast import Call

HALF2 = types.VECTORS["half2"]
FLOAT2 = types.VECTORS["float2"]


def _guard(handler: Handler) -> Handler:
    """These functions exist only where the header is included, which declares the type `half`."""

    def handle(c: Context, node: Call, used: bool) -> Expr:
        if "cuda_fp16.h" not in c.text.headers:
            c.fail(node.at, f"there is no function '{node.name}': #include <cuda_fp16.h> first")
        return handler(c, node, used)

    return handle


def _convert(source: types.Scalar, target: types.Scalar) -> Handler:
    change = converter(source, target)
    assert change is not None
    return by_thread([source], target, change)


def _round(function: Any, target: types.Scalar) -> Handler:
    change = converter(types.HALF, target)
    assert change is not None
    convert: Callable[[Any], Any] = lambda x: change(function(x))
    return by_thread([types.HALF], target, convert)


def _numbers(count: int, result: types.Scalar, function: Callable[..., Any], flops: int) -> Handler:
    return by_thread([types.HALF] * count, result, function, flops=flops)


def _pairs(count: int, function: Callable[..., Any], flops: int) -> Handler:
    def handle(c: Context, node: Call, used: bool) -> Expr:
        args = typed(c, node, [HALF2] * count)
        runs = [a.run for a in args]
        c.work(1, flops=flops)

        def run(t: Team, m: Mask) -> Any:
            values = [r(t, m) for r in runs]
            return [function(*[v[k] for v in values]) for k in range(2)]

        return value(c, HALF2, run, node.at, args)

    return handle


def _from(source: Any, result: Any, function: Callable[[Any], Any]) -> Handler:
    return _mixed([source], result, function)


def _from_two(source: Any, result: Any, function: Callable[[Any, Any], Any]) -> Handler:
    return _mixed([source, source], result, function)


def _mixed(kinds: list[Any], result: Any, function: Callable[..., Any]) -> Handler:
    def handle(c: Context, node: Call, used: bool) -> Expr:
        args = typed(c, node, kinds)
        runs = [a.run for a in args]
        c.work()
        return value(c, result, lambda t, m: function(*[r(t, m) for r in runs]), node.at, args)

    return handle


def _as_half(x: Any) -> Any:
    return np.asarray(x).astype(np.float16)[()]


def _as_float(x: Any) -> Any:
    return np.asarray(x).astype(np.float32)[()]


def _in_float(function: Any) -> Callable[[Any], Any]:
    return lambda x: _as_half(function(_as_float(x)))


def _reciprocal(x: Any) -> Any:
    return np.float32(1) / x


def _reciprocal_root(x: Any) -> Any:
    return np.float32(1) / np.sqrt(x)


def _build() -> dict[str, Handler]:
    table: dict[str, Handler] = {
        "__float2half": _convert(types.FLOAT, types.HALF),
        "__float2half_rn": _convert(types.FLOAT, types.HALF),
        "__double2half": _convert(types.DOUBLE, types.HALF),
        "__half2float": _convert(types.HALF, types.FLOAT),
        "__int2half_rn": _convert(types.INT, types.HALF),
        "__uint2half_rn": _convert(types.UINT, types.HALF),
        "__short2half_rn": _convert(types.SHORT, types.HALF),
        "__half2int_rz": _round(np.trunc, types.INT),
        "__half2int_rn": _round(np.rint, types.INT),
        "__hfma": _numbers(3, types.HALF, fused(types.HALF), 2),
        "__hneg": _numbers(1, types.HALF, np.negative, 0),
        "__habs": _numbers(1, types.HALF, np.abs, 0),
        "__hmax": _numbers(2, types.HALF, np.fmax, 1),
        "__hmin": _numbers(2, types.HALF, np.fmin, 1),
        "__hisnan": _numbers(1, types.BOOL, np.isnan, 0),
        "__hfma2": _pairs(3, fused(types.HALF), 4),
        "__hneg2": _pairs(1, np.negative, 0),
        "__hmax2": _pairs(2, np.fmax, 2),
        "__hmin2": _pairs(2, np.fmin, 2),
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
    for word, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")):
        table[f"__h{word}"] = _numbers(2, types.HALF, arithmetic(op, types.HALF), 1)
        table[f"__h{word}2"] = _pairs(2, arithmetic(op, types.HALF), 2)
    table["__h2div"] = table["__hdiv2"]
    for word, op in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"),
                     ("ge", ">=")):  # fmt: skip
        table[f"__h{word}"] = _numbers(2, types.BOOL, comparison(op), 0)
    for name, function in (
        ("hexp", np.exp), ("hlog", np.log), ("hsqrt", np.sqrt), ("hsin", np.sin), ("hcos", np.cos),
        ("htanh", np.tanh), ("hfloor", np.floor), ("hceil", np.ceil), ("htrunc", np.trunc),
        ("hrint", np.rint), ("hrcp", _reciprocal),
        ("hrsqrt", _reciprocal_root),
    ):  # fmt: skip
        table[name] = _numbers(1, types.HALF, _in_float(function), 1)
    return table


TABLE = {name: _guard(handler) for name, handler in _build().items()}
