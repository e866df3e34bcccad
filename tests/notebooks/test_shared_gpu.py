"""A page's assertions hold on anybody's GPU: beside others who use it, and with a slow host.

Pages run here as on a GPU, without what they assert of the simulated device alone, and all times are shaken:
calls of the host take longer than usual, at times much longer, and so does what the device does. Exercises
are left out, since they have simulated devices of their own.
"""

import ast
import asyncio
import inspect
import json
import linecache
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

import asyncgpu_course
import asyncgpu_tutor as agt
from asyncgpu_course import guesses
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.run import current
from simgpu.adversary import Adversary
from tests.tools import ROOT

SOLUTIONS = ROOT / "solutions"
AUTO = r"agt.use(\"auto\")"  # a page without it is never on anybody's GPU
PAGES = sorted(p.stem for p in SOLUTIONS.glob("*.ipynb") if AUTO in p.read_text("utf-8"))


class Neighbours(Adversary):
    """Others use the GPU too: everything takes up to twice as long, or has to wait, or loses a time slice."""

    def whim(self) -> tuple[float, float]:
        draw = self._random
        delay = draw.expovariate(1 / 60) if draw.random() < 0.3 else 0.0
        lost = draw.random() < 0.06
        return delay, 10 ** draw.uniform(1, 3) if lost else draw.uniform(1, 2)

    def memory(self) -> None:
        """They take time, and nothing else: late memory has tests of its own, and takes minutes here."""


class Shared(SimDevice):
    """Its host is interrupted now and then."""

    def __init__(self, seed: int, ordinal: int = 0, machine: SimMachine | None = None) -> None:
        self._interruptions = random.Random(seed)
        super().__init__(ordinal, machine=machine or SimMachine())
        self.adversary = Neighbours(seed)

    def spend(self, us: float) -> tuple[float, float]:
        draw = self._interruptions
        pause = draw.expovariate(1 / 400) if draw.random() < 0.05 else 0.0
        return super().spend(us * draw.uniform(0.7, 2.5) + pause)


class _AsOnAGpu(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        if ast.unparse(node.test) == "device.simulated" and not node.orelse:
            node.test = ast.Constant(False)
        return node


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimDevice]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(
        guesses.TELL, raising=False
    )  # what it holds a page to is true of nobody's neighbours
    device = Shared(seed=1)
    others = [Shared(seed, seed, device.machine) for seed in range(1, 4)]
    for other in others:  # so that recordings know them
        monkeypatch.setitem(current._devices, f"shared {other.name}", other)
    monkeypatch.setattr(agt, "use", lambda *_: device)
    monkeypatch.setattr(asyncgpu_course, "several", lambda most: [device, *others][:most])
    monkeypatch.setattr(asyncgpu_course, "check", lambda *_: None)
    with agt.using(device):
        yield device
    plt.close("all")


async def run_cell(tree: ast.Module, names: dict[str, Any], name: str) -> None:
    """As a notebook runs a cell: `await` is allowed at the top."""
    code = compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result


async def run(cells: list[str], page: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(cells):
        name = f"<{page}, cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        await run_cell(ast.fix_missing_locations(_AsOnAGpu().visit(ast.parse(source))), names, name)
    return names


@pytest.mark.slow
@pytest.mark.rests_on("model", "course")
@pytest.mark.usefixtures("shared")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_nothing_that_others_on_the_gpu_could_make_wrong(page: str) -> None:
    cells = json.loads((SOLUTIONS / f"{page}.ipynb").read_text("utf-8"))["cells"]
    asyncio.run(run(["".join(c["source"]) for c in cells if c["cell_type"] == "code"], page))


@pytest.mark.usefixtures("shared")
def test_a_bold_claim_is_found() -> None:
    bold = """
import asyncgpu_tutor as agt

device, took = agt.use("auto"), []
for _ in range(20):
    start = device.now()
    agt.ones(4).sync()
    took.append(device.now() - start)
if device.simulated:
    assert False, "this is not asserted of a GPU"
"""
    asyncio.run(run([bold], "bold"))
    with pytest.raises(AssertionError):
        asyncio.run(run([f"{bold}assert max(took) < 2 * min(took)"], "bold"))
