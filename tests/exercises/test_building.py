"""An answer that is to return an operation describes one, and runs nothing."""

from __future__ import annotations

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Rejected
from asyncgpu_tutor.exercises.checks.building import built
from asyncgpu_tutor.exercises.sandbox import private_device
from asyncgpu_tutor.traces.trace import Trace

NOTHING = Trace()


def test_an_operation_that_is_only_described_is_handed_over() -> None:
    with private_device():
        op = built("answer", agt.ones, NOTHING, 3)

        assert op.to_host().sync().tolist() == [1, 1, 1]


def test_running_while_building_is_rejected_with_both_timelines() -> None:
    with private_device(), pytest.raises(Rejected, match="already ran something") as no:
        built("answer", lambda n: agt.value(agt.ones(n).sync()), NOTHING, 3)

    assert no.value.expected is NOTHING
    assert no.value.got is not None
    assert len(no.value.got) > 0


def test_what_is_no_operation_is_rejected_by_name() -> None:
    with private_device(), pytest.raises(Rejected, match=r"^`answer` should .* returned list$"):
        built("answer", lambda: [agt.ones(3)], NOTHING)
