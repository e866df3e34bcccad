"""The benchmarks run. Nobody looks at the clock here."""

import asyncio
import importlib
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

from .conftest import open_or_skip
from .tools import ROOT, python, tool

FOLDER = ROOT / "benchmarks"


def loaded(name: str) -> ModuleType:
    return tool(name, FOLDER)


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = loaded("simulator")
    monkeypatch.setattr(module, "CHAINS", 10)
    return module


def test_what_a_learner_runs(simulator: ModuleType) -> None:
    simulator.mlp(8)
    simulator.product(16)
    simulator.fills(10)


def test_the_engine_is_given_the_work_that_the_text_says(simulator: ModuleType) -> None:
    """Four streams, one after the other into the copy engine; then each goes round without waiting."""
    last_starts = 3 * simulator.COPY_IN
    chain = simulator.COPY_IN + simulator.KERNEL + simulator.COPY_OUT
    assert simulator.with_engine() == pytest.approx(last_starts + 10 * chain)


def test_a_large_export_is_read_analysed_told_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    loaded("large_trace").main(200)
    told = capsys.readouterr().out.split("\n")
    assert told[0] == "402 rows"
    assert [line.split()[0] for line in told[1:-1]] == ["read", "analyse", "tell", "draw", "all"]


def test_loops_and_queues_of_host_and_gpu_agree_with_numpy(device: Device) -> None:
    module = loaded("gpu_driven")
    for (ways, right), count in ((module.newton_ways(300), 6), (module.queue_ways(5), 5)):
        found = module.measure(ways, right, 1)
        assert len(found) == count


@pytest.mark.parametrize("kind", ["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_two_gpus_beside_one(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_or_skip(f"{kind}:1")
    with agt.using(f"{kind}:0"):
        bench = loaded("two_gpus").Bench(kind, 1)
        bench.training(16, (16,))
        for part in (bench.mlp, bench.copies, bench.reduce):
            part(64)
    told = capsys.readouterr().out
    assert all(f"; {way} " in told for way in ("overlapped", "two", "ours"))


@pytest.mark.gpu
def test_the_service_of_the_page_is_measured(cuda: Device) -> None:
    pytest.importorskip("torch")
    bench = loaded("torch_service")
    ways = [row["way"] for row in bench.all_served(1, 0.2, 1)]
    assert {"idle", "await", "threads", "blocks"} <= set(ways)
    assert bench.graphs(1).keys() == {(p, n) for p in ("highest", "high") for n in (1, 8, 32)}
    assert bench.lateness(1).keys() >= {"synchronize", "await, trio"}


@pytest.mark.gpu
def test_the_server_of_the_page_is_measured_over_http(cuda: Device) -> None:
    for module in ("torch", "starlette", "uvicorn"):
        pytest.importorskip(module)
    few = ("--seconds", "0.3", "--rounds", "1", "--ways", "threads", "one lane", "pool")
    assert python(FOLDER / "over_http.py", *few).stdout.count("per_second") == 6


@pytest.mark.gpu
def test_everybody_computes_the_same(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "peers"))
    loop = asyncio.new_event_loop()
    work = importlib.import_module("work").make_work(64)
    every = importlib.import_module("by_hand").contenders(work)
    every += importlib.import_module("ours").contenders(work, loop)
    want: Any = ()
    for one in every:
        one.run()
        got = one.results()
        want = want or got
        assert len(got) in (1, len(want))
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=False))
    loop.close()


def test_host_calls(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded("hostcalls")
    monkeypatch.setattr(module, "RUNS", 1)
    monkeypatch.setattr(module, "printing", lambda blocks, number: 0.0)
    with agt.using("sim"):
        asyncio.run(module.main("sim", [2]))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[3:]] == ["calls/s"] * 3


