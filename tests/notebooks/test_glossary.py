"""What the glossary calls ours is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import CudaGraph, DeviceArray, DeviceOp
from asyncgpu_tutor.types import Stream

PAGE = Path(__file__).resolve().parents[2] / "docs/glossary.md"
TABLES = PAGE.read_text(encoding="utf-8").partition("## What others call it")[2]
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
# What the design calls the words of this course, in the order of its table.
WORDS = [
    "DeviceOp", "value", "with_context", "and_then", "and_then_with_context", "map", "zip", "overlap",
    "unzip", "first", "last", "shared", "DeviceArray", "share", "borrow", "partition", "unpartition", "h2d",
    "zeros", "ones", "full", "arange", "randn", "dup", "memcpy", "d2h", "to_host", "Kernel",
    "SchedulingPolicy", "SingleStream", "StreamPoolRoundRobin", "sync", "sync_on", "async_on", "await",
    "schedule", "into_future", "spawn", "DeviceFuture", "CudaGraph", "graph_on", "update", "launch",
]  # fmt: skip


@pytest.mark.parametrize("words", OURS)
def test_it_is_there(words: str) -> None:
    owner, _, name = re.match(r"[\w.]+", words)[0].rpartition(".")
    assert hasattr(OWNERS[owner] if owner else agt, name)


def test_every_word_of_the_course_is_mapped() -> None:
    first = " ".join(FIRST)

    assert [word for word in WORDS if not re.search(rf"\b{word}\b", first)] == []


@pytest.mark.parametrize(
    "library", ["CUDA", "CuPy", "cuda.core", "PyTorch", "cuda-async", "stdexec", "asyncio"]
)
def test_every_library_has_a_column_that_is_mostly_filled(library: str) -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in TABLES.splitlines()
        if line[:1] == "|"
    ]
    filled: list[float] = []
    for number, row in enumerate(rows):
        if row[0] == "ours":
            end = next((i for i in range(number + 1, len(rows)) if rows[i][0] == "ours"), len(rows))
            body = rows[number + 2 : end]
            filled += [
                sum(bool(cells[i]) for cells in body) / len(body)
                for i, title in enumerate(row)
                if title.startswith(library)
            ]

    assert filled
    assert min(filled) > 0.3


def test_the_tables_were_found() -> None:
    assert len(OURS) > 25
    assert {len(line.split("|")) for line in TABLES.splitlines() if line.startswith("|")} == {7}
