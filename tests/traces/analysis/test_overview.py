"""The words of an overview add up."""

from __future__ import annotations

import re

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device


def test_a_critical_path_is_as_long_as_from_its_first_step_to_its_last(sim: Device) -> None:
    stream = agt.create_stream()
    with agt.record() as trace:
        for _ in range(2):
            agt.ones(1000).async_on(stream)
            agt.work(50.0)
    metrics = trace.metrics()
    steps = sorted(metrics.critical_path, key=lambda step: step.start)
    assert metrics.critical_idle > 0.1
    told = re.search(
        r"Critical path: .*?, ([\d.]+) us, ([\d.]+) of it idle", str(agt.analyse(trace).table())
    )
    assert told is not None
    assert told[1] == f"{steps[-1].end - steps[0].start:.1f}"
    assert told[2] == f"{metrics.critical_idle:.1f}"
