"""The snippets for the CuPy user are one program that runs; what needs CuPy, on a GPU."""

from pathlib import Path

import pytest

from asyncgpu_tutor.devices.protocol import Device
from tests.tools import blocks, page

SNIPPETS = blocks(page("docs/from_cupy.md"))
OF_CUPY = [snippet for snippet in SNIPPETS if "cp." in snippet]


def run(snippets: list[str]) -> None:
    names: dict[str, object] = {"__name__": "page"}
    for snippet in snippets:
        exec(compile(snippet, "from_cupy.md", "exec"), names)


def test_what_needs_no_gpu_runs_without_one(sim: Device) -> None:
    assert 3 <= len(OF_CUPY) < len(SNIPPETS)
    run([snippet for snippet in SNIPPETS if snippet not in OF_CUPY])


@pytest.mark.gpu
def test_the_program_runs(cuda: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy")
    monkeypatch.chdir(tmp_path)
    run(SNIPPETS)
    assert (tmp_path / "step.svg").stat().st_size > 0


def test_each_snippet_compiles() -> None:
    for snippet in SNIPPETS:
        compile(snippet, "from_cupy.md", "exec")
