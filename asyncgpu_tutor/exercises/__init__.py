"""The tools of the notebooks for learners: predictions, and exercises with checks.

- `Prediction`: an answer before the reveal, scored against the trace.
- `check`, `hint`, `solution`, `solved`, `progress`, `forget`: the exercises (`api`).

::

    chapters       the exercises, one file a chapter: what each one checks; written with `agt`
    exercise       what an exercise is, and how a check says no
    checks         what a check can look at: values, traces, how an operation is built
    sandbox        a simulated device for each attempt
    answers        starters, solutions and words, as course/ has them
    outcome        what the learner is told, in words and pictures
    cuda           the CUDA C of kernels that answers are tried with
    progress_file  how far a learner is
    recorded_ranges  NVTX ranges in a recording
    internals      what is imported from below `agt`
"""

from asyncgpu_tutor.exercises.api import check, forget, hint, progress, solution, solved
from asyncgpu_tutor.exercises.checks.interleavings import interleavings
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected
from asyncgpu_tutor.exercises.outcome import Outcome, Words
from asyncgpu_tutor.exercises.predictions import Prediction, Verdict, score

__all__ = [
    "Exercise",
    "Outcome",
    "Prediction",
    "Rejected",
    "Verdict",
    "Words",
    "check",
    "forget",
    "hint",
    "interleavings",
    "progress",
    "score",
    "solution",
    "solved",
]
