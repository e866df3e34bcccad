"""The picture of the house in ARCHITECTURE.md: three packages, their rooms and floors, and what each is for.

    python tools/house.py            rewrite the picture
    python tools/house.py --check    fail if it is out of date
    python tools/house.py --print    print it

The floors are the layers of import-linter's contracts in pyproject.toml, and what is said of a room is the
first paragraph of its docstring. To change the picture, change those.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
PICTURE = re.compile(r"(?s)(<!-- tools/house\.py -->\n```text\n).*?(```\n)")
WIDTH = 116
INDENT = 27  # where the text of a room begins
# These are left out of the picture, because nobody has to open them to find something.
CLOSED = {"data"}

# A newcomer asks for one of these kinds. A room that is in none of them is refused, as is one on no floor.
KINDS = {
    "asyncgpu_course": {
        "what you type": ("__main__", "start", "doctor"),
        "what a page calls": (
            "api",
            "guesses",
            "drag",
            "shown",
            "several",
            "exhibits",
            "recorded_ranges",
            "serving",
            "ladder",
        ),
        "what is asked": ("exercises",),
        "what a check is made of": ("checks", "internals"),
        "what is said, and kept": ("outcome", "progress_file", "files"),
    },
    "asyncgpu_tutor": {
        "what you type": ("__main__", "commands"),
        "what you see": ("inspection", "traces"),
        "what you write with": (
            "language",
            "clusters",
            "serving",
            "kernels",
            "ops",
            "run",
            "arrays",
        ),
        "what it runs on": ("devices",),
        "what all of them use": ("types", "data", "errors"),
    },
    "simgpu": {
        "what you type": ("__main__", "pytest_plugin", "judging"),
        "what a program calls": ("arrays", "collectives", "device", "graph", "stream", "memory"),
        "what runs when": ("machine", "engine", "queues", "interrupts"),
        "what goes wrong between streams": ("order", "adversary"),
        "what a launch does": ("pieces", "launches", "remembered", "sampled_reference", "cuda_c"),
        "how long it takes": ("times", "links", "spec", "gpus"),
        "what you see": ("report",),
        "what all of them use": ("common", "errors"),
    },
}


class HouseError(Exception):
    """The house and its plan differ."""


def layers() -> dict[str, list[list[str]]]:
    """For each package that a contract orders, its floors from the top, each with its rooms."""
    contracts: list[dict[str, Any]] = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )["tool"]["importlinter"]["contracts"]
    return {
        container: [
            re.split(r"\s*[|:]\s*", layer.replace("(", "").replace(")", "")) for layer in floors
        ]
        for contract in contracts
        if contract["type"] == "layers"
        for floors in [contract["layers"]]
        for container in contract["containers"]
    }


def purpose(module: str) -> str:
    """The first paragraph of its docstring."""
    path = ROOT / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    if not text:
        raise HouseError(
            f"{source.relative_to(ROOT)} has no docstring, so nothing can be said of it"
        )
    return " ".join(text.split("\n\n")[0].split()).replace("`", "")


def named(module: str) -> str:
    """Its name as one finds it: a folder, or a file."""
    last = module.rpartition(".")[2]
    return f"{last}/" if (ROOT / module.replace(".", "/")).is_dir() else f"{last}.py"


def inside(module: str, plan: dict[str, list[list[str]]]) -> list[str]:
    """The rooms in a room: in the order of its contract, or its folders."""
    if module.rpartition(".")[2] in CLOSED:
        return []
    if module in plan:
        return [f"{module}.{room}" for floor in plan[module] for room in floor]
    folder = ROOT / module.replace(".", "/")
    return sorted(f"{module}.{path.parent.name}" for path in folder.glob("*/__init__.py"))


def row(number: str, module: str, depth: int) -> Iterator[str]:
    """The lines of one room."""
    head = f"{number:>4}  {'  ' * depth}{named(module)}"
    said = textwrap.wrap(purpose(module), WIDTH - INDENT)
    yield f"{head:<{INDENT - 1}} {said[0]}"
    yield from (" " * INDENT + line for line in said[1:])


def picture() -> str:
    """All packages, one below the other."""
    return "\n".join(
        f"{package}/: {purpose(package)}\n\n{drawing(package, kinds)}"
        for package, kinds in KINDS.items()
    )


def drawing(package: str, kinds: dict[str, tuple[str, ...]]) -> str:
    """One package, kind by kind, upper floors first."""
    plan = layers()
    floors = {
        room: len(plan[package]) - number
        for number, rooms in enumerate(plan[package])
        for room in rooms
    }
    known = [room for rooms in kinds.values() for room in rooms]
    if sorted(known) != sorted(floors):
        odd = ", ".join(sorted(set(known) ^ set(floors)))
        raise HouseError(
            f"KINDS in tools/house.py and the floors in pyproject.toml differ in: {odd}"
        )
    lines: list[str] = []
    for kind, rooms in kinds.items():
        lines += ["", kind.upper()]
        for room in sorted(rooms, key=lambda name: -floors[name]):
            module = f"{package}.{room}"
            lines += row(str(floors[room]), module, 0)
            for part in inside(module, plan):
                lines += row("", part, 1)
    return "\n".join(lines[1:]) + "\n"


def drawn(page: str) -> str:
    """The page with the picture as it is now."""
    found = PICTURE.search(page)
    if found is None:
        raise HouseError(f"{PAGE.name} has no place for the picture: <!-- tools/house.py -->")
    return page[: found.start()] + found[1] + picture() + found[2] + page[found.end() :]


def main() -> int:
    """Write, check or print the picture; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    parser.add_argument("--print", action="store_true", help="print the picture, and write nothing")
    asked = parser.parse_args()
    if asked.print:
        print(picture(), end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    new = drawn(page)
    if new == page:
        return 0
    if asked.check:
        print("the picture in ARCHITECTURE.md is out of date: python tools/house.py")
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
