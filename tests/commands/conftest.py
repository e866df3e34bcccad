"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.capture import CaptureResult

from asyncgpu_tutor.__main__ import main

Typed = Callable[..., CaptureResult[str]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run a command with this exit code; what it said."""

    def run(*words: object, code: int = 0) -> CaptureResult[str]:
        assert main([str(word) for word in words]) == code
        return capsys.readouterr()

    return run
