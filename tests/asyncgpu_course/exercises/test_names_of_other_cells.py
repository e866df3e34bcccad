"""In the mess of earlier cells a right answer is right, and a wrong one is told of their variables."""

import asyncio
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import check
from asyncgpu_course.exercises import answers
from asyncgpu_course.exercises.chapters import EXERCISES
from asyncgpu_course.exercises.names_of_other_cells import strays
from asyncgpu_tutor.devices.simulated import find_spec

T = TypeVar("T")

TEN = (
    *("00-develop", "01-meanwhile", "06-largest", "04-diamond", "06-prepare"),
    *("06-limited", "08b-gain", "07-capture", "11b-queue", "12-oneshot"),
)


async def beat() -> None:
    while True:
        agt.work(10, "beat")
        await agt.sleep(50)


async def in_a_mess(cells: Callable[[], T]) -> T:
    """Run cells in a kernel after a bad afternoon: nothing that was opened is closed, and much has failed."""
    large = agt.pin(np.ones(1_000_000, np.float32))
    beyond = agt.Kernel('extern "C" __global__ void beyond(float* y) { y[999] = 1.0f; }')

    def faulty() -> agt.DeviceOp[Any]:
        return beyond(agt.zeros(32).partition(32))

    with ExitStack() as left_open:
        left_open.enter_context(agt.using(agt.SimDevice(adversary=3)))
        left_open.enter_context(agt.using(policy=agt.SingleStream()))
        with pytest.raises(agt.DeviceError):
            faulty().sync()
        tasks: list[asyncio.Task[Any]] = []
        tasks += [agt.spawn(agt.h2d(large).to_host()) for _ in range(3)]
        tasks += [agt.spawn(faulty()), agt.spawn(agt.ones(3).map(lambda _: 1 // 0))]
        tasks.append(beating := asyncio.create_task(beat()))
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks.append(agt.spawn(agt.ones(3)))
        left_open.enter_context(agt.record())
        left_open.enter_context(np.errstate(all="raise"))
        left_open.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        here, there = agt.ones(4).sync(), agt.ones(4).sync()
        graph = left_open.enter_context(agt.CudaGraph.scope(agt.create_stream()))
        graph.record(agt.memcpy(here.borrow(), there.borrow()))
        result = cells()
    beating.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return result


def test_a_right_answer_is_right_in_a_messy_kernel() -> None:
    def cells() -> dict[str, str]:
        return {name: check(name, answers.model(EXERCISES[name])).text for name in TEN}

    said = asyncio.run(in_a_mess(cells))
    assert {name: text for name, text in said.items() if not text.startswith("**Right.**")} == {}


def test_a_right_answer_is_right_while_the_device_is_full() -> None:
    small = agt.SimDevice(spec=replace(find_spec("h200"), memory_bytes=1 << 20))
    with agt.using(small):
        # Of several that are as large, the first is named, since their order in a set is chance.
        hoards = [agt.zeros(1 << 15, name=f"hoard {i}").sync() for i in range(8)]
        cure = r"Drop arrays .*the largest is 'hoard 0', 131,072 bytes.*smaller batches"
        with pytest.raises(agt.errors.OutOfMemoryError, match=cure):
            agt.zeros(1).sync()
        said = {name: check(name, answers.model(EXERCISES[name])).text for name in TEN}
    assert {name: text for name, text in said.items() if not text.startswith("**Right.**")} == {}
    assert len(hoards) == 8


def test_where_the_machine_is_full_a_check_says_what_to_do_and_nothing_of_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A simulated device has its arrays in the machine's memory, so large ones of earlier cells fill it."""

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("simgpu.memory.GlobalMemory", full)
    on_device = check("04-diamond", answers.model(EXERCISES["04-diamond"])).cause
    monkeypatch.setattr("asyncgpu_course.checks.sandbox.agt.record", full)
    on_host = check("04-diamond", answers.model(EXERCISES["04-diamond"])).cause
    for said in (on_device, on_host):
        assert "full" in said or "out of memory on this machine" in said
        assert "`del x`" in said
        assert "restart" in said
        assert "your answer" not in said


def written(text: str, **others: object) -> Any:
    """The answer that a cell defines, in a notebook whose other cells have made these variables."""
    names: dict[str, Any] = {"agt": agt, "np": np, **others}
    exec(text, names)
    return names["answer"]


def test_a_wrong_answer_is_told_of_a_name_of_python_that_the_notebook_hides() -> None:
    text = "def answer(n, threads):\n    class Own: ...\n    return max(sum([n]) // threads, 1)"
    said = check("01-grid", written(text, max=3, sum=sum, __name__="__main__")).text
    assert "In your notebook, `max` is no longer Python's own: `del max` brings it back." in said
    assert "sum" not in said


def test_a_wrong_answer_is_told_of_the_data_of_other_cells_that_it_uses() -> None:
    text = """def answer(n, threads):
    rows = [LIMIT for _ in range(size)]
    return n // helper(rows) if stream else 0
"""
    others = {"size": 32, "stream": agt.create_stream(), "LIMIT": 7, "helper": len}
    said = check("01-grid", written(text, **others)).text
    assert "It uses `size` and `stream` from outside." in said
    assert "LIMIT" not in said
    assert "helper" not in said


def test_whatever_an_answer_is_made_of_is_looked_at_and_a_right_one_is_told_nothing() -> None:
    x = np.zeros(3)
    f = written("def answer(): return [x for _ in ()]", x=x)
    policy = written(
        "class answer(agt.SchedulingPolicy):\n    def next_stream(self): return x", x=x
    )
    assert strays(f) == strays((f, f)) == strays(policy) != ""
    assert strays(agt.relu) == strays(answers.model(EXERCISES["04-diamond"])) == ""
