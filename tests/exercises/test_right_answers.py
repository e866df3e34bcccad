"""Answers that are right in another way than the solution, or faster, are accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import check, solved


@pytest.fixture(autouse=True)
def _at_a_desk_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCGPU_DEVICE", "sim")


def _two_devices(change: Callable[[Any], Any], take: Callable[[Any], Any] = lambda x: x) -> Any:
    async def on_both(recipe: Any, batches: Any, weights: Any, devices: Any) -> Any:
        copies: list[Any] = []
        for device in devices:
            with agt.using(device):
                copies.append(await agt.h2d(weights).share())
        tasks: list[Any] = []
        for i, x in enumerate(batches):
            with agt.using(devices[i % 2]):
                tasks.append(agt.spawn(change(recipe(x, copies[i % 2]))))
        return [take(result) for result in await asyncio.gather(*tasks)]

    return on_both


def _limited(change: Callable[[Any], Any], take: Callable[[Any], Any] = lambda x: x) -> Any:
    async def run_limited(ops: Any, limit: int) -> Any:
        gate = asyncio.Semaphore(limit)

        async def run(op: Any) -> Any:
            async with gate:
                return take(await change(op))

        return await asyncio.gather(*[run(op) for op in ops])

    return run_limited


async def _as_they_come(ops: Any, use: Any) -> None:
    for done in asyncio.as_completed([agt.spawn(op.named("mine")) for op in ops]):
        use(await done)


def _named(op: Any) -> Any:
    return op.named("mine")


def _zipped(op: Any) -> Any:
    return agt.zip(op, agt.value(0))


def _first(pair: Any) -> Any:
    return pair[0]


def _blocks(n: int, threads: int) -> Any:
    return np.int64(-(-n // threads))


def _bound(trace: Any) -> Any:
    return np.float32(solved("05-when-it-pays")(trace))


RIGHT = [
    ("01-grid", _blocks),
    ("05-when-it-pays", _bound),
    ("06-as-completed", _as_they_come),
    ("06-limited", _limited(_named)),
    ("06-limited", _limited(_zipped, _first)),
    ("07-two-devices", _two_devices(_named)),
    ("07-two-devices", _two_devices(_zipped, _first)),
    ("07-two-devices", _two_devices(lambda op: agt.overlap(op, agt.value(0)), _first)),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_it_passes(name: str, answer: Any) -> None:
    outcome = check(name, answer)

    assert outcome.accepted, outcome.cause
