"""Collectives of a program that calls simgpu itself: the call says what is wrong with it, or all ranks do."""

from typing import Any

import numpy as np
import pytest

import simgpu
from simgpu import errors

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("gather", {}, "one of all_reduce, .* and not 'gather'"),
    ("all_reduce", {"reduce": "mean"}, "one of sum, .* and not 'mean'"),
    ("all_reduce", {"count": -1}, "a whole number of elements, not below 0, and got -1"),
    ("all_reduce", {"count": 5}, "rank 0 gives 20 bytes, and has a source of 16 bytes"),
    ("all_reduce", {"source": None}, "rank 0 gives 16 bytes, and has no source"),
    ("all_gather", {}, "rank 0 gets 32 bytes, and has a target of 16"),
    ("reduce_scatter", {"count": 3}, "a multiple of the 2 ranks, and got 3"),
    ("broadcast", {"root": 2}, "there is no rank 2, they are 0 to 1"),
    ("exchange", {"to": -1}, "there is no rank -1"),
    ("send", {"to": 0}, "that is rank 0 itself"),
    ("send", {}, "there is no rank None"),
    ("recv", {}, "there is no rank None"),
    ("broadcast", {"root": 0.5}, "there is no rank 0.5"),
    ("all_reduce", {"dtype": "f4"}, "takes a type of NumPy's numbers, .*, and got 'f4'"),
    ("all_reduce", {"dtype": np.dtype("U1")}, "takes a type of NumPy's numbers"),
    ("all_reduce", {"source": np.zeros(4)}, "is not memory of a simulated device"),
    (
        "exchange",
        {"to": 1, "origin": 1},
        "ranks disagree: rank 0 calls .*, and rank 1 calls exchange",
    ),
]


@pytest.mark.parametrize(("what", "facts", "why"), WRONG)
def test_a_wrong_call_is_refused_in_words(what: str, facts: dict[str, Any], why: str) -> None:
    machine = simgpu.Machine()
    gpus = [simgpu.Device(number, machine=machine) for number in range(2)]
    ranks, usual = simgpu.Communicator(gpus), {"count": 4, "dtype": np.dtype("f4")}
    arrays = [[simgpu.Array.zeros(4, np.float32, gpu).memory for _ in "st"] for gpu in gpus]
    own = [dict(zip(("source", "target"), pair, strict=True)) for pair in arrays]

    def run() -> None:
        for rank, gpu in enumerate(gpus):
            given = {**usual, **own[rank], **({} if rank else facts)}
            ranks.enqueue(rank, simgpu.Collective(what, **given), gpu.default_stream)
        gpus[0].synchronize()

    with pytest.raises((errors.UsageError, errors.CollectiveError), match=why):
        run()
