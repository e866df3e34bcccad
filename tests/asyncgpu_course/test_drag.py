"""A slider that is moved draws another run; without sliders there is the picture of the first values."""

import asyncio
import re
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import drag

pytestmark = pytest.mark.usefixtures("sim")


async def fills(job: float, streams: int) -> agt.Trace:
    with agt.using(policy=agt.StreamPoolRoundRobin(streams)), agt.record() as trace:
        tasks = [agt.spawn(agt.zeros((4096, 4096))) for _ in range(2)]
        await asyncio.sleep(0)
        agt.work(job, "job")
        await asyncio.gather(*tasks)
    return trace


def total(svg: str) -> int:
    """The total in the picture's title, in us."""
    (said,) = re.findall(r"(\d+) µs with job", svg)
    return int(said)


def test_other_values_draw_another_total_on_the_same_scale() -> None:
    async def moves() -> None:
        dragged = await drag(fills, job=(500, 0), streams=(1, 2))
        long, (before,) = total(dragged.picture.svg()), dragged.picture.panels
        await dragged.move(job=0)
        (after,) = dragged.picture.panels

        assert total(dragged.picture.svg()) < long - 100
        assert after.title.endswith("with job = 0, streams = 1")
        assert after.layout.end == before.layout.end

    asyncio.run(moves())


def test_of_many_moves_at_once_the_last_is_drawn_and_none_runs_beside_another() -> None:
    ran: list[int] = []

    async def program(job: int) -> agt.Trace:
        ran.append(job)
        await agt.sleep(10)
        assert ran[-1] == job
        return await fills(job, 1)

    async def moves() -> None:
        dragged = await drag(program, job=range(0, 300, 10))
        await asyncio.gather(*(dragged.move(job=us) for us in range(10, 300, 10)))
        assert "job = 290" in repr(dragged.picture.panels[0].title)

    asyncio.run(moves())
    assert len(ran) < 4


def test_a_slider_draws_anew() -> None:
    widgets = pytest.importorskip("ipywidgets", reason="the extra `test` brings it")
    traitlets = pytest.importorskip("traitlets")

    class View(widgets.Widget):  # pyright: ignore[reportUntypedBaseClass] - ipywidgets has no types
        view = traitlets.Dict()

    async def moves() -> None:
        dragged = await drag(fills, job=(0, 200, 500), streams=(1, 2))
        shown: Any = View(view=dragged.picture.view())
        box = dragged._with_sliders(shown)  # pyright: ignore[reportPrivateUsage] - as Jupyter gets it
        job, streams, view = box.children
        before = total(str(shown.view))
        job.value = 500
        await asyncio.sleep(0.5)

        assert [job.description, streams.description, view] == ["job", "streams", shown]
        assert total(str(shown.view)) > before + 100

    asyncio.run(moves())


def test_without_a_kernel_it_is_the_still_picture_of_the_first_values() -> None:
    async def still() -> None:
        dragged = await drag(fills, job=(100, 0), streams=(2, 1))
        made = dragged._repr_mimebundle_()

        assert set(made) == {"text/plain", "text/html"}
        assert "job = 100, streams = 2" in made["text/html"]

    asyncio.run(still())
