"""The names that the glossary calls ours exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import CudaGraph, DeviceArray, DeviceOp
from asyncgpu_tutor.types import Stream

PAGE = Path(__file__).resolve().parents[2] / "docs/glossary.md"
TABLES = PAGE.read_text("utf-8").partition("## What others call it")[2]
FIRST = [line.split("|")[1] for line in TABLES.splitlines() if line.startswith("| ")]
OURS = sorted({words for cell in FIRST for words in re.findall(r"`([^`]+)`", cell)})
OURS = [words for words in OURS if words not in ("await op", "kernel(..., grid=, block=)")]
OWNERS = {
    "op": DeviceOp,
    "x": DeviceArray,
    "stream": Stream,
    "graph": CudaGraph,
    "ranges": agt.ranges,
    "types": agt.types,
}


@pytest.mark.parametrize("words", OURS)
def test_it_is_there(words: str) -> None:
    owner, _, name = re.match(r"[\w.]+", words)[0].rpartition(".")
    assert hasattr(OWNERS[owner] if owner else agt, name)


def test_the_tables_were_found() -> None:
    assert len(OURS) > 25
    assert {len(line.split("|")) for line in TABLES.splitlines() if line.startswith("|")} == {7}
