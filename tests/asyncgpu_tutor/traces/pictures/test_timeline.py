"""The picture, by its shapes: what is drawn where, and that it says whose time it shows."""

from dataclasses import replace
from itertools import combinations

import pytest
from matplotlib.textpath import TextPath

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces import pictures
from asyncgpu_tutor.traces.pictures import scene as scenes
from asyncgpu_tutor.traces.pictures.layout import Bar
from asyncgpu_tutor.traces.pictures.scene import text_width
from asyncgpu_tutor.traces.pictures.timeline import Timeline
from asyncgpu_tutor.traces.spans import DEVICE_KINDS, Span, SpanKind, measure
from asyncgpu_tutor.traces.trace import Trace

plot, compare_timelines = pictures.plot, pictures.compare_timelines


def one(kind: SpanKind = "kernel", start: float = 0, end: float = 10, **more: object) -> Span:
    stream = 1 if kind in DEVICE_KINDS else None
    span = Span(0, kind, "name", start, end, "sim:0", stream)
    return replace(span, **more)


def bars(picture: Timeline, kind: str = "", lane: str = "") -> list[Bar]:
    found = picture.panels[0].layout.bars
    return [b for b in found if kind in ("", b.span.kind) and lane in ("", b.lane.name)]


def times(picture: Timeline, kind: str, lane: str) -> list[tuple[float, float]]:
    return sorted((bar.span.start, bar.span.end) for bar in bars(picture, kind, lane))


def lane_names(picture: Timeline) -> list[str]:
    """From top to bottom."""
    layout = picture.panels[0].layout
    found = [(band.y, band.label) for band in layout.bands]
    found += [(y, name) for name, y in layout.headers]
    return [name for _, name in sorted(found)]


def drawn(picture: Timeline, css: str, width: int = 760) -> list[scenes.SceneShape]:
    shapes = scenes.scene(picture.panels, width=width).shapes
    return [s for s in shapes if css in s.css.split()]


def texts(picture: Timeline, css: str, width: int = 760) -> list[str]:
    return [s.text for s in drawn(picture, css, width) if isinstance(s, scenes.SceneText)]


# ------------------------------------------------------------------ lanes and bars
def test_host_on_top_then_streams_then_engines(mlp: Trace) -> None:
    names = ["host", "stream 0", "stream 1", "stream 2", "copy H2D", "copy D2H", "compute"]
    assert lane_names(plot(mlp)) == texts(plot(mlp), "agt-lane") == names


def test_bars_are_where_their_spans_are_and_engines_show_them_again(mlp: Trace) -> None:
    picture = plot(mlp)
    for stream in (1, 2):
        spans = [s for s in mlp.find("sgemm_naive") + mlp.find("relu") if s.stream == stream]
        expected = sorted((s.start, s.end) for s in spans)
        assert times(picture, "kernel", f"stream {stream}") == expected
    assert times(picture, "call", "host") == [(5 * i, 5 * i + 5) for i in range(9)]
    copies = sorted((s.start, s.end) for s in mlp if s.kind == "h2d")
    assert times(picture, "h2d", "copy H2D") == copies
    assert times(picture, "d2h", "copy H2D") == []


def test_the_drawing_keeps_the_proportions_of_time(mlp: Trace) -> None:
    picture = plot(mlp, lanes=("streams",))
    boxes = [s for s in drawn(picture, "agt-bar") if isinstance(s, scenes.Box) and s.tip]
    spans = [bar.span for kind in ("h2d", "kernel", "d2h") for bar in bars(picture, kind)]
    assert len(boxes) == len(spans)
    us = (boxes[-1].x - boxes[0].x) / (spans[-1].start - spans[0].start)
    for box, span in zip(boxes, spans, strict=True):
        assert box.kind == span.kind
        assert box.wide == pytest.approx(us * span.duration)
        assert box.x - boxes[0].x == pytest.approx(us * (span.start - spans[0].start))


def test_what_overlaps_in_an_engine_is_drawn_in_rows_of_its_own(mlp: Trace) -> None:
    found = bars(plot(mlp, lanes=("engines",)), "kernel")
    for a, b in combinations(found, 2):
        apart = a.span.end <= b.span.start or b.span.end <= a.span.start
        assert apart or a.bottom <= b.y or b.bottom <= a.y, (a, b)
    # A range stands above what it encloses.
    picture = plot(Trace([one("range", 0, 10), one("call", 2, 4, id=1)]))
    assert bars(picture, "range")[0].bottom <= bars(picture, "call")[0].y


