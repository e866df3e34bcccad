"""The page on three mistakes with PyTorch is one program, which runs on a GPU."""

import re
from pathlib import Path
from typing import Any

import pytest

from asyncgpu_tutor.devices.protocol import Device
from tests.tools import blocks, page

SNIPPETS = blocks(page("docs/torch_mistakes.md"))


def test_each_snippet_compiles() -> None:
    for snippet in SNIPPETS:
        compile(snippet, "torch_mistakes.md", "exec")


def test_the_pictures_name_what_the_page_speaks_of() -> None:
    told = re.findall(
        r"stood still for ([\d.]+) ms, and for ([\d.]+)\n", page("docs/torch_mistakes.md")
    )
    item = [f"{each} ms" for each in told[0]]
    reuse = ["ones", "zeros, in the same memory", "sum", "side"]
    capture = ["default", "x * 2", "copy"]
    for name, words in (("item", item), ("reuse", reuse), ("capture", capture)):
        drawn = page(f"docs/torch_{name}.svg")
        assert [word for word in words if f">{word}</text>" not in drawn] == []


@pytest.mark.gpu
def test_the_program_runs(cuda: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for snippet in SNIPPETS:
        exec(compile(snippet, "torch_mistakes.md", "exec"), names)
    blocked, awaited = names["stood_still"]
    assert blocked > 2 * awaited
    assert names["wrong"] != names["right"] == names["n"]
    ones, zeros, total = (
        next(s for s in names["reused"].device_spans if s.label == label)
        for label in ("ones", "zeros", "sum")
    )
    assert ones.end <= zeros.end < total.start
    assert names["results"] == [0.0, 10.0]
    drawn = {"torch_item.svg", "torch_reuse.svg", "torch_capture.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn
