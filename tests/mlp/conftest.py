"""The program, run in this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from asyncgpu_tutor.__main__ import main


@dataclass(frozen=True)
class Ran:
    """The program's output."""

    out: str
    err: str

    @property
    def first_eight(self) -> list[list[float]]:
        """Of each batch, as printed."""
        found = re.findall(r"^Batch \d+: .*first 8 = \[(.*?)\]", self.out, flags=re.MULTILINE)
        return [[float(number) for number in numbers.split(", ")] for numbers in found]


Mlp = Callable[..., Ran]


@pytest.fixture
def mlp(capsys: pytest.CaptureFixture[str]) -> Mlp:
    """Run the program with these options, on the current device unless they name one."""

    def run(*options: object, code: int = 0) -> Ran:
        capsys.readouterr()
        actual = main(["mlp", *(str(option) for option in options)])
        said = capsys.readouterr()
        ran = Ran(said.out, said.err)
        assert actual == code, f"{ran.out}\n{ran.err}"
        return ran

    return run
