"""Right answers to the exercises of chapters 11 to 13 in other spellings than the solution's."""

from __future__ import annotations

from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import check


async def _by_a_part_of_the_mail(mail: Any, rounds: int) -> None:
    box = mail[2:]  # what is written through it, the check does not see
    for _ in range(rounds):
        while mail[0] != 1:
            await agt.sleep(1)
        box[0] = mail[1] + mail[1]
        mail[0] += 1


async def _for_good(mail: Any, rounds: int) -> None:
    while True:
        if mail[0] == 1:
            mail[2] = 0
            mail[2] += 2 * mail[1]
            mail[0] = 2
            rounds -= 1
            if rounds == 0:
                return
        await agt.sleep(2)


RIGHT: list[tuple[str, Any]] = [
    ("13-answer", _by_a_part_of_the_mail),
    ("13-answer", _for_good),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_it_passes(name: str, answer: Any) -> None:
    outcome = check(name, answer)

    assert outcome.accepted, outcome.cause
