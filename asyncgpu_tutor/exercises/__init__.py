"""What the notebooks ask of a learner: predictions, exercises with checks, and captions for pictures.

- `Prediction`: an answer before the reveal, scored against the trace.
- `check`, `hint`, `solution`, `solved`, `progress`, `reset`: the exercises. `chapter_NN` has their checks;
  `values` and `schedule` hold an answer against numbers and traces, on a device of its own (`trial`).
"""

from asyncgpu_tutor.exercises.desk import check, hint, progress, reset, solution, solved
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected
from asyncgpu_tutor.exercises.outcome import Outcome
from asyncgpu_tutor.exercises.prediction import Prediction, Verdict, score
from asyncgpu_tutor.exercises.words import Words, in_words

__all__ = [
    "Exercise",
    "Outcome",
    "Prediction",
    "Rejected",
    "Verdict",
    "Words",
    "check",
    "hint",
    "in_words",
    "progress",
    "reset",
    "score",
    "solution",
    "solved",
]
