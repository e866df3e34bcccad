"""Figures of Matplotlib, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nbformat import v4, write

from tests.lab.test_in_the_browser import FRONT, opened, run_all
from tests.lab.test_live import theme

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.lab

FIGURE = """
import matplotlib.pyplot as plt, numpy as np
from asyncgpu_course import shown
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6))
left.plot([1, 3, 2], label="a line")
left.legend()
left.set(title="A title", xlabel="steps")
right.imshow(np.arange(64).reshape(8, 8), cmap="inferno")
shown(figure, "A line and an image.", "What one sees in it.")
"""


def test_a_figure_is_a_light_card_in_both_themes(
    page: Page, lab: str, course: Path, album: Path
) -> None:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    cells = [v4.new_markdown_cell("# A figure"), v4.new_code_cell(FIGURE.strip())]
    write(v4.new_notebook(cells=cells, metadata=kernel), course / "notebooks/figure.ipynb")
    opened(page, lab, "figure")
    run_all(page)
    figure = page.locator(f"{FRONT}").get_by_alt_text("A line and an image.")
    figure.wait_for()
    for name in ("Dark", "Light"):
        theme(page, name)
        page.screenshot(path=album / f"figure_{name.lower()}.png")
        style = figure.evaluate("it => [getComputedStyle(it).backgroundColor, it.style.padding]")
        assert style == ["rgb(255, 255, 255)", "0.5em"]
