"""Figures of Matplotlib: lanes of bars, and words for readers who can't see a figure."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import Any

# A light card, in a dark theme as well. Axes could take the page's colour, but words and frames are also
# drawn on bars and images, and pages call colours by their names: a filter that turns white into black turns
# yellow into brown.
_CARD = "background:#fff;border:1px solid #8886;border-radius:6px;padding:0.5em;max-width:98%"


def shown(figure: Any, alt: str, caption: str = "") -> None:
    """Show a figure and close it. Where there's no picture, `alt` stands for it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to show.
    alt : str
        What one sees in it.
    caption : str, default ""
        A line below it, for everybody.
    """
    import matplotlib.pyplot as plt  # only pages call this, so both are there
    from IPython import display

    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    data = b64encode(file.getvalue()).decode()
    picture = f'<img alt="{escape(alt)}" style="{_CARD}" src="data:image/png;base64,{data}">'
    below = f"<p><em>{escape(caption)}</em></p>" if caption else ""
    words = {"text/html": picture + below, "text/plain": f"{alt}\n{caption}".strip()}
    display.display(words, raw=True)  # pyright: ignore[reportUnknownMemberType] - IPython has no types
    plt.close(figure)


@dataclass(frozen=True)
class LaneBar:
    """A piece of time in a lane.

    Attributes
    ----------
    start, end : float
        Where it begins and ends.
    colour : str
        A colour of Matplotlib.
    words : str, default ""
        In its middle.
    meaning : str, default ""
        What bars like this one stand for; the legend has it once.
    hatch : str, default ""
        A pattern of Matplotlib, such as ``"////"``.
    """

    start: float
    end: float
    colour: str
    words: str = ""
    meaning: str = ""
    hatch: str = ""


def draw_lanes(axes: Any, lanes: Iterable[tuple[str, Sequence[LaneBar]]]) -> None:
    """Draw lanes of bars, the first on top, for times of which there is no trace to plot.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    lanes : iterable of (str, sequence of LaneBar)
        The name of each lane, and its bars.
    """
    names: list[str] = []
    for y, (name, bars) in enumerate(lanes):
        names.append(name)
        for bar in bars:
            look = {"color": bar.colour, "edgecolor": "0.3", "linewidth": 0.8, "hatch": bar.hatch}
            axes.barh(y, bar.end - bar.start, 0.7, bar.start, label=bar.meaning, **look)
            middle = (bar.start + bar.end) / 2, y
            axes.text(*middle, bar.words, ha="center", va="center", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    if once := dict(zip(labels, handles, strict=True)):
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
        axes.legend(once.values(), once, **beside)
