"""The live views, as a learner touches them: with the mouse, and with the keyboard alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat import v4

from tests.lab.test_in_the_browser import FRONT, opened, run_all

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("anywidget_here")]

SETUP = """
import numpy as np
import asyncgpu_tutor as agt
agt.use("sim")
x = agt.pin(np.ones((1024, 1024), np.float32))
def arm(i):
    return agt.h2d(x, f"x{i}").to_host().named(f"batch {i}")
with agt.record() as trace:
    agt.overlap(*(arm(i) for i in range(3))).sync()
    agt.work(50, "report")
"""


@pytest.fixture(scope="session")
def anywidget_here() -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed: make test-lab does it")


def shown(
    page: Page, lab: str, course: Path, name: str, code: str, part: str = "svg .agt-bar"
) -> Locator:
    """The live view that a notebook with this cell shows."""
    cells = [
        v4.new_markdown_cell("# Live"),
        v4.new_code_cell(SETUP.strip()),
        v4.new_code_cell(code),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    made = v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(made, course / f"notebooks/{name}.ipynb")
    opened(page, lab, name)
    run_all(page)
    live = page.locator(f"{FRONT} .agt-live").first
    live.locator(part).first.wait_for(state="attached")
    live.scroll_into_view_if_needed()
    return live


def theme(page: Page, name: str) -> None:
    page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
        f"JupyterLab {name}",
    )
    light = str(name == "Light").lower()
    page.locator(f'body[data-jp-theme-light="{light}"]').wait_for(state="attached")
    page.locator("#jupyterlab-splash").wait_for(state="detached")  # it would be in the screenshot


def paper(live: Locator) -> str:
    return live.locator(".agt-paper").first.evaluate("node => getComputedStyle(node).fill")


def times(live: Locator) -> list[str]:
    return live.locator(".agt-tick").all_text_contents()


def test_a_timeline_answers_to_the_mouse(page: Page, lab: str, course: Path, album: Path) -> None:
    live = shown(page, lab, course, "live_mouse", "trace")
    bar = live.locator("svg .agt-inner .agt-bar").nth(12)

    bar.hover()
    hover = live.locator(".agt-hover")
    hover.wait_for()
    assert "µs" in hover.inner_text()
    page.screenshot(path=album / "live_hover.png")

    before = times(live)
    live.get_by_label("Zoom in").click()
    assert times(live) != before
    page.screenshot(path=album / "live_zoomed.png")
    live.get_by_label("Show all").click()
    assert times(live) == before

    live.get_by_label("Play").click()
    page.wait_for_function("() => parseFloat(document.querySelector('.agt-time').textContent) > 30")
    page.screenshot(path=album / "live_playing.png")
    live.get_by_label("Play").click()
    live.get_by_role("slider").fill("500")
    assert live.locator(".agt-time").inner_text().endswith("µs")

    bar.click()
    live.get_by_label("Show the chain of the selected bar").click()
    assert "in the chain" in live.locator(".agt-status").inner_text()
    assert live.locator("svg .agt-bar.faded").count()
    page.screenshot(path=album / "live_chain.png")

    status, svg = live.locator(".agt-status"), live.locator("svg.agt").first
    page.keyboard.press("Escape")
    live.get_by_label("Show the chain of the selected bar").click()  # none is: the critical path
    assert "in the chain: report (host)" in status.inner_text()
    live.get_by_label("Drag to select a range").click()
    box = svg.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 150, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 450, box["y"] + 60, steps=4)
    page.mouse.up()
    assert re.search(r"µs\n.*host \d+\.\d \(\d+ %\)", status.inner_text())
    page.screenshot(path=album / "live_range.png")
    live.get_by_label("find spans by name").fill("batch 1")
    assert re.match(r"[1-9]\d* of \d+ spans", status.inner_text())
    page.screenshot(path=album / "live_found.png")
    with page.expect_download() as saved:
        live.get_by_label("Save as a picture").click()
    assert "var(--agt-paper)" in saved.value.path().read_text("utf-8")


def test_a_timeline_answers_to_keys(page: Page, lab: str, course: Path, album: Path) -> None:
    code = "agt.compare_timelines([trace, trace], ['one', 'two'])"
    live = shown(page, lab, course, "live_keyboard", code)
    status = live.locator(".agt-status")
    live.locator("svg.agt").first.focus()

    page.keyboard.press("ArrowRight")
    first = status.inner_text()
    page.keyboard.press("ArrowRight")
    assert status.inner_text() not in ("", first)
    page.keyboard.press("ArrowDown")
    assert "stream" in status.inner_text()
    page.keyboard.press("Enter")
    assert "in the chain" in status.inner_text()
    page.screenshot(path=album / "live_keyboard.png")
    whole = times(live)
    page.keyboard.press("+")
    assert times(live) != whole
    page.keyboard.press("0")
    assert times(live) == whole
    page.keyboard.press("Space")
    page.wait_for_function("() => parseFloat(document.querySelector('.agt-time').textContent) > 1")
    page.keyboard.press("Escape")
    assert live.locator(".agt-time").inner_text() == ""
    cells = page.locator(f"{FRONT} .jp-Cell").count()
    assert cells == 3  # no key went on to JupyterLab


def test_what_was_before_comes_when_all_is_asked_for(page: Page, lab: str, course: Path) -> None:
    code = "with agt.record() as late:\n    agt.work(4000, 'start')\n    agt.h2d(x).sync()\nlate.plot()"
    live = shown(page, lab, course, "live_late", code)
    assert "0" not in times(live)
    live.get_by_label("Show all").click()
    assert times(live)[0] == "0"


def test_live_and_still_follow_the_theme(page: Page, lab: str, course: Path, album: Path) -> None:
    still = "from IPython.display import HTML, display\ndisplay(HTML(trace.plot()._repr_html_()))\ntrace"
    live = shown(page, lab, course, "live_dark", still)
    light = paper(live)
    page.screenshot(path=album / "live_light.png")
    theme(page, "Dark")
    assert paper(live) != light
    assert paper(page.locator(f"{FRONT} .jp-OutputArea").last) == paper(live)
    page.screenshot(path=album / "live_dark.png")
    theme(page, "Light")


DRAGGED = """
from asyncgpu_course import drag
async def program(job, streams):
    with agt.using(policy=agt.StreamPoolRoundRobin(streams)), agt.record() as made:
        tasks = [agt.spawn(arm(i)) for i in range(3)]
        await agt.sleep(0)
        agt.work(job, "report")
        return made if [await task for task in tasks] else None
