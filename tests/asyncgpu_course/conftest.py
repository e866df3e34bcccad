"""Fixtures for the tests of exercises."""

from pathlib import Path

import pytest

from asyncgpu_course import api
from asyncgpu_course.checks import patience


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk of its own: progress.json goes there, nothing is accepted yet, and `auto` is simulated."""
    monkeypatch.setattr(api, "_right", {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCGPU_DEVICE", "sim")
    return tmp_path


@pytest.fixture(autouse=True)
def at_leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome is the same on a slow or busy machine: how long it takes is no test's business."""
    monkeypatch.setattr(patience, "SECONDS", 60.0)
