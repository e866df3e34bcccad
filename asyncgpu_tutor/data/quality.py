"""How good a set of yes and no answers is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts of right and wrong answers, and the usual ratios of them.

    Accuracy alone misleads where one answer is rare: of ten digits, nine are not a 3, so who always
    says no is right nine times in ten. Hence `baseline`, to be read beside `accuracy`, and
    `balanced_accuracy`, which is 0.5 for whoever always gives the same answer.

    A ratio with nothing to count in it (the precision of no yes at all) is NaN.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @classmethod
    def of(cls, answers: npt.NDArray[np.bool_], truth: npt.NDArray[np.bool_]) -> Quality:
        """Compare answers with the truth, element by element."""
        return cls(
            true_positives=int(np.sum(answers & truth)),
            false_positives=int(np.sum(answers & ~truth)),
            false_negatives=int(np.sum(~answers & truth)),
            true_negatives=int(np.sum(~answers & ~truth)),
        )

    @property
    def positives(self) -> int:
        """How many are truly a yes."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """How many are truly a no."""
        return self.true_negatives + self.false_positives

    @property
    def total(self) -> int:
        """How many there are."""
        return self.positives + self.negatives

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return _ratio(self.true_positives + self.true_negatives, self.total)

    @property
    def baseline(self) -> float:
        """Accuracy of always giving the commoner answer."""
        return _ratio(max(self.positives, self.negatives), self.total)

    @property
    def precision(self) -> float:
        """Of those answered with yes, the share that truly is."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Of those that truly are a yes, the share that was found."""
        return _ratio(self.true_positives, self.positives)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the shares found among the true yes and among the true no."""
        return (self.recall + _ratio(self.true_negatives, self.negatives)) / 2


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
