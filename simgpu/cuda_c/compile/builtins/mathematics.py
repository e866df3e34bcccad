"""Mathematical functions.

Values are NumPy's, which round better than the GPU's: CUDA allows its float functions errors of 1
to 2 units in the last place (CUDA C++ Programming Guide, "Mathematical Functions"), and the fast
ones with two underscores more. `sqrt`, division, `fma` and the rounding functions are exact on both.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.builtins import common
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert
from simgpu.cuda_c.compile.form import Price
from simgpu.cuda_c.compile.type_names import resolve_type
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.lockstep.values import arithmetic, directed, fused, select_lanes
from simgpu.cuda_c.syntax.ast import CallExpr, TypeName
from simgpu.cuda_c.types import DOUBLE, FLOAT, HALF, INT, LLONG, UINT, ULLONG, Scalar, spelled

Function = Callable[..., Any]

# The price of one operation, and of a function that the hardware only begins with.
_ONCE, _SLOWLY = Price(flops=1), Price(8, 1, 1)
_FAST_ONE = _SLOWLY._replace(issued=4)  # that the hardware has, with what fits its argument
# How many instructions a compiler makes of what is one operation in the source. Counted in listings
# (`nvdisasm -c`) of what nvcc 13.0 makes for sm_90 with `-fmad=false`: those on the way that ordinary numbers
# take, in single precision. Where a function has several such ways, about half of all.
ISSUED = {
    "/": 11, "%": 23, "fabs": 0,  # which whoever takes it does with it
    "sqrt": 10, "rsqrt": 4, "cbrt": 16, "exp": 10, "exp2": 4, "exp10": 10, "expm1": 29,
    "log": 27, "log2": 29, "log10": 28, "log1p": 32, "sin": 24, "cos": 25, "tan": 26,
    "asin": 25, "acos": 26, "atan": 19, "sinh": 25, "cosh": 16, "tanh": 17, "asinh": 44, "acosh": 46,
    "atanh": 41, "sinpi": 24, "cospi": 24, "erf": 29, "erfc": 48, "pow": 80, "atan2": 40, "hypot": 26,
    "fmod": 40, "remainder": 44, "nextafter": 20, "tgamma": 90, "lgamma": 90,
}  # fmt: skip


def _by_element(
    function: Callable[..., float], count: int = 1, failing: Callable[[float], float] | None = None
) -> Function:
    """A function of so many numbers, over arrays; `failing` has its value where Python's raises."""

    def each(*args: float) -> float:
        try:
            return function(*args)
        except (ValueError, OverflowError):
            return failing(args[0]) if failing is not None else math.nan

    ufunc = np.frompyfunc(each, count, 1)

    def evaluate(*args: Any) -> Any:
        out = np.asarray(ufunc(*args), np.float64).astype(np.result_type(*args))
        return out if out.ndim else out[()]

    return evaluate