def test_each_device_has_its_own_lanes_under_its_name(mlp: Trace) -> None:
    other = [replace(s, id=s.id + 100, device="sim:1", after=()) for s in mlp.device_spans]
    names = lane_names(plot(Trace([*mlp.spans, *other])))
    later = names.index("sim:1")
    assert (names[0], names.index("sim:0")) == ("host", 1)
    assert names[2:later] == names[later + 1 :] != []


def test_pages_that_move_both_ways_at_once_are_beside_each_other() -> None:
    pages = [one("h2d", id=1, stream=-1), one("d2h", start=2, end=6, id=2, stream=-1)]
    upper, lower, *engines = bars(plot(Trace(pages)))
    assert upper.bottom <= lower.y
    assert {bar.text for bar in engines} == {"um"}


# ------------------------------------------------------------------ dependencies and highlights
def test_an_event_between_streams_is_an_arrow(mlp: Trace) -> None:
    picture, weights = plot(mlp), mlp.find("W")[0]
    paths = [arrow.points for arrow in picture.panels[0].arrows]
    assert {path[0][0] for path in paths} == {weights.end}
    assert {path[-1][0] for path in paths} == {s.start for s in mlp.find("x")}
    assert len(drawn(picture, "agt-arrow")) == len(paths) + 1  # and one in the legend
    assert "waits for an event" in texts(picture, "agt-words")
    assert drawn(plot(Trace([one()])), "agt-arrow") == []


def test_an_event_that_adds_nothing_is_not_drawn_and_no_arrow_crosses_a_bar(mlp: Trace) -> None:
    weights, late, picture = mlp.find("W")[0], mlp.find("relu")[0], plot(mlp)
    spans = [replace(s, after=(*s.after, weights.id)) if s is late else s for s in mlp]
    assert len(plot(Trace(spans)).panels[0].arrows) == len(picture.panels[0].arrows)
    for arrow in picture.panels[0].arrows:
        turn = arrow.points[1][1]
        assert not any(bar.y < turn < bar.bottom for bar in bars(picture, "kernel"))
        edges = [y for bar in bars(picture) for y in (bar.y, bar.bottom)]
        above, below = max(y for y in edges if y < turn), min(y for y in edges if y > turn)
        assert turn - above == pytest.approx(below - turn)


def test_arrows_into_one_bar_have_heads_of_their_own() -> None:
    arms = [one(end=9, id=1), one(end=8, id=2, stream=2), one(start=8.5, end=9, id=4, stream=2)]
    join = one(start=10, end=20, id=3, stream=3, after=(1, 2))
    arrows = plot(Trace([*arms, join])).panels[0].arrows
    far, near = sorted(arrows, key=lambda arrow: arrow.before.y)
    assert near.points[-1][:2] == far.points[-1][:2]
    assert near.points[-1][2] < 0 == far.points[-1][2]
    assert (near.free, far.free) == (False, True)  # because of work that comes after `near`


@pytest.mark.parametrize("highlight", ["sgemm_naive", "critical path"])
def test_what_stands_out_does_so_and_the_rest_is_faded(mlp: Trace, highlight: str) -> None:
    expected = measure(mlp).critical_spans if highlight == "critical path" else mlp.find(highlight)
    picture = plot(mlp, highlight=highlight, lanes=("host", "streams"))
    assert len(drawn(picture, "out")) == len(expected)
    assert len(drawn(picture, "faded")) == len(mlp) - len(expected)
    # Arrows that join others are there, too, and pale.
    assert len(picture.panels[0].arrows) == len(plot(mlp).panels[0].arrows)
    out = {span.id for span in expected}
    others = [a for a in picture.panels[0].arrows if not {a.before.span.id, a.after.span.id} <= out]
    assert len(drawn(picture, "pale")) == 2 * len(others)  # each has a head


