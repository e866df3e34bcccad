"""The still picture for a page: that it stands alone, says what it shows, and can be read in both themes."""

import json
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from asyncgpu_tutor.traces import live
from asyncgpu_tutor.traces.pictures import compare_timelines, plot
from asyncgpu_tutor.traces.pictures.scene import fitting
from asyncgpu_tutor.traces.pictures.style import KIND_LOOKS, THEME
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace
from tests.asyncgpu_tutor.traces.pictures.test_style import contrast

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str, css: str = "") -> list[str]:
    found = ET.fromstring(svg).iter(f"{SVG}text")
    return [t.text or "" for t in found if not css or css in t.get("class", "").split()]


def boxes(svg: str) -> list[ET.Element]:
    """The bars, without those of the legend."""
    groups = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if "agt-bar" in g.get("class", "")]
    return [rect for group in groups for rect in group]


def test_it_is_one_element_that_needs_nothing_and_has_its_words(mlp: Trace) -> None:
    picture = plot(mlp, lesson="The copies take turns.")
    svg = picture.svg()
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert not re.search(r"<script|href=|src=|@import|url\((?!#)", svg)
    ids = {e.get("id") for e in root.iter() if e.get("id")}
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) == ids
    assert picture.words == f"The copies take turns. {plot(mlp).words}"
    assert (root.get("role"), root.get("aria-label")) == ("img", picture.words)
    assert f"<details><summary>In words</summary>{picture.words}" in picture._repr_html_()
    assert "<em>The copies take turns.</em>" in picture._repr_html_()
    assert picture.view()["lesson"] == "The copies take turns."
    two = compare_timelines([mlp, mlp], ["A", "B"], lesson="Twice the same.")
    assert two.words.startswith("Twice the same. A: Timeline of")


