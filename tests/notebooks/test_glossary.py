"""The names that the glossary calls ours exist."""

from __future__ import annotations

import re

import asyncgpu_tutor as agt
from asyncgpu_tutor import CudaGraph, DeviceArray, DeviceOp
from asyncgpu_tutor.types import Stream
from tests.tools import page

TABLES = page("docs/glossary.md").partition("## What others call it")[2]
FIRST = [line.split("|")[1] for line in TABLES.splitlines() if line.startswith("| ")]
OURS = sorted({words for cell in FIRST for words in re.findall(r"`([^`]+)`", cell)})
OURS = [words for words in OURS if words not in ("await op", "kernel(..., grid=, block=)")]
OWNERS = {
    "op": DeviceOp, "x": DeviceArray, "stream": Stream, "graph": CudaGraph, "ranges": agt.ranges,
    "types": agt.types,
}  # fmt: skip


def test_what_it_calls_ours_is_there() -> None:
    assert len(OURS) > 25
    assert {len(line.split("|")) for line in TABLES.splitlines() if line.startswith("|")} == {7}
    for words in OURS:
        owner, _, name = re.findall(r"[\w.]+", words)[0].rpartition(".")
        assert hasattr(OWNERS[owner] if owner else agt, name), words
