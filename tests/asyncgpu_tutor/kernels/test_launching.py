"""Each argument of a launch is checked, however many there are, and a call that is refused moves nothing."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, LaunchConfigError, UsageError

WHOLE = {
    "bool": np.bool_, "signed char": np.int8, "unsigned char": np.uint8, "short": np.int16,
    "unsigned short": np.uint16, "int": np.int32, "unsigned int": np.uint32, "long long": np.int64,
    "unsigned long long": np.uint64,
}  # fmt: skip
INTEGERS = [name for name in WHOLE if name != "bool"]
REAL = {"float": np.float32, "double": np.float64}
TYPES = {**WHOLE, **REAL}


# ---------------------------------------------------------------------- random calls
@dataclass
class Call:
    """Parameters of a kernel, a call of it, and the errors of which it deserves one."""

    parameters: list[str] = field(default_factory=list[str])
    args: list[Any] = field(default_factory=list[Any])
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    deserved: set[type[Exception]] = field(default_factory=set[type[Exception]])

    @property
    def arrays(self) -> list[agt.DeviceArray]:
        """The handles among the arguments, also those in partitions."""
        inner = [a.array if isinstance(a, agt.types.Partition) else a for a in self.args]
        return [one for one in inner if isinstance(one, agt.DeviceArray)]


TIMES = (np.datetime64, np.timedelta64)
NO_NUMBERS = ["4", None, 1j, (4,), np.complex64(1), np.datetime64(3, "s"), np.array(4)]
NO_ARRAYS = [4, np.ones(4), [1.0], (agt.value(1),)]
ARRAYS = [
    *["owned", "borrowed", "partition", "shared", "partition of a borrowed one", "of an equal type"] * 2,
    *["moved", "borrowed of one that moved"] * 2, "of another type", "none",
]  # fmt: skip
USUAL: dict[str, Any] = {"grid": 1, "block": 4}
OPTIONS: list[tuple[dict[str, Any], bool]] = [  # and if they are right
    *[(USUAL, True)] * 12, ({"grid": np.int64(2), "block": (4, 1, 1)}, True),
    ({"grid": (0, 1, 1), "block": 4}, False), ({"grid": 1, "block": (1024, 2, 1)}, False),
    ({"grid": 1, "block": (3, 1, 65)}, False), ({**USUAL, "shared_mem": 227 * 1024}, True),
    ({**USUAL, "shared_mem": 227 * 1024 + 1}, False), ({**USUAL, "shared_mem": -1}, False),
]  # fmt: skip


def given_as(kind: str, array: agt.DeviceArray, tile: int) -> Any:
    """An array, as it is passed to a kernel."""
    if "partition" in kind:
        return (array.borrow() if "borrowed" in kind else array).partition(tile)
    given = array.borrow() if "borrowed" in kind else array
    if kind == "shared":
        return array.share()
    if "moved" in kind:
        array.share()
    return given


@st.composite
def calls(draw: st.DrawFn) -> Call:
    call, sizes = Call(), list[str]()
    for index in range(draw(st.integers(2, 6))):
        name, ctype = f"p{index}", draw(st.sampled_from([*TYPES, "void"] if index else INTEGERS))
        if index == 0 or (draw(st.booleans()) and ctype != "void"):
            right = draw(st.integers(0, 8)) > 0
            call.parameters.append(f"{ctype} {name}")
            wrong = [4.0, 2**64, -(2**63) - 1] if ctype in INTEGERS else []
            call.args.append(4 if right else draw(st.sampled_from([*wrong, *NO_NUMBERS])))
            if not right:
                call.deserved.add(ArrayDTypeError)
            elif ctype in INTEGERS:
                sizes.append(name)
            continue
        const, kind = draw(st.sampled_from(["", "const "])), draw(st.sampled_from(ARRAYS))
        size, tile = draw(st.sampled_from([4, 4, 4, 4, 6])), draw(st.sampled_from([2, 4]))
        call.parameters.append(f"{const}{ctype}* {name}")
        if kind == "none":
            call.args.append(draw(st.sampled_from(NO_ARRAYS)))
        else:
            dtype = np.dtype(TYPES.get(ctype, np.float32))
            if kind == "of an equal type":
                dtype = np.dtype(dtype, metadata={"not": "the same object"})  # pyright: ignore
            elif kind == "of another type":
                dtype = np.dtype(np.float16)
            call.args.append(given_as(kind, agt.zeros((size,), dtype).sync(), tile))
            if sizes and draw(st.booleans()):
                call.shapes[name] = (sizes[0],)
                if size != 4:
                    call.deserved.add(ArrayShapeError)
        if kind == "none" or (kind == "of another type" and ctype != "void"):
            call.deserved.add(ArrayDTypeError)
        elif "moved" in kind:
            call.deserved.add(agt.errors.UseAfterMoveError)
        elif kind == "shared" and not const:
            call.deserved.add(UsageError)
    parts = [arg for arg in call.args if isinstance(arg, agt.types.Partition)]
    call.options, fits = draw(st.sampled_from(OPTIONS))
    if draw(st.integers(0, 2 if parts else 11)) == 0:
        call.options, fits = {}, len({part.grid for part in parts}) == 1
    if not fits:
        call.deserved.add(LaunchConfigError)
    return call


@settings(max_examples=300)
@given(data=st.data())
def test_a_call_is_refused_where_something_is_wrong(sim: Device, data: st.DataObject) -> None:
    call = data.draw(calls())
    source = f'extern "C" __global__ void k({", ".join(call.parameters)}) {{ }}'
    kernel = agt.Kernel(source, shapes=call.shapes)
    before = [array.moved for array in call.arrays]
    modes = [array.mode for array in call.arrays]
    if call.deserved:
        with pytest.raises(UsageError) as caught:
            kernel(*call.args, **call.options)
        assert type(caught.value) in call.deserved
        assert [array.moved for array in call.arrays] == before
        return
    launch = kernel(*call.args, **call.options)
    assert [array.moved for array in call.arrays] == [mode == "owned" for mode in modes]
    back = launch.sync()
    assert [type(one) for one in back] == [type(a) for a in call.args if not isinstance(a, int)]
    inner = [one.array if isinstance(one, agt.types.Partition) else one for one in back]
    assert [array.mode for array in inner] == modes


# ---------------------------------------------------------------------- numbers, as a kernel gets them
def echo(ctype: str) -> agt.Kernel:
    return agt.Kernel(f"__global__ void echo({ctype} v, {ctype}* out) {{ out[threadIdx.x] = v; }}")


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
    for number, expected in ((1e39, math.inf), (-1e39, -math.inf), (np.float64(1e39), math.inf)):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert passed("float", number) == expected


def test_any_number_is_true_or_false(device: Device) -> None:
    for number in (True, 1, 0.5, np.float32(-1), np.int8(3), 256, False, 0, 0.0, np.False_):
        assert passed("bool", number) == bool(number)


@pytest.mark.parametrize("ctype", ["float", "int", "bool"])
def test_what_is_no_real_number_is_refused(device: Device, ctype: str) -> None:
    out = agt.zeros((2,), TYPES[ctype]).sync().partition(2)
    texts = ["4", np.str_("4"), b"4", np.bytes_(b"4")]
    for thing in (*texts, 1j, np.complex64(1), *(t(3, "s") for t in TIMES), None):
        with pytest.raises(ArrayDTypeError, match=rf"takes an? {ctype} as 'v', and got"):
            echo(ctype)(thing, out)
    assert not out.array.moved


# ---------------------------------------------------------------------- configurations
def test_a_call_is_checked_however_alike_the_last_one_was(device: Device) -> None:
    source = "__global__ void nothing(int n, float a, float* x) { }"
    kernel = agt.Kernel(source, shapes={"x": ("n",)})
    x = agt.zeros((4,)).sync()

    def call(n: Any, a: Any, **how: Any) -> None:
        kernel(n, a, x.borrow(), **{"grid": 1, "block": 4, **how})

    wrong = [
        *((n, 1.0, {}, ArrayDTypeError) for n in (4.0, np.float32(4), 2**31)),
        (5, 1.0, {}, ArrayShapeError), (4, 1 + 0j, {}, ArrayDTypeError),
        (4, 1.0, {"block": 2000}, LaunchConfigError), (4, 1.0, {"shared_mem": 0.0}, LaunchConfigError),
    ]  # fmt: skip
    for _ in range(2):
        call(4, 1.0)
        for n, a, how, error in wrong:
            with pytest.raises(error):
                call(n, a, **how)
        with pytest.raises(ArrayShapeError):
            kernel(4, 1.0, agt.zeros((5,)).sync(), grid=1, block=4)


def test_numpys_integers_are_as_good_as_pythons(device: Device) -> None:
    out = agt.zeros((2,)).sync().partition(2)
    op = echo("float")(1.5, out, grid=np.int64(1), block=(np.int32(2), 1), shared_mem=np.int16(8))  # pyright: ignore
    assert op.output().to_host().sync().tolist() == [1.5, 1.5]


def test_one_handle_for_two_parameters_is_taken_once_and_given_back_twice(device: Device) -> None:
    source = "{ y[threadIdx.x] = 2 * x[threadIdx.x]; }"
    twice = agt.Kernel(f"__global__ void twice(const float* x, float* y) {source}")
    x = agt.ones((4,)).sync()
    one, other = twice(x, x, grid=1, block=4).sync()
    assert one is other
    assert x.gone == "into twice()"
    part = one.partition(4)
    one, other = twice(part, part).sync()
    assert one is other
    assert agt.d2h(one.unpartition()).sync().tolist() == [4.0] * 4
