"""A learner opens the first page, runs a chapter, solves an exercise and reads the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.tools import ROOT, tool
from tests.tools import page as text_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.lab

CHAPTER = "01_sync_kernels"

# JupyterLab keeps the notebooks of earlier visits open, behind the one in front.
FRONT = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
# Asks the notebook in front for its cells, because those that are off the screen are not in the page.
CELLS = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    return Array.from(panel.content.model.cells).map(cell => ({
        id: cell.id, kind: cell.type, number: cell.executionCount ?? null,
        running: cell.executionState === 'running',
        outputs: cell.outputs ? cell.outputs.toJSON() : [],
    }));
}"""
SOURCE = """name => Array.from(window.jupyterapp.shell.currentWidget.content.model.cells)
    .find(cell => cell.id === name).sharedModel.getSource()"""
DONE = f"""() => {{
    const code = ({CELLS})().filter(cell => cell.kind === 'code');
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel;
    const failed = code.some(cell => cell.outputs.some(output => output.output_type === 'error'));
    return kernel?.status === 'idle' && (failed || code.every(cell => cell.number));
}}"""
READY = """path => {
    const panel = window.jupyterapp?.shell?.currentWidget;
    return panel?.context?.path === path && panel.context.isReady && panel.content.model.cells.length > 1
        && panel.sessionContext.session?.kernel?.status === 'idle';
}"""


def opened(page: Page, address: str, name: str, first: bool = False) -> None:
    """Go to a chapter, as its link has it or as the first page; wait until its kernel can run it."""
    base, _, token = address.partition("/lab")
    path = f"notebooks/{name}.ipynb"
    page.goto(address if first else f"{base}/lab/tree/{path}?{token.partition('?')[2]}")
    page.wait_for_function(READY, arg=path)
    page.locator(f"{FRONT} .jp-RenderedMarkdown h1").first.wait_for()


def run_all(page: Page) -> list[dict[str, Any]]:
    """All cells, by the menu, none of which fails; what they say."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-item", has_text="Run All Cells").first.click()
    page.wait_for_function(DONE)
    cells = page.evaluate(CELLS)
    assert [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"] == []
    return cells


def words(cell: dict[str, Any]) -> str:
    """Return a cell's output as text."""
    found = (o.get("text") or o.get("data", {}).get("text/markdown", "") for o in cell["outputs"])
    return "\n".join("".join(one) for one in found)


def cell_at(page: Page, name: str) -> Locator:
    """A cell by its id, brought to the screen."""
    number = [cell["id"] for cell in page.evaluate(CELLS)].index(name)
    page.evaluate(
        """async number => {
            const content = window.jupyterapp.shell.currentWidget.content;
            content.activeCellIndex = number;
            await content.scrollToItem(number, 'start');
        }""",
        number,
    )
    cell = page.locator(f'{FRONT} .jp-Cell[data-windowed-list-index="{number}"]')
    cell.wait_for()
    cell.scroll_into_view_if_needed()
    return cell


def solution(name: str) -> str:
    return json.loads(text_of(f"asyncgpu_course/exercises/answers/{CHAPTER}.json"))[name][
        "solution"
    ]


def wrong_answer(name: str, cause: str) -> str:
    """The first wrong answer of the course that has this cause."""
    _, wrong = tool("build_notebooks").chapter(ROOT / f"course/{CHAPTER}.py")
    return next(cell.text for cell in wrong if (cell.id, cell.cause) == (name, cause))


def put(page: Page, name: str, text: str) -> None:
    """Replace what is in a cell, by the keyboard, and run it.

    A notebook that has just run takes the focus for itself once more, whenever it comes to it. Then nothing
    is typed into the cell, and Control+A means all cells. So we look if the text is there, or type again.
    """
    editor = cell_at(page, name).locator(".cm-content")
    for _ in range(5):
        editor.click()
        editor.press("Control+A")
        page.keyboard.insert_text(text)
        if page.evaluate(SOURCE, name) == text:
            break
    assert page.evaluate(SOURCE, name) == text
    editor.press("Shift+Enter")


