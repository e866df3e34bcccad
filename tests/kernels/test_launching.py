"""The function that is generated from a signature says what the general ones say, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.arrays import handles as room
from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, noting_moves
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, Device, Memory
from asyncgpu_tutor.errors import ArrayDTypeError, LaunchConfigError, UsageError
from asyncgpu_tutor.kernels.accepted_arguments import (
    HasOperationError,
    array_acceptor,
    scalar_acceptor,
    shape_check,
)
from asyncgpu_tutor.kernels.configuration import check_limits, configuration, differ
from asyncgpu_tutor.kernels.launching import CallChecks
from simgpu.cuda_c import read_signature

WHOLE = {
    "bool": np.bool_,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
}
INTEGERS = [name for name in WHOLE if name != "bool"]
REAL = {"float": np.float32, "double": np.float64}
TYPES = {**WHOLE, **REAL}
SIZES = (4, 6)
ODD = np.dtype(np.float32, metadata={"equal": "and not the same object"})


def a_handle(dtype: Any, size: int = 4, mode: str = "owned") -> DeviceArray:
    """Of no device: nothing is enqueued here."""
    none: Any = None
    array = room.handle(Memory(none, "x", 0, 0), (size,), np.dtype(dtype))
    if mode == "shared":
        return array.share()
    if mode == "borrowed":
        return array.borrow()
    if mode == "moved":
        array.share()
    if mode == "borrowed of one that moved":
        borrowed = array.borrow()
        array.share()
        return borrowed
    return array


# ---------------------------------------------------------------------- random calls
ODD_NUMBERS = [
    2, 3, 4.0, 0.1, 0.5, 1e39, -1e39, math.nan, math.inf, -math.inf, np.float16(1.5), np.float32(0.1),
    np.float64(1e39), np.int8(-1), np.uint64(2**64 - 1), True, False, np.True_, 1j, "4", None, np.str_("4"),
    np.complex64(1), np.datetime64(3, "s"), np.array(4), (4,),
]  # fmt: skip


def numbers(ctype: str) -> st.SearchStrategy[Any]:
    """Numbers that fit, at and beyond the limits of the type, of other types; and what is no number."""
    kind = TYPES[ctype]
    ends = (
        [int(end) for end in (np.iinfo(kind).min, np.iinfo(kind).max)] if ctype in INTEGERS else []
    )
    limits = [end + more for end in ends for more in (-1, 0, 1)] + [kind(end) for end in ends]
    fits = st.sampled_from([4, 6] if ends else [0.25, 4])
    return st.one_of(fits, fits, st.sampled_from([*limits, *ODD_NUMBERS]))


MODES = st.sampled_from(
    [*["owned"] * 3, "shared", "borrowed", "borrowed", "moved", "borrowed of one that moved"]
)


@st.composite
def arrays(draw: st.DrawFn, ctype: str) -> Any:
    right = np.dtype(TYPES.get(ctype, np.float32))
    dtype = draw(st.sampled_from([*[right] * 6, np.dtype(np.float16), ODD]))
    array = a_handle(dtype, draw(st.sampled_from(SIZES)), draw(MODES))
    kind = draw(st.sampled_from(["array", "array", "partition", "operation or worse"]))
    if kind == "partition" and not array.moved and not (array.owner and array.owner.moved):
        return array.partition(draw(st.sampled_from([2, 4])))
    if kind == "operation or worse":
        nothing: list[Any] = [agt.value(1), np.ones(4), (array,), None, *[array] * 4]
        return draw(st.sampled_from(nothing))
    return array


@dataclass
class Case:
    """A signature, and a call of it."""

    source: str
    shapes: dict[str, tuple[str, ...]]
    args: list[Any]
    grid: Any = None
    block: Any = None
    shared_mem: int = 0


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names: list[str] = []
    args: list[Any] = []
    scalars: list[str] = []
    pointers: list[str] = []
    parameters: list[str] = []
    for index in range(draw(st.integers(1, 5))):
        name = f"p{index}"
        if draw(st.booleans()):
            ctype = draw(st.sampled_from([*TYPES, *["float"] * 6, "void"]))
            const = draw(st.sampled_from(["", "const "]))
            parameters.append(f"{const}{ctype}* {name}")
            pointers.append(name)
            earlier = [args[names.index(pointer)] for pointer in pointers[:-1]]
            again = bool(earlier) and draw(st.integers(0, 3)) == 0
            args.append(draw(st.sampled_from(earlier)) if again else draw(arrays(ctype)))
        else:
            ctype = draw(st.sampled_from([*TYPES, *["unsigned int"] * 4]))
            parameters.append(f"{ctype} {name}")
            if ctype in WHOLE:
                scalars.append(name)
            args.append(draw(numbers(ctype)))
        names.append(name)
    shapes: dict[str, tuple[str, ...]] = {}
    if scalars:
        for pointer in pointers:
            if draw(st.integers(0, 2)) == 0:
                many = draw(st.integers(1, 2))
                shapes[pointer] = tuple(draw(st.sampled_from(scalars)) for _ in range(many))
    dims = st.sampled_from([None, None, (1, 1, 1), (2, 1, 1), (0, 1, 1), (1024, 2, 1), (3, 1, 65)])
    source = f'extern "C" __global__ void k({", ".join(parameters)}) {{ }}'
    shared_mem = draw(st.sampled_from([0, 0, 0, 48 * 1024, 48 * 1024 + 1, -1]))
    return Case(source, shapes, args, draw(dims), draw(dims), shared_mem)


def inner(thing: Any) -> Any:
    return thing.array if isinstance(thing, Partition) else thing


def said(error: BaseException) -> tuple[type, str]:
    return type(error), str(error)


def general(case: Case, signature: Any, acceptors: Any) -> tuple[list[Any], list[Any], Any]:
    """Arguments, complaints and configuration: everything asked, whatever was said before."""
    complaints: list[Any] = []

    def asked(check: Callable[..., Any], *args: Any) -> Any:
        try:
            return check(*args)
        except (UsageError, HasOperationError) as error:
            complaints.append(said(error))

    values = [asked(accept, arg) for accept, arg in zip(acceptors, case.args, strict=True)]
    accepted = not complaints
    parts = [arg for arg in case.args if isinstance(arg, Partition)]
    if case.grid is None or case.block is None:
        for part in parts[1:]:
            if part.grid != parts[0].grid:
                asked(differ, signature.name, parts[0], part)
    how = asked(configuration, signature.name, case.args, case.grid, case.block)
    if how is not None:
        asked(check_limits, signature.name, *how, case.shared_mem, USUAL_LIMITS)
    if accepted:
        found = {p.name: value for p, value in zip(signature.parameters, values, strict=True)}
        for name, symbols in case.shapes.items():
            check = shape_check(signature.name, name, symbols)
            asked(check, inner(found[name]), *(found[symbol] for symbol in symbols))
    return values, complaints, how


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@settings(max_examples=200)
@given(case=cases())
def test_it_says_what_the_general_functions_say_one_by_one(case: Case) -> None:
    signature = read_signature(case.source, "k")
    acceptors = [
        (array_acceptor if p.pointer else scalar_acceptor)("k", p) for p in signature.parameters
    ]
    checks = CallChecks(signature, case.shapes, acceptors)
    values, complaints, asked = general(case, signature, acceptors)
    handles = [inner(arg) for arg in case.args if isinstance(inner(arg), DeviceArray)]
    before = [handle.gone for handle in handles]
    noted: list[DeviceArray] = []
    refused: BaseException | None = None
    how = shared_mem = passed = args = taken = ()
    try:
        with noting_moves(noted):
            how, shared_mem, passed, args, taken = checks.check(
                case.args, case.grid, case.block, case.shared_mem
            )
    except (UsageError, HasOperationError) as error:
        refused = error
    if refused is not None:
        assert said(refused) in complaints
        assert [handle.gone for handle in handles] == before
        assert noted == []
        return
    assert complaints == []
    assert (*how, shared_mem) == (*asked, case.shared_mem)
    for parameter, arg, expected in zip(signature.parameters, passed, values, strict=True):
        if parameter.pointer:
            assert arg is inner(expected)._memory
        else:  # the C type makes the same of both
            with np.errstate(over="ignore"):
                one, other = (np.array(v, parameter.dtype).tobytes() for v in (arg, expected))
            assert one == other
    given_arrays = [arg for p, arg in zip(signature.parameters, values, strict=True) if p.pointer]
    assert all(one is other for one, other in zip(args, given_arrays, strict=True))
    assert all(one is inner(other) for one, other in zip(taken, given_arrays, strict=True))
    for handle in handles:
        assert handle.gone == ("into k()" if handle.mode == "owned" else "")
    owned = {id(handle) for handle in handles if handle.mode == "owned"}
    assert {id(handle) for handle in noted} == owned


# ---------------------------------------------------------------------- numbers, as a kernel gets them
def echo(ctype: str) -> agt.Kernel:
    return agt.Kernel(
        f'extern "C" __global__ void echo({ctype} v, {ctype}* out) {{ out[threadIdx.x] = v; }}'
    )


def passed(ctype: str, number: Any) -> Any:
    out = agt.zeros((2,), TYPES[ctype]).sync().partition(2)
    return echo(ctype)(number, out).output().to_host().sync()[1]


@pytest.mark.parametrize("ctype", INTEGERS)
def test_whole_numbers_arrive_up_to_the_limits_and_not_beyond(device: Device, ctype: str) -> None:
    dtype = np.dtype(TYPES[ctype])
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for number in (low, high, dtype.type(low), dtype.type(high), np.int64(5), True, np.True_):
        assert passed(ctype, number) == int(number)
    for number in (low - 1, high + 1):
        with pytest.raises(ArrayDTypeError, match=f"{number} is outside of {low} to {high}"):
            passed(ctype, number)
    for number in (1.0, np.float32(1), math.nan):
        with pytest.raises(ArrayDTypeError, match="pass an int"):
            passed(ctype, number)


@pytest.mark.parametrize("ctype", list(REAL))
def test_real_numbers_arrive_as_the_type_rounds_them(device: Device, ctype: str) -> None:
    dtype = np.dtype(TYPES[ctype])
    big = float(np.finfo(dtype).max)
    for number in (0.1, 1, True, big, -big, math.inf, -math.inf, np.float16(0.1), np.int8(-1)):
        assert passed(ctype, number) == dtype.type(number)
    assert math.isnan(passed(ctype, math.nan))
    assert math.isnan(passed(ctype, np.float32(math.nan)))


def test_a_float_that_is_too_large_is_infinite_and_numpy_says_so(device: Device) -> None:
    out = agt.zeros((2,)).sync().partition(2)
    for number, expected in ((1e39, math.inf), (-1e39, -math.inf), (np.float64(1e39), math.inf)):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert passed("float", number) == expected
    with pytest.raises(ArrayDTypeError, match="an integer of 1329 bits"):
        echo("float")(10**400, out)
    assert not out.array.moved


def test_any_number_is_true_or_false(device: Device) -> None:
    for number in (True, 1, 0.5, np.float32(-1), np.int8(3), 256):
        assert passed("bool", number) == True  # noqa: E712 - it is NumPy's
    for number in (False, 0, 0.0, np.False_):
        assert passed("bool", number) == False  # noqa: E712


@pytest.mark.parametrize("ctype", ["float", "int", "bool"])
@pytest.mark.parametrize(
    "thing",
    ["4", np.str_("4"), b"4", np.bytes_(b"4"), 1j, np.complex64(1), np.datetime64(3, "s"), None],
    ids=repr,
)
def test_what_is_no_real_number_is_refused(device: Device, ctype: str, thing: Any) -> None:
    out = agt.zeros((2,), TYPES[ctype]).sync().partition(2)
    with pytest.raises(ArrayDTypeError, match=rf"takes a {ctype} as 'v', and got"):
        echo(ctype)(thing, out)
    assert not out.array.moved


# ---------------------------------------------------------------------- configurations
def test_a_call_is_checked_however_alike_the_last_one_was(device: Device) -> None:
    kernel = agt.Kernel(
        'extern "C" __global__ void nothing(int n, float a, float* x) { }', shapes={"x": ("n",)}
    )
    x = agt.zeros((4,)).sync()

    def call(n: Any, a: Any, **how: Any) -> None:
        kernel(n, a, x.borrow(), **{"grid": 1, "block": 4, **how})

    for _ in range(2):
        call(4, 1.0)
        for wrong in (4.0, np.float32(4), 5, 2**31):
            with pytest.raises(UsageError):
                call(wrong, 1.0)
        with pytest.raises(ArrayDTypeError, match="takes a float"):
            call(4, 1 + 0j)
        with pytest.raises(LaunchConfigError, match="2000 threads"):
            call(4, 1.0, block=2000)
        with pytest.raises(LaunchConfigError, match="whole number of bytes"):
            call(4, 1.0, shared_mem=0.0)
        with pytest.raises(UsageError, match="'x' must have shape"):
            kernel(4, 1.0, agt.zeros((5,)).sync(), grid=1, block=4)


def test_numpys_integers_are_as_good_as_pythons(device: Device) -> None:
    out = agt.zeros((2,)).sync().partition(2)
    op = echo("float")(1.5, out, grid=np.int64(1), block=(np.int32(2), 1), shared_mem=np.int16(8))  # pyright: ignore
    assert op.output().to_host().sync().tolist() == [1.5, 1.5]


def test_one_handle_for_two_parameters_is_taken_once_and_given_back_twice(device: Device) -> None:
    twice = agt.Kernel(
        'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }'
    )
    x = agt.ones((4,)).sync()
    one, other = twice(x, x, grid=1, block=4).sync()
    assert one is other
    assert x.gone == "into twice()"
    part = one.partition(4)
    one, other = twice(part, part).sync()
    assert one is other
    assert agt.d2h(one.unpartition()).sync().tolist() == [4.0] * 4
