"""`import asyncgpu_tutor` loads few modules, and only one room loads CuPy."""

import json
import sys

import pytest

from .conftest import run

HEAVY = {"cupy", "cupyx", "matplotlib", "nvtx", "cupti", "IPython", "ipykernel", "torch", "scipy"}
UPPER = {"exercises", "inspection", "kernels", "serving", "traces.analysis", "traces.pictures"}
LOADED = """
import json, sys
before = set(sys.modules)
{}
print(json.dumps(sorted(set(sys.modules) - before)))
"""
FIRST_OPERATION = """
import sys, types

class Domain:
    get_event_attributes = staticmethod(lambda message: message)
    push_range = staticmethod(print)
    pop_range = staticmethod(int)

sys.modules["nvtx"] = types.SimpleNamespace(get_domain=lambda name: Domain())

import asyncgpu_tutor as agt
agt.value(1).named("my first").sync()
"""


def loaded_by(program: str) -> set[str]:
    done = run(sys.executable, "-c", LOADED.format(program))
    return set(json.loads(done.stdout))


def test_import_takes_a_moment_because_it_loads_no_room() -> None:
    loaded = loaded_by("import asyncgpu_tutor")
    ours = ("asyncgpu_tutor", "simgpu")
    assert {name for name in loaded if name.startswith(ours)} == {"asyncgpu_tutor"}
    assert loaded & {"numpy", "asyncio", *HEAVY} == set()


@pytest.mark.parametrize(
    ("program", "unneeded"),
    [
        ("agt.Trace()", {"numpy", "asyncio", "simgpu.cuda_c", "asyncgpu_tutor.devices"}),
        ("agt.Trace().plot().words", {"simgpu.cuda_c", "asyncgpu_tutor.ops"}),
        ("agt.errors.UsageError", {"numpy", "asyncio", "asyncgpu_tutor.ops"}),
        ("agt.ranges.enabled()", {"numpy", "asyncio", "asyncgpu_tutor.ops"}),
        ("agt.data.seed_inputs", {"asyncio", "simgpu.cuda_c", "asyncgpu_tutor.ops"}),
        ("agt.zeros(4)", {"simgpu.report", *(f"asyncgpu_tutor.{room}" for room in UPPER)}),
    ],
)
def test_a_name_loads_few_rooms(program: str, unneeded: set[str]) -> None:
    loaded = loaded_by(f"import asyncgpu_tutor as agt\n_ = {program}")
    assert len(loaded) > 1
    assert loaded & (unneeded | HEAVY) == set()


def test_the_environment_switches_ranges_on_for_the_first_operation() -> None:
    env = {"ASYNCGPU_NVTX": "1", "ASYNCGPU_DEVICE": "sim"}
    assert "my first" in run(sys.executable, "-c", FIRST_OPERATION, env=env).stdout
