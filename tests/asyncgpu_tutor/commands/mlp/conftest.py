"""The program, run in this process."""

from functools import partial

import pytest

from tests.tools import Command


@pytest.fixture
def mlp(command: Command) -> Command:
    return partial(command, "mlp")
