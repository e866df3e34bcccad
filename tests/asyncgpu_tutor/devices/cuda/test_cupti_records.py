"""CUPTI's records find what asked for them, and their place on the host's clock."""

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.devices.cuda import cupti_records
from asyncgpu_tutor.devices.cuda.cupti_records import Anchor, ClockFit, CuptiActivity, by_draft
from asyncgpu_tutor.traces.spans import Draft, SpanKind, SpanLog

GRAPH = 0x5_0000_0000  # CUPTI numbers the nodes of a graph from such a number on


def drafts(*works: tuple[SpanKind, str]) -> list[Draft]:
    log = SpanLog("cuda:0")
    return [log.draft(kind, name, 1) for kind, name in works]


def node(number: int, kind: SpanKind = "kernel", name: str = "layer", start: int = 1000) -> Any:
    name = name if kind == "kernel" else ""
    return CuptiActivity(kind, 7, start, start + 500, name, GRAPH + number)


def test_each_node_of_a_launch_gets_its_record_whatever_ran_first() -> None:
    asked = drafts(("h2d", "h2d"), ("kernel", "layer"), ("kernel", "layer"), ("d2h", "d2h"))
    records = [
        node(2, start=2000),  # a branch may be quicker than the one that was captured before it
        node(0, "h2d", start=1000),
        node(3, "d2h", start=9000),
        node(1, start=5000),
    ]
    assert [[r.node - GRAPH for r in rs] for rs in by_draft(asked, records)] == [[0], [1], [2], [3]]


def test_a_copy_that_the_driver_makes_by_a_kernel_is_still_the_copy() -> None:
    asked = drafts(("kernel", "layer"), ("d2d", "d2d"), ("memset", "memset"))
    records = [node(0), node(1, name="memcpy32_post"), node(2, name="memset32_post")]
    assert by_draft(asked, records) == [[record] for record in records]


def test_where_the_numbers_do_not_fit_kind_and_name_decide_and_then_the_start() -> None:
    asked = drafts(("kernel", "relu"), ("h2d", "h2d"), ("kernel", "relu"))
    late, early, copy = node(0, name="relu", start=5000), node(1, name="relu"), node(2, "h2d")
    assert by_draft(asked, [late, early, copy]) == [[early], [copy], [late]]


def test_a_node_without_a_record_has_none_and_takes_no_others() -> None:
    asked = drafts(("kernel", "a"), ("kernel", "b"), ("d2h", "d2h"))
    b, copy = node(1, name="b"), node(2, "d2h")
    assert by_draft(asked, [b, copy]) == [[], [b], [copy]]
    assert by_draft(asked, []) == [[], [], []]


def test_a_template_is_known_by_the_name_that_is_in_its_mangled_one() -> None:
    asked = drafts(("kernel", "scale<float, 16>"), ("kernel", "scale<float, 32>"))
    records = [node(0, name="_Z5scaleIfLi16EEvjPKT_"), node(1, name="_Z5scaleIfLi32EEvjPKT_")]
    assert by_draft(asked, records) == [[record] for record in records]


def test_all_records_of_a_call_that_makes_one_piece_are_its_own() -> None:
    parts = [CuptiActivity("h2d", 7, 1000, 2000), CuptiActivity("h2d", 7, 2100, 3000)]
    assert by_draft(drafts(("h2d", "h2d")), parts) == [parts]


# CUpti_ActivityMemcpyKind.
@pytest.mark.parametrize(("direction", "kind"), [(1, "h2d"), (2, "d2h"), (8, "d2d"), (10, "d2d")])
def test_a_copy_says_its_direction_and_whether_it_is_pageable(direction: int, kind: str) -> None:
    activity = SimpleNamespace(
        graph_node_id=0, correlation_id=3, start=10, end=20, copy_kind=direction, src_kind=1, dst_kind=3,
        device_id=0, stream_id=7,
    )  # fmt: skip
    record = cupti_records.activity_of(activity, None)
    assert (record.kind, record.pageable, record.node) == (kind, True, 0)
    activity.src_kind = 2
    assert not cupti_records.activity_of(activity, None).pageable


def test_work_of_others_gets_spans_in_the_order_in_which_it_began() -> None:
    records = [
        CuptiActivity("h2d", 9, 300, 400, device=0, stream=13),
        CuptiActivity("kernel", 8, 100, 200, "cupy_multiply", device=0, stream=7),
        CuptiActivity("kernel", 7, 0, 10, "without_a_start", device=0, stream=7),
        CuptiActivity("kernel", 7, 10, 0, "without_an_end", device=0, stream=7),
    ]
    found = cupti_records.drafts_of_others(records, (), {13: 2}, count(5))
    assert [(draft.id, draft.name, draft.stream) for draft, _ in found] == [
        (5, "cupy_multiply", cupti_records.OTHERS + 7),
        (6, "h2d", 2),  # on a stream of ours, which the other library was lent
    ]
    assert [record.start for _, record in found] == [100, 300]
    assert all(draft.op is None and draft.detail["foreign"] for draft, _ in found)
    full = "_ZN7cutlass7Kernel2I21cutlass_80_simt_sgemmEEvNT_6ParamsE"
    records = [CuptiActivity("kernel", 8, 100, 200, full)]
    ((draft, _),) = cupti_records.drafts_of_others(records, (), {}, count())
    assert draft.name == "Kernel2<cutlass_80_simt_sgemm>"
    assert draft.detail["full_name"] == full


# ------------------------------------------------------------------ clocks
# ns since 1970: of these, a float tells 256 from 0, and nothing less.
NOW = 1_763_741_000_000_000_123


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_a_ns_of_cuptis_is_a_ns_on_the_hosts_clock(start: int, length: int) -> None:
    line = ClockFit(Anchor(NOW, 5e6, 0.1), Anchor(NOW + 10**9, 6e6, 0.1))
    begin, end = line.us(NOW + start), line.us(NOW + start + length)
    assert end - begin == pytest.approx(length / 1e3, abs=1e-6)


def test_between_two_anchors_clocks_drift_apart_evenly() -> None:
    line = ClockFit(Anchor(NOW, 100.0, 0.1), Anchor(NOW + 10_000, 112.0, 0.2))
    assert [line.us(NOW + ns) for ns in (0, 5_000, 10_000)] == pytest.approx([100, 106, 112])
    assert [line.us(NOW + ns) for ns in (-1_000, 11_000)] == pytest.approx([99, 113])
    assert line.uncertainty == pytest.approx(0.1 + 0.2 + 2.0)


def test_work_that_would_start_before_its_call_says_by_how_much_all_is_early() -> None:
    late_by = cupti_records.late_by
    assert late_by([(110.0, 100.0), (95.0, 103.0), (120.0, 121.0)]) == 8.0
    for when_it_may in ([], [(110.0, 100.0)], [(100.0, 100.0), (102.0, 101.0)]):
        assert late_by(when_it_may) == 0.0
