"""Five ways to run the same batches: what each computes, and what the table says of them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp.measuring import Outcome, measured
from asyncgpu_tutor.commands.mlp.pipeline import Network, upload_network
from asyncgpu_tutor.commands.mlp.report import Row, conclusion_lines, rows, table_lines
from asyncgpu_tutor.commands.mlp.verification import reference
from asyncgpu_tutor.commands.mlp.ways import WAYS, Job
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.devices.protocol import Device

from .conftest import Mlp, Ran

NAMES = {
    "sequential": "one after the other",
    "one-stream": "one stream",
    "streams": "four streams",
    "prepared": "prepared",
    "graph": "graph",
}


def table(ran: Ran) -> dict[str, tuple[float, float]]:
    """Makespan and overlap of each way, as printed."""
    found = re.findall(r"^  (\w[\w ]*\w) +([\d.]+) us +([\d.]+) us +\d+%", ran.out, re.MULTILINE)
    return {name: (float(makespan), float(overlap)) for name, makespan, overlap in found}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "network",
    [
        Network(seed_inputs(20, 5)),
        Network(seed_inputs(20, 3), Network.deeper(seed_inputs(20), 3), softmax=True, tiled=True),
    ],
    ids=["plain", "larger"],
)
def test_values_and_share_counts(device: Device, how: str, network: Network) -> None:
    async def main() -> None:
        weights = await upload_network(network).schedule(agt.SingleStream())
        batches = [agt.pin(batch) for batch in network.inputs.batches]
        policy = agt.StreamPoolRoundRobin(2)
        job = Job(batches, weights, policy, 2, network.softmax, network.tiled)
        outcome = await measured(job, WAYS[how].start)

        np.testing.assert_allclose(outcome.outputs, reference(network), rtol=1e-4, atol=1e-7)
        assert set(outcome.after.values()) == {1}
        assert max(outcome.in_flight.values()) <= len(batches) + 1
        # A driver picks the streams of a graph's branches itself.
        if device.simulated or how != "graph":
            expected = 1 if how in ("sequential", "one-stream") else 2
            assert len(outcome.trace.streams) == expected

    asyncio.run(main())


def test_the_default_run_shows_all_ways_and_saves_the_best(
    sim: Device, mlp: Mlp, tmp_path: Path
) -> None:
    ran = mlp("--trace", tmp_path / "trace.json")
    found = table(ran)

    assert list(found) == list(NAMES.values())
    makespans = {name: makespan for name, (makespan, _) in found.items()}
    assert makespans["graph"] < makespans["prepared"] < makespans["four streams"]
    assert makespans["four streams"] <= makespans["one stream"] < makespans["one after the other"]
    assert found["graph"][1] > 0
    assert "As a graph, started by one call" in " ".join(ran.out.split())
    assert found["one after the other"][1] == found["one stream"][1] == 0
    saved = agt.Trace.load(tmp_path / "trace.json").metrics().makespan
    assert f"{saved:.1f}" == f"{makespans['graph']:.1f}"
    assert "Trace of 'graph' written" in ran.out


def row(how: str, makespan: float, active: float, overlap: float = 0.0) -> Row:
    """A way as it may come out: the time with work on the device, and with work on four streams."""
    streams = 1 if how in ("sequential", "one-stream") else 4
    metrics = replace(
        agt.Trace([], "simulated", "").metrics(),
        makespan=makespan,
        stream_busy={("sim:0", number): active / streams for number in range(streams)},
        concurrency=(makespan - active, active - overlap, 0.0, 0.0, overlap)[: streams + 1],
    )
    return Row(how, NAMES[how], agt.Trace([], "simulated", ""), metrics, blind=False)


def said(table: list[Row]) -> str:
    return " ".join(conclusion_lines(table))


# Makespan, active time and overlap of four streams, prepared batches and a graph; what is said of them.
OUTCOMES = [
    ([(600, 580, 500), (590, 580, 500), (590, 580, 500)],
     ("Four streams take 33% less time than one, with work on up to 4 of them at once. Neither "
      "preparing nor a graph brings a gain: the device has work in 97% of the time without them.")),
    ([(900, 300), (450, 300, 100), (445, 300, 100)],
     ("Four streams bring no gain over one: the device has work in 33% of the time, so the host is "
      "the bottleneck. Prepared once, the batches take 50% less time than on four streams, and a "
      "graph brings no more.")),
    ([(900, 850), (900, 850), (2000, 850)],
     ("Four streams bring no gain over one. Neither preparing nor a graph brings a gain: the device "
      "has work in 94% of the time without them.")),
]  # fmt: skip


@pytest.mark.parametrize(("outcomes", "sentences"), OUTCOMES)
def test_a_gain_is_claimed_where_there_is_one(outcomes: list[Any], sentences: str) -> None:
    ways = zip(NAMES, [(1000, 800), (900, 800), *outcomes], strict=True)
    assert said([row(how, *numbers) for how, numbers in ways]) == sentences


SENTENCES = {
    "sequential": "each batch is waited for before the next",
    "one-stream": "there is one stream",
    "streams": "the host is the bottleneck",
    "graph": "several streams had work",
}


@pytest.mark.parametrize("how", WAYS)
def test_how_picks_one(device: Device, mlp: Mlp, tmp_path: Path, how: str) -> None:
    ran = mlp("--how", how, "--trace", tmp_path / "trace.json")

    assert list(table(ran)) in ([NAMES[how]], [])  # none where CUDA events see one bar
    assert "speed-up" not in ran.out
    assert len(ran.first_eight) == 4
    trace = agt.Trace.load(tmp_path / "trace.json")
    assert f"{NAMES[how]} " in ran.out
    assert len(trace.device_spans) in (28, 1)
    if device.simulated:
        assert SENTENCES.get(how, "") in " ".join(ran.out.split())


def test_a_graph_that_is_one_bar_is_not_said_to_overlap_or_not() -> None:
    bar = agt.types.Span(0, "graph", "all batches", 0.0, 10.0, "cuda:0", stream=1)
    outcome = Outcome(np.zeros((4, 8), np.float32), {}, {}, agt.Trace([bar], "CUDA events"))
    table = rows({"graph": outcome}, 4)

    text = "\n".join(table_lines(table))
    assert re.search(r"graph +10\.0 us +not seen +one bar$", text, re.MULTILINE)
    assert "CUDA events see a graph as one bar" in text
    assert "is not known" in said(table)


ALL = "--layers 2 --softmax --tiled --batches 3"


@pytest.mark.parametrize(
    "options", ["--layers 3", "--softmax", "--tiled", ALL, "--input digits --tiled"]
)
def test_what_the_seed_says_to_try(device: Device, mlp: Mlp, options: str) -> None:
    ran = mlp("--dim", 64, *options.split())  # success means that all values are right, in each way

    assert "SUCCESS" in ran.out
    assert ("[softmax OK]" in ran.out) == ("--softmax" in options)
    assert ("W0/2: 64x64" in ran.out) == ("--layers" in options)
