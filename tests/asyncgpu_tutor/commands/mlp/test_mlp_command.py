"""The program's values and its report, on both devices."""

import re
from pathlib import Path

import numpy as np
import pytest

from asyncgpu_tutor.devices.protocol import Device
from tests.tools import Command, page

# As the example of cuda-oxide prints them; where it elides, nothing is compared.
SEED = {0: [0.0020799995, 0.0], 1: [0.0, 0.0], 2: [0.0, 0.00108], 3: [0.00244, 0.0025]}


def first_eight(out: str) -> list[list[float]]:
    """The first numbers of each batch, as printed."""
    found = re.findall(r"^Batch \d+: .*first 8 = \[(.*?)\]", out, flags=re.MULTILINE)
    return [[float(number) for number in numbers.split(", ")] for numbers in found]


def test_values_are_those_of_the_seed(device: Device, mlp: Command) -> None:
    printed = first_eight(mlp().out)
    assert len(printed) == 4
    for batch, expected in SEED.items():
        # The seed prints the shortest decimals that name these float32 numbers.
        assert [float(str(np.float32(x))) for x in printed[batch][:2]] == expected


def test_report_has_the_facts_of_the_seed_in_its_order(device: Device, mlp: Command) -> None:
    out = mlp().out
    best = "graph" if device.simulated else r"[\w ]+"  # a busy machine may have another one first
    facts = [
        rf"Device: {device.name}, .*times are",
        r"W0: 64x64 on device",
        r"W1: 64 on device",
        *(rf"Batch {i}: 64 elements, first 8 = \[.*\] \[ReLU OK\]" for i in range(4)),
        r"Timeline \(.*clock",
        rf"The same work, \d+\.\d times as fast: {best}, \d",  # whoever expects a gain sees it first
        r"device done +device busy +overlap +speed-up",
        r"one after the other +\d+\.\d µs .* 1\.00\n",
        r"one stream +\d+\.\d µs",
        r"four streams +\d+\.\d µs",
        r"prepared +\d+\.\d µs",
        r"graph +\d+\.\d µs",
        r"SUCCESS",
    ]
    assert re.search(".*".join(facts), out, flags=re.DOTALL), out


def test_the_page_shows_what_the_command_prints(sim: Device, mlp: Command) -> None:
    text = re.sub("^# ?", "", page("course/07_async_mlp.py"), flags=re.MULTILINE)
    (shown,) = re.findall(
        r"^\$ python -m asyncgpu_tutor mlp\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    )
    assert [line.rstrip() for line in mlp().out.splitlines()] == shown.splitlines()


@pytest.mark.parametrize("dim", [1, 50, 64, 80])  # of one block, and of two
def test_any_dim(device: Device, mlp: Command, dim: int) -> None:
    out = mlp("--dim", dim).out  # success means that all values are right
    assert f"Batch 3: {dim} elements" in out
    assert all(len(first) == min(dim, 8) for first in first_eight(out))


def test_digits_are_told_apart_as_the_data_card_says(device: Device, mlp: Command) -> None:
    out = mlp("--input", "digits").out
    card = (Path(__file__).parents[4] / "docs" / "digits.md").read_text(encoding="utf-8")
    for word in ("accuracy", "balanced accuracy", "precision", "recall"):
        printed = re.search(rf"\b{word} (\d\.\d+)", out)
        stated = re.search(rf"\b{word} (\d\.\d+)", card, flags=re.IGNORECASE)
        assert printed is not None, out
        assert stated is not None
        assert printed[1] == stated[1], word
    assert "always answering no: 0.898" in out
    assert "CC BY 4.0" in out
