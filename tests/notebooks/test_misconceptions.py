"""Every program on the page of misconceptions runs, and what it asserts is so."""

import ast
import asyncio
import re
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from tests.notebooks.test_shared_gpu import run_cell
from tests.tools import blocks, page

ENTRY = re.compile(r"^### (?P<title>.+?)$(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = {m["title"]: m["body"] for m in ENTRY.finditer(page("docs/misconceptions.md"))}


def run(program: str) -> None:
    names: dict[str, Any] = {"np": np, "agt": agt, "asyncio": asyncio}
    with agt.using(SimDevice(machine=SimMachine())):
        asyncio.run(run_cell(ast.parse(program), names, "misconceptions.md"))


@pytest.mark.parametrize("title", ENTRIES)
def test_it_is_reproduced(title: str) -> None:
    (program,) = blocks(ENTRIES[title])
    assert "assert" in program or "raise AssertionError" in program
    run(program)


def test_a_program_whose_claim_is_wrong_fails() -> None:
    with pytest.raises(AssertionError):
        run("assert (await agt.ones(3).to_host()).sum() == 4")