def test_a_site_gets_the_data_of_the_live_picture_beside_it(
    mlp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASYNCGPU_LIVE", "page")
    html = plot(mlp)._repr_mimebundle_()["text/html"]
    (data,) = re.findall(r'<script type="application/json">([^<]*)</script>', html)
    assert json.loads(data) == json.loads(json.dumps(plot(mlp).view()))


def test_a_notebook_gets_the_live_picture_and_whoever_cannot_show_it_the_still_one(
    mlp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Widget:
        def __init__(self, view: object) -> None:
            self._repr_mimebundle_ = lambda: ({"live": view}, {})

    shell, picture = SimpleNamespace(kernel=object()), plot(mlp)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(live, "_widget", lambda: Widget)
    still = {"text/plain": repr(picture), "text/html": picture._repr_html_()}
    assert picture._repr_mimebundle_() == {**still, "live": picture.view()}
    for name, value in ("ASYNCGPU_LIVE", "0"), ("ASYNCGPU_LIVE", "page"), ("", None):
        monkeypatch.undo() if not name else monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(live, "_MOST_ON_A_PAGE", 9)
        assert picture._repr_mimebundle_() == still


def test_every_span_is_a_bar_that_says_more_when_one_points_at_it(mlp: Trace) -> None:
    found = boxes(mlp.plot(lanes=("host", "streams")).svg())
    told = [bar.findtext(f"{SVG}title") or "" for bar in found]
    assert len(found) == len(mlp)
    assert sum(text.startswith("sgemm_naive: kernel, stream") for text in told) == 2
    copy = Span(0, "h2d", "x", 0, 10, "sim:0", 1, detail={"bytes": 1_000_000})
    grid = {"grid": [4, 2, 1], "block": [256, 1, 1]}
    kernel = Span(1, "kernel", "relu", 10, 20, "sim:0", 1, after=(0,), detail=grid)
    svg = plot(Trace([copy, kernel]), lanes=("streams",)).svg()
    for fact in ("1,000,000 bytes, 100.0 GB/s", "grid 4 x 2, block 256", "after x (stream 1)"):
        assert fact in svg


def test_below_the_last_lane_comes_the_axis() -> None:
    for streams in (1, 2):
        spans = [Span(n, "kernel", "relu", 0, 9, "sim:0", n) for n in range(streams)]
        svg = plot(Trace(spans), lanes=("streams",)).svg()
        lowest = max(float(bar.get("y", 0)) + float(bar.get("height", 0)) for bar in boxes(svg))
        *_, axis = (line for line in ET.fromstring(svg).iter() if line.get("class") == "agt-rule")
        assert float(axis.get("d", "").split()[-1]) - lowest < 6


def test_every_kind_is_drawn_and_a_name_that_does_not_fit_is_shortened_or_left_out() -> None:
    kinds = enumerate(KIND_LOOKS)
    spans = [Span(n, kind, kind, 10 * n, 10 * n + 9, "sim:0", 1) for n, kind in kinds]
    assert all(f">{kind}: " in plot(Trace(spans)).svg() for kind in KIND_LOOKS)
    assert fitting("sgemm_naive", 1000, 11) == "sgemm_naive"
    assert re.fullmatch("sgem.*\u2026", fitting("sgemm_naive", 50, 11))
    assert fitting("sgemm_naive", 10, 11) == ""


def test_one_pattern_has_one_name_on_a_page_with_two_pictures() -> None:
    pictures = (Trace([Span(0, kind, "x", 0, 9, "d", 1)]).plot().svg() for kind in ("h2d", "d2h"))
    patterns = [re.findall(r'<pattern id="(.*?)".*?<path d="(.*?)"', svg) for svg in pictures]
    ((up, rising),), ((down, falling),) = patterns
    assert up != down
    assert rising != falling


def test_nothing_is_drawn_outside_of_the_picture(mlp: Trace) -> None:
    for picture in (mlp.plot(), compare_timelines([mlp, mlp])):
        root = ET.fromstring(picture.svg())
        width, height = (float(n) for n in root.get("viewBox", "").split()[2:])
        assert width == 760
        for box in root.iter(f"{SVG}rect"):
            if box.get("x"):
                assert float(box.get("x", 0)) + float(box.get("width", 0)) <= width
                assert float(box.get("y", 0)) + float(box.get("height", 0)) <= height


def test_a_highlight_fades_bars_and_no_text(mlp: Trace) -> None:
    svg = mlp.plot(highlight="sgemm_naive", lanes=("streams",)).svg()
    groups = [g.get("class", "").split() for g in ET.fromstring(svg).iter(f"{SVG}g")]
    assert ["agt-bar", "out"] in groups
    assert ["agt-bar", "faded"] in groups
    names = [t for t in ET.fromstring(svg).iter(f"{SVG}text") if t.get("class") == "agt-name"]
    assert names
    assert {t.get("opacity") for t in names} == {None}
    assert "fill:var(--agt-ink)" in svg  # in the page's own ink, on its own paper


@pytest.mark.parametrize("theme", range(2), ids=["light", "dark"])
def test_all_texts_can_be_read_in_both_themes(theme: int) -> None:
    pages = [
        dict(re.findall(r"(--agt-\w+):(#\w{6})", block))
        for block in re.findall(r"\.agt\{(--agt[^}]*)\}", THEME)
    ]
    page = pages[theme]
    for ink in ("--agt-ink", "--agt-quiet", "--agt-event", "--agt-bad"):
        for ground in ("--agt-paper", "--agt-band"):
            assert contrast(page[ink], page[ground], "all cones") >= 4.5
    for ground in ("--agt-call", "--agt-work"):
        assert contrast(page["--agt-ink"], page[ground], "all cones") >= 4.5
    assert pages[:2] == pages[2:] or pages[2:] == [pages[0], pages[1]]


def test_a_wait_for_room_is_thin_and_in_front_of_the_bar() -> None:
    spans = [
        Span(0, "kernel", "one", 0, 50, "sim:0", 1),
        Span(1, "kernel", "two", 50, 90, "sim:0", 2, detail={"waited_for_room": 20.0}),
    ]
    picture = Trace(spans).plot(lanes=("streams", "engines"))
    svg = picture.svg()
    assert svg.count('class="agt-room"') == 2  # once on its stream, and in the legend
    path, _ = (e.get("d", "") for e in ET.fromstring(svg).iter() if e.get("class") == "agt-room")
    room = [float(n) for n in re.findall(r"[\d.]+", path)]
    by_name = {"".join(bar.itertext()).partition(":")[0]: bar for bar in boxes(svg)[:2]}
    second, first = (float(by_name[n].get(key, 0)) for n, key in (("two", "x"), ("one", "width")))
    assert room[2] == pytest.approx(second, abs=0.2)
    assert room[2] - room[0] == pytest.approx(first * 20 / 50, abs=0.3)
    assert "waits for room" in texts(svg, "agt-words")
    assert "waited 20.0 µs for room on the device" in svg
    assert picture.view()["panels"][0]["rooms"][0][:2] == [30, 50]
    assert "own" in texts(Trace(spans).with_lane("own", [(0, 9, "")]).plot().svg(), "agt-lane")
    assert "waits for room" not in Trace(spans[:1]).plot().svg()
    assert (
        Span(2, "kernel", "k", 0, 1, "", 1, detail={"waited_for_room": "long"}).waited_for_room == 0
    )


def test_a_kernel_that_only_waits_has_dotted_holes_in_its_bar_on_its_stream() -> None:
    spans = [Span(0, "kernel", "ask", 20, 60, "sim:0", 1, detail={"waits": [[10, 30], [35, 39]]})]
    picture = Trace(spans).plot(lanes=("streams", "engines"))
    svg = picture.svg()
    holes = [e for e in ET.fromstring(svg).iter() if e.get("class") == "agt-paper"][1:]
    (bar, _) = boxes(svg)
    long, short = (float(hole.get("width", 0)) for hole in holes)
    wide = float(bar.get("width", 0))
    assert [long, short] == pytest.approx([wide * part for part in (0.5, 0.1)], rel=0.02)
    assert "kernel waits" in texts(svg, "agt-words")
    assert "only waits for 24.0 µs of that" in svg
    assert picture.view()["panels"][0]["waits"] == [[0, 30, 50], [0, 55, 59]]
    assert [span.waits for span in Trace(spans).between(35, 56)] == [[(35, 50), (55, 56)]]
    held = replace(spans[0], detail={**spans[0].detail, "waited_for_room": 3.0})
    assert [span.waited_for_room for span in Trace([held]).between(35, 56)] == [0.0]
