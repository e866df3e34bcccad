"""A figure of Matplotlib, with words for readers who can't see it."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from io import BytesIO
from typing import Any


def shown(figure: Any, alt: str) -> None:
    """Show a figure and close it. Where there's no picture, `alt` stands for it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to show.
    alt : str
        What one sees in it.
    """
    import matplotlib.pyplot as plt  # only pages call this, so both are there
    from IPython import display

    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    data = b64encode(file.getvalue()).decode()
    picture = f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
    display.display({"text/html": picture, "text/plain": alt}, raw=True)  # pyright: ignore[reportUnknownMemberType] - IPython has no types
    plt.close(figure)
