"""The ledger of bugs in public code: whole rows, and a program of each kind that says what is quoted."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from simgpu import errors
from tests.simgpu.cuda_c.support import launch
from tests.tools import blocks, page

PAGE = page("docs/found.md")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in re.findall(r"^\| \[.*\|$", PAGE, re.MULTILINE)
]
SECTIONS = {
    title.lower(): text for title, text in re.findall(r"(?ms)^### (.*?)\n(.*?)(?=^### |\Z)", PAGE)
}
ADDRESS = re.compile(
    r"\[(.*?)\]\((https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|blob)/[\w./#%-]+)\)"
)


def arguments(text: str) -> Iterator[Any]:
    """The arguments of a launch such as `(y[64], int count[1], 100)`: arrays and numbers."""
    for whole, name, length, number in re.findall(r"(int )?(\w+)\[(\d+)\]|(\d+)", text):
        if name:
            n = int(length)
            yield np.zeros(n, np.int32) if whole else np.linspace(0, 1, n, dtype=np.float32)
        else:
            yield int(number)


def cured(source: str) -> str:
    """A program with the lines that it lacks."""
    source = re.sub(r"// instead: (.*)\n.*", r"\1", source)
    return re.sub(r"(//|#) missing: ", "", source)


def run(text: str, cure: bool) -> None:
    """Run the program of a section."""
    for source in blocks(text, "python"):
        exec(cured(source) if cure else source, {})
    for source in blocks(text, "cuda"):
        found = re.match(r"// (\w+)<<<(\d+), (\d+)>>>\((.*)\)\n", source)
        assert found is not None
        name, grid, block, given = found.groups()
        launch(cured(source) if cure else source, name, int(grid), int(block), *arguments(given))


@pytest.mark.parametrize("title", SECTIONS)
@pytest.mark.parametrize("cure", [False, True])
def test_each_program_fails_as_it_says_and_with_its_cure_it_does_not(
    title: str, cure: bool
) -> None:
    text = SECTIONS[title]
    (quoted,) = blocks(text, "text")
    with nullcontext() if cure else pytest.raises(errors.DeviceError) as caught:
        run(text, cure)
    if caught is not None:
        told = re.sub(r"#\d+", "#N", f"{type(caught.value).__name__}: {caught.value}")
        assert told.split() == re.sub(r"#\d+", "#N", quoted).split()


@pytest.mark.parametrize("row", ROWS, ids=[row[0].split("]")[0][1:] for row in ROWS])
def test_each_row_has_an_address_and_our_own_program_of_its_kind(row: list[str]) -> None:
    where, _, says, ran, seconds, confirmed, pattern = row
    assert ADDRESS.fullmatch(where), where
    assert ran in ("file", "pattern")
    assert float(seconds) < 10
    assert confirmed.startswith(
        ("their", "a proposed fix", "our reasoning", "the same mistake", "as above")
    )
    link = re.fullmatch(r"\[(.*?)\]\(#(.*?)\)", pattern)
    assert link is not None
    assert link[1] in SECTIONS
    assert link[2] == re.sub(r"[^\w-]", "", link[1].replace(" ", "-"))
    assert says.split(";")[0] in blocks(SECTIONS[link[1]], "text")[0] or ran == "file"


def test_the_ledger_has_rows_enough_and_each_program_is_somebodys() -> None:
    assert len(ROWS) >= 10
    assert {row[0] for row in ROWS} == {row[0] for row in {row[0]: row for row in ROWS}.values()}
    used = {re.sub(r"\[(.*?)\].*", r"\1", row[-1]) for row in ROWS}
    assert used == SECTIONS.keys()
