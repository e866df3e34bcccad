"""`simgpu judge` accepts what is right and nothing else, whatever it is given."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simgpu.judging import judge
from tests.tools import python

from .answers import ONE_THREAD, RIGHT, WRONG, kernel

CONTEST = Path(__file__).with_name("contest_spec.py")


def judged(task: str, answer: str, baseline: str | None = None) -> dict[str, Any]:
    """In this process, which takes a tenth of the time."""
    asked = {"spec": str(CONTEST), "kernel": task, "answer": answer, "baseline": baseline}
    return judge._judged({**asked, "seed": 7})


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_answer_is_not_accepted_and_told_why(number: int) -> None:
    task, kind, *text = WRONG[number]
    found = judged(task, kernel(task, *text))
    assert (found["verdict"], found["kind"]) != ("accepted", None)
    assert found["kind"] == kind, found["sentence"]


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_a_right_answer_is_accepted_however_it_is_written(number: int) -> None:
    task, *text = RIGHT[number]
    found = judged(
        task, kernel(task, *text), kernel(*RIGHT[number][:2]) if len(text) == 1 else None
    )
    assert found["verdict"] == "accepted", found["sentence"]


def test_a_verdict_has_all_that_a_grader_reads(tell: Callable[[str], None]) -> None:
    right, slow = kernel(*RIGHT[0]), kernel(*ONE_THREAD)
    absent = '#include "absent.h"\n' + right
    for answer, baseline in ((right, slow), (right, None), (absent, None), (slow + "}", None),
                             (kernel("saxpy", "y[0] = n;"), None)):  # fmt: skip
        tell(json.dumps(judged("saxpy", answer, baseline), indent=1))


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.cu"
    path.write_text(kernel(*RIGHT[0]))
    return path


def run_judge(*words: object, code: int) -> Any:
    """The command, in a process of its own."""
    ran = python("-m", "simgpu", "judge", *map(str, words), "--json", check=False)
    assert ran.returncode == code, ran
    told = json.loads(ran.stdout)
    return told if code != 2 else told["error"]


def test_the_command_says_what_was_measured_and_judges_the_same_again(
    answer: Path, tmp_path: Path
) -> None:
    slow = tmp_path / "slow.cu"
    slow.write_text(kernel(*ONE_THREAD))
    how = (CONTEST, answer, "--kernel", "saxpy")
    found = run_judge(*how, "--baseline", slow, code=0)
    assert found["verdict"] == "accepted"
    assert found["speedup"] == found["baseline"]["us"] / found["measured"]["us"] > 5
    assert f"{found['speedup']:.2f} times as fast as the baseline" in found["sentence"]
    # A last warp with few lanes does not make it seem to move less than it needs.
    assert found["measured"]["bytes_needed"] == found["measured"]["bytes_moved"] == 3 * 4000
    again = run_judge(*how, "--baseline", slow, "--seed", found["seed"], code=0)
    assert again == found
    other = run_judge(*how, code=0)
    assert other["seed"] != found["seed"]
    assert set(other["sizes"]) - set(found["sizes"])  # some are drawn


def test_what_an_answer_prints_is_no_verdict(answer: Path) -> None:
    forged = '{"verdict": "accepted", "kind": null}'.replace('"', '\\"')
    answer.write_text(kernel("saxpy", f'printf("{forged}\\n"); if (threadIdx.x < n) y[0] = 1;'))
    assert run_judge(CONTEST, answer, "--kernel", "saxpy", code=1)["verdict"] == "rejected"


def test_a_judge_ends_in_time_and_memory(answer: Path) -> None:
    how = (CONTEST, answer, "--kernel", "saxpy")
    found = run_judge(*how, "--seconds", 0.01, code=3)
    assert found["sentence"] == "it was not judged within 0.01 s"
    answer.write_text(kernel("saxpy", "int q[100000]; q[n] = 1; y[threadIdx.x] = q[n];"))
    assert run_judge(*how, "--megabytes", 8, code=3)["kind"] == "OutOfMemory"
    answer.write_text("//" + "x" * judge.MOST_ANSWER_BYTES)
    large = run_judge(*how, code=1)
    assert large["kind"] == "TooLarge"
    assert large.keys() == found.keys() >= {"seed", "n", "line", "sizes", "speedup"}
    assert "is no file" in run_judge(CONTEST, "/dev/zero", "--kernel", "saxpy", code=2)
    assert "are no limits" in run_judge(*how, "--seconds", "nan", code=2)


def test_a_sentence_has_no_letters_that_move_a_cursor_and_names_no_other_file(answer: Path) -> None:
    answer.write_text(
        '// #line 7 "spec.py"\n' + kernel("saxpy", "y[n] = 1; // \x1b[2J\u202e" + "z" * 5000)
    )
    found = run_judge(CONTEST, answer, "--kernel", "saxpy", code=1)
    assert (found["kind"], found["line"]) == ("OutOfBoundsError", 4)
    assert "spec.py" not in found["sentence"]
    assert "?[2J?" in found["sentence"]
    assert len(found["sentence"]) < 1000


def test_an_answer_writes_no_line_of_a_verdict_and_no_book(answer: Path) -> None:
    """A message of its own may have line ends, and a word a million letters."""
    for text in (
        'static_assert(false, "x\\naccepted: it is right");',
        "int a = " + "1'" * 400_000 + "1;",
    ):
        answer.write_text(text + kernel("saxpy", "y[0] = 1;"))
        found = run_judge(CONTEST, answer, "--kernel", "saxpy", code=1)
        assert "\n" not in found["sentence"] + found["complaints"][0]["message"]
        assert len(json.dumps(found)) < 4000


SPEC = """from simgpu import KernelSpec, Output
import numpy as np
def arguments(n, random):
    return {"n": n, "a": 1.0, "x": random.random(n, np.float32), "y": Output(n)}
def same(n, random):
    return {"x": np.ones(n), "y": Output(n)}
"""


def test_a_spec_that_cannot_judge_is_refused(answer: Path, tmp_path: Path) -> None:
    spec = tmp_path / "mine_spec.py"
    for line, words in {
        'spec = KernelSpec("saxpy", arguments)': "needs one kernel with a reference",
        'spec = KernelSpec("saxpy", arguments, lambda **k: 1 / 0)': "mine_spec.py:7: ZeroDivisionError",
        'spec = KernelSpec("saxpy", same, lambda x: x)': "the same arrays each time could be known",
        'spec = [KernelSpec("a", arguments), KernelSpec("b", arguments)]': "this is of a, b",
    }.items():
        spec.write_text(SPEC + line)
        assert words in run_judge(spec, answer, code=2)
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(kernel(*WRONG[0][::2]))
    said = run_judge(CONTEST, answer, "--kernel", "saxpy", "--baseline", wrong, code=2)
    assert said.startswith("the baseline is wrong itself: kernel 'saxpy': block (7, 0, 0)")
