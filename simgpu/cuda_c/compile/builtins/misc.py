"""Vector constructors, cached loads, printf, assert, clocks and hints."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import constants, storage
from simgpu.cuda_c.compile.builtins import common
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant, convert, decay, typed_value
from simgpu.cuda_c.compile.form import Followed, Price, Sleep
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace
from simgpu.cuda_c.lockstep import Mask, Site, Team, split, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax.ast import CallExpr
from simgpu.cuda_c.text.source import Position, text_of
from simgpu.errors import DeviceAssertError, KernelFault


def _load(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__ldg` and the other loads that name a cache."""
    (pointer,) = common.arguments(c, node, 1)
    if not isinstance(pointer.type, types.Pointer):
        c.fail(node.at, f"{node.name}() needs an address, not a '{types.spelled(pointer.type)}'")
    address, volatile = c.note(Followed((pointer.node,))), node.name == "__ldcv"
    place = MemoryPlace(pointer.run, address, pointer.origin, True, volatile)
    out = storage.use_storage(c, storage.read_memory(c, place, pointer.type.target, node.at))
    out.place = None
    return out


_CONVERSION = re.compile(
    r"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|z|t|j)?([diuoxXeEfFgGaAcsp%])"
)
_MOST_LETTERS = 1 << 20  # that are kept of a launch, which is also the size of a GPU's buffer

# The types that a conversion of an integer reads, signed and unsigned, by the letters for its length.
_READS = {
    "": (types.INT, types.UINT),
    "h": (types.SHORT, types.USHORT),
    "hh": (types.SCHAR, types.UCHAR),
}


def _printf(c: Context, node: CallExpr, used: bool) -> Expr:
    if not node.arguments:
        c.fail(node.at, "printf() needs a format")
    form = c.expression(node.arguments[0])
    if form.text is None:
        c.unsupported(form.at, "printf needs a literal format")
    args = [decay(c.expression(a)) for a in node.arguments[1:]]
    template = form.text.partition("\0")[0]
    found = _CONVERSION.findall(template)
    if any(len(width) > 3 or len(digits) > 3 for _, width, digits, *_ in found):
        c.unsupported(form.at, "a width or precision above 999 in a format")
    if "%" in _CONVERSION.sub("", template):
        c.fail(form.at, "a '%' in this format begins no conversion: write '%%' to print one")
    conversions: list[tuple[str, str]] = []  # the length and the letter, with an int for each `*`
    for _, width, precision, length, letter in found:
        conversions += [("", "d")] * (width, precision).count("*")
        conversions += [(length, letter)] * (letter != "%")
    if len(conversions) != len(args):
        text = f"this format has {len(conversions)} conversions, {len(args)} values are given"
        c.fail(node.at, text)
    pairs = zip(conversions, args, strict=True)
    ready = [_printable(c, length, letter, arg) for (length, letter), arg in pairs]
    runs = [e.run for e in ready]
    texts = [e.text and e.text.partition("\0")[0] for e in ready]
    c.work(16)

    def evaluate(t: Team, m: Mask) -> Any:
        launch = t.launch
        room = launch.limits.printed_lines - len(launch.printed)
        values = [None if x is not None else r(t, m) for r, x in zip(runs, texts, strict=True)]
        before = len(launch.printed)
        for lane in m.index[: max(room, 0)]:
            if launch.letters > _MOST_LETTERS:
                break
            pairs = zip(values, texts, strict=True)
            row = [_one(v, int(lane)) if text is None else text for v, text in pairs]
            launch.printed.append(_CONVERSION.sub(partial(_converted, iter(row)), template))
            launch.letters += len(launch.printed[-1])
        launch.dropped_lines += m.n - (len(launch.printed) - before)
        return np.int32(len(args))

    return typed_value(c, types.INT, evaluate, node.at, ready)


def _one(value: Any, lane: int) -> Any:
    one = value[lane] if varies(value) else value
    return one if isinstance(one, str) else one.item()


def _texts(t: Team, m: Mask, start: Any, site: Site) -> NDArray[np.object_]:
    """The characters from an address up to a 0, for each lane."""
    out = np.full(m.layout.lanes, "", object)
    going: Mask | None = m
    while going is not None:
        code = access.load_lanes(t, going, start, types.CHAR, site)
        going, _ = split(going, code != 0)
        for lane in () if going is None else going.index:
            out[lane] += chr(int(_one(code, int(lane))) & 255)
        start = start.plus(1, 1)
    return out


def _converted(values: Iterator[Any], match: re.Match[str]) -> str:
    """The next value as a conversion of C's prints it, as Python's own `%` does but for a few cases."""
    flags, width, precision, _, letter = match.groups()
    if letter == "%":
        return "%"
    wide = next(values) if width == "*" else int(width or 0)
    said = next(values) if precision == "*" else precision
    digits = -1 if said is None else min(int(said or 0), _MOST_LETTERS)
    value, whole = next(values), letter in "diouxXp"
    flags += "-" * (wide < 0)
    if letter not in "dieEfFgG":  # what has no sign
        flags = flags.replace("+", "").replace(" ", "")
    if letter in "sc" or (whole and digits >= 0) or (not whole and not math.isfinite(value)):
        flags = flags.replace("0", "")
    if letter == "p":
        flags, letter = f"#{flags}", "x"
    elif letter == "o" and "#" in flags:  # Python's has an o in front
        flags, digits = flags.replace("#", ""), max(digits, len(f"{value:o}") + bool(value))
    elif whole and not value:
        flags = flags.replace("#", "")
        if not digits:  # nothing is left but a sign
            sign = "+" if "+" in flags else " " if " " in flags else ""
            letter, digits, value = "s", -1, sign
    given = "" if digits < 0 else f".{digits}"
    # Of a wider one, no more would be kept.
    return f"%{flags}{min(abs(wide), _MOST_LETTERS) or ''}{given}{letter}" % value


