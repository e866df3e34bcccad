"""Every exercise: the starter is not accepted, the solution is, each plausible wrong answer is rejected,
and answers that are right in another way than the solution, or faster, are accepted.

Starters and solutions are cells of the sources in ``course/``, and so is the call of `check` that is
tested here: it is the learner's own. Beside them are ``course/wrong_answers/`` and ``right_answers/``.

Right answers to one exercise in many ways take minutes, and no change but one of a check is likely to refuse
the second of them. So they rest on the checks: see tests/full_runs.py.

All wrong answers take ten minutes, and most are told what another one is told already. So a full run notes,
in ``daily_answers/``, all but the few that reach each reason at the least cost, and a daily run tries those,
and whatever was added or changed since. No assertion is different: each reason has to be reached in both.
What the answers are told is held word for word: see words_told.py.
"""

import ast
import hashlib
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import Outcome, Rejected, check, forget, hint, solution
from asyncgpu_course.checks import sandbox, schedule
from asyncgpu_course.checks.device import CheckDevice
from asyncgpu_course.exercises import chapters
from asyncgpu_course.exercises.answers import explanation, hints
from asyncgpu_course.exercises.chapters import EXERCISES
from tests.tools import tool as load

from . import words_told

ROOT = Path(__file__).resolve().parents[3]
FEWEST_WRONG = 3
ASKED = 40  # lines on what a check asks
DAILY = Path(__file__).parents[1] / "daily_answers"  # by chapter, what a daily run spares
CHECKS = {n for n, f in vars(schedule).items() if getattr(f, "__module__", "") == schedule.__name__}
MEASURES = {"driver_calls", "most_in_flight", "results", "stretches"}  # for others to judge
TRIALS = {"counted", "must", "tuple_of"}
REASONS = {"Rejected", "each_equal", "equal", "in_order", *CHECKS, *TRIALS} - MEASURES


def _chapters() -> Iterator[tuple[str, dict[str, list[Any]], list[Any]]]:
    """For each source its name, by id the cells, and the wrong answers."""
    tool = load("build_notebooks")
    for source in tool.sources(ROOT):
        page, wrong = tool.chapter(source)
        cells: dict[str, list[Any]] = {}
        for cell in page:
            cells.setdefault(cell.id, []).append(cell)
        yield source.name, cells, wrong


_EVERY = [*_chapters()]
CHAPTERS = {name: cells for name, cells, _ in _EVERY}
WRONG = {name: wrong for name, _, wrong in _EVERY if wrong}


def _right() -> Iterator[Any]:
    """All of them; the first of each exercise is tried in every run, the others when checks changed."""
    for name, cells in CHAPTERS.items():
        every, met = [c for same in cells.values() for c in same], set[str]()
        beside = load("build_notebooks").beside(ROOT / "course" / name, "right_answers", every)
        for number, cell in enumerate(beside):
            marks = [pytest.mark.rests_on("checks")] if cell.id in met else []
            yield pytest.param(name, cell, id=f"{cell.id}-{number}", marks=marks)
            met.add(cell.id)


RIGHT = [*_right()]
ANSWERS = [
    pytest.param(chapter, cell, id=f"{cell.id}-{cell.only}-{number}")
    for chapter, cells in CHAPTERS.items()
    for name in cells
    for number, cell in enumerate(cells[name])
    if cell.only in ("starter", "solution")
]


