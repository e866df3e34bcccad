"""`simgpu judge`: is an answer right, and how fast is it, for graders of people and of machines.

Nobody has read an answer before it is judged, so it may be hostile. Its text is only ever interpreted, in a
process of its own with a limit of time and of memory, and no file is opened that it names. A kernel can't
print a verdict: what it prints is dropped, and the verdict comes on a pipe that only the judge has. Seeds and
some sizes are drawn for each judgement. The reference computes its values before the answer runs, and they
never get into the simulated device's memory. docs/kernels_in_ci.md says what isn't decided.
"""

import json
import math
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from simgpu.cuda_c import device_part, join_headers
from simgpu.errors import UsageError
from simgpu.judging.kernel_spec import SpecError, asked, file_beside, is_array, load_specs
from simgpu.judging.limits import limit_this_process, now_and_then
from simgpu.judging.trial import Trials

MOST_ANSWER_BYTES = 1 << 20
_MOST_SAID = 1000  # characters
_CHILD = "from simgpu.judging.judge import judge_stdin; judge_stdin()"
_NOT_ITS_FAULT = ("UnsupportedFeatureError", "OutOfMemoryError", "DeviceError")
CODES = {"accepted": 0, "rejected": 1, "undecided": 3}


def judge_kernel(
    spec: Path,
    answer: Path,
    *,
    baseline: Path | None = None,
    kernel: str | None = None,
    seed: int | None = None,
    seconds: float = 60,
    megabytes: int = 1024,
) -> dict[str, Any]:
    """Judge an answer in CUDA C; docs/kernels_in_ci.md says what is in a verdict.

    The `spec` is executed. The `baseline` is the kernel's file beside it, if none is named; `kernel` is asked
    for if the spec has several; an earlier verdict's `seed` judges the same again. `seconds` and, on Linux,
    `megabytes` limit all that is done. Raises `SpecError` or `UsageError` if a spec or a file cannot be used.
    """
    seed, beside = secrets.randbits(62) if seed is None else seed, baseline or file_beside(spec)
    if not (0 < seconds < 1e6 and 0 < megabytes < 1e9 and seed >= 0):
        raise UsageError(f"{seconds} s and {megabytes} MB are no limits, or {seed} is no seed")
    task = {
        "spec": str(spec), "kernel": kernel, "answer": _text(answer), "megabytes": megabytes, "seed": seed,
        "seconds": seconds, "baseline": None if beside is None else join_headers(beside),
    }  # fmt: skip
    if task["answer"] is None:
        text = f"the answer is larger than {MOST_ANSWER_BYTES:,} bytes"
        return {**_verdict("rejected", "TooLarge", text), "seed": seed}
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-c", _CHILD]
    env["OPENBLAS_NUM_THREADS"] = "1"  # each would take its share of the memory
    how: Any = {"stdout": subprocess.PIPE, "timeout": seconds, "env": env}
    try:
        ran = subprocess.run(command, input=json.dumps(task).encode(), check=False, **how)
        found = json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        found = _verdict("undecided", "OutOfTime", f"it was not judged within {seconds:g} s")
    except ValueError:
        found = _verdict("undecided", "Crash", "the judge ended before it had a verdict")
    if "spec_error" in found:
        raise SpecError(found["spec_error"])
    return {**found, "seed": seed}


def _text(file: Path) -> str | None:
    """The text of a file; None if it is too large."""
    if not file.is_file():
        raise UsageError(f"{file} is no file")
    with file.open("rb") as stream:
        data = stream.read(MOST_ANSWER_BYTES + 1)
    # `join_headers` makes such marks: an answer must not name other files.
    text = data.decode("utf-8-sig", errors="replace").replace("// #line ", "// # line ")
    return text if len(data) <= MOST_ANSWER_BYTES else None


def told_in_a_line(text: str) -> str:
    """A text that may quote a stranger: one line of it, printable and not long."""
    line = " ".join(text[: 4 * _MOST_SAID].split())
    return "".join(c if c.isprintable() else "?" for c in line)[:_MOST_SAID]


