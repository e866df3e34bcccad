"""bfloat16: the upper half of a float, rounded to the nearest, ties to even."""

from __future__ import annotations

import numpy as np
import pytest

import asyncgpu_tutor as agt

from .support import body, launch

INCLUDE = "#include <cuda_bf16.h>\n"


def rounded(x: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16, found by trying both neighbours."""
    below = np.asarray(x, np.float32).view(np.uint32) >> 16
    low, high = [(b.astype(np.uint32) << 16).view(np.float32) for b in (below, below + 1)]
    to_low, to_high = np.abs(x.astype(float) - low), np.abs(high - x.astype(float))
    even = below % 2 == 0
    return np.where((to_low < to_high) | ((to_low == to_high) & even), below, below + 1)


def test_arithmetic_is_that_of_floats_rounded() -> None:
    source = (
        INCLUDE
        + """extern "C" __global__ void k(const float* x, const __nv_bfloat16* y, unsigned short* o) {
        int i = threadIdx.x; __nv_bfloat16 a = __float2bfloat16(x[i]), b = y[i], s = a; s += b;
        unsigned short* q = o + 5 * i;
        q[0] = __bfloat16_as_ushort(a); q[1] = __bfloat16_as_ushort(s); q[2] = __bfloat16_as_ushort(a * b);
        q[3] = __bfloat16_as_ushort(a / b); q[4] = __bfloat16_as_ushort(__hfma(a, b, a)); }"""
    )
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 128)).astype(np.float32)
    ties = np.arange(64, dtype=np.uint32) * 0x12345 & 0x3FFF0000 | 0x3F800000
    x[:64] = (ties | 0x8000).view(np.float32)
    y_bits, o = rounded(y).astype(np.uint16), np.zeros((128, 5), np.uint16)
    launch(source, "k", 1, 128, x, y_bits, o)
    a = (rounded(x) << 16).astype(np.uint32).view(np.float32).astype(float)
    b = (y_bits.astype(np.uint32) << 16).view(np.float32).astype(float)
    want = [rounded(v.astype(np.float32)) for v in (a, a + b, a * b, a / b, a * b + a)]
    np.testing.assert_array_equal(o, np.stack(want, 1))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("__bfloat16_as_ushort(__nv_bfloat16(0.0f / (n - n)))", 0x7FFF),  # one NaN for all
        ("__bfloat16_as_ushort(__nv_bfloat16(3.4e38f))", 0x7F80),  # which is nearer to infinity
        # Rounded once, though a float of this double is a tie.
        ("__bfloat16_as_ushort(__double2bfloat16(1.00390625000001))", 0x3F81),
        ("__bfloat16_as_ushort(__double2bfloat16(1.00390624999999))", 0x3F80),
        ("__bfloat16_as_ushort(__int2bfloat16_rn(0x1010001))", 0x4B81),
        ("(__nv_bfloat16(1.0f) < __nv_bfloat16(2)) + 2 * __hge(__nv_bfloat16(1.0f), __nv_bfloat16(2))", 1),
        ("(int)(float)__hmax(-__nv_bfloat16(3), __nv_bfloat16(2))", 2),
        ("sizeof(nv_bfloat16) * 10 + sizeof(__nv_bfloat162)", 24),
        ("(int)__high2float(__hmul2(__floats2bfloat162_rn(1, 3), __floats2bfloat162_rn(2, 5)))", 15),
    ],
)  # fmt: skip
def test_values(expression: str, value: int) -> None:
    assert body(f"o[i] = {expression};", before=INCLUDE)[1].tolist() == [value] * 32


def test_arrays_come_as_bits() -> None:
    text = (
        INCLUDE
        + "__global__ void k(const __nv_bfloat16* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }"
    )
    x = (np.arange(4, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    with agt.using("sim"):
        op = agt.Kernel(text, "k")(agt.h2d(x), agt.zeros((4,)), grid=1, block=4)
        assert op.output().to_host().sync().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("to", "low", "high"),
    [("char", -128, 127), ("unsigned char", 0, 255), ("short", -32768, 32767), ("unsigned short", 0, 65535)],
)  # fmt: skip
def test_small_integers_are_clamped(to: str, low: int, high: int) -> None:
    # cuda_bf16.h: __bfloat162char_rz and its like saturate, and make 0 of what is no number.
    numbers = "0 0.7 -0.7 99.5 127 128 -128 -130 255 300 32640 65280 7e4 -9e9 3e38 1e-9 nan"
    given = np.array([float(number) for number in numbers.split()])
    given = (rounded(given[:-1].astype(np.float32)) << 16).astype(np.uint32).view(np.float32)
    x, o = np.append(given, np.float32(np.nan)).astype(np.float32), np.zeros(17, np.int32)
    source = f"__global__ void k(const float* x, int* o) {{ __nv_bfloat16 b = x[threadIdx.x]; o[threadIdx.x] = ({to})b; }}"
    launch(INCLUDE + source, "k", 1, 17, x, o)
    want = np.clip(np.trunc(given.astype(float)), low, high).astype(int).tolist()
    assert o.tolist() == [*want, 0]