def _name(call: ast.AST) -> str:
    """`launches(...)`, or `schedule.launches(...)`; nothing of what is no call."""
    function = getattr(call, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def _helpers() -> set[str]:
    """Functions of the checks that can reject an answer because others do that they call."""
    folder, calls = Path(chapters.__file__).parent, dict[str, set[str]]()
    for file in (*folder.glob("*.py"), *(folder.parents[1] / "checks").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                calls.setdefault(node.name, set()).update(map(_name, ast.walk(node)))
    found = set(REASONS)
    while more := {name for name, called in calls.items() if called & found} - found:
        found |= more
    return found - REASONS


HELPERS = _helpers()


def _reasons(chapter: str) -> list[tuple[str, range, bool]]:
    """The file and the lines of each call, in the chapter's checks, that can reject an answer.

    Last, whether some answer has to be rejected there. If the call is a statement of its own, and a helper
    rejects, that is not asked for, but a daily run tries an answer that is, or nobody would miss the call.

    Read before the answers run: a failed task of theirs may be collected at any time and print its
    traceback, for which Python 3.11 parses, and a parse within a parse ends in a SystemError there.
    """
    number = chapter.partition("_")[0]
    folder = Path(chapters.__file__).parent
    found: list[tuple[str, range, bool]] = []
    for source in (*folder.glob(f"ch{number}.py"), *folder.glob(f"ch{number}_*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            alone = isinstance(node, ast.Expr) and _name(node.value) in HELPERS
            if alone or (isinstance(node, ast.Call) and _name(node) in REASONS):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                found.append((str(source), lines, not alone))
    return found


REASON_LINES = {name: _reasons(name) for name in WRONG}


def checked(chapter: str, answer: Any) -> Outcome:
    """The outcome of an answer, in a notebook where only the setup has run."""
    cells = CHAPTERS[chapter]
    names: dict[str, Any] = {}
    with agt.using("sim"):
        exec(cells["setup"][0].text, names)
        exec(compile(answer.text, __file__, "exec"), names)  # a test's: it may start what it likes
    (call,) = cells[f"{answer.id}-check"]
    outcome = eval(compile(call.text, chapter, "eval"), names)
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.parametrize(("chapter", "answer"), ANSWERS)
def test_the_check_knows_right_from_untouched(
    chapter: str, answer: Any, tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check asks is told, since many sizes and cases of it are in no words."""
    asked, given = Counter[str](), list[str]()  # the sums of the numbers that are copied there
    enqueue, left_whole = CheckDevice.enqueue, sandbox.left_whole

    def noted(device: CheckDevice, piece: Any, *where: Any, **how: Any) -> None:
        asked[f"{piece.kind} {piece.name} {piece.detail or ''}"] += 1
        summed = replace(piece, begin=partial(begun, piece)) if piece.kind == "h2d" else piece
        enqueue(device, summed, *where, **how)

    def begun(piece: Any, found: Any) -> Any:
        work = piece.begin(found)
        words = piece.writes[0].cells.data[: piece.detail["bytes"] // 4 * 4].view(np.float32)
        numbers = np.where(np.abs(words) < 1e-30, words.view(np.int32), np.nan_to_num(words))
        given.append(f"{np.abs(numbers.clip(-1e9, 1e9)).sum():.2e}")
        return work

    def called(*args: Any) -> Any:
        counts = sys.gettrace()  # a check's, of the answer's steps
        sys.settrace(None)
        mine = [sandbox.brief(arg) for arg in args if not isinstance(arg, tuple)]
        for trace in (arg for arg in args if isinstance(arg, agt.Trace)):
            blocks = sum(math.prod(span.detail.get("grid", ())) for span in trace)
            mine.append(f"{sum(s.start + s.end for s in trace):.3g} us, {blocks} blocks")
        asked[f"call({', '.join(mine)})"] += 1
        sys.settrace(counts)
        return left_whole(*args)

    monkeypatch.setattr(CheckDevice, "enqueue", noted)
    monkeypatch.setattr(sandbox, "left_whole", called)
    outcome = checked(chapter, answer)
    if answer.only == "starter":
        assert outcome.status == "not attempted"
        return
    assert outcome.accepted, outcome.cause
    assert explanation(EXERCISES[answer.id]) in outcome.text
    for line in sorted(asked)[:ASKED]:
        tell(f"{asked[line]} x {line}")
    tell(f"{len(asked)} things are asked, {asked.total()} times")
    tell(f"{len(given)} copies there: {' '.join(list(dict.fromkeys(given))[:ASKED])}")
    tell(outcome.text.partition("is solved.")[2][:40])  # with the score of a challenge


@pytest.mark.parametrize(("chapter", "answer"), RIGHT)
def test_another_right_answer_is_accepted(
    chapter: str, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Solutions meet all adversaries, above.
    monkeypatch.setattr("asyncgpu_course.api.ADVERSARIES", (1,))
    outcome = checked(chapter, answer)
    assert outcome.accepted, outcome.cause


def _digest(answer: Any) -> str:
    return hashlib.sha256(f"{answer.id}\n{answer.cause}\n{answer.text}".encode()).hexdigest()[:12]


def _cheapest(tried: dict[str, tuple[float, set[tuple[str, int]]]]) -> list[str]:
    """The answers that reach, between them, what all reach: the one first that brings most for its time."""
    chosen: list[str] = []
    missing = set[tuple[str, int]]().union(*(reached for _, reached in tried.values()))
    while missing:
        best = max(tried, key=lambda name: len(tried[name][1] & missing) / tried[name][0])
        chosen.append(best)
        missing -= tried[best][1]
    for name in sorted(chosen, key=lambda name: tried[name][0], reverse=True):
        others = (tried[other][1] for other in chosen if other != name)
        if tried[name][1] <= set[tuple[str, int]]().union(*others):
            chosen.remove(name)  # what it brought, later ones bring too
    return sorted(chosen)


@pytest.mark.parametrize("chapter", WRONG)
def test_each_wrong_answer_is_rejected_and_each_reason_is_given_to_some(
    chapter: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """A check that no wrong answer fails is none: in the chapter's module, each can be seen to fail."""
    reasons = REASON_LINES[chapter]
    reached: set[tuple[str, int]] = set()
    tried: dict[str, tuple[float, set[tuple[str, int]]]] = {}
    record = (DAILY / chapter).with_suffix(".json")
    spared, note = set[str](), pytestconfig.getoption("--note")
    told_words: words_told.Words = {}
    if not (note or pytestconfig.getoption("--full")) and record.exists():
        spared = set(json.loads(record.read_text("utf-8"))["spared"])
    plain = Rejected.__init__

    def noted(self: Rejected, *args: Any) -> None:
        frame = sys._getframe(1)
        while frame is not None:
            reached.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        plain(self, *args)

    monkeypatch.setattr(Rejected, "__init__", noted)
    answers = words_told.named(WRONG[chapter])
    for number, (its_name, answer) in enumerate(answers):
        if _digest(answer) in spared:
            continue
        name = f"{answer.id}, wrong answer {number} of the chapter"
        before, start = set(reached), time.process_time()
        reached.clear()
        forget(answer.id)  # each is told what the first one is told
        outcome = checked(chapter, answer)
        assert outcome.status == "rejected", name
        assert answer.cause in outcome.cause, name
        assert "\n" not in outcome.cause, name
        assert outcome.cause in outcome.text, name
        told_words.setdefault(answer.id, {})[its_name] = words_told.words(answer.id, outcome)
        told = {
            (file, span[0]) for file, span, _ in reasons for line in span if (file, line) in reached
        }
        tried[_digest(answer)] = time.process_time() - start, told
        reached |= before

    for source, lines, asked in reasons:
        assert not asked or any((source, line) in reached for line in lines), (
            f"{source}, line {lines[0]}: no wrong answer fails this"
        )
    if note:
        words_told.note(chapter, told_words)
    words_told.hold(chapter, told_words, answers)
    if pytestconfig.getoption("--full"):
        spared = sorted(tried.keys() - set(_cheapest(tried)))
        text = json.dumps({"spared": spared}, indent=1) + "\n"
        DAILY.mkdir(exist_ok=True)
        record.write_text(text, encoding="utf-8", newline="\n")


def test_each_exercise_is_in_one_chapter_with_all_that_belongs_to_it() -> None:
    homes = [
        name
        for cells in CHAPTERS.values()
        for name, same in cells.items()
        if any(cell.only == "solution" for cell in same)
    ]
    assert sorted(homes) == sorted(EXERCISES)
    for name, exercise in EXERCISES.items():
        (chapter,) = [chapter for chapter, cells in CHAPTERS.items() if name in cells]
        cells = CHAPTERS[chapter][name]
        wrong = [cell for cell in WRONG[chapter] if cell.id == name]
        assert sorted(cell.only for cell in cells) == sorted(load("build_notebooks").PARTS)
        assert len(wrong) >= FEWEST_WRONG, name
        texts = [cell.text for cell in [*cells, *wrong] if cell.kind == "code"]
        assert len(set(texts)) == len(texts), f"{name}: an answer is there twice"
        assert len(hints(exercise)) >= 2


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_come_one_by_one_and_the_solution_after_an_attempt(name: str) -> None:
    (chapter,) = [chapter for chapter, cells in CHAPTERS.items() if name in cells]
    (solved,) = [cell for cell in CHAPTERS[chapter][name] if cell.only == "solution"]
    exercise = EXERCISES[name]
    for number, text in enumerate(hints(exercise), 1):
        assert str(hint(name)).startswith(f"**Hint {number} of {len(hints(exercise))}.** {text}")
    assert solved.text not in str(solution(name))
    check(name, None)  # which is an attempt
    assert solved.text in str(solution(name))


def test_no_mistake_is_told_that_would_have_shown_in_an_earlier_case() -> None:
    """Only by chance does such an answer give what the mean of all times gives, of another trace."""

    def costliest(trace: agt.Trace, names: list[str]) -> str:
        return "is it still?" if "is it still?" in names else "f"

    assert check("08-costliest", costliest).cause.endswith(
        "here 'stencil', and returned 'is it still?'"
    )
