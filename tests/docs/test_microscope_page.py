"""The examples on the page of the microscope print what is shown."""

import re

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from tests.tools import blocks, page

TEXT = page("docs/microscope.md")


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    (program, drawn), shown = blocks(TEXT), "".join(blocks(TEXT, "text"))
    program = program.replace('agt.use("sim")\n', "")  # other tests have a device of their own, too
    with agt.using(SimDevice(machine=SimMachine())):
        exec(compile(program + drawn, "microscope.md", "exec"), {})
        said = capsys.readouterr().out
        assert said == shown, "if these counts are meant, copy them to the page"
        padded = program.replace("[32][32]", "[32][33]")
        exec(compile(padded, "microscope.md", "exec"), {})
    # "the conflicts become 0, and nothing else changes"
    assert capsys.readouterr().out.split()[-2:] == ["1.0", "0.0"]


def test_the_words_are_those_of_the_table() -> None:
    text = TEXT.split("## What the numbers mean")[1].split("\n## ")[0]
    source = 'extern "C" __global__ void k() { __shared__ int s[32]; s[threadIdx.x] = 1; }'
    with agt.using(agt.SimDevice()), agt.microscope() as report:
        agt.Kernel(source)(grid=1, block=32).sync()
    table = report.table()
    names = re.findall(r"(?m)^\| ([^|,]+)[^|]* \| ", text)
    assert names[0].strip() == "number"
    assert [name for name in names[1:] if name.strip() not in table] == []
    assert len(names) > 9
