"""Notebooks are in canonical form, and what checks that can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(p for f in ("notebooks", "solutions") for p in (ROOT / f).glob("**/*.ipynb"))


tool = load("notebooks")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_notebook_is_canonical_and_valid(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert tool.faults(text) == []
    nbformat.validate(json.loads(text))


def test_the_course_starts_where_make_lab_opens_it() -> None:
    assert "00_start_here.ipynb" in {path.name for path in NOTEBOOKS}


def sample(**changes: Any) -> dict[str, Any]:
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "first-launch",
        "metadata": {},
        "outputs": [],
        "source": ["x = 1\n", "x"],
    }
    return {
        "cells": [cell | changes],
        "metadata": {"kernelspec": tool.KERNELSPEC, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def as_text(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_the_sample_is_canonical_as_nbformat_writes_it() -> None:
    text = as_text(sample())

    assert tool.faults(text) == []
    assert nbformat.writes(nbformat.reads(text, as_version=4)) + "\n" == text


STREAM = {"output_type": "stream", "name": "stdout", "text": ["1"]}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"outputs": [STREAM]}, "outputs"),
        ({"execution_count": 3}, "execution count"),
        ({"id": "not valid"}, "not a valid cell id"),
        ({"metadata": {"execution": {"iopub.status.idle": "now"}}}, "canonical form"),
        ({"source": "x = 1\nx"}, "canonical form"),
    ],
)
def test_a_fault_in_a_cell_is_named_and_can_be_repaired(
    changes: dict[str, Any], fault: str
) -> None:
    text = as_text(sample(**changes))
    (found,) = tool.faults(text)

    assert fault in found
    if "id" not in changes:
        assert tool.canonical(text) == as_text(sample())


def test_faults_of_the_notebook_as_a_whole_are_named() -> None:
    notebook = sample()
    notebook["cells"] *= 2
    notebook["nbformat_minor"] = 4
    notebook["metadata"] = {}

    found = " ".join(tool.faults(as_text(notebook)))

    assert "used twice" in found
    assert "nbformat 4.5" in found
    assert "python3" in found


def test_reformatting_is_idempotent() -> None:
    messy = as_text(sample(outputs=[STREAM], metadata={"tags": ["keep"], "collapsed": True}))
    once = tool.canonical(messy)

    assert tool.canonical(once) == once
    assert json.loads(once)["cells"][0]["metadata"] == {"tags": ["keep"]}
