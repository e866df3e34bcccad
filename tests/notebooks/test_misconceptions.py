"""Every program on the page of misconceptions runs, and what it asserts is so."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import Machine, SimDevice

PAGE = Path(__file__).resolve().parents[2] / "docs/misconceptions.md"
ENTRY = re.compile(r"^### (?P<title>.+?)$(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = {m["title"]: m["body"] for m in ENTRY.finditer(PAGE.read_text("utf-8"))}
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)


def run(program: str) -> None:
    """As a notebook runs a cell: `await` is allowed at the top."""
    names: dict[str, Any] = {"np": np, "agt": agt, "asyncio": asyncio}
    code = compile(program, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def cell() -> None:
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result

    with agt.using(SimDevice(machine=Machine())):
        asyncio.run(cell())


@pytest.mark.parametrize("title", ENTRIES)
def test_it_is_reproduced(title: str) -> None:
    (program,) = PROGRAM.findall(ENTRIES[title])

    assert "assert" in program or "raise AssertionError" in program
    run(program)


def test_a_program_whose_claim_is_wrong_fails() -> None:
    with pytest.raises(AssertionError):
        run("assert (await agt.ones(3).to_host()).sum() == 4")
