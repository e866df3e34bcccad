"""A wrong answer is told what it was told before, word for word, unless somebody means it.

``words_told/`` has the words by chapter, exercise and answer. The name of an answer there is the part of
them that ``course/wrong_answers/`` demands. All else is held here alone: in which case and with which numbers
it was wrong, what is advised, which spans of the picture are marked. `COMMAND` writes a chapter's words anew.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asyncgpu_course import Outcome
from tests.told import HELD, plain

FOLDER = Path(__file__).parents[1] / "words_told"
COMMAND = "python -m pytest --note tests/asyncgpu_course/exercises/test_chapters.py"
# What is not held of an exercise's words, because it is another in some runs.
UNHELD = {
    "06-as-completed": r"\d+",  # the order of a set of tasks
    "06-largest": r"^with .*?, (?=a task)",  # in which case a task is asked before it is done
    "13-batch": r"\d+",  # how many steps Python takes depends on its version
}

Words = dict[str, dict[str, str]]  # by exercise and by name of the answer


def named(answers: Iterable[Any]) -> list[tuple[str, Any]]:
    """The answers of a chapter, each with a name that no other answer to its exercise has."""
    found: list[tuple[str, Any]] = []
    for answer in answers:
        same = sum((a.id, a.cause) == (answer.id, answer.cause) for _, a in found)
        found.append((f"{answer.cause} ({same + 1})" if same else answer.cause, answer))
    return found


def words(exercise: str, outcome: Outcome) -> str:
    """All that the learner is told, in one line that is the same in each run."""
    text = plain(" ".join(outcome.text.partition("*: ")[2].split()))
    return re.sub(UNHELD[exercise], "#", text) if exercise in UNHELD else text


def note(chapter: str, told: Words) -> None:
    """Write down what all answers of a chapter are told."""
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / chapter).with_suffix(".json").write_text(text, encoding="utf-8", newline="\n")


def hold(chapter: str, told: Words, known: Iterable[tuple[str, Any]]) -> None:
    """Compare what some answers of a chapter are told with what is noted of all of them."""
    file = (FOLDER / chapter).with_suffix(".json")
    noted: Words = json.loads(file.read_text("utf-8")) if file.exists() else {}
    wrong = [
        f"{exercise}, {name!r}:\n  noted: {noted.get(exercise, {}).get(name)}\n  told:  {text}"
        for exercise, texts in told.items()
        for name, text in texts.items()
        if noted.get(exercise, {}).get(name) != text
    ]
    there = {(answer.id, name) for name, answer in known}
    wrong += [
        f"{exercise}, {name!r}: noted, and no wrong answer any more"
        for exercise, texts in noted.items()
        for name in texts
        if (exercise, name) not in there
    ]
    anew = f"{COMMAND} -k 'is_rejected and {Path(chapter).stem}'"
    assert not (wrong and HELD), "\n".join(
        [f"other words than are noted. If they are meant: {anew}", *wrong]
    )
