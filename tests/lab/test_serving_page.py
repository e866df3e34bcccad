"""Somebody opens the page of `asyncgpu-tutor serve`, types, and watches the answer and the GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.tools import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.lab

LOADED = "() => document.querySelector('figure img').naturalWidth"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the model is served."""
    command = [
        sys.executable,
        "-m",
        "asyncgpu_tutor",
        "serve",
        "--device=sim",
        "--port=0",
        "--slots=2",
    ]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        told = "".join(server.stdout.readline() for _ in range(2))
        found = re.search(r"http://\S+?(?=,)", told)
        assert found, told
        yield found[0]
    finally:
        server.terminate()
        server.wait(timeout=30)
        server.stdout.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_somebody_types_and_watches_the_answer_and_the_gpu(
    page: Page, address: str, album: Path, theme: Literal["light", "dark"]
) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
    page.emulate_media(color_scheme=theme)
    page.goto(address)
    page.get_by_text("It runs on: simulated H200").wait_for()
    begin = page.get_by_label("The beginning of a text")
    for text in ("A stream is", "The GPU waits", "An event"):  # one more than there are slots
        begin.fill(text)
        begin.press("Enter")
    talks = page.locator(".talk")
    assert [talk.split("\n")[0][:5] for talk in talks.all_inner_texts()] == [
        "An ev",
        "The G",
        "A str",
    ]
    talks.last.locator("i").nth(2).wait_for()
    page.get_by_role("img", name="Timeline of the latest steps").wait_for()
    page.wait_for_function(LOADED)
    page.screenshot(path=album / f"19_served_{theme}.png", full_page=True)
    for talk in talks.all()[1:]:  # those who have a slot leave it
        talk.get_by_role("button", name="Leave").click()
        talk.get_by_text("you left, and the slot is free").wait_for()
    talks.first.locator("i").first.wait_for()
    talks.first.locator("small").wait_for()
    assert re.search(
        r"\d+ tokens, and (it stopped by itself|the text is full)", talks.first.inner_text()
    )
    begin.fill("\u00e9")
    begin.press("Enter")
    page.locator(".talk .bad", has_text="never seen '\u00e9'").wait_for()
    assert [error for error in errors if "400" not in error] == []