def test_one_call_stays_on_its_way() -> None:
    """A reader can step through a launch and an await: so many calls in so many files, and no more."""
    told = python(FOLDER / "one_call.py").stdout  # alone, as other tests leave work behind
    found = re.findall(r"(.*): (\d+) calls in (\d+) files", told)
    most = {  # a whole run has seen four more than the test alone
        "sync, arguments seen before": (195, 21), "sync, new arguments": (389, 36),
        "await, arguments seen before": (220, 23), "await, new arguments": (414, 38),
    }  # fmt: skip
    assert {way for way, *_ in found} == most.keys()
    over = [row for row in found if int(row[1]) > most[row[0]][0] or int(row[2]) > most[row[0]][1]]
    assert over == []
    assert all(int(calls) <= 50 for calls in re.findall(r"asyncgpu_tutor (\d+)", told))


def test_some_seeded_bugs_and_right_programs_are_judged_as_the_results_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    bench = importlib.import_module("benchmarks.hazards.__main__")
    results = json.loads(bench.RESULTS.read_text("utf-8"))
    for kind in ("bugs", "sound"):
        for category, cases in bench.categories(kind).items():
            told = {row["name"]: row for row in results.get(category, {}).get(kind, [])}
            for case in [case for case in cases if case.name in told][::6]:
                found, recorded = bench.row(case, case.check()), told[case.name]
                same = recorded.keys() - {"said", "seconds"}
                assert {key: found[key] for key in same} == {key: recorded[key] for key in same}


async def test_calls_that_a_kernel_awaits_are_answered_once(
    device: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    module = loaded("awaiting")
    made = module.kernels()
    for leaves_after in (None, 3):
        await module.storm(made, 2, 4, leaves_after)
    await module.hasty(made, 6, 40_000, 2)
    await module.services(made, 2)
    told = capsys.readouterr().out.split("\n")
    assert told[0].startswith("8 requests from 2 blocks by futures: 8 answered right, 0 told")
    assert told[2].endswith("2 of 2 packets in the end")
    took = [float(line.split()[-4]) for line in told[3:] if line]
    assert len(took) == 10
    assert min(took) > 0  # each is measured, and none a difference


def test_all_ways_to_serve_say_the_same_and_the_quicker_ones_need_fewer_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    options = ["--device", "sim", "--quick", "--json", str(file), "--recording", str(tmp_path)]
    bench = loaded("serving_tokens").main(options)
    found = json.loads(file.read_text("utf-8"))
    assert found["about"]["differing"] == 0
    assert len(bench.texts) == len(found["lengths"])
    assert "texts that differ between two ways: 0" in capsys.readouterr().out
    one, batches, continuous, ahead = found["rows"][:4]
    assert one["steps"] == sum(prompt + answer - 1 for prompt, answer in found["lengths"])
    assert one["steps"] > batches["steps"] > continuous["steps"]
    assert ahead["step_us"] < continuous["step_us"]
    for way in ("continuous", "ahead"):
        assert agt.Trace.load(tmp_path / f"19_serving_{way}.json").find("choose")


def test_of_the_three_launches_without_a_host_the_first_wastes_least() -> None:
    """Page 19 draws that one, has 62 % of it from its steps, and says so of the others."""
    module = loaded("serving_tokens")
    size, shares = module.full(128), list[float]()
    for seed in range(size.drawn):
        free = [0] * 132  # whoever is free first takes the next text
        for request in module.asked_for(size, None, seed):
            free[free.index(min(free))] += request.last
        shares.append(sum(free) / len(free) / max(free))
    assert [round(share, 2) for share in shares] == [0.62, 0.57, 0.57]


def test_each_rung_says_what_numpy_says(capsys: pytest.CaptureFixture[str]) -> None:
    model = agt.data.load_language_model()
    small = {"tokens": model.weights["tokens"][:64], "places": model.weights["places"][:8]}
    layers = {name: w[:1] for name, w in model.weights.items() if w.ndim > 1 and len(w) < 64}
    model = replace(
        model, weights={**model.weights, **layers, **small}, vocabulary=model.vocabulary[:64]
    )
    loaded("tokens").main(
        ["--device", "sim", "--slots", "2", "--steps", "3", "--turns", "1"], model
    )
    told = capsys.readouterr().out
    assert told.count("2 of 2 texts as in NumPy") == 9
    assert told.splitlines()[-1].startswith("one kernel, a block each")
