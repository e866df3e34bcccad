"""The picture, by its artists: what is drawn where, and that it says whose time it shows."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces import pictures
from asyncgpu_tutor.traces.pictures._fitting import text_width
from asyncgpu_tutor.traces.pictures.style import KIND_LOOKS
from asyncgpu_tutor.traces.spans import DEVICE_KINDS, Span, SpanKind, measure
from asyncgpu_tutor.traces.trace import Trace


def plot(trace: Trace, **options: object) -> Axes:
    return pictures.plot(trace, **options).axes()[0]


def compare_timelines(traces: list[Trace], *titles: object, **options: object) -> list[Axes]:
    return pictures.compare_timelines(traces, *titles, **options).axes()


def one(kind: SpanKind = "kernel", start: float = 0, end: float = 10, **more: object) -> Span:
    stream = 1 if kind in DEVICE_KINDS else None
    span = Span(0, kind, "name", start, end, "sim:0", stream)
    return replace(span, **more)


def collections(ax: Axes, kind: str) -> list[PolyCollection]:
    return [
        c for c in ax.collections if isinstance(c, PolyCollection) and c.get_gid() == f"span:{kind}"
    ]


def bars(ax: Axes, kind: str, lane: str) -> list[tuple[float, float]]:
    """Start and end of the bars of a kind in a lane, by start."""
    found: list[tuple[float, float]] = []
    for collection in collections(ax, kind):
        for path in collection.get_paths():
            low, high = path.vertices[:, 1].min(), path.vertices[:, 1].max()
            if lane_at(ax, (low + high) / 2) == lane:
                xs = path.vertices[:, 0]
                found.append((xs.min(), xs.max()))
    return sorted(found)


def lane_at(ax: Axes, y: float) -> str:
    """The label that is nearest. Lanes of several rows are wider, so this suits one-row lanes."""
    labels = dict(zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True))
    return labels[min(labels, key=lambda tick: abs(tick - y))]


def lane_names(ax: Axes) -> list[str]:
    """From top to bottom."""
    ticks = zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True)
    assert ax.yaxis_inverted()
    return [text for _, text in sorted(ticks)]


def written(ax: Axes) -> list[str]:
    """Names that are seen after drawing."""
    draw(ax)
    names = [t.get_text() for t in ax.texts if t.get_gid() == "name"]
    return [name for name in names if name]


def draw(ax: Axes) -> None:
    ax.get_figure(root=True).canvas.draw()


def segments(ax: Axes) -> list[np.ndarray]:
    arrows = [c for c in ax.collections if c.get_gid() == "dependency"]
    return [path for c in arrows if isinstance(c, LineCollection) for path in c.get_segments()]


def legend_words(ax: Axes) -> list[str]:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# ------------------------------------------------------------------ lanes and bars
def test_host_on_top_then_streams_then_engines(mlp: Trace) -> None:
    names = ["host", "stream 0", "stream 1", "stream 2", "copy H2D", "copy D2H", "compute"]
    assert lane_names(plot(mlp)) == names


def test_bars_are_where_their_spans_are(mlp: Trace) -> None:
    ax = plot(mlp)
    for stream in (1, 2):
        spans = [s for s in mlp.find("sgemm_naive") + mlp.find("relu") if s.stream == stream]
        times = sorted((s.start, s.end) for s in spans)
        assert bars(ax, "kernel", f"stream {stream}") == times
    assert bars(ax, "call", "host") == [(5 * i, 5 * i + 5) for i in range(9)]


def test_engines_show_the_same_spans_again(mlp: Trace) -> None:
    ax = plot(mlp)
    copies = sorted((s.start, s.end) for s in mlp if s.kind == "h2d")
    assert bars(ax, "h2d", "copy H2D") == copies
    assert bars(ax, "d2h", "copy H2D") == []


def test_what_overlaps_in_an_engine_is_drawn_in_rows_of_its_own(mlp: Trace) -> None:
    ax = plot(mlp, lanes=("engines",))
    boxes = [p.get_extents() for c in collections(ax, "kernel") for p in c.get_paths()]
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
            assert apart, (a, b)


def test_a_range_stands_above_what_it_encloses() -> None:
    trace = Trace([one("range", 0, 10), one("call", 2, 4, id=1)])
    ax = plot(trace)
    (around,) = (p.get_extents() for c in collections(ax, "range") for p in c.get_paths())
    (inside,) = (p.get_extents() for c in collections(ax, "call") for p in c.get_paths())
    assert around.y1 <= inside.y0


def test_each_device_has_its_own_lanes_under_its_name(mlp: Trace) -> None:
    other = [replace(s, id=s.id + 100, device="sim:1", after=()) for s in mlp.device_spans]
    names = lane_names(plot(Trace([*mlp.spans, *other])))
    assert names[0] == "host"
    assert names.index("sim:0") == 1
    later = names.index("sim:1")
    assert names[2:later] == names[later + 1 :] != []


@pytest.mark.parametrize("kind", KIND_LOOKS)
def test_each_kind_has_its_colour_and_its_pattern(kind: SpanKind) -> None:
    (drawn,) = collections(plot(Trace([one(kind)]), lanes=("host", "streams")), kind)
    assert to_hex(drawn.get_facecolor()[0]).upper() == KIND_LOOKS[kind].colour
    assert (drawn.get_hatch() or "") == KIND_LOOKS[kind].hatch


# ------------------------------------------------------------------ names


def test_names_are_cut_off_where_there_is_little_room_and_left_out_where_there_is_less() -> None:
    spans = [
        one(end=12, name="a_long_name_of_a_kernel"),
        one(id=1, start=12, end=13, name="a_long_name_of_a_kernel"),
        one(id=2, start=13, end=200, name="filler"),
    ]
    names = written(plot(Trace(spans), lanes=("streams",)))
    assert len(names) == 2
    assert re.fullmatch(r"a_lo.*\u2026", names[0])


@pytest.mark.parametrize("width", [4, 6, 10, 16])
def test_no_name_is_wider_than_its_bar(mlp: Trace, width: float) -> None:
    ax = plot(mlp, width=width, lanes=("streams",))
    assert written(ax)
    middles = {(s.start + s.end) / 2: s.duration for s in mlp.device_spans}
    for text in ax.texts:
        if text.get_gid() == "name" and text.get_text():
            text.set_bbox(None)
            extent = text.get_window_extent().transformed(ax.transData.inverted())
            assert extent.width <= middles[text.get_position()[0]]


# ------------------------------------------------------------------ dependencies
def test_an_event_between_streams_is_an_arrow(mlp: Trace) -> None:
    ax = plot(mlp)
    weights = mlp.find("W")[0]
    starts = {s.start for s in mlp.find("x")}
    found = segments(ax)
    assert {path[0][0] for path in found} == {weights.end}
    assert {path[-1][0] for path in found} == starts
    assert "waits for an event" in legend_words(ax)
    assert segments(plot(Trace([one()]))) == []


def test_an_event_that_adds_nothing_is_not_drawn(mlp: Trace) -> None:
    weights, late = mlp.find("W")[0], mlp.find("relu")[0]
    spans = [replace(s, after=(*s.after, weights.id)) if s is late else s for s in mlp]
    assert len(segments(plot(Trace(spans)))) == len(segments(plot(mlp)))


def test_arrows_do_not_cross_the_bars_of_the_lane_that_they_enter(mlp: Trace) -> None:
    ax = plot(mlp)
    boxes = [p.get_extents() for c in collections(ax, "kernel") for p in c.get_paths()]
    for path in segments(ax):
        (_, y), _ = path[1], path[2]
        assert not any(box.y0 < y < box.y1 for box in boxes)


# ------------------------------------------------------------------ highlight
def test_what_stands_out_has_a_dark_edge_and_the_rest_is_faded(mlp: Trace) -> None:
    ax = plot(mlp, highlight="sgemm_naive", lanes=("streams",))
    by_alpha = {c.get_alpha() is None: c for c in collections(ax, "kernel")}
    assert len(by_alpha[True].get_paths()) == len(mlp.find("sgemm_naive"))
    assert len(by_alpha[False].get_paths()) == len(mlp.find("relu"))
    assert by_alpha[True].get_linewidth()[0] > by_alpha[False].get_linewidth()[0]


def test_what_stands_out_does_so_among_neighbours_that_are_one_bar_with_it() -> None:
    spans = [one(id=i, start=i, end=i + 0.9) for i in range(5000)]
    (panel,) = pictures.plot(Trace(spans), lanes=("streams",), highlight=[spans[777]]).panels
    out = [bar for bar in panel.layout.bars if panel.out(bar)]
    assert [spans[777].id in bar.ids and bar.number > 1 for bar in out] == [True]
    assert all(panel.faded(bar) for bar in panel.layout.bars if bar is not out[0])


def test_the_critical_path_can_stand_out(mlp: Trace) -> None:
    ax = plot(mlp, highlight="critical path", lanes=("host", "streams"))
    out = [
        c
        for c in ax.collections
        if isinstance(c, PolyCollection) and c.get_gid() and not c.get_alpha()
    ]
    assert sum(len(c.get_paths()) for c in out) == len(measure(mlp).critical_path) < len(mlp)


# ------------------------------------------------------------------ the clock, titles, axes
@pytest.mark.parametrize("trace", [Trace(), Trace([one()])], ids=["empty", "one span"])
def test_simulated_is_said_under_the_title_and_along_the_axis(trace: Trace) -> None:
    ax = plot(trace)
    draw(ax)
    (subtitle,) = [t for t in ax.texts if t.get_gid() == "subtitle"]
    assert subtitle.get_text().startswith("simulated clock")
    assert not subtitle.get_clip_on()  # it stands outside the axes
    assert "simulated" in ax.get_xlabel()


def test_a_measured_trace_names_its_clock_and_is_not_called_simulated() -> None:
    ax = plot(Trace([one()], clock="CUDA events", device="NVIDIA H200"))
    said = " ".join([*(t.get_text() for t in ax.texts), ax.get_xlabel(), ax.get_title(loc="left")])
    assert "CUDA events" in said
    assert "NVIDIA H200" in said
    assert "simulated" not in said


def test_in_a_narrow_picture_the_clock_is_the_last_to_go(mlp: Trace) -> None:
    ax = plot(mlp, width=3)
    draw(ax)
    (subtitle,) = [t for t in ax.texts if t.get_gid() == "subtitle"]
    assert subtitle.get_text() == "simulated clock: modelled, not measured"


def test_nothing_recorded_is_said() -> None:
    said = " ".join(t.get_text() for t in plot(Trace()).texts)
    assert "Nothing was recorded. A trace is filled when" in said


def test_nothing_on_the_lanes_is_said() -> None:
    ax = plot(Trace([one("call")]), lanes=("engines",))
    assert "Nothing on these lanes." in [t.get_text() for t in ax.texts]


def test_a_span_without_duration_has_an_axis_around_it() -> None:
    ax = plot(Trace([one(start=5, end=5)]))
    low, high = ax.get_xlim()
    assert low < 5 < high
    draw(ax)


@pytest.mark.parametrize(("end", "unit", "label"), [(90.0, "\u00b5s", "80"), (90e3, "ms", "80")])
def test_long_times_are_labelled_in_ms_and_the_data_stay_us(
    end: float, unit: str, label: str
) -> None:
    ax = plot(Trace([one(end=end)]))
    draw(ax)
    assert f"({unit})" in ax.get_xlabel()
    assert label in [t.get_text() for t in ax.get_xticklabels()]
    assert ax.get_xlim()[1] >= end


def test_times_far_from_the_start_are_told_apart() -> None:
    trace = Trace([one(start=1_234_000_001, end=1_234_000_004)])
    ax = plot(trace)
    draw(ax)
    drawn = [t.get_text() for t in ax.get_xticklabels()]
    svg = pictures.plot(trace).svg()
    still = re.findall(r'class="agt-tick"[^>]*>([^<]*)<', svg)
    for labels in (drawn, still):
        assert len(set(labels)) == len(labels) > 3
        assert "1234000.002" in labels
    *_, last = re.findall(r'class="agt-tick" x="([\d.]+)"[^>]*>([^<]*)<', svg)
    assert float(last[0]) + text_width(last[1], 11) / 2 <= 760 - 2 * 8


@pytest.mark.parametrize("width", [0, 0.1, 1])
def test_however_narrow_there_is_room_for_the_time(mlp: Trace, width: float) -> None:
    ax = plot(mlp, width=width)
    assert ax.get_position().width * ax.get_figure(root=True).get_figwidth() == pytest.approx(1)


def test_pages_that_move_both_ways_at_once_are_beside_each_other() -> None:
    pages = [one("h2d", id=1, stream=-1), one("d2h", start=2, end=6, id=2, stream=-1)]
    upper, lower, *engines = pictures.plot(Trace(pages)).panels[0].layout.bars
    assert upper.bottom <= lower.y
    assert {bar.text for bar in engines} == {"um"}


def test_a_title_that_is_too_long_is_cut_and_says_so(mlp: Trace) -> None:
    picture = pictures.plot(mlp, title="Words and " * 40)
    (ax,) = picture.axes()
    draw(ax)
    assert ax.title.get_text() == ""
    assert ax._left_title.get_text().endswith("\u2026")
    assert ax._left_title.get_window_extent().x1 <= ax.get_figure(root=True).bbox.x1
    (still,) = re.findall(r'class="agt-title"[^>]*>([^<]*)<', picture.svg())
    assert still.endswith("\u2026")


def test_the_legend_covers_no_bar_and_stays_in_the_figure(mlp: Trace) -> None:
    ax = plot(mlp)
    figure = ax.get_figure(root=True)
    assert figure is not None
    draw(ax)
    (legend,) = figure.legends
    extent = legend.get_window_extent()
    assert extent.y1 <= ax.xaxis.get_tightbbox().y0
    assert extent.y0 >= 0
    assert extent.x1 <= figure.bbox.x1


def test_two_thousand_spans_need_few_artists() -> None:
    spans = [
        one(id=i, start=i // 8, end=i // 8 + 0.9, stream=i % 8, after=(i - 1,)) for i in range(2000)
    ]
    ax = plot(Trace(spans))
    assert written(ax) == []
    assert len(ax.collections) < 10


# ------------------------------------------------------------------ several traces
def test_compare_puts_all_on_one_scale(mlp: Trace) -> None:
    short = Trace([one(end=5)], clock="CUDA events", device="NVIDIA H200")
    axes = compare_timelines([mlp, short], ["long", "short"])
    assert [ax.get_title(loc="left") for ax in axes] == ["long", "short"]
    assert axes[0].get_xlim() == axes[1].get_xlim()
    upper, lower = (ax.get_position() for ax in axes)
    assert (upper.x0, upper.width) == (lower.x0, lower.width)
    assert lower.y1 < upper.y0
    assert axes[0].get_figure() is axes[1].get_figure()
    assert "simulated" in axes[0].get_xlabel()
    assert "CUDA events" in axes[1].get_xlabel()


def test_compare_keeps_one_height_for_a_lane(mlp: Trace) -> None:
    axes = compare_timelines([mlp, Trace([one()])], lanes=("streams",))
    heights = [ax.get_position().height / abs(ax.get_ylim()[0] - ax.get_ylim()[1]) for ax in axes]
    assert heights[0] == pytest.approx(heights[1])


def test_compare_lets_something_stand_out_in_each(mlp: Trace) -> None:
    marked, plain = compare_timelines(
        [mlp, mlp], lanes=("streams",), highlight=["sgemm_naive", None]
    )
    assert {c.get_alpha() is None for c in collections(marked, "kernel")} == {True, False}
    assert {c.get_alpha() for c in collections(plain, "kernel")} == {None}


# ------------------------------------------------------------------ mistakes
def test_mistakes_are_answered_with_the_choices(mlp: Trace) -> None:
    with pytest.raises(UsageError, match=r"'stream'.*'streams'"):
        plot(mlp, lanes=("stream",))
    with pytest.raises(UsageError, match=r"'sgemm'.*'sgemm_naive'"):
        plot(mlp, highlight="sgemm")
    with pytest.raises(UsageError, match="at least one trace"):
        compare_timelines([])
    with pytest.raises(UsageError, match="2 traces, 1 titles"):
        compare_timelines([mlp, mlp], ["one"])
    with pytest.raises(UsageError, match="2 traces, 1 highlights"):
        compare_timelines([mlp, mlp], highlight=["relu"])


def test_a_mistake_leaves_no_figure_behind(mlp: Trace) -> None:
    with pytest.raises(UsageError):
        plot(mlp, highlight="nothing")
    assert plt.get_fignums() == []


# ------------------------------------------------------------------ what it does not do


def test_no_global_setting_is_changed(mlp: Trace) -> None:
    before = dict(mpl.rcParams)
    draw(plot(mlp))
    assert dict(mpl.rcParams) == before
