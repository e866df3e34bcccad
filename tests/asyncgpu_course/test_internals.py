"""What the course's own code is skipped for: a warning names the learner's line."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_course
import asyncgpu_tutor as agt
from asyncgpu_course.checks.sandbox import private_device
from asyncgpu_tutor.errors import PageableCopyWarning

IN_A_CHECK = "async def go(op):\n    return await op\ndef spawned(op):\n    return agt.spawn(op)\n"


def test_a_pageable_copy_in_a_check_is_the_learners() -> None:
    names: dict[str, Any] = {"agt": agt}
    place = Path(asyncgpu_course.__file__).with_name("checks") / "made_up.py"
    exec(compile(IN_A_CHECK, str(place), "exec"), names)

    async def page() -> None:
        await names["spawned"](agt.h2d(np.zeros(4, np.float32)))
        await names["go"](agt.h2d(np.zeros(4, np.float32)))

    with private_device(), pytest.warns(PageableCopyWarning) as said:
        asyncio.run(page())
    assert len(said) == 2
    assert {Path(one.filename).name for one in said} != {"made_up.py"}
    assert not any("made_up" in one.filename for one in said)
