"""Built-in functions: atomics, shuffles, and arithmetic on parts of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from .support import body, ints

FIRST = np.arange(32)


@pytest.mark.parametrize(("width", "by"), [(8, 8), (8, 4), (16, 8), (4, 16), (32, 31)])
def test_a_shuffle_by_xor_does_not_leave_its_group_upwards(width: int, by: int) -> None:
    # PTX, shfl.sync.bfly: the last lane of a group is the highest that may be asked.
    want = [k ^ by if (k ^ by) < k - k % width + width else k for k in range(32)]
    assert ints(f"__shfl_xor_sync(0xffffffffu, i, {by}, {width})") == want


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [("atomicDec", [0, 9, 5, 1], [5, 5, 4, 0]), ("atomicInc", [0, 9, 5, 4], [1, 0, 0, 5])],
)
@pytest.mark.parametrize("used", ["", "u = "])
def test_counters_wrap_round(function: str, before: list[int], after: list[int], used: str) -> None:
    start = ", ".join(str(k) for k in before)
    text = f"""unsigned start[4] = {{{start}}}; unsigned u = 0;
        if (i < 4) {{ o[i] = start[i]; {used}{function}(reinterpret_cast<unsigned*>(&o[i]), 5u); }}
        if (i < 4) o[i + 4] = u;"""
    o = body(text)[1]
    assert o[:4].tolist() == after
    assert o[4:8].tolist() == (before if used else [0] * 4)


VALUES = [
    ("__hiloint2double(__double2hiint(1.0 / (i - 40)), __double2loint(1.0 / (i - 40))) == 1.0 / (i - 40)", 1),
    ("__double2hiint(1.0)", 0x3FF00000), ("__double2loint(4503599627370497.0)", 1),
    # Dot products of bytes.
    ("__dp4a(0x01FF7F80, 0x02FE7F80, i)", 2 + 2 + 127 * 127 + 128 * 128 + FIRST),
    ("__dp4a(0xff000080u, 0x02000003u, 1u)", 255 * 2 + 128 * 3 + 1),
    ("__dp4a(make_char4(1, -2, 3, -128), make_char4(5, 6, i, 127), 9)", 5 - 12 + 3 * FIRST - 128 * 127 + 9),
    ("__dp4a(make_uchar4(1, 2, 3, 200), make_uchar4(5, 6, i, 255), 9u)", 5 + 12 + 3 * FIRST + 200 * 255 + 9),
    ("2 * (normcdff(0) + normcdff(-40) + normcdff(40))", 3),
    ("llrintf(i + 0.5f) + llround(-2.5)", 2 * ((FIRST + 1) // 2) - 3),  # to the nearest, and away from zero
    # Each digit of the selector names a byte of the two numbers.
    *((f"__byte_perm(0x03020100u, 0x07060504u, {select}u)", taken) for select, taken in (
        ("0x7531", 0x07050301), ("0x0246", 0x00020406), ("0x3333", 0x03030303))),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_values(expression: str, value: int | np.ndarray) -> None:
    np.testing.assert_array_equal(ints(expression), np.broadcast_to(value, 32))


def test_atomics_on_a_part_of_a_shared_array() -> None:
    text = """__shared__ int s[48]; s[i] = 0; if (i < 16) s[i + 32] = 0; __syncthreads();
        int* p = s + 8; atomicAdd(&p[i], i + 1); __syncthreads(); o[i] = s[i + 8] - s[i & 7];"""
    assert body(text)[1].tolist() == [k + 1 for k in range(32)]
