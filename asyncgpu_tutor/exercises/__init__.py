"""What the notebooks ask of a learner, and the scoring of the answers."""

from asyncgpu_tutor.exercises.prediction import Prediction, Verdict, score
from asyncgpu_tutor.exercises.words import Words

__all__ = ["Prediction", "Verdict", "Words", "score"]
