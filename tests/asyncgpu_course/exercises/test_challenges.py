"""Challenges: where the page says how long the starter takes and what is to be beaten, both are so."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import Rejected
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_course.exercises.answers import model
from asyncgpu_course.exercises.chapters import EXERCISES
from asyncgpu_course.exercises.chapters.ch02b import _pipeline as chunked  # pyright: ignore - what it runs
from asyncgpu_course.exercises.chapters.ch08b import served
from asyncgpu_course.exercises.chapters.ch17 import _ahead as read_ahead  # pyright: ignore - as above
from asyncgpu_course.exercises.chapters.ch19 import _GOAL_US as GOAL_US  # pyright: ignore - as above
from asyncgpu_course.exercises.chapters.ch19 import _GPU_US as GPU_US  # pyright: ignore - as above
from asyncgpu_course.exercises.chapters.ch19 import _served as served_ahead  # pyright: ignore - as above
from asyncgpu_course.serving import RoomClock, people
from tests.tools import tool as load

ROOT = Path(__file__).resolve().parents[3]
TOLD = ROOT / "tests/told/asyncgpu_course/exercises/test_chapters.json"
SAID = re.compile(r"takes? ([\d,.]+) µs(?:: \**get|\. \**Get) below ([\d,]+)")
PAGES = {
    name.removesuffix("-check"): page
    for page in sorted((ROOT / "course").glob("*.py"))
    if SAID.search(page.read_text(encoding="utf-8").replace("\n# ", " "))
    for name in re.findall(r"id=(\w+-challenge-check)", page.read_text(encoding="utf-8"))
}


def takes(name: str) -> int:
    """What the course's own answer takes, in us, to which `test_chapters` holds it."""
    told = json.loads(TOLD.read_text("utf-8"))
    words = told[f"test_the_check_knows_right_from_untouched[{name}-solution-1]"]
    (us,) = re.findall(r"Yours takes \*\*(\d+) µs", " ".join(words))
    return int(us)


# Sixty-six tokens, each of eighteen launches.
SELDOM = {"18-challenge": [pytest.mark.rests_on("checks", "simgpu", "course")]}


@pytest.mark.parametrize("name", [pytest.param(n, marks=SELDOM.get(n, [])) for n in PAGES])
def test_the_page_says_how_long_the_starter_takes(name: str) -> None:
    exercise, solution = EXERCISES[name], model(EXERCISES[name])
    cells = load("build_notebooks").chapter(PAGES[name])[0]
    starter = [c for c in cells if c.id == f"{name}-kernels" or (c.id, c.only) == (name, "starter")]
    told = " ".join(c.text for c in cells if c.kind == "markdown" and c.only is None)
    names: dict[str, Any] = {"agt": agt, "asyncio": asyncio, "np": np}
    exec("\n".join(cell.text for cell in starter), names)
    with private_device(), pytest.raises(Rejected) as said:
        exercise.check(names[exercise.answer], solution)
    best = takes(name)
    ((took, goal),) = SAID.findall(" ".join(told.split()).replace(",", ""))
    assert f"takes {took} µs: get below {goal}" in said.value.cause.replace(",", "")
    assert best <= float(goal) < float(took)  # rounded, so they may be the same
    own = re.search(r"course's own answer takes ([\d,]+) µs", told)
    assert own is None or int(own[1]) == best


def holds(name: str, page: str, starter: str, goal: str, solution: str) -> None:
    """Hold the times that a page says of a starter, of the course's own answer, and between them."""
    exercise, own = EXERCISES[name], model(EXERCISES[name])
    cells = load("build_notebooks").chapter(ROOT / "course" / page)[0]
    names: dict[str, Any] = {"agt": agt, "asyncio": asyncio, "np": np}
    exec(next(c.text for c in cells if (c.id, c.only) == (name, "starter")), names)
    with private_device(), pytest.raises(Rejected) as rejected:
        exercise.check(names[exercise.answer], own)

    assert f"takes {starter} µs: get below {goal}" in rejected.value.cause
    assert takes(name) == int(solution)


def test_the_times_on_the_page_of_the_pipeline() -> None:
    cells = load("build_notebooks").chapter(ROOT / "course/13_hostcalls.py")[0]
    (told,) = [c.text for c in cells if c.id == "exercise-pipeline"]
    (said,) = re.findall(r"it takes (\d+) µs: get below (\d+)\..* has (\d+),", told)
    holds("13-pipeline", "13_hostcalls.py", *said)


@pytest.mark.parametrize(
    ("name", "page", "said"),
    [("10-overlap", "10_build_it_yourself", "own answer takes {:.0f} µs"),
     ("10-overlap", "10_build_it_yourself", "With fewer calls, {:.0f} is possible"),
     ("02-challenge", "02_streams_and_events", "and {:.0f} µs is possible"),
     ("02b-challenge", "02b_copies_and_chunks", "different sizes, {:.0f} is possible"),
     ("07-race", "07_async_mlp", "a single large batch, in {:.0f} µs")],
)  # fmt: skip
def test_the_page_says_how_long_its_own_answer_takes(name: str, page: str, said: str) -> None:
    own = model(EXERCISES[name])
    if "possible" in said:
        cells = (ROOT / f"course/right_answers/{page}.py").read_text("utf-8").split("# %%")
        quick = next(c for c in cells if re.search("Nobody shares|One arm stays|The parts get", c))
        exec("#" + quick, names := {"agt": agt})
        own = names[EXERCISES[name].answer]
    with private_device():
        best = EXERCISES[name].check(own, own)
    assert said.format(best) in (ROOT / f"course/{page}.py").read_text(encoding="utf-8")


