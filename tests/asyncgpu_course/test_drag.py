"""A slider that is moved draws another run; without sliders there is the picture of the first values."""

import asyncio
import re
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import drag
from asyncgpu_tutor.errors import UsageError

pytestmark = pytest.mark.usefixtures("sim")


async def fills(job: float, streams: int) -> agt.Trace:
    with agt.using(policy=agt.StreamPoolRoundRobin(streams)), agt.record() as trace:
        tasks = [agt.spawn(agt.zeros((4096, 4096))) for _ in range(2)]
        await asyncio.sleep(0)
        agt.work(job, "job")
        await asyncio.gather(*tasks)
    return trace


def total(drawn: object) -> int:
    """The total in the picture's title, in us."""
    return int(re.findall(r"(\d+) µs with job", str(drawn))[0])


def test_other_values_draw_another_total_on_the_same_scale() -> None:
    async def moves() -> None:
        dragged = await drag(fills, job=(500, 0), streams=(2, 1))
        still, (before,) = dragged._repr_mimebundle_(), dragged.picture.panels
        await dragged.move(job=0)
        (after,) = dragged.picture.panels

        assert set(still) == {"text/plain", "text/html"}
        assert before.title.endswith("with job = 500, streams = 2")
        assert after.title.endswith("with job = 0, streams = 2")
        assert total(dragged.picture.svg()) < total(still["text/html"]) - 100
        assert after.layout.end == before.layout.end

    asyncio.run(moves())


@pytest.mark.parametrize("ranges", [{}, {"job": ()}])
async def test_a_slider_needs_values(ranges: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a slider needs a parameter"):
        await drag(fills, **ranges)


def test_of_many_moves_at_once_the_last_is_drawn_and_few_are_run() -> None:
    ran: list[int] = []

    async def program(job: int) -> agt.Trace:
        ran.append(job)
        trace = await fills(job, 1)
        assert ran[-1] == job  # no other run began meanwhile
        return trace

    async def moves() -> None:
        dragged = await drag(program, job=range(0, 300, 10))
        await asyncio.gather(*(dragged.move(job=us) for us in range(10, 300, 10)))
        assert dragged.picture.panels[0].title.endswith("with job = 290")

    asyncio.run(moves())
    assert len(ran) < 4


def test_a_slider_draws_anew() -> None:
    widgets = pytest.importorskip("ipywidgets", reason="the extra `test` brings it")

    async def moves() -> None:
        dragged = await drag(fills, job=(0, 200, 500), streams=(1, 2))
        shown: Any = widgets.Label()
        box = dragged._with_sliders(shown)  # pyright: ignore[reportPrivateUsage] - as Jupyter gets it
        job, streams, inside = box.children
        job.value = 500
        await asyncio.sleep(0)  # by then the loop has heard of it
        await asyncio.gather(*dragged._moves)  # pyright: ignore[reportPrivateUsage] - as the loop has them

        assert [job.description, streams.description, inside] == ["job", "streams", shown]
        assert total(shown.view) > 500

    asyncio.run(moves())
