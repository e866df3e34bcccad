"""Write asyncgpu_tutor/__init__.pyi, which tells type checkers what the tables of __init__.py say.

    python tools/stub.py

A new public name is one word in those tables, and a docstring where it is defined.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import asyncgpu_tutor as agt

STUB = Path(__file__).resolve().parents[1] / "asyncgpu_tutor" / "__init__.pyi"
WIDTH = 100  # of a line, as ruff formats it


def stub() -> str:
    """The text of the file."""
    imported = defaultdict[str, list[str]](list)
    for name, module in agt._MODULES.items():
        room, _, own = module.rpartition(".")
        imported[room].append(own if own == name else f"{own} as {name}")
    for name, room in agt._HOMES.items():
        imported[f"{agt.__name__}.{room}"].append(name)
    lines = ['"""The tables of __init__.py, for type checkers: tools/stub.py makes it."""', ""]
    for room in sorted(imported):
        names = sorted(imported[room])
        line = f"from {room} import {', '.join(names)}"
        if len(line) > WIDTH:
            line = "\n".join([f"from {room} import (", *(f"    {name}," for name in names), ")"])
        lines.append(line)
    public = [f'    "{name}",' for name in sorted(agt.__all__)]
    return "\n".join([*lines, "", "__version__: str", "", "__all__ = [", *public, "]", ""])


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
