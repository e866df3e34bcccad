"""The checkout: its pages, and scripts of ``tools/`` and ``benchmarks/`` as modules, which are no package."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"


def tool(name: str, folder: Path = TOOLS) -> ModuleType:
    """The module of that name; these import each other."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def page(name: str) -> str:
    """The text of a file."""
    return (ROOT / name).read_text("utf-8")


def blocks(text: str, language: str = "python") -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)
