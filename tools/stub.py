"""Write __init__.pyi of two packages, which tell type checkers what the tables of __init__.py say.

    python tools/stub.py

A new public name is one word in those tables, and a docstring where it is defined.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import asyncgpu_tutor
import simgpu

WIDTH = 100  # of a line, as ruff formats it


def stub(package: Any) -> str:
    """The text of a package's file."""
    imported = defaultdict[str, list[str]](list)
    for name, module in getattr(package, "_MODULES", {}).items():
        room, _, own = module.rpartition(".")
        imported[room].append(own if own == name else f"{own} as {name}")
    for name, room in package._HOMES.items():
        imported[f"{package.__name__}.{room}"].append(name)
    lines = ['"""The tables of __init__.py, for type checkers: tools/stub.py makes it."""', ""]
    for room in sorted(imported):
        names = sorted(imported[room])
        line = f"from {room} import {', '.join(names)}"
        if len(line) > WIDTH:
            line = "\n".join([f"from {room} import (", *(f"    {name}," for name in names), ")"])
        lines.append(line)
    constants_first = sorted(package.__all__, key=lambda name: (not name.isupper(), name))
    public = [f'    "{name}",' for name in constants_first]
    return "\n".join([*lines, "", "__version__: str", "", "__all__ = [", *public, "]", ""])


if __name__ == "__main__":
    for package in (asyncgpu_tutor, simgpu):
        Path(str(package.__file__)).with_suffix(".pyi").write_text(stub(package), encoding="utf-8")
