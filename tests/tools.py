"""The checkout: its pages, and scripts of ``tools/`` and ``benchmarks/`` as modules, which are no package."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"
PACKAGES = ("asyncgpu_course", "asyncgpu_tutor", "simgpu")
Command = Callable[..., Any]  # the fixture `command`


def tool(name: str, folder: Path = TOOLS) -> ModuleType:
    """The module of that name; these import each other."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def python(*args: str | Path, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Run this Python in the checkout, with these variables of the environment, and read what it says."""
    command = [sys.executable, *map(str, args)]
    env = {**os.environ, **env}
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=check, timeout=120
    )


def page(name: str) -> str:
    """The text of a file."""
    return (ROOT / name).read_text("utf-8")


def blocks(text: str, language: str = "python") -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)