def test_the_times_on_the_page_of_feeding_the_device() -> None:
    page = (ROOT / "course/06_await.py").read_text(encoding="utf-8").replace("\n# ", " ")
    own = r".*\*\*Get below (\d+)\.\*\* The course's own answer takes (\d+)"
    (said,) = re.findall(rf"loop below takes (\d+) µs {own}", page)
    holds("06-feed", "06_await.py", *said)


def test_the_times_on_the_page_of_the_chunks() -> None:
    cells = load("build_notebooks").chapter(ROOT / "course/02b_copies_and_chunks.py")[0]
    name, kinds = "02b-chunked-overlap", {(cell.id, cell.only): cell.text for cell in cells}
    exec(kinds[name, "starter"], names := {"agt": agt})
    took = list[str]()
    for answer in (names["pipeline"], model(EXERCISES[name])):
        with private_device():
            trace = chunked(answer, 5, 3, 1600, 400)[0].trace
        took.append(f"{trace.metrics().makespan:.0f}")
    assert "take {} µs as it stands, and {} are".format(*took) in kinds["exercise-chunks", None]


def test_the_times_on_the_page_of_the_search() -> None:
    page = (ROOT / "course/14_gallery.py").read_text("utf-8")
    (said,) = re.findall(r"takes (\d+) µs in the check. Get below (\d+). \(Ours takes (\d+)", page)
    holds("14-search", "14_gallery.py", *said)


def test_the_times_on_the_page_of_many_people() -> None:
    """The starter isn't ahead, which is what it's told, so its time is one of the check's room."""
    cells = load("build_notebooks").chapter(ROOT / "course/19_many_people.py")[0]
    kinds = {(cell.id, cell.only): cell.text for cell in cells}
    exec(kinds["19-ahead", "starter"], names := {"agt": agt})
    own, took = model(EXERCISES["19-ahead"]), list[float]()
    for answer in (names["ahead"], own):
        visitors, clock = people(), RoomClock()
        served_ahead(answer, 8, visitors, python=20.0, clock=clock)
        took.append(clock.us)
    least = sum(visitor.last for visitor in people()) / 8 * GPU_US
    assert EXERCISES["19-ahead"].check(own, own) == took[1]
    assert took[1] < GOAL_US < took[0]
    page = " ".join(kinds["exercise-ahead", None].split())
    assert f"takes {took[0]:,.0f} µs: **get below {GOAL_US:,.0f}**" in page
    assert f"Ours takes {took[1]:,.0f}, and the GPU alone needs {least:,.0f}" in page


def test_the_slow_server_shows_its_last_defect_when_the_others_are_gone() -> None:
    """Chapter 08b says so of its challenge."""
    found: list[set[str]] = []
    cells = load("build_notebooks").chapter(ROOT / "course/08b_detective.py")
    (starter,) = [c for c in cells[0] if (c.id, c.only) == ("08b-challenge", "starter")]
    pinned = next(c for c in cells[1] if c.id == "08b-challenge" and "agt.pinned(" in c.text)
    for cell in (starter, pinned):
        names: dict[str, Any] = {"agt": agt, "asyncio": asyncio, "np": np}
        exec(cell.text, names)
        with private_device():
            trace = served(names["serve"], 8)[0].trace
        found.append({finding.name for finding in agt.diagnose(trace) if not finding.limit})
    assert {"hidden synchronisation", "pageable copy"} <= found[0]
    assert "too few streams" not in found[0]
    assert found[1] == {"too few streams"}


def test_the_pages_that_say_so_were_found() -> None:
    assert PAGES.keys() >= {f"{n}-challenge" for n in ("00", "01", "02", "02b", "08b")}


def test_page_17_says_what_reading_ahead_gains_in_its_exercise() -> None:
    page, names, apart = ROOT / "course/17_teach_it_something.py", {"agt": agt}, list[Any]()
    cells = load("build_notebooks").chapter(page)[0]
    exec(next(c.text for c in cells if (c.id, c.only) == ("17-ahead", "starter")), names)
    for train in (names["train"], model(EXERCISES["17-ahead"])):
        with private_device():
            trace = read_ahead(train, 8)[0].trace
        found = map(trace.find, ("launch step", "step"))
        apart += [np.diff([span.start for span in spans]).mean() for spans in found]
    _, in_turn, calls, ahead = apart
    said = f"a step takes {trace.find('step')[0].duration:.0f} µs and Python's calls {calls:.0f}, so a "
    said += f"batch takes {ahead:.0f} µs instead of {in_turn:.0f}."
    assert said in page.read_text(encoding="utf-8")
