"""Chapter 16 where Dask is not installed: the page says so, and goes on with simulated workers."""

import asyncio
import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import asyncgpu_course
import asyncgpu_tutor as agt
from tests.notebooks.test_shared_gpu import SOLUTIONS, run


@pytest.mark.filterwarnings("default")
def test_the_page_runs_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr(asyncgpu_course, "check", lambda *_: None)
    cells = json.loads((SOLUTIONS / "16_several_machines.ipynb").read_text("utf-8"))["cells"]
    with agt.using("sim") as device:
        monkeypatch.setattr(agt, "use", lambda *_: device)
        names = asyncio.run(
            run(["".join(c["source"]) for c in cells if c["cell_type"] == "code"], "16")
        )
    plt.close("all")
    said = capsys.readouterr().out
    assert said.count("These workers are simulated, too (") == 2
    assert "12 recipes were sent for 8 batches" in said
    packing = pytest.importorskip("cloudpickle")
    for recipe in ("small", "travelling", "reading"):  # real workers get them by value
        assert callable(packing.loads(packing.dumps(names[recipe])))