def _printable(c: Context, length: str, letter: str, arg: Expr) -> Expr:
    if letter == "s":
        if arg.text is not None:
            return arg
        if not isinstance(arg.type, types.Pointer) or arg.type.target != types.CHAR:
            c.fail(arg.at, f"%s prints characters, not '{types.spelled(arg.type)}'")
        where, site = arg.run, c.new_site(arg.at)
        return typed_value(c, arg.type, lambda t, m: _texts(t, m, where(t, m), site), arg.at, [arg])
    if letter == "p" and isinstance(arg.type, types.Pointer):
        number: Evaluate = lambda t, m: t.launch.addresses.number(arg.run(t, m))
        return typed_value(c, types.ULLONG, number, arg.at, [arg])
    if not isinstance(arg.type, types.Scalar) or letter in "paA":
        text = f"printing a '{types.spelled(arg.type)}' with %{letter} is not supported"
        c.unsupported(arg.at, text)
    if letter in "eEfFgG":
        if not arg.type.is_float:
            c.fail(arg.at, f"%{letter} prints a floating-point number, not '{arg.type.name}'")
        return convert(c, arg, types.DOUBLE, arg.at)
    if arg.type.is_float:
        c.fail(arg.at, f"%{letter} prints an integer, not '{arg.type.name}': use %f")
    signed, unsigned = _READS.get("hh" if letter == "c" else length, (types.LLONG, types.ULLONG))
    return convert(c, arg, signed if letter in "di" else unsigned, arg.at, explicit=True)


def _assert(t: Team, m: Mask, at: Position, test: Any) -> None:
    failed = m.bits & ~t.array(test)
    if failed.any():
        t.fault(DeviceAssertError, at, int(failed.argmax()), "fails its own assert()")


def _trap(what: str, t: Team, m: Mask, at: Position) -> None:
    t.fault(KernelFault, at, int(m.index[0]), what)


def _expected(c: Context, node: CallExpr, used: bool) -> Expr:
    """`__builtin_expect(value, usual)`: the value, since a hint changes none."""
    value, usual = common.arguments(c, node, 2)
    convert(c, usual, types.LONG, usual.at)
    return replace(convert(c, value, types.LONG, value.at), place=None)


def _nan(kind: types.Scalar, c: Context, node: CallExpr, used: bool) -> Expr:
    common.need_count(c, node, 1)
    return constant(kind, math.nan, node.at)


def _clock(result: types.Scalar, t: Team, m: Mask, at: Position) -> Any:
    """A warp's clock goes on with the instructions that it has issued."""
    t.launch.clock_reads += 1  # since time goes on, a loop that looks at it does not spin
    return (t.meter.clocks() + t.launch.waited).astype(result.dtype)[t.layout.warp]


def _hint(c: Context, node: CallExpr, used: bool) -> Expr:
    for argument in node.arguments:
        c.expression(argument)
    if node.name == "__nanosleep":
        c.steps.append(Sleep())
    return typed_value(c, types.VOID, lambda t, m: None, node.at)


def _static_assert(c: Context, node: CallExpr, used: bool) -> Expr:
    common.need_count(c, node, 1, 2)
    given = node.arguments[0]
    test = constants.evaluated(c, convert(c, c.expression(given), types.BOOL, given.at), given)
    if test.constant is None:
        text = "static_assert takes what is known when the file is compiled, and this is not"
        c.fail(node.at, text)
    if not test.constant:
        text = c.expression(node.arguments[1]).text if len(node.arguments) > 1 else ""
        told = text_of(text or "")
        if told.startswith("the simulated device"):  # so a header of ours says what a GPU takes
            c.unsupported(node.at, told)
        c.fail(node.at, f"static assertion failed{told and ': '}{told}")
    return typed_value(c, types.VOID, lambda t, m: None, node.at)


MISC_FUNCTIONS: dict[str, common.BuiltinHandler] = {
    "printf": _printf,
    "assert": common.by_team([types.BOOL], types.VOID, _assert, Price(2)),
    "static_assert": _static_assert,
    "__builtin_expect": _expected,
    "nan": partial(_nan, types.DOUBLE),
    "nanf": partial(_nan, types.FLOAT),
}
for _name, _type in (("clock", types.LONG), ("clock64", types.LLONG)):
    MISC_FUNCTIONS[_name] = common.by_team([], _type, partial(_clock, _type))
for _name, _does in (("__trap", "stops itself with"), ("__builtin_unreachable", "comes to")):
    _what = f"{_does} {_name}()"
    MISC_FUNCTIONS[_name] = common.by_team([], types.VOID, partial(_trap, _what), Price(0))
for _name in ("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"):
    MISC_FUNCTIONS[_name] = _load
# A launch begins here when the one before it in its stream has ended, so nothing is left to be waited for.
_EARLY = "cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"
for _name in ("__builtin_assume", "__nanosleep", "__prof_trigger", *_EARLY):
    MISC_FUNCTIONS[_name] = _hint
for _name, _type in types.VECTORS.items():
    if _name not in ("dim3", "half2"):
        _parts = [field.type for field in _type.fields]
        MISC_FUNCTIONS[f"make_{_name}"] = common.by_value(
            _parts, _type, lambda *parts: [*parts], Price(0)
        )