def _normcdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _round(x: Any) -> Any:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return select_lanes(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _exact(function: Callable[[Any], Any]) -> Function:
    """Computed in float64, for a better rounded float32."""

    def evaluate(x: Any) -> Any:
        return function(np.asarray(x, np.float64)).astype(x.dtype)[()]

    return evaluate


def _of_half_turns(ahead: int, x: Any) -> Any:
    """`sin(pi * (x + ahead / 2))`, which is exactly 0, 1 or -1 where that is its value."""
    near = np.rint(2 * x)
    rest = np.pi * (x - near / 2)
    quarter = np.fmod(np.fmod(near, 4) + 4 + ahead, 4)
    out = select_lanes(np.fmod(quarter, 2) == 1, np.cos(rest), np.sin(rest))
    return select_lanes(out == 0, 0.0 if ahead else 0 * x, select_lanes(quarter >= 2, -out, out))


def greater(x: Any, y: Any) -> Any:
    """PTX `max`: a NaN gives way to a number, and -0 is less than +0 (which C leaves open)."""
    out = np.fmax(x, y)
    if np.any(out == 0):
        out = select_lanes((x == 0) & (y == 0), x + y, out)
    return out


def lesser(x: Any, y: Any) -> Any:
    """PTX `min`: as `greater`."""
    out = np.fmin(x, y)
    if np.any(out == 0):
        out = select_lanes((x == 0) & (y == 0), -(-x + -y), out)
    return out


def _copysign(x: Any, y: Any) -> Any:
    # A NaN counts as positive, because the one that an operation makes is positive on a GPU, though
    # negative on x86.
    return np.copysign(x, select_lanes(np.isnan(y), y.dtype.type(1), y))


def _positive_difference(x: Any, y: Any) -> Any:
    return select_lanes(x > y, x - y, x.dtype.type(0))


_CHEAP_1: dict[str, Function] = {
    "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "round": _round,
}  # fmt: skip
_SLOW_1: dict[str, Function] = {
    "sqrt": np.sqrt,
    "rsqrt": _exact(lambda x: 1.0 / np.sqrt(x)),
    "cbrt": _exact(np.cbrt),
    "exp": np.exp, "exp2": np.exp2, "exp10": _exact(lambda x: 10.0**x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
    "sinpi": _exact(partial(_of_half_turns, 0)), "cospi": _exact(partial(_of_half_turns, 1)),
    "erf": _by_element(math.erf), "erfc": _by_element(math.erfc), "normcdf": _by_element(_normcdf),
    "tgamma": _by_element(math.gamma, 1, lambda x: math.nan if x < 0 else math.inf),
    "lgamma": _by_element(math.lgamma, 1, lambda x: math.inf),
}  # fmt: skip
_CHEAP_2: dict[str, Function] = {
    "fmax": greater, "fmin": lesser, "copysign": _copysign,
    "fdim": _positive_difference,
}  # fmt: skip
_SLOW_2: dict[str, Function] = {
    "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot,
    "remainder": _by_element(math.remainder, 2), "nextafter": np.nextafter,
}  # fmt: skip
_FAST: dict[str, str] = {
    "__expf": "exp", "__exp10f": "exp10", "__logf": "log", "__log2f": "log2", "__log10f": "log10",
    "__sinf": "sin", "__cosf": "cos", "__tanf": "tan", "__fsqrt_rn": "sqrt",
    "__frsqrt_rn": "rsqrt", "__tanhf": "tanh",
}  # fmt: skip


def _of_kind(
    function: Function, count: int, kind: Scalar | None, price: Price, into: Scalar | None = None
) -> common.BuiltinHandler:
    """A function of numbers of a kind; without one, the arguments choose it, as in C++."""

    def handle(c: Context, node: CallExpr, used: bool) -> Expr:
        given = common.arguments(c, node, count)
        chosen = kind or _overload(c, node, given)
        args = [convert(c, a, chosen, a.at) for a in given]
        does = fused(chosen) if function is fused else function
        cost = price if chosen is FLOAT else price._replace(issued=None)
        out = common.elementwise(c, node, args, chosen, does, cost)
        return out if into is None else convert(c, out, into, node.at)

    return handle


def _overload(c: Context, node: CallExpr, given: list[Expr]) -> Scalar:
    kinds = [common.number_argument(c, node, e) for e in given]
    if HALF in kinds:
        c.fail(node.at, f"{node.name}() has no form for half: use h{node.name}() or a float")
    return FLOAT if all(k is FLOAT for k in kinds) else DOUBLE


def _abs(c: Context, node: CallExpr, used: bool) -> Expr:
    (x,) = common.arguments(c, node, 1)
    kind = types.promoted(common.number_argument(c, node, x))
    if kind is HALF:
        c.fail(node.at, "abs() has no form for half: use __habs()")
    if kind.kind == "uint":
        c.fail(node.at, f"abs() of '{kind.name}' is ambiguous: it is never negative")
    x = convert(c, x, kind, x.at)
    return common.elementwise(c, node, [x], kind, np.abs, Price(flops=int(kind.is_float)))


_PAIRS = [{INT, UINT}, {types.LONG, types.ULONG}, {LLONG, ULLONG}, {FLOAT, DOUBLE}]


def _extreme(whole: Function, fraction: Function, c: Context, node: CallExpr, used: bool) -> Expr:
    given = common.arguments(c, node, 2)
    if node.templates and isinstance(node.templates[0], TypeName):
        kind = resolve_type(c, node.templates[0])
        given = [convert(c, e, kind, e.at) for e in given]
    a, b = (common.number_argument(c, node, e) for e in given)
    if a is HALF and b is HALF:
        c.fail(node.at, f"{node.name}() has no form for half: use __hmax or __hmin")
    a, b = types.promoted(a), types.promoted(b)
    if a != b and {a, b} not in _PAIRS:
        text = f"{node.name}({spelled(a)}, {spelled(b)}) is ambiguous: cast one of the two"
        c.fail(node.at, text)
    kind = a if a.rank >= b.rank else b
    args = [convert(c, e, kind, e.at) for e in given]
    function = fraction if kind.is_float else whole
    return common.elementwise(c, node, args, kind, function, Price(flops=int(kind.is_float)))


def _test(function: Function, c: Context, node: CallExpr, used: bool) -> Expr:
    (x,) = common.arguments(c, node, 1)
    kind = common.number_argument(c, node, x)
    x = x if kind.is_float else convert(c, x, DOUBLE, x.at)
    return common.elementwise(c, node, [x], types.BOOL, function)


def _plain(op: str, kind: Scalar) -> common.BuiltinHandler:
    """`__fadd_rn` and its like: never contracted."""
    price = _SLOWLY if op == "/" else _ONCE
    return common.by_thread([kind, kind], kind, arithmetic(op, kind), price)


# Functions that round in a way which their name ends with: word, operation, arguments, price.
_DIRECTED = (
    ("add", "+", 2, _ONCE), ("sub", "-", 2, _ONCE), ("mul", "*", 2, _ONCE), ("div", "/", 2, _SLOWLY),
    ("rcp", "/", 1, _SLOWLY), ("sqrt", "sqrt", 1, _SLOWLY),
)  # fmt: skip


def _ldexp(c: Context, node: CallExpr, used: bool) -> Expr:
    given = common.arguments(c, node, 2)
    kind = FLOAT if node.name == "ldexpf" else _overload(c, node, given[:1])
    args = [convert(c, given[0], kind, given[0].at), convert(c, given[1], INT, given[1].at)]
    return common.elementwise(c, node, args, kind, np.ldexp, _ONCE)


def _build() -> dict[str, common.BuiltinHandler]:
    table: dict[str, common.BuiltinHandler] = {}
    kinds = (_CHEAP_1, 1, _ONCE), (_SLOW_1, 1, _SLOWLY), (_CHEAP_2, 2, _ONCE), (_SLOW_2, 2, _SLOWLY)
    for functions, count, price in kinds:
        for name, function in functions.items():
            counted = price._replace(issued=ISSUED.get(name))
            for form, kind in ((name, None), (f"{name}f", FLOAT)):
                table[form] = _of_kind(function, count, kind, counted)
    for name, plain in _FAST.items():
        table[name] = _of_kind(_SLOW_1[plain], 1, FLOAT, _FAST_ONE)
    table["__powf"] = _of_kind(np.power, 2, FLOAT, _FAST_ONE)
    table["abs"] = table["labs"] = table["llabs"] = _abs
    for name, whole, fraction in (("max", np.maximum, greater), ("min", np.minimum, lesser)):
        table[name] = partial(_extreme, whole, fraction)
        for prefix, kind in (("u", UINT), ("ll", LLONG), ("ull", ULLONG)):
            table[prefix + name] = common.by_thread([kind, kind], kind, whole)
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        table[name] = partial(_test, getattr(np, name))
    for name, kind in (("fma", None), ("fmaf", FLOAT), ("__fmaf_rn", FLOAT), ("__fma_rn", DOUBLE)):
        table[name] = _of_kind(fused, 3, kind, Price(flops=2))
    for word, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")):
        table[f"__f{word}_rn"] = _plain(op, FLOAT)
        table[f"__d{word}_rn"] = _plain(op, DOUBLE)
    for letter, kind in (("f", FLOAT), ("d", DOUBLE)):
        for word, op, count, price in _DIRECTED:
            for way in "duz":
                does = directed(op, kind, way)
                if word == "rcp":
                    does = partial(does, 1.0)
                table[f"__{letter}{word}_r{way}"] = common.by_thread(
                    [kind] * count, kind, does, price
                )
    for way in "duz":
        fma, cast = directed("fma", FLOAT, way), directed("cast", FLOAT, way)
        table[f"__fmaf_r{way}"] = common.by_thread([FLOAT] * 3, FLOAT, fma, Price(flops=2))
        for name in ("double", "int", "uint"):  # a double has room for either
            table[f"__{name}2float_r{way}"] = common.by_thread([DOUBLE], FLOAT, cast)
    table["__fdividef"] = table["fdividef"] = _plain("/", FLOAT)
    invert: Callable[[Any], Any] = lambda x: np.divide(np.float32(1), x)
    clamp: Callable[[Any], Any] = lambda x: np.fmin(np.fmax(x, np.float32(0)), np.float32(1))
    table["__frcp_rn"] = common.by_thread([FLOAT], FLOAT, invert, _SLOWLY)
    table["__drcp_rn"] = common.by_thread([DOUBLE], DOUBLE, partial(np.divide, 1.0), _SLOWLY)
    table["__dsqrt_rn"] = common.by_thread([DOUBLE], DOUBLE, np.sqrt, _SLOWLY)
    table["__saturatef"] = common.by_thread([FLOAT], FLOAT, clamp)
    table["ldexp"] = table["ldexpf"] = _ldexp
    for name, function in (("lround", _round), ("lrint", np.rint)):
        for prefix, kind in (("", types.LONG), ("l", LLONG)):
            table[prefix + name] = _of_kind(function, 1, None, Price(), kind)
            table[f"{prefix}{name}f"] = _of_kind(function, 1, FLOAT, Price(), kind)
    rounding = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
    for way, function in rounding.items():
        for target, kind in (("int", INT), ("uint", UINT), ("ll", LLONG), ("ull", ULLONG)):
            table[f"__float2{target}_{way}"] = _of_kind(function, 1, FLOAT, Price(), kind)
            table[f"__double2{target}_{way}"] = _of_kind(function, 1, DOUBLE, Price(), kind)
    return table


MATH_FUNCTIONS = _build()
