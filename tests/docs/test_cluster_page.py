"""`docs/cluster.md`: its program runs on simulated GPUs."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import numpy as np

from tests.tools import page

TEXT = page("docs/cluster.md")


def test_the_program_runs() -> None:
    (program,) = re.findall(r"(?s)```python\n(.*?)```", TEXT)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(program, "docs/cluster.md", "exec"), names)  # what a reader would paste
    first, second = asyncio.run(names["main"]("sim"))
    assert np.concatenate([first, second]).tolist() == np.arange(2000).tolist()
