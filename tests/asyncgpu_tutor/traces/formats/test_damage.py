"""Damaged records of a profile: each is in no number, counted and named, in each form of a file."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.formats.damage import Damage, ProfileRecord

from .nsys_export import FILL, KERNEL, Export, read

SORTS = ("zero", "years", "negative", "early", "instant", "word", "lost")
Piece = tuple[str, int, int, Any]  # a name, its call's start, its own start, and its end, in ns


def timeline(random: Random, epoch: bool) -> tuple[list[Piece], list[str], dict[str, int]]:
    """Pieces of work, of which less than half are damaged; the sorts of damage, and the sound durations."""
    base = random.choice((1_001, 5_000_000_001, *([1_615_207_264_505_000_001] if epoch else ())))
    pieces: list[Piece] = []
    sorts: list[str] = []
    sound: dict[str, int] = {}
    for i in range(random.randint(3, 12)):
        asked = base + 50_000 * i
        start = asked + 2 * random.randint(3_000, 9_000)
        end = start + (random.randint(700, 30_000) if i else 1024)
        sort = random.choice(SORTS) if i % 2 and random.random() < 0.8 else ""
        changed: dict[str, tuple[int, Any]] = {
            "zero": (0, 0), "years": (start, start + 7_450_000_000_000_000_000 - base),
            "negative": (start, start - 3_500), "early": (asked - 40_000, asked - 30_000),
            "instant": (start, start), "word": (start, "soon"), "lost": (start, None),
        }  # fmt: skip
        pieces.append((f"k{i}", asked, *changed.get(sort, (start, end))))
        sorts += [sort] if sort else []
        sound |= {} if sort else {f"k{i}": end - start}
    return pieces, sorts, sound


def as_chrome(pieces: list[Piece], folder: Path) -> Trace:
    events: list[dict[str, Any]] = []
    for i, (name, asked, start, end) in enumerate(pieces, 1):
        place: dict[str, Any] = {"ph": "X", "pid": 1, "tid": 7, "args": {"correlation": i}}
        launch = {**place, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5}
        events.append({**launch, "ts": f"{asked // 1000}.{asked % 1000:03}"})
        if end is not None:
            took = end if isinstance(end, str) else (end - start) / 1000
            events.append({**place, "cat": "kernel", "name": name, "ts": start / 1000, "dur": took})
    (folder / "t.json").write_text(json.dumps({"traceEvents": events}))
    return Trace.load(folder / "t.json")


def as_nsys(pieces: list[Piece], folder: Path) -> Trace:
    export = Export()
    for i, (name, asked, start, end) in enumerate(pieces, 1):
        export.call("cudaLaunchKernel_v7000", asked, asked + 5_000, i)
        if end is not None:
            export.kernel(name, start, end, 7, i)
    return read(export, folder)


def as_own(pieces: list[Piece], folder: Path, clock: str = "CUPTI") -> Trace:
    spans: list[dict[str, Any]] = []
    for i, (name, asked, start, end) in enumerate(pieces):
        us = {"start": asked / 1000, "end": asked / 1000 + 5}
        spans.append({"id": 2 * i, "kind": "call", "name": f"launch {name}", "device": "g", **us})
        if end is not None:
            us = {"start": start / 1000, "end": end if isinstance(end, str) else end / 1000}
            work = {"id": 2 * i + 1, "kind": "kernel", "name": name, "device": "g", "stream": 1}
            spans.append({**work, "after": [2 * i], **us})
    body = {"format": "asyncgpu_tutor.trace/1", "clock": clock, "device": "g", "spans": spans}
    (folder / "t.json").write_text(json.dumps(body))
    return Trace.load(folder / "t.json")


def look(seed: int, folder: Path) -> None:
    """One timeline in one form: all numbers are those of the sound work, and each damaged one is counted."""
    random = Random(seed)
    form = random.choice((as_chrome, as_nsys, as_own))
    pieces, sorts, sound = timeline(random, epoch=form is not as_own)
    trace = form(pieces, folder)
    found = {span.name: span.duration for span in trace.device_spans}
    assert found == pytest.approx({name: ns / 1000 for name, ns in sound.items()}, abs=0.26)
    analysis = agt.analyse(trace)
    assert sum(row.count for row in analysis.sums.kernels) == len(sound)
    assert trace.metrics().device_makespan <= 50 * len(pieces) + 50
    said = trace.about.get("damage", [])
    assert isinstance(said, list)
    lost = sorts.count("lost")
    for what, number in (("left out", len(sorts) - lost), ("without work", lost)):
        assert sum(int(line.split()[0]) for line in said if what in line) == number
    for report in (analysis.table(), trace.table(), repr(trace), trace.plot().words):
        assert all(line in re.sub(r"\s+", " ", report) for line in said)


@given(seed=st.integers(0, 2**32))
def test_no_number_has_a_damaged_record_in_it_without_a_word(seed: int, tmp_path: Path) -> None:
    look(seed, tmp_path)


def test_what_may_take_no_time_is_no_damage(tmp_path: Path) -> None:
    """A fill of 0 bytes; work by a clock of whole us, or of a model; and clocks that differ throughout."""
    pieces: list[Piece] = [("a", 1_000, 9_000, 13_000), ("b", 2_000, 14_000, 14_000)]
    for form in (as_chrome, as_nsys, as_own):
        trace = form(pieces, tmp_path)
        assert len(trace.device_spans) == 2
        assert "1 record counted that take no time" in str(trace.about["damage"])
    assert not as_own(pieces, tmp_path, "simulated").about
    fine: list[Piece] = [("a", 1_000, 9_001, 12_003), pieces[1]]  # by the clock of the device alone
    assert "left out: it takes no time" in str(as_nsys(fine, tmp_path).about["damage"])
    late = [(name, asked + 900_000, start, end) for name, asked, start, end in pieces[:1]]
    assert "1 record counted that start before" in str(as_nsys(late, tmp_path).about["damage"])
    export = Export()
    export.launch("k", 1_001, 2_003, 3_024, 1)
    export.add(FILL, **export.tables[KERNEL][0] | {"start": 5_001, "end": 5_001, "bytes": 0})
    trace = read(export, tmp_path)
    assert len(trace.device_spans) == 2
    assert "damage" not in trace.about


NAMED = '"name": "k"'


@pytest.mark.parametrize(
    ("new", "fault"),
    [
        ('"name": "torch\\cuda\\init.py(2): k"', "single backslashes"),
        ('"name": "k\n(1)"', "raw line breaks"),
        ('"name": "x = Lib("a")"', "quotes in names"),
        ('"name": "k", "occupancy": N/A, "b": -nan', "bare words for numbers"),
    ],
)
def test_the_known_faults_of_a_writer_are_read_with_a_word(
    new: str, fault: str, tmp_path: Path
) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "tid": 7}
    text = json.dumps({"traceEvents": [event]})
    (tmp_path / "t.json").write_text(text.replace(NAMED, new))
    trace = Trace.load(tmp_path / "t.json")
    assert len(trace.device_spans) == 1
    assert fault in str(trace.about["damage"])
    (tmp_path / "t.json").write_text(text.replace(NAMED, '"name": "C:\\"'))
    with pytest.raises(agt.errors.UsageError, match="Some versions of PyTorch"):
        Trace.load(tmp_path / "t.json")


def test_work_whose_call_is_not_known_is_behind_none() -> None:
    """Calls without a number, which is None, are not that of work without one."""
    call = ProfileRecord("call", "launch", 9e6, 9.1e6, stamped=True)
    work = ProfileRecord("work", "k", 1e6, 2e6, stamped=True, lasting=True)
    damage = Damage()
    assert damage.sound([call, work]) == ["call", "work"]
    assert damage.told({}) == {}
    first = call._replace(row="first", start=0.0, end=1.0)
    timeless = work._replace(row="timeless", start=0.0, end=0.0)
    assert damage.sound([first, work, timeless]) == ["first", "work"]