def test_what_stands_out_does_so_among_neighbours_that_are_one_bar_with_it() -> None:
    spans = [one(id=i, start=i, end=i + 0.9) for i in range(5000)]
    (panel,) = plot(Trace(spans), lanes=("streams",), highlight=[spans[777]]).panels
    out = [bar for bar in panel.layout.bars if panel.state(bar) == "out"]
    assert [spans[777].id in bar.ids and bar.number > 1 for bar in out] == [True]
    assert all(panel.state(bar) == "faded" for bar in panel.layout.bars if bar is not out[0])


# ------------------------------------------------------------------ the clock, titles, axes
def test_the_clock_is_said_under_the_title_and_along_the_axis() -> None:
    real = Trace([one()], clock="CUDA events", device="NVIDIA H200")
    for trace, said in (
        (Trace(), {"simulated"}),
        (Trace([one()]), {"simulated"}),
        (real, {"CUDA events", "NVIDIA H200"}),
    ):
        facts, axis = texts(plot(trace), "agt-facts")[0], texts(plot(trace), "agt-axis")[0]
        words = {"simulated", "CUDA events", "NVIDIA H200"}
        assert {word for word in words if word in facts} == said
        assert {word for word in words if word in axis} == said - {"NVIDIA H200"}


def test_in_a_narrow_picture_the_clock_is_the_last_to_go_and_time_has_room(mlp: Trace) -> None:
    assert texts(plot(mlp), "agt-facts", 230) == ["simulated clock: modelled, not measured"]
    rules = [s for s in drawn(plot(mlp), "agt-rule", 0) if isinstance(s, scenes.SceneLine)]
    assert {line.points[1][0] - line.points[0][0] for line in rules} == {80}
    (title,) = texts(plot(mlp, title="Words and " * 40), "agt-title")
    assert title.endswith("\u2026")
    assert text_width(title, 17) <= 760


def test_where_nothing_is_drawn_that_is_said() -> None:
    for trace, lane, said in (
        (Trace(), "host", "Nothing was recorded. A trace is filled when"),
        (Trace([one("call")]), "engines", "Nothing on these lanes."),
    ):
        picture = plot(trace, lanes=(lane,))
        assert said in " ".join(texts(picture, "agt-facts"))
        (*_, last), (rule, *_) = drawn(picture, "agt-facts"), drawn(picture, "agt-rule")
        assert isinstance(last, scenes.SceneText)
        assert isinstance(rule, scenes.SceneLine)
        assert last.y + 3 < rule.points[0][1]


@pytest.mark.parametrize(("end", "unit"), [(90.0, "\u00b5s"), (90e3, "ms")])
def test_long_times_are_labelled_in_ms_and_no_time_has_an_axis(end: float, unit: str) -> None:
    picture = plot(Trace([one(end=end)]))
    assert f"({unit})" in texts(picture, "agt-axis")[0]
    assert "80" in texts(picture, "agt-tick")
    layout = plot(Trace([one(start=end, end=end)])).panels[0].layout
    assert layout.begin <= end < layout.end


def test_times_far_from_the_start_are_told_apart() -> None:
    picture = plot(Trace([one(start=1_234_000_001, end=1_234_000_004)]))
    labels = texts(picture, "agt-tick")
    assert len(set(labels)) == len(labels) > 3
    assert "1234000.002" in labels
    *_, last = drawn(picture, "agt-tick")
    assert isinstance(last, scenes.SceneText)
    assert last.x + text_width(last.text, 11) / 2 <= 760


# ------------------------------------------------------------------ several traces
def test_compare_puts_all_on_one_scale_and_lets_something_stand_out_in_each(mlp: Trace) -> None:
    short = Trace([one(end=5)], clock="CUDA events", device="NVIDIA H200")
    how = {"lanes": ("streams",), "highlight": ["sgemm_naive", None]}
    picture = compare_timelines([mlp, short], ["long", "short"], **how)
    assert texts(picture, "agt-title") == ["long", "short"]
    assert len({(p.layout.begin, p.layout.end) for p in picture.panels}) == 1
    assert ["CUDA events" in axis for axis in texts(picture, "agt-axis")] == [False, True]
    marked, plain = picture.panels
    assert {marked.state(bar) for bar in marked.layout.bars} == {"out", "faded"}
    assert {plain.state(bar) for bar in plain.layout.bars} == {""}
    late = Trace([one(start=1e6, end=1e6 + 5)])  # of which nothing would be seen beside a 0
    once = iter(["streams"])  # of which there is nothing left for the second one
    assert all(p.layout.bars for p in compare_timelines([mlp, late], lanes=once).panels)
    (nothing, _) = compare_timelines([Trace(), late]).panels
    assert (nothing.layout.begin, nothing.layout.end) == (1e6, 1e6 + 5)


