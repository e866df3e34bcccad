"""The page on three mistakes with PyTorch is one program, which runs on a GPU."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def test_a_mode_leaks_over_an_await() -> None:
    torch = pytest.importorskip("torch")

    async def neighbour() -> bool:
        return bool(torch.is_inference_mode_enabled())

    async def leaks() -> bool:
        with torch.inference_mode():
            return await asyncio.create_task(neighbour())

    assert asyncio.run(leaks())

    async def within(mode: Any, turns: int) -> None:
        with mode():
            for _ in range(turns):
                await asyncio.sleep(0)

    async def overlapping(mode: Any, asked: Callable[[], bool]) -> bool:
        await asyncio.gather(within(mode, 1), within(mode, 2))
        return asked()

    with ThreadPoolExecutor(1) as thread:  # whose modes nobody else has
        for mode, asked in (
            (torch.no_grad, lambda: not torch.is_grad_enabled()),
            (torch.inference_mode, torch.is_inference_mode_enabled),  # no gradients either
        ):
            assert thread.submit(asyncio.run, overlapping(mode, asked)).result()
    assert not torch.is_inference_mode_enabled()


def test_a_mode_above_an_async_function_does_nothing() -> None:
    torch = pytest.importorskip("torch")

    @torch.inference_mode()
    async def handler() -> bool:
        return bool(torch.is_inference_mode_enabled())

    assert not asyncio.run(handler())


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
