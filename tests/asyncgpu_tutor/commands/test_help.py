"""What each command says of itself."""

import sys
from collections.abc import Callable

import pytest

from asyncgpu_course.__main__ import main
from simgpu.__main__ import command_line

COURSE = ["", "doctor", "mlp", "profile", "serve", "start"]
SIMULATOR = ["", "check", "judge"]


@pytest.mark.parametrize(
    ("program", "name"),
    [*(("asyncgpu-tutor", name) for name in COURSE), *(("simgpu", name) for name in SIMULATOR)],
)
def test_each_command_has_help(
    program: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tell: Callable[[str], None],
) -> None:
    words = [*name.split(), "--help"]
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "argv", [program, *words])
    with pytest.raises(SystemExit, match="0"):
        main(words) if program == "asyncgpu-tutor" else command_line()
    said = capsys.readouterr().out
    assert f"usage: {program} {name}".strip() in said
    tell(said)
