"""Figures of Matplotlib: all that is drawn, told artist by artist, and so are the words below."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from asyncgpu_course import LaneBar, draw_lanes, ladder, serving, shown


def drawn(tell: Callable[[str], None], figure: Any, *words: str) -> None:
    def numbers(*given: Any) -> str:
        return str([[float(f"{x:.4g}") for x in np.ravel(each)] for each in given])

    for axes in figure.axes:
        tell(
            f"{axes.get_title()} | {axes.get_xlabel()} | {axes.get_ylabel()} | {axes.get_xscale()}"
        )
        tell(numbers(axes.get_xlim(), axes.get_ylim()))
        for line in axes.lines:
            look = f"{line.get_linestyle()} {line.get_marker()} {to_hex(line.get_color())[1:]}"
            tell(f"{look} {line.get_label().lstrip('_')} {numbers(*line.get_data())}")
        for bar in axes.patches:
            look = f"{to_hex(bar.get_facecolor())[1:]} {bar.get_hatch()}"
            tell(f"{look} {numbers(bar.get_xy(), (bar.get_width(), bar.get_height()))}")
        for text in axes.texts:
            look = f"{to_hex(text.get_color())[1:]} {text.get_ha()} {text.get_fontsize()}"
            tell(f"{text.get_text()} {look} {numbers(text.get_position())}")
        names = axes.get_legend().get_texts() if axes.get_legend() else []
        names += [*axes.get_xticklabels(), *axes.get_yticklabels()]
        sides = [side for side, spine in axes.spines.items() if spine.get_visible()]
        tell(" ".join([*(text.get_text() for text in names), *sides, *words]))
    plt.close(figure)


def test_rungs_and_waits(tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ladder, serving:
        monkeypatch.setattr(module, "shown", lambda *given: drawn(tell, *given))
    ladder.stairs("naive", "shared", "wide")
    spec = SimpleNamespace(issue_per_clock=4, clock_mhz=1980, sms=132)
    counts = SimpleNamespace(load_lines=10_000, shared_wavefronts=0)
    given = {"flops": 2 * 256**3, "spec": spec, "counts": counts}
    ladder.needs(*(SimpleNamespace(name=name, **given) for name in ("naive", "shared")))
    waits = {"continuous": [900.0, 5_000.0, 2_000.0], "batches": [40_000.0, 60_000.0]}
    serving.draw_waits("waits", waits, {"continuous": [*range(1_000, 22_000, 1_000)]}, "curves")


def test_lanes_of_bars(tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    figure, axes = plt.subplots()
    first = [LaneBar(0, 2, "red", "a", "work"), LaneBar(3, 4, "blue", hatch="//", meaning="wait")]
    draw_lanes(axes, [("one", first), ("two", [LaneBar(1, 5, "red", meaning="work")])])
    monkeypatch.setattr("IPython.display.display", lambda words, raw: said.update(words, raw=raw))
    said: dict[str, Any] = {}
    shown(figure, "two lanes & bars", "below <them>")
    assert not plt.fignum_exists(figure.number)
    picture, _, rest = said.pop("text/html").partition("base64,")
    drawn(tell, figure, picture, rest.partition(">")[2], str(said))
