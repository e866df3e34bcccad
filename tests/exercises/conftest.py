"""Fixtures for the tests of exercises."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk of its own: progress.json goes there, and `auto` is the simulated device."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCGPU_DEVICE", "sim")
    return tmp_path
