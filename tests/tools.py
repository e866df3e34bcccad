"""The scripts in ``tools/`` and ``benchmarks/``, as modules; they are no package, and import each other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).resolve().parents[1] / "tools"


def tool(name: str, folder: Path = TOOLS) -> ModuleType:
    """The module of that name."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
