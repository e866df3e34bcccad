"""The programs in docs/hazards.md: run each, and write under it what it says.

    python tools/hazards.py            rewrite the messages
    python tools/hazards.py --check    say what is out of date, and fail if something is

Each program is a block marked ``python``; the block marked ``text`` behind it holds the error, and the line
below what compute-sanitizer said of it on a GPU, from docs/sanitizer.json (`tools/sanitizer.py` records it).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt

PAGE = Path(__file__).resolve().parents[1] / "docs" / "hazards.md"
RECORD = PAGE.with_name("sanitizer.json")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
PAIR = re.compile(
    r"```python\n(?P<program>.*?)```\n\n```text\n(?P<shown>.*?)```\n"
    r"(?:\n(?P<sanitizer>\*\*compute-sanitizer:\*\* .*?\n)(?=\n))?",
    re.DOTALL,
)
WIDTH = 116


@dataclass(frozen=True)
class Hazard:
    """One section of the page."""

    title: str
    program: str
    shown: str
    sanitizer: str

    @property
    def digest(self) -> str:
        """Of the program: what was recorded of another one counts no more."""
        return hashlib.sha256(self.program.encode()).hexdigest()[:16]


def hazards(page: str) -> list[Hazard]:
    """All of them, in the order of the page."""
    found: list[Hazard] = []
    for match in PAIR.finditer(page):
        titles = re.findall(r"(?m)^### (.+)$", page[: match.start()])
        found.append(Hazard(titles[-1], match["program"], match["shown"], match["sanitizer"] or ""))
    return found


def message(program: str) -> str:
    """The error that a learner sees: class and text."""
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


def verdict(shown: str, told: dict[str, Any]) -> str:
    """The findings of compute-sanitizer's tools for one program, as the page has them."""
    said = []
    for tool in SANITIZERS:
        says: dict[str, int] = told[tool]["says"]
        # After a fault all calls of CUDA fail, which is told only where there is nothing else to tell.
        causes = [text for text in says if not text.startswith("Program hit")] or list(says)[:1]
        for text in causes:
            quoted = text.replace('"', "'")
            said.append(
                f'{tool} says "{quoted}"' + (f", {says[text]} times" if says[text] > 1 else "")
            )
    if said:
        words = f"{'; '.join(said)}. The other tools say nothing."
    elif not any(told[tool]["ended"] for tool in SANITIZERS):
        words = "nothing. The program hangs under each of its four tools."
    elif told["alone"]["error"].split(":")[0] == shown.split(":", maxsplit=1)[0]:
        words = "nothing from its four tools; the program ends with the same error as here."
    else:
        words = "nothing, from any of its four tools."
    return "\n".join(textwrap.wrap(f"**compute-sanitizer:** {words}", WIDTH)) + "\n"


def refreshed(page: str) -> str:
    """The page with the messages of today."""
    told = json.loads(RECORD.read_text(encoding="utf-8"))["programs"]
    found = iter(hazards(page))

    def block(_: re.Match[str]) -> str:
        hazard = next(found)
        shown = message(hazard.program)
        said = f"\n{verdict(shown, told[hazard.title])}" if hazard.title in told else ""
        return f"```python\n{hazard.program}```\n\n```text\n{shown}```\n{said}"

    return PAIR.sub(block, page)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="The programs on the page of hazards.")
    parser.add_argument("--check", action="store_true", help="change nothing, name what is stale")
    args = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    if args.check:
        before, after = hazards(old), hazards(refreshed(old))
        stale = [a.title for a, b in zip(before, after, strict=True) if a != b]
        print("\n".join(f"out of date: {title}" for title in stale) or "up to date")
        sys.exit(bool(stale))
    PAGE.write_text(refreshed(old), encoding="utf-8")


if __name__ == "__main__":
    main()
