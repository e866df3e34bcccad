"""One program for many values: what ran, what was the shortest, and what is shown of it."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.inspection.what_if import Curve
from asyncgpu_tutor.traces.pictures.scene import text_width

DATA = np.ones((2048, 1024), np.float32)


def program(streams: int, chunks: int = 4) -> None:
    pool = [agt.create_stream() for _ in range(streams)]
    for i, part in enumerate(np.array_split(DATA, chunks)):
        agt.h2d(agt.pin(part)).to_host().async_on(pool[i % streams])
    agt.synchronize()


def test_each_combination_is_run_on_a_device_of_its_own() -> None:
    before = repr(agt.current_device())
    found = agt.explore(program, streams=range(1, 3), chunks=[1, 4])

    assert list(found.traces) == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert [len(found[values].streams) for values in found.traces] == [1, 1, 1, 2]
    assert repr(agt.current_device()) == before


def test_the_shortest_run_is_named() -> None:
    found = agt.explore(program, streams=range(1, 4))
    least = min(found.makespans, key=lambda values: found.makespans[values])

    assert found.best == {"streams": least[0]}
    assert least[0] > 1
    assert f"with streams = {least[0]}" in repr(found)
    assert [line.endswith("<-") for line in found.table().splitlines()].count(True) == 1


def test_a_program_may_return_an_operation_or_be_a_coroutine() -> None:
    def operation(n: int) -> agt.DeviceOp[object]:
        return agt.overlap(*(agt.zeros((64, 64)) for _ in range(n)))

    async def coroutine(n: int) -> None:
        await asyncio.gather(*(agt.zeros((64, 64)) for _ in range(n)))

    async def within_a_loop() -> agt.types.Exploration:
        return agt.explore(coroutine, n=[1, 3])

    for found in (agt.explore(operation, n=[1, 3]), asyncio.run(within_a_loop())):
        assert [len(found[n].device_spans) for n in (1, 3)] == [1, 3]


def test_the_still_has_the_curve_and_some_timelines_on_one_scale() -> None:
    found = agt.explore(program, streams=range(1, 4), chunks=[1, 4])
    html = found._repr_html_()
    curve = ET.fromstring(html[: html.index("</svg>") + 6])
    points = [e for e in curve.iter() if e.get("class") == "agt-point"]

    assert len(points) == 6
    assert "Makespan against streams in (1, 2, 3)" in (curve.get("aria-label") or "")
    assert html.count('role="img"') >= 2
    ends = {p.layout.end for v in found.traces for p in found._timelines([v]).panels}
    assert len(ends) == 1


def test_a_program_that_does_nothing_is_an_empty_picture() -> None:
    found = agt.explore(lambda n: None, n=[1, 2])
    assert found.makespans == {(1,): 0.0, (2,): 0.0}
    assert "Nothing was recorded" in found._repr_mimebundle_()["text/html"]


def test_a_point_names_those_that_it_covers() -> None:
    def sized(n: int, name: str) -> None:
        agt.h2d(agt.pin(DATA[: 32 * n]), name).sync()

    html = agt.explore(sized, n=[1, 64], name=["a", "b"])._curve()
    points = (e for e in ET.fromstring(html).iter() if e.get("class") == "agt-point")
    titles = {e.get("data-key"): [t.text for t in e] for e in points}

    assert titles["0,0"] == titles["0,1"] != titles["1,0"]
    (said,) = titles["0,0"]
    assert re.findall("(?m)^(.*?):", said or "") == ["name = a", "name = b"]


def test_texts_of_a_curve_lie_beside_each_other_and_none_is_left_out() -> None:
    names = [f"chunks = {n}, how = 'a long word'" for n in range(24)]
    lines = {n: [(f"{i},{k}", 100.0 + k) for i in range(100)] for k, n in enumerate(names)}
    picture = Curve("Makespan", "n", "us", [str(n) for n in range(100)], lines).svg("words")
    root = ET.fromstring(picture)
    height = float(root.get("viewBox", "").split()[3])
    found = [e for e in root.iter() if e.tag.endswith("text")]
    across = [e for e in found if e.get("class") == "agt-tick"]
    named = sorted(float(e.get("y", 0)) for e in found if e.get("class") is None)

    places = [(float(e.get("x", 0)), text_width(e.text or "", 11)) for e in across]
    assert all(x + w / 2 < y - v / 2 for (x, w), (y, v) in pairwise(places))
    assert len(named) == len(names)
    assert min(b - a for a, b in pairwise(named)) >= 11
    assert named[-1] < height - 44


def test_the_live_view_has_a_frame_and_a_value_for_each_place_of_the_sliders() -> None:
    found = agt.explore(program, streams=[1, 2], chunks=[1, 2, 4])
    view = found._view()

    assert view["sliders"] == [["streams", ["1", "2"]], ["chunks", ["1", "2", "4"]]]
    places = {f"{i},{j}" for i in (0, 1) for j in (0, 1, 2)}
    assert set(view["frames"]) == set(view["told"]) == places
    assert view["start"] in view["frames"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "at least one parameter with values"),
        ({"streams": []}, "at least one parameter with values"),
        ({"streams": range(101)}, "101 times"),
        ({"streams": 4}, r"such as range\(1, 9\)"),
        ({"streams": [[1], [2]]}, r"such as range\(1, 9\)"),
    ],
)
def test_what_cannot_be_explored_is_said(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agt.explore(program, **parameters)


def test_what_was_not_explored_is_said() -> None:
    found = agt.explore(program, streams=[1, 2])
    said = r"\(3,\) was not explored; there are streams in \(1, 2\)"
    with pytest.raises(UsageError, match=said):
        found[3]


def test_the_gpu_is_that_of_the_current_device() -> None:
    runs: list[agt.types.Exploration] = []
    for gpu in ("t4", "h200"):
        with agt.using(agt.SimDevice(spec=gpu)):
            runs.append(agt.explore(program, streams=[1]))
    slow, fast = runs

    assert slow.makespans[1,] > fast.makespans[1,]