def _verdict(verdict: str, kind: str | None, sentence: str, **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"verdict": verdict, "kind": kind, "sentence": told_in_a_line(sentence)}
    told |= {"n": None, "line": None, "sizes": [], "left_out": {}, "measured": {}}
    return {**told, "baseline": None, "speedup": None, **more}


def judge_stdin() -> None:
    """Judge what standard input asks for, in a process of its own."""
    task = json.loads(sys.stdin.buffer.read())
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # for whatever else prints
        # The clock of whoever waits for us may have stopped, with them.
        look, _ = limit_this_process(task["megabytes"], math.ceil(task["seconds"]) + 1)
        try:
            with now_and_then(look):
                found = _judged(task)
        except SpecError as error:
            found = {"spec_error": str(error)}
        except MemoryError:
            text = f"it needs more than {task['megabytes']:,} MB"
            found = _verdict("undecided", "OutOfMemory", text)
        except Exception as error:  # noqa: BLE001 - a fault of ours is no verdict about the answer
            found = _verdict("undecided", "Internal", f"simgpu failed: {error!r}")
        json.dump(found, answer)


def _judged(task: dict[str, Any]) -> dict[str, Any]:
    file, random = Path(task["spec"]).resolve(), np.random.default_rng(task["seed"])
    specs = load_specs(file)
    chosen = [spec for spec in specs if task["kernel"] in (None, spec.kernel)]
    if len(chosen) != 1 or chosen[0].expected is None:
        names = ", ".join(spec.kernel for spec in specs)
        raise SpecError(f"a judge needs one kernel with a reference: this is of {names}")
    spec, largest = chosen[0], max(chosen[0].sizes)
    drawn: list[int] = random.integers(1, largest + 1, 2).tolist() if spec.awkward is None else []
    sizes = dict.fromkeys([*asked(file, spec.awkward_sizes), *drawn, *sorted(spec.sizes)])
    seeds: dict[int, list[int]] = {n: random.integers(2**62, size=2).tolist() for n in sizes}
    one, other = (asked(file, spec.given, largest, seed) for seed in seeds[largest])
    arrays = [name for name, value in one.items() if is_array(value)]
    if arrays and all(np.array_equal(one[k], other[k]) for k in arrays):
        raise SpecError("the same arrays each time could be known: draw them from random")
    baseline = None
    if task["baseline"] is not None:
        baseline = Trials(spec, task["baseline"], file, "baseline")
        if not baseline.at(largest, seeds[largest]):
            raise SpecError(f"the baseline is wrong itself: {baseline.complaints[0].message}")
    trials = Trials(spec, task["answer"], file, "answer")
    all(trials.at(n, those) for n, those in seeds.items())  # until one is wrong
    told: dict[str, Any] = {"seed": task["seed"], **trials.as_dict()}
    for complaint in told["complaints"]:
        complaint["message"] = told_in_a_line(complaint["message"])
    if trials.complaints:
        wrong = trials.complaints[0]
        verdict = "undecided" if wrong.kind in _NOT_ITS_FAULT else "rejected"
        sentence = f"{wrong.kind} at n = {wrong.sizes[0]}: {wrong.message}"
        return _verdict(verdict, wrong.kind, sentence, n=wrong.sizes[0], line=wrong.line, **told)
    if trials.last is None:
        raise SpecError("nothing was launched at any size")
    if missing := device_part(task["answer"]).missing:
        text = f"it is right if there is a header {missing[0]!r}, which is neither C's nor CUDA's"
        return _verdict("undecided", "MissingHeader", text, **told)
    us = trials.last.time.us
    sentence = f"it is right at {len(trials.sizes)} sizes, and takes {us:.1f} us at n = {largest}"
    if baseline is not None and baseline.last is not None:
        told |= {"baseline": baseline.measured(), "speedup": baseline.last.time.us / us}
        sentence += f", {told['speedup']:.2f} times as fast as the baseline, by the model"
    return _verdict("accepted", None, sentence, **told)
