"""`docs/cluster.md`: its programs run on simulated GPUs."""

import asyncio
import re
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from tests.tools import page

TEXT = page("docs/cluster.md")


def test_the_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    program, snippet = re.findall(r"(?s)```python\n(.*?)```", TEXT)
    names: dict[str, Any] = {"__name__": "page"}
    with agt.using("sim"):
        exec(compile(program, "docs/cluster.md", "exec"), names)  # what a reader would paste
        first, second = asyncio.run(names["main"]("sim"))
        exec(snippet, names)
    assert np.concatenate([first, second]).tolist() == np.arange(-1000, 1000).clip(0).tolist()
    assert capsys.readouterr().out == "[2. 2. 2. 2.]\n"
