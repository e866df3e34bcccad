"""The ledger of bugs in public code: whole rows, and a program of each kind that says what is quoted."""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simgpu import errors
from tests.simgpu.cuda_c.support import launch
from tests.tools import blocks, page, tool

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


PUBLISHED = """
#include "half.cuh"
#define WIDTH 64
template <int N> __global__ void sums(float* y, const float* x) {
    __shared__ float s[N];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = s[N - 1 - t];
}
__global__ void rows(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) y[j * n + i] = half_of(n);
}
void host() {
    dim3 block(8, WIDTH / 16);  // not 16 x 16
    sums<WIDTH / 2><<<1, WIDTH / 2>>>(y, x);
    rows<<<grid, block>>>(y, n);
}
"""


def test_the_survey_launches_what_host_code_does_and_counts_what_we_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey, folder = tool("survey"), tmp_path / "somebody+kernels"
    folder.mkdir()
    (folder / "half.cuh").write_text("__device__ float half_of(int n) { return n / 2.0f; }\n")
    (folder / "sums.cu").write_text(PUBLISHED)
    (folder / "old.cu").write_text("__global__ void shuffles(int* y) { y[0] = __shfl(y[1], 2); }\n")
    shuffles, sums, rows = found = [*survey.surveyed(folder, 60)]
    assert (sums["instance"], sums["block"], sums["outcome"]) == ("sums<32>", (32,), "RaceError")
    assert sums["line"] == 8
    assert (rows["block"], rows["from_host"], rows["outcome"]) == ((8, 4), True, "clean")
    assert (shuffles["kernel"], shuffles["outcome"]) == ("shuffles", "refused")
    monkeypatch.setattr(survey, "JUDGED", tmp_path / "judged.json")
    survey.JUDGED.write_text(
        '{"judged": {"somebody+kernels": {"sums.cu sums<32>": "true: no barrier"}}}'
    )
    said = [line.split() for line in survey.counted(found)]
    assert said[0] == ["3", "kernels,", "2", "files,", "1", "repositories"]
    assert said[-2:] == [["1", "hazards"], ["1", "true"]]


def test_each_hazard_that_we_read_has_a_word_and_a_reason_and_none_is_false() -> None:
    kept = json.loads(tool("survey").JUDGED.read_text())
    assert kept["judged"].keys() <= kept["commits"].keys()
    for said in (said for kernels in kept["judged"].values() for said in kernels.values()):
        assert re.fullmatch(r"(true|old|tail|meant|harmless|ours): .+", said)
