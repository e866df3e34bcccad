"""The programs in docs/hazards.md: run each, and write under it what it says.

    python tools/hazards.py            rewrite the messages
    python tools/hazards.py --check    say what is out of date, and fail if something is

Each program is a block marked ``python``; the block marked ``text`` behind it holds the error.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import asyncgpu_tutor as agt

PAGE = Path(__file__).resolve().parents[1] / "docs" / "hazards.md"
PAIR = re.compile(r"```python\n(?P<program>.*?)```\n\n```text\n(?P<shown>.*?)```\n", re.DOTALL)
WIDTH = 116


@dataclass(frozen=True)
class Hazard:
    """One section of the page."""

    title: str
    program: str
    shown: str


def hazards(page: str) -> list[Hazard]:
    """All of them, in the order of the page."""
    found: list[Hazard] = []
    for match in PAIR.finditer(page):
        titles = re.findall(r"(?m)^### (.+)$", page[: match.start()])
        found.append(Hazard(titles[-1], match["program"], match["shown"]))
    return found


def message(program: str) -> str:
    """What a learner sees: class and text of the error that the program ends with."""
    names = {"asyncio": asyncio, "np": np, "agt": agt}
    with agt.using(agt.SimDevice()):
        try:
            exec(compile(program, "hazards.md", "exec"), names)
        except agt.errors.AsyncGpuError as error:
            return _told(error)
    return "nothing: it ran to its end\n"


def _told(error: agt.errors.AsyncGpuError) -> str:
    numbers: dict[str, str] = {}

    def renumber(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"#{len(numbers) + 1}")

    text = re.sub(r"#\d+", renumber, f"{type(error).__name__}: {error}")
    lines = [
        textwrap.wrap(line, WIDTH, break_long_words=False, drop_whitespace=True) or [""]
        for line in text.split("\n")
    ]
    return "".join(f"{part}\n" for line in lines for part in line)


def refreshed(page: str) -> str:
    """The page with the messages of today."""
    return PAIR.sub(
        lambda m: f"```python\n{m['program']}```\n\n```text\n{message(m['program'])}```\n", page
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="The programs on the page of hazards.")
    parser.add_argument("--check", action="store_true", help="change nothing, name what is stale")
    args = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    if args.check:
        stale = [h.title for h in hazards(old) if message(h.program) != h.shown]
        print("\n".join(f"out of date: {title}" for title in stale) or "up to date")
        sys.exit(bool(stale))
    PAGE.write_text(refreshed(old), encoding="utf-8")


if __name__ == "__main__":
    main()
