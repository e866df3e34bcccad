"""The tools of the notebooks for learners: guesses, and exercises with checks.

`api` has what a notebook calls. Each attempt gets a device of its own (`sandbox`); starters, solutions and
words come from course/ (`answers`), and what is imported from below `agt` comes by way of `internals`.
"""

from asyncgpu_course.api import check, forget, hint, progress, solution, solved
from asyncgpu_course.checks.interleavings import interleavings
from asyncgpu_course.checks.rejection import Rejected
from asyncgpu_course.drag import drag
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.guesses import Revealed, guess, reveal, score
from asyncgpu_course.outcome import Outcome, OutcomeWords
from asyncgpu_course.several import several
from asyncgpu_course.shown import LaneBar, draw_lanes, shown

__all__ = [
    "Exercise", "LaneBar", "Outcome", "OutcomeWords", "Rejected", "Revealed", "check", "drag",
    "draw_lanes", "forget", "guess", "hint", "interleavings", "progress", "reveal", "score",
    "several", "shown", "solution", "solved",
]  # fmt: skip
