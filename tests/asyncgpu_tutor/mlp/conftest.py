"""The program, run in this process."""

from __future__ import annotations

from functools import partial

import pytest

from tests.tools import Command


@pytest.fixture
def mlp(command: Command) -> Command:
    return partial(command, "mlp")
