"""Chapter 18: a token of the language model, by call after call and by a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceOp
from asyncgpu_tutor.data import load_language_model
from asyncgpu_tutor.language import Slots, slots
from asyncgpu_tutor.types import Stream

from .programs import Body, recorded

TOKENS = 4


async def _seated() -> tuple[Slots, DeviceOp[Any], Stream]:
    """A model with one seat, the operation by which somebody sits down, and a stream."""
    model, stream = load_language_model(), agt.create_stream()
    made = await slots(model, 1)
    newcomers = made.newcomers()
    made.seat(newcomers, 0, [0, *model.encode("A stream is")], TOKENS)
    return made, made.admit(newcomers).prepare().launch(), stream


def _told(made: Slots) -> DeviceOp[Any]:
    """A step, and the copy that tells the host what was said."""
    word = agt.pinned(1, np.int32)
    return agt.zip(made.step(), agt.d2h(made.arrays["token"].borrow(), out=word)).named("token")


@recorded("18_token_by_python", "four tokens of the language model, a call for each of 25 kernels")
async def token_by_python() -> Body:
    """The host describes each step anew, and asks after each."""
    made, sit, stream = await _seated()

    async def body() -> None:
        sit.sync_on(stream)
        for _ in range(TOKENS):
            _told(made).sync_on(stream)

    return body


@recorded("18_token_by_token", "the same four tokens by a graph that the host launches for each")
async def token_by_graph() -> Body:
    """One call for each token, and the host still asks."""
    made, sit, stream = await _seated()
    launch = _told(made).graph_on(stream).launch()

    async def body() -> None:
        sit.sync_on(stream)
        for _ in range(TOKENS):
            launch.sync_on(stream)

    return body