await drag(program, job=range(0, 1001, 100), streams=range(1, 4))
"""


def test_a_dragged_slider_draws_anew(page: Page, lab: str, course: Path, album: Path) -> None:
    from playwright.sync_api import expect

    live = shown(page, lab, course, "live_drag", DRAGGED.strip())
    title, (job, streams) = live.locator(".agt-title"), page.locator(f"{FRONT} .noUi-handle").all()
    page.screenshot(path=album / "live_drag_before.png")
    expect(title).to_have_text(re.compile("^50. µs with job = 0, streams = 1$"))
    job.hover()
    page.mouse.down()
    box = page.locator(f"{FRONT} .noUi-base").first.bounding_box() or {"x": 0, "y": 0, "width": 0}
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"], steps=8)
    page.mouse.up()
    expect(title).to_have_text(re.compile("^98. µs with job = 900, streams = 1$"))
    streams.press("ArrowRight")
    expect(title).to_contain_text("with job = 900, streams = 2")
    theme(page, "Dark")
    page.screenshot(path=album / "live_drag_dark.png")
    theme(page, "Light")


WATCHED = """
kernel = agt.Kernel('''extern "C" __global__ void twice(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2.0f;
    y[i] = x[i];
}''')
some = np.arange(40, dtype=np.float32)
agt.show_threads(kernel, 32, some, np.zeros_like(some), grid=2, block=32)
"""


def test_threads_go_step_by_step(page: Page, lab: str, course: Path, album: Path) -> None:
    from playwright.sync_api import expect

    live = shown(page, lab, course, "live_threads", WATCHED.strip(), ".agt-over path")
    said, picture = live.locator(".agt-status"), live.get_by_role("group")

    expect(said).to_contain_text("Step 1 of 2, line 3")
    live.get_by_role("textbox").fill("32")
    live.get_by_role("textbox").press("Enter")
    expect(said).to_contain_text("block (1, 0, 0), thread (0, 0, 0) writes y[32]")
    page.screenshot(path=album / "live_threads.png")
    picture.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("which is out of bounds")
    expect(live.locator(".agt-source .now")).to_contain_text("y[i] = x[i];")
    expect(live.locator(".agt-over .agt-wrong-link")).to_have_count(24)  # threads 40 to 63
    page.screenshot(path=album / "live_threads_wrong.png")
    theme(page, "Dark")
    page.screenshot(path=album / "live_threads_dark.png")
    theme(page, "Light")
    live.get_by_role("slider").fill("0")
    expect(said).to_contain_text("Step 1 of 2")


def test_threads_of_one_step_have_nothing_to_play(page: Page, lab: str, course: Path) -> None:
    kernel = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = 1; }'
    code = f"agt.show_threads(agt.Kernel({kernel!r}), np.ones(4, np.float32), grid=1, block=4)"
    live = shown(page, lab, course, "live_one_step", code, ".agt-controls")
    for name in ("Play", "Step", "Step back", "step"):
        assert live.get_by_label(name, exact=True).is_hidden()
