"""Nothing that can be seen before a guess gives its answer away: no caption, no number, no explanation.

A page is read as JupyterLab shows it: Markdown, unfolded code with its comments and titles, and of a folded
cell the first line, which is on its bar. What is told, the picture's lesson and the right option are in
``asyncgpu_course/exercises/guesses/``. A cell tells if it has the number that is to be typed, or shares
with what is told `SHARED` words of content or four words in a row, beyond what was read up to the question. A
paraphrase in other words gets by: for that, people read the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.tools import ROOT

SHARED = 3
# Words of five letters and more that explain nothing.
COMMON = """about above after again always another because before began begin below being called calls comes
could different doing either enough every everything first given gives going itself kernel kernels least
little makes needs never nobody nothing numbers other others picture right second shown shows since something
still taken takes their there these thing third those three through times twice under until using wants where
which while whole without would"""
# Read by hand: they share what the question is about, and don't say which answer is right.
HARMLESS = {
    "08-line": "the names of the program's parts, before their times are shown",
}
PAGE_02 = ROOT / "notebooks/02_streams_and_events.ipynb"


class Seen(NamedTuple):
    """What can be seen of a cell."""

    id: str
    text: str
    heading: bool


def content(text: str) -> set[str]:
    """The words that mean something, without their usual endings."""
    found = {*re.findall(r"[a-z][a-z']{4,}", text.lower())}.difference(COMMON.split())
    return {re.sub(r"(ing|ed|es|s|ly)$", "", word) for word in found}


def runs(text: str) -> set[str]:
    """Each four words in a row."""
    words = re.findall(r"[\w']+", text.lower())
    return {" ".join(words[k : k + 4]) for k in range(len(words) - 3)}


def page(path: Path) -> Iterator[Seen]:
    """The cells of a notebook."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text, markdown = "".join(cell["source"]), cell["cell_type"] == "markdown"
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            text = text.partition("\n")[0]
        yield Seen(cell["id"], text, markdown and bool(re.match("#{1,3} ", text)))


def guesses(path: Path) -> dict[str, dict[str, Any]]:
    """What is asked and told on a page, by the names of its guesses."""
    stored = ROOT / "asyncgpu_course/exercises/guesses" / f"{path.stem}.json"
    return json.loads(stored.read_text("utf-8")) if stored.exists() else {}


def tells(cells: list[Seen], name: str, guess: dict[str, Any]) -> list[str]:
    """Each cell from the section's title to the next that tells, and what of."""
    ids = [cell.id for cell in cells]
    asked, reveal = ids.index(f"{name}-asked"), ids.index(f"{name}-reveal")
    heads = [k for k, cell in enumerate(cells) if cell.heading]
    begin = max((k for k in heads if k <= asked), default=0)
    near = min((k for k in heads if k > asked), default=len(cells))
    last = max(k for k in heads if k <= reveal)
    end = min((k for k in heads if k > reveal), default=len(cells))
    options, truth = guess["options"], guess["truth"]
    read = " ".join([*(cell.text for cell in cells[begin : asked + 1]), *options.values()])
    said = f"{guess['told']} {guess.get('lesson', '')}"
    secret, lines = content(said) - content(read), runs(said) - runs(read)
    right = content(options.get(truth, ""))
    numbers = [] if options else [n for n in re.findall(r"\d+\.?\d*", truth) if float(n) > 9]
    found: list[str] = []
    for k, (i, text, _) in enumerate(cells[begin:end], begin):
        # A riddle for the whole page has its clues between the two sections.
        if i.startswith(f"{name}-") or near <= k < last:
            continue
        bare = text.replace(",", "")
        found += [f"{i}: {n}" for n in numbers if re.search(rf"(?<![\w.]){n}(?!\w|\.\d)", bare)]
        titles = re.findall(r'^#+ (.+)$|(?:lesson|title)="([^"]*)', text, re.MULTILINE)
        found += [
            f"{i}: {title}" for title in map("".join, titles) if len(content(title) & right) > 2
        ]
        if k > asked:
            shared, repeated = content(text) & secret, runs(text) & lines
            if len(shared) >= SHARED or repeated:
                found.append(f"{i}: {', '.join(sorted(shared | repeated))}")
    return found


@pytest.mark.parametrize(
    ("path", "name"),
    [(path, name) for path in sorted(PAGE_02.parent.glob("*.ipynb")) for name in guesses(path)],
    ids=lambda given: "" if isinstance(given, Path) else given,
)
def test_nothing_on_the_screen_tells(path: Path, name: str) -> None:
    found = tells([*page(path)], name, guesses(path)[name])

    assert bool(found) is (name in HARMLESS), (
        "\n".join(found) or f"{name} isn't told any more: take it out"
    )


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("fork-join-check", ""),
        ("fork-join", "On two streams it takes 160 µs."),
        (
            "fork-join-check",
            "Each needs the one before, and so the time is what it is.",
        ),
        (
            "fork-join-check",
            'plot(lesson="One arrow leads to the second stream, side by side.")',
        ),
    ],
)
def test_a_page_that_tells_is_found(cell: str, text: str) -> None:
    cells = [
        seen._replace(text=f"{seen.text}\n{text}") if seen.id == cell else seen
        for seen in page(PAGE_02)
    ]

    assert bool(tells(cells, "02-fork", guesses(PAGE_02)["02-fork"])) is bool(text)


def test_only_the_builder_says_within_what_a_number_is_right() -> None:
    """It says so where there's a tolerance, so a question that says it by itself may have none."""
    said = {name for path in PAGE_02.parent.glob("*.ipynb") for name, guess in guesses(path).items()
            if re.search("right is what's within", guess["question"], re.IGNORECASE)}  # fmt: skip
    assert said == set()
