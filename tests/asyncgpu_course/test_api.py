"""check, hint, solution, progress, forget: in any order, twice, and whatever became of the file."""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import check, forget, hint, progress, progress_file, solution, solved
from asyncgpu_course.exercises.answers import hints, later
from asyncgpu_course.exercises.chapters import EXERCISES
from asyncgpu_course.files import locked
from asyncgpu_tutor import UsageError
from tests.laws.shape import structure

NAME = "01-grid"


def right(n: int, threads: int) -> int:
    return -(-n // threads)


def wrong(n: int, threads: int) -> int:
    return n // threads


def row(name: str = NAME) -> str:
    (line,) = [line for line in str(progress()).splitlines() if f"`{name}`" in line]
    return line


def test_what_is_solved_is_an_answer_and_counts_for_nobody(folder: Path) -> None:
    assert [solved(NAME)(n, 32) for n in (1, 32, 33)] == [1, 1, 2]
    assert not list(folder.iterdir())
    with pytest.raises(UsageError, match="no exercise"):
        solved("99-nothing")


def test_the_page_goes_on_with_an_own_answer_once_it_was_accepted() -> None:
    assert solved(NAME, right) is not right  # nobody has checked it
    check(NAME, wrong)
    assert solved(NAME, wrong) is not wrong
    check(NAME, right)
    assert solved(NAME, right) is right
    assert solved(NAME, wrong)(33, 32) == 2


def test_operations_that_an_answer_leaves_alone_are_no_warning() -> None:
    async def one_of_all(ops: list[Any], limit: int) -> list[Any]:
        return [await ops[0]]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check("06-limited", one_of_all).status == "rejected"
        gc.collect()


def test_a_check_says_the_same_each_time_but_for_the_promise_at_the_first_miss() -> None:
    async def one_by_one(ops: list[Any], limit: int) -> list[Any]:
        return [await op for op in ops]

    first, second, third = (check("06-limited", one_by_one) for _ in range(3))
    promise = "\n\nMiss once more, and you'll see the expected timeline below yours."
    assert first.text == second.text + promise
    assert second.text == third.text
    for trace in ("got", "expected"):
        told = [structure(getattr(outcome, trace)) for outcome in (first, second, third)]
        assert told[0] == told[1] == told[2]


def test_progress_of_one_chapter_lists_its_exercises_and_no_others() -> None:
    assert check(NAME, right).accepted
    listed = str(progress("01"))
    names = [name for name in EXERCISES if name.startswith("01-")]
    days = [later(EXERCISES[name]) != "" for name in names]
    assert f"Solved: 0 of {days.count(False)}, and 1 of {sum(days)} for another day." in listed
    assert all(f"`{name}`" in listed for name in names)
    assert "`00-" not in listed
    with pytest.raises(UsageError, match=r"no chapter '1' with exercises\. There are: 00, 01, "):
        progress("1")


def test_progress_goes_from_open_by_tried_to_solved_and_stays_there(folder: Path) -> None:
    assert "| open | 0 | 0 |" in row()
    assert not check(NAME, wrong).accepted
    assert "| tried | 1 | 0 |" in row()
    assert check(NAME, right).accepted
    hint(NAME)
    assert "| **solved** | 2 | 1 |" in row()
    books = re.findall(r"- .+ \((..) to (..)\): (\d+) of (\d+)\n", str(progress()))
    assert books[0][:3] == ("00", "07", "1")
    assert [book[:3] for book in books[1:3]] == [("08", "10", "0"), ("11", "14", "0")]
    assert sum(int(book[3]) for book in books) == len(EXERCISES)
    assert not check(NAME, wrong).accepted
    assert check(NAME, right).accepted
    assert "**solved**" in row()
    assert [path.name for path in folder.iterdir()] == [progress_file.FILE]


def test_of_a_challenge_the_best_time_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(answer: Callable[[int, int], int], _model: object) -> float:
        return float(answer(0, 0))

    monkeypatch.setitem(cast(Any, EXERCISES), NAME, replace(EXERCISES[NAME], check=timed))
    for took, said, best in ((470.2, 470, 470), (455, 455, 455), (500, 500, 455)):
        text = check(NAME, lambda n, threads, took=took: took).text
        assert f"**{said} µs**; your best so far is {best} µs" in text
    assert "| **solved**, 455 µs | 3 | 0 |" in row()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert check(NAME, right).accepted  # has no score, and leaves the best one alone
    assert "| **solved**, 455 µs | 4 | 0 |" in row()


def test_an_answer_that_is_not_there_yet_counts_for_nothing(folder: Path) -> None:
    assert check(NAME, ...).status == "not attempted"
    assert "not attempted yet" in str(check(NAME, ...))
    assert not list(folder.iterdir())


async def _later(n: int, threads: int) -> int:
    return right(n, threads)


def test_an_answer_that_is_no_answer_is_rejected_with_a_cause() -> None:
    kernel = agt.Kernel(solved("01-copy").source)
    with pytest.raises(agt.errors.KernelCompileError):
        agt.Kernel(kernel.source.replace(";", ""))
    for name, answer, cause in (
        ("01-copy", kernel, "didn't compile"),
        (NAME, "four", "a function is wanted here, and this is 'four' (str)"),
        ("01-relu", 4, "should be an `agt.Kernel`, and is 4 (int)"),
        (NAME, lambda: 1, "TypeError"),
        ("01-relu", "void f() {}", "has no kernel"),
        (NAME, _later, "an `async def` runs when somebody awaits it, and here nobody does"),
    ):
        assert cause in check(name, answer).cause


def _nothing(*_: object) -> None: ...


_IN_ITSELF = list[object]()
_IN_ITSELF.append({"a": _IN_ITSELF})
NO_ANSWERS: list[Callable[[], object]] = [
    lambda: np.zeros(3), lambda: {"a": np.zeros(3)}, lambda: (np.zeros(3), np.zeros(3)), agt.Trace,
    lambda: partial(max, 1), lambda: ("?", _nothing), lambda: ("too few streams", _nothing),
    lambda: agt.StreamPoolRoundRobin(2), agt.StreamPoolRoundRobin, lambda: np.float64(3), lambda: _IN_ITSELF,
]  # fmt: skip


@pytest.mark.parametrize("name", EXERCISES)
def test_whatever_is_given_is_an_attempt_with_a_cause_of_one_line(name: str) -> None:
    with agt.using("sim"):
        for number, make in enumerate(NO_ANSWERS, 1):
            outcome = check(name, make())
            assert outcome.status == "rejected", number
            assert "\n" not in outcome.cause
            said = re.findall(r"`(\w+)` should be (?:an `agt.Kernel`|the text)", outcome.cause)
            assert said in ([], [EXERCISES[name].answer])
            assert progress_file.load_progress()[name].attempts == number
        if name == NAME:  # a result that is not there yet may be given too
            assert not check(name, agt.zeros(4).to_host().async_on(agt.create_stream())).accepted
            agt.synchronize()


def test_hints_start_again_after_the_last() -> None:
    given = hints(EXERCISES[NAME])
    shown = [str(hint(NAME)) for _ in range(len(given) + 1)]
    assert shown[0] == shown[-1]
    assert "That was the last one" in shown[-2]
    assert len(set(shown)) == len(given)


def test_reset_forgets_one_or_all() -> None:
    check(NAME, right)
    check("01-relu", agt.relu.source)
    forget(NAME)
    assert "open" in row()
    assert "solved" in row("01-relu")
    assert "an attempt of your own" in str(solution(NAME))
    forget()
    assert "open" in row("01-relu")
    forget()


@pytest.mark.parametrize("call", [check, hint, solution, forget])
def test_an_unknown_name_is_told_those_like_it(call: object) -> None:
    rest = [...] if call is check else []
    for name, told in (
        ("01-gird", "did you mean '01-grid'"),
        ("a policy", "`progress.*lists them"),
    ):
        with pytest.raises(UsageError, match=f"no exercise '{name}'; {told}"):
            call(name, *rest)


FORMAT = '"format": "asyncgpu_tutor.progress/1"'
DAMAGED = [
    "", "{", "[]", "null", '{"format": 1}', f"{{{FORMAT}}}", f'{{{FORMAT}, "exercises": {{"01-grid": 3}}}}',
    *(f'{{{FORMAT}, "exercises": {{"01-grid": {{{record}}}}}}}' for record in (
        '"attempts": "x"', '"attempts": 1e999', '"attempts": "3"', '"solved": "yes"', '"best": "9"',
        '"attempts": 1, "hints": 0, "solved": true, "best": -1')),
    "\0" * 40, "[" * 100_000, "\xff\xfe\0",  # another encoding
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_kept_aside_and_begun_anew(folder: Path, text: str) -> None:
    (folder / progress_file.FILE).write_bytes(text.encode("latin-1"))
    with pytest.warns(UserWarning, match=r"it is kept as progress\.damaged-.*\.json"):
        assert "| open | 0 | 0 |" in row()
    (kept,) = folder.glob("progress.damaged-*.json")
    assert kept.read_bytes() == text.encode("latin-1")
    assert check(NAME, right).accepted
    assert "**solved**" in row()
    file = folder / progress_file.FILE
    assert json.loads(file.read_text())["exercises"][NAME]["solved"] is True
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # a mark of byte order does no harm
    assert "**solved**" in row()


def test_a_link_stays_one(folder: Path) -> None:
    kept, link = folder / "elsewhere" / "mine.json", folder / progress_file.FILE
    kept.parent.mkdir()
    link.symlink_to(kept)
    assert check(NAME, right).accepted
    assert link.is_symlink()
    assert json.loads(kept.read_text())["exercises"][NAME]["solved"] is True


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no working directory")
def test_a_working_directory_that_is_gone_is_where_it_was(folder: Path) -> None:
    here = folder / "gone"
    here.mkdir()
    os.chdir(here)  # the fixture goes back
    hint(NAME)
    shutil.rmtree(here)
    with pytest.warns(UserWarning, match=r"gone.progress\.json cannot be read or written"):
        assert check(NAME, right).accepted
    here.mkdir()  # anew: the process still stands in the old one
    assert "**solved** | 1 | 0 |" in row()
    hint(NAME)
    assert json.loads((here / progress_file.FILE).read_text())["exercises"][NAME]["solved"] is True


def test_two_notebooks_at_once_lose_nothing(folder: Path) -> None:
    """Another notebook solves an exercise while a check of this one is running."""

    def meanwhile(n: int, threads: int) -> int:
        if (n, threads) == (1, 32):
            with progress_file.change() as records:
                records.setdefault("00-develop", progress_file.ExerciseRecord()).solved = True
        return right(n, threads)

    assert check(NAME, meanwhile).accepted
    assert "**solved**" in row()
    assert "**solved**" in row("00-develop")


def test_an_interrupted_check_is_an_attempt() -> None:
    def interrupted(n: int, threads: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(NAME, interrupted)
    assert "| tried | 1 | 0 |" in row()


def test_where_nothing_can_be_written_progress_lasts_as_long_as_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError("read-only")

    with monkeypatch.context() as readonly:  # as where the whole file system is read-only
        readonly.setattr(Path, "write_text", refuse)
        readonly.setattr(Path, "unlink", refuse)
        with pytest.warns(UserWarning, match="your progress is kept until Python ends") as said:
            assert check(NAME, right).accepted
        assert len(said) == 1
        assert "**solved**" in row()
    assert not Path(progress_file.FILE).exists()
    hint(NAME)
    assert "**solved**" in row()
    assert Path(progress_file.FILE).exists()
    forget()


def solve(name: str) -> None:
    with progress_file.change() as records:
        records.setdefault(name, progress_file.ExerciseRecord()).solved = True


def written() -> list[str]:
    return list(json.loads(Path(progress_file.FILE).read_text())["exercises"])


def elsewhere(names: list[str]) -> subprocess.Popen[bytes]:
    """Another process, which solves these, one after the other."""
    code = f"from tests.asyncgpu_course.test_api import solve\nfor name in {names}: solve(name)"
    root = str(Path(__file__).parents[2])
    return subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": root})


def failing(*_: object, **__: object) -> Any:
    raise PermissionError("not now")


@pytest.mark.parametrize("where", ["read_bytes", "write_text", "replace", "os.open"])
def test_what_cannot_be_read_or_written_for_a_moment_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    where = where if "." in where else f"pathlib.Path.{where}"
    solve("a")

    def fail_at(name: str) -> None:
        with monkeypatch.context() as moment:
            moment.setattr(where, failing)
            with pytest.warns(UserWarning, match="not now.*kept until Python ends"):
                solve(name)

    fail_at("b")
    assert written() == ["a"]
    file = Path(progress_file.FILE)  # another process forgets one exercise, and solves another
    file.write_text(file.read_text().replace('"a"', '"c"'))
    assert list(progress_file.load_progress()) == ["c", "b"]
    solve("d")
    assert written() == ["b", "c", "d"]
    fail_at("e")  # which is said anew


def test_processes_that_solve_at_once_lose_nothing() -> None:
    names = [[f"{p}{n:02}" for n in range(20)] for p in "ab"]
    assert [process.wait(60) for process in [elsewhere(some) for some in names]] == [0, 0]
    assert written() == [name for some in names for name in some]


def test_a_lock_that_nobody_gives_back_is_waited_for_no_longer_than_its_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = folder / f".{progress_file.FILE}.lock"
    lock.touch()  # of a process that was killed
    solve("a")
    assert (written(), lock.exists()) == (["a"], False)
    monkeypatch.setattr(progress_file, "locked", partial(locked, wait_s=0))
    with locked(lock), pytest.warns(UserWarning, match="another program"):
        solve("b")
    assert written() == ["a"]
    solve("c")
    assert written() == ["a", "b", "c"]


def test_two_damages_in_a_second_leave_two_copies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_file.time, "strftime", lambda _: "now")
    for text in ("one", "two"):
        Path(progress_file.FILE).write_text(text)
        with pytest.warns(UserWarning, match="kept as"):
            progress_file.load_progress()
    assert sorted(path.read_text() for path in folder.iterdir()) == ["one", "two"]


def test_a_name_that_the_course_no_longer_has_is_kept_and_not_shown(folder: Path) -> None:
    with progress_file.change() as records:
        records["00-gone"] = progress_file.ExerciseRecord(3, 1, True)
    check(NAME, right)
    assert "00-gone" not in str(progress())
    assert progress_file.load_progress()["00-gone"] == progress_file.ExerciseRecord(3, 1, True)