def test_mistakes_are_answered_with_the_choices(mlp: Trace) -> None:
    both = [mlp, mlp]
    for message, draw in (
        (r"'stream'.*'streams'", lambda: plot(mlp, lanes=("stream",))),
        (r"'sgemm'.*'sgemm_naive'", lambda: plot(mlp, highlight="sgemm")),
        ("at least one trace", lambda: compare_timelines([])),
        ("2 traces, 1 titles", lambda: compare_timelines(both, ["one"])),
        ("2 traces, 1 highlights", lambda: compare_timelines(both, highlight=["relu"])),
    ):
        with pytest.raises(UsageError, match=message):
            draw()


def test_no_name_is_wider_than_the_estimate_that_it_fits_by(mlp: Trace) -> None:
    shapes = scenes.scene(plot(mlp, lanes=("streams",)).panels, width=760).shapes
    names = [s for s in shapes if isinstance(s, scenes.SceneText) and "agt-name" in s.css]
    assert names
    for name in names:
        size = name.size or 11
        wide = TextPath((0, 0), name.text, size=size).get_extents().width
        assert wide <= text_width(name.text, size) + 5  # a bar leaves that free


def test_a_picture_begins_with_the_devices_work_unless_all_of_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CUDA takes 300 ms to start, and the device works for 0.1 ms."""
    start = Span(0, "call", "malloc", 0, 300_000, "cuda:0")
    trace = Trace([start, Span(1, "kernel", "k", 300_010, 300_110, "cuda:0", 1)])
    shown, whole = (trace.plot(whole=w).panels[0].layout for w in (False, True))
    assert 300_000 < shown.begin < 300_010
    told = "300.11 ms, the device begins after 300.01 ms"
    facts = [texts(trace.plot(whole=w), "agt-facts")[0] for w in (False, True)]
    assert [told in said for said in facts] == [True, False]
    assert {bar.span.name for bar in shown.bars} == {"k"}
    assert whole.begin == trace.plot().view()["first"] == 0  # one can drag a live one that far
    monkeypatch.setattr("asyncgpu_tutor.traces.pictures.timeline._MOST_LIVE", 1)
    assert trace.plot().view()["first"] == shown.begin
    assert {bar.span.name for bar in whole.bars} == {"k", "malloc"}
    late = plot(Trace([one(start=37_000, end=39_000)]), whole=True)
    assert late.panels[0].layout.begin == 0  # where the recording began
    assert "2000.0 µs, begins after 37.00 ms" in texts(late, "agt-facts")[0]


def test_bars_that_are_hardly_busy_are_low_and_stand_on_the_ground_and_that_is_said() -> None:
    picture = plot(Trace([one(id=i, start=i, end=i + 0.04) for i in range(5000)]))
    low = [s for s in drawn(picture, "low") if isinstance(s, scenes.Box)]
    assert len(low) == len(bars(picture))
    assert all(s.tall < 0.1 * scenes._UNIT for s in low)
    lanes = {round(bar.bottom, 3) for bar in bars(picture)}
    assert len({round(s.y + s.tall, 3) for s in low}) == len(lanes)
    assert "as high as they are busy" in texts(picture, "agt-facts")[0]


def test_compared_together_the_first_work_is_at_0_in_each() -> None:
    call = one("call", 5, 10, id=1)
    traces = [Trace([call, one(start=start, end=90)]) for start in (20, 60)]
    found = [p.layout for p in compare_timelines(traces, ["a", "b"], together=True).panels]
    assert [[b.span.start for b in p.bars if b.span.kind == "kernel"] for p in found] == [[0], [0]]
    assert {p.begin for p in found} == {-55}


def test_thin_bars_of_the_critical_path_have_no_borders_that_would_hide_them() -> None:
    spans = [Span(i, "kernel", "k", 10 * i, 10 * i + 9, "cuda:0", 1) for i in range(1000)]
    many, few = (Trace(spans[:n]).plot(highlight="critical path").svg() for n in (1000, 10))
    assert "agt-bar out" in few
    assert "agt-bar out" not in many
    assert "agt-bar faded" not in many
