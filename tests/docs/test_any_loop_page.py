"""The programs of the page print what it shows."""

import pytest

import asyncgpu_tutor as agt
from tests.tools import blocks, page

TEXT = page("docs/any_loop.md")


@pytest.mark.parametrize("at", range(2))
def test_the_programs_print_what_is_shown(at: int, capsys: pytest.CaptureFixture[str]) -> None:
    programs, shown = blocks(TEXT), blocks(TEXT, "text")
    assert len(programs) == len(shown) == 2
    with agt.using("sim"):
        exec(programs[at], {})
    assert capsys.readouterr().out == shown[at]
