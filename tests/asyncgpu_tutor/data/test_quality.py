from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.data import Quality


def test_ratios_by_hand():
    quality = Quality(true_positives=6, false_positives=2, false_negatives=4, true_negatives=28)
    assert quality.accuracy == pytest.approx(34 / 40)
    assert quality.baseline == pytest.approx(30 / 40)
    assert quality.precision == pytest.approx(6 / 8)
    assert quality.recall == pytest.approx(6 / 10)
    assert quality.balanced_accuracy == pytest.approx((6 / 10 + 28 / 30) / 2)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_every_answer_is_counted_once(pairs: list[tuple[bool, bool]]):
    answers, truth = np.array(pairs, dtype=bool).reshape(-1, 2).T
    quality = Quality.of(answers, truth)
    assert quality.total == len(pairs)
    assert quality.positives == sum(true for _, true in pairs)
    assert quality.true_positives == pairs.count((True, True))
    assert quality.false_positives == pairs.count((True, False))


def test_always_no_has_the_baseline_and_half():
    truth = np.arange(20) < 2
    quality = Quality.of(np.zeros(20, bool), truth)
    assert quality.accuracy == quality.baseline == 0.9
    assert quality.balanced_accuracy == 0.5
    assert isnan(quality.precision)
