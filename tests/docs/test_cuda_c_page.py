"""Every row of docs/cuda_c.md is run."""

import re

import numpy as np
import pytest

from simgpu.cuda_c import GlobalMemory, compile_source
from simgpu.errors import UnsupportedFeatureError
from tests.tools import blocks, page

PAGE = page("docs/cuda_c.md")
DECLARED = "".join(blocks(PAGE, "cuda"))
ROWS = [
    (code.replace(r"\|", "|"), what.strip())
    for code, what in re.findall(r"^\| `(.*?)` \| (.*) \|$", PAGE, re.MULTILINE)
]
TAKEN = [(code, int(value)) for code, value in ROWS if re.fullmatch(r"-?\d+", value)]
REFUSED = [(code, why) for code, why in ROWS if not re.fullmatch(r"-?\d+", why)]


def source(code: str) -> str:
    head = "__global__ void k(float* x, int* o, int n) { int i = threadIdx.x; "
    return f"{DECLARED}\n{head}{code} }}"


def test_the_page_has_rows_of_both_kinds() -> None:
    assert len(TAKEN) > 15
    assert len(REFUSED) > 15


@pytest.mark.parametrize(("code", "value"), TAKEN)
def test_what_is_taken_gives_this_value(code: str, value: int) -> None:
    x, o = GlobalMemory(128), GlobalMemory(128)
    x.view(np.float32)[:] = 0
    x.view(np.float32)[:4] = 1, 2, 3, 4
    x.mark_written()
    compile_source(source(code)).begin("k", (1, 1, 1), (32, 1, 1), [x, o, 32]).finish()
    np.testing.assert_array_equal(o.view(np.int32), [value] * 32)


@pytest.mark.parametrize(("code", "why"), REFUSED)
def test_what_is_not_taken_says_why(code: str, why: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        compile_source(source(code)).kernel("k")
    assert why in str(caught.value)
    assert "a GPU runs this; the simulated device does not" in str(caught.value)