def write(page: Page, name: str, text: str) -> None:
    """Replace what is in a cell, by the keyboard, and run it and the check below it."""
    before = {cell["id"]: cell["number"] or 0 for cell in page.evaluate(CELLS)}
    put(page, name, text)
    for run in (name, f"{name}-check"):
        if run != name:
            cell_at(page, run).locator(".cm-content").press("Shift+Enter")
        page.wait_for_function(
            f"""([name, old]) => {{
                const cell = ({CELLS})().find(cell => cell.id === name);
                return cell.number > old && !cell.running;
            }}""",
            arg=[run, before[run]],
        )


def test_make_lab_opens_the_first_page_without_questions_and_it_runs(
    page: Page, lab: str, album: Path
) -> None:
    opened(page, lab, "00_start_here", first=True)
    page.screenshot(path=album / "00_first_page.png")
    assert page.locator(f"{FRONT} h1").first.inner_text().startswith("Start here")
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".Toastify__toast").count() == 0
    run_all(page)
    cell_at(page, "two-runs-picture").locator(".agt").first.wait_for()
    page.screenshot(path=album / "00_timeline.png")


def test_a_guess_is_told_in_a_folded_cell_and_not_before(page: Page, lab: str, album: Path) -> None:
    opened(page, lab, "00_start_here")
    said = {cell["id"]: words(cell) for cell in run_all(page)}
    assert "Guess in the cell above" in said["00-meanwhile-reveal"]
    cell_at(page, "00-meanwhile-asked")
    page.screenshot(path=album / "00_guess.png")
    put(page, "00-meanwhile-guess", 'guess("00-meanwhile", 300)')
    page.keyboard.press("Shift+Enter")  # the folded cell comes next
    output = cell_at(page, "00-meanwhile-reveal").locator(".jp-OutputArea")
    output.get_by_text("Not this time.").wait_for()
    output.locator(".agt").first.wait_for()
    page.screenshot(path=album / "00_told.png")


def test_a_chapter_runs_to_a_solution(page: Page, lab: str, course: Path, album: Path) -> None:
    opened(page, lab, CHAPTER)
    cells = run_all(page)
    checks = {cell["id"]: words(cell) for cell in cells if cell["id"].endswith("-check")}
    exercises = {name: said for name, said in checks.items() if "not attempted" in said}
    assert {"01-grid-check", "01-relu-check", "01-meanwhile-check"} <= exercises.keys()
    cell_at(page, "01-grid")
    page.screenshot(path=album / "01_untouched_exercise.png")
    cell_at(page, "steps-picture").locator(".agt").first.wait_for()
    page.screenshot(path=album / "01_timeline.png")
    write(page, "01-grid", solution("01-grid"))
    said = cell_at(page, "01-grid-check").locator(".jp-OutputArea")
    said.get_by_text("Right.").wait_for()
    page.screenshot(path=album / "01_solved.png")
    progress = json.loads((course / "notebooks/progress.json").read_text("utf-8"))
    assert progress["exercises"]["01-grid"] == {"attempts": 1, "hints": 0, "solved": True}


def test_a_wrong_schedule_is_shown_beside_the_right_one(page: Page, lab: str, album: Path) -> None:
    opened(page, lab, CHAPTER)
    run_all(page)
    write(page, "01-meanwhile", wrong_answer("01-meanwhile", "the device did nothing during `job`"))
    check = cell_at(page, "01-meanwhile-check")
    check.get_by_text("the device did nothing during").wait_for()
    check.locator(".agt").first.wait_for()
    page.screenshot(path=album / "01_wrong_schedule.png")


def test_a_forgotten_semicolon_shows_few_lines(page: Page, lab: str, album: Path) -> None:
    opened(page, lab, CHAPTER)
    run_all(page)
    text = solution("01-relu")
    assert "threadIdx.x;" in text
    put(page, "01-relu", text.replace("threadIdx.x;", "threadIdx.x", 1))
    said = cell_at(page, "01-relu").locator(".jp-OutputArea")
    said.get_by_text("KernelCompileError").wait_for()
    lines = said.inner_text().splitlines()
    assert len(lines) <= 12
    assert any(line.strip() == "^" for line in lines)
    assert any(line.startswith("Cell In[") for line in lines)
    page.screenshot(path=album / "01_forgotten_semicolon.png")
