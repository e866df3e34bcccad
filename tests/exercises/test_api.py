"""check, hint, solution, progress, reset: in any order, twice, and whatever became of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import UsageError
from asyncgpu_tutor.exercises import check, hint, progress, progress_file, reset, solution, solved
from asyncgpu_tutor.exercises.answers import hints
from asyncgpu_tutor.exercises.chapters import EXERCISES

NAME = "01-grid"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_progress_of_one_chapter_lists_its_exercises_and_no_others() -> None:
    assert check(NAME, right).accepted
    listed = str(progress("01"))
    names = [name for name in EXERCISES if name.startswith("01-")]
    assert listed.startswith(f"Solved: 1 of {len(names)}.")
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
    assert f"Solved: 1 of {len(EXERCISES)}." in str(progress())

    assert not check(NAME, wrong).accepted
    assert check(NAME, right).accepted
    assert "**solved**" in row()
    assert [path.name for path in folder.iterdir()] == [progress_file.FILE]


def test_an_answer_that_is_not_there_yet_counts_for_nothing(folder: Path) -> None:
    assert check(NAME, ...).status == "not attempted"
    assert "not attempted yet" in str(check(NAME, ...))
    assert not list(folder.iterdir())


def test_an_answer_that_is_no_answer_is_rejected_with_a_cause() -> None:
    assert "a function is wanted here, and this is 'four' (str)" in check(NAME, "four").cause
    assert "should be an `agt.Kernel`, and is 4 (int)" in check("01-relu", 4).cause
    assert "TypeError" in check(NAME, lambda: 1).cause
    assert "has no kernel" in check("01-relu", "void f() {}").cause


def test_a_kernel_may_be_given_as_its_source() -> None:
    source = agt.relu.source

    assert check("01-relu", source).accepted


def test_hints_start_again_after_the_last() -> None:
    given = hints(EXERCISES[NAME])
    shown = [str(hint(NAME)) for _ in range(len(given) + 1)]

    assert shown[0] == shown[-1]
    assert "That was the last one" in shown[-2]
    assert len(set(shown)) == len(given)


def test_reset_forgets_one_or_all() -> None:
    check(NAME, right)
    check("01-relu", agt.relu.source)
    reset(NAME)
    assert "open" in row()
    assert "solved" in row("01-relu")
    assert "an attempt of your own" in str(solution(NAME))
    reset()
    assert "open" in row("01-relu")
    reset()


@pytest.mark.parametrize("call", [check, hint, solution, reset])
def test_an_unknown_name_is_told_the_known_ones(call: object) -> None:
    args = ("01-gird", ...) if call is check else ("01-gird",)
    with pytest.raises(
        UsageError, match=r"no exercise '01-gird'; there are .*'01-grid', '01-relu'"
    ):
        call(*args)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 1}',
        '{"format": "asyncgpu_tutor.progress/1"}',
        '{"format": "asyncgpu_tutor.progress/1", "exercises": {"01-grid": 3}}',
        '{"format": "asyncgpu_tutor.progress/1", "exercises": {"01-grid": {"attempts": "x"}}}',
        "\0" * 40,
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_begun_anew(folder: Path, text: str) -> None:
    (folder / progress_file.FILE).write_text(text)

    assert "| open | 0 | 0 |" in row()
    assert check(NAME, right).accepted
    assert "**solved**" in row()
    assert (
        json.loads((folder / progress_file.FILE).read_text())["exercises"][NAME]["solved"] is True
    )


def test_a_file_of_another_encoding_is_begun_anew(folder: Path) -> None:
    (folder / progress_file.FILE).write_bytes(b"\xff\xfe\x00")

    assert "| open | 0 | 0 |" in row()


def test_where_nothing_can_be_written_progress_lasts_as_long_as_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError("read-only")

    with monkeypatch.context() as readonly:
        readonly.setattr(Path, "write_text", refuse)
        assert check(NAME, right).accepted
        assert "**solved**" in row()
        progress_file.save(progress_file.load())
    assert not Path(progress_file.FILE).exists()
    progress_file.save(progress_file.load())
    assert "**solved**" in row()
    assert Path(progress_file.FILE).exists()
    reset()


def test_a_name_that_the_course_no_longer_has_is_kept_and_not_shown(folder: Path) -> None:
    progress_file.save({"00-gone": progress_file.Record(3, 1, True)})
    check(NAME, right)

    assert "00-gone" not in str(progress())
    assert progress_file.load()["00-gone"] == progress_file.Record(3, 1, True)
