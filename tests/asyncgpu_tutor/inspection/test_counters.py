"""The interpreter's counts against the hardware counters of an H200, read with Nsight Compute."""

import json
from pathlib import Path

import pytest

import asyncgpu_tutor as agt

from .counters import run

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "ncu_h200.json").read_text(encoding="utf-8"))["kernels"]
PAGE = HERE.parents[2] / "docs" / "microscope.md"


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    with agt.using("sim"), agt.microscope() as scope:
        run()
    found: dict[str, dict[str, int]] = {}
    for name in RECORDED:
        counts = scope[name].counts
        own = ("load_sectors", "store_sectors", "flops", "bank_conflicts")
        found[name] = {name: getattr(counts, name) for name in own} | {
            "instructions": counts.warp_instructions,
            "load_requests": counts.global_load_requests,
            "store_requests": counts.global_store_requests,
        }
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_memory_traffic_and_arithmetic_are_those_of_the_hardware(
    counted: dict[str, dict[str, int]], name: str
) -> None:
    exact = {key: n for key, n in RECORDED[name].items() if key != "instructions"}
    assert {key: n for key, n in counted[name].items() if key != "instructions"} == exact


def test_the_page_has_these_numbers(counted: dict[str, dict[str, int]]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, row in RECORDED.items():
        mine = counted[name]
        cells = (
            row["load_requests"], row["load_sectors"], row["store_sectors"], row["flops"],
            row["bank_conflicts"], row["instructions"], mine["instructions"],
        )  # fmt: skip
        assert f"| `{name}` | " + " | ".join(f"{n:,}" for n in cells) + " |" in text
