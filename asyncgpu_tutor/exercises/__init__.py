"""What the notebooks ask of a learner, the scoring of the answers, and captions for pictures."""

from asyncgpu_tutor.exercises.prediction import Prediction, Verdict, score
from asyncgpu_tutor.exercises.words import Words, in_words

__all__ = ["Prediction", "Verdict", "Words", "in_words", "score"]
