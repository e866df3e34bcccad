"""A trace that somebody sent: damage has a clear message, and nothing else happens."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json
from tests.asyncgpu_tutor.traces.invariants import hold

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def read(body: str) -> Trace:
    return Trace(*own_json.read_own_json(own_json.parsed(body)))


def span(**changed: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": 3, "kind": "kernel", "name": "k", "start": 1.0, "end": 2.0, "device": "cuda:0",
        "stream": 1, "op": 7, "label": "x", "after": [1], "detail": {"grid": [1, 1, 1]},
    }  # fmt: skip
    return {**fields, **changed}


FIELDS = list(span())


def text(*spans: object, **changed: object) -> str:
    body = {"format": "asyncgpu_tutor.trace/1", "clock": "CUPTI", "device": "d"}
    return json.dumps({**body, "spans": spans, **changed})


def test_a_trace_comes_back_as_it_was(sim: Device) -> None:
    with agt.record() as trace:
        agt.zeros(4).sync()
    trace.about = {"gpu": "none", "n": 1}
    again = read(trace.to_json())
    assert again == trace
    assert again.to_json() == trace.to_json()
    assert read(text(span())).about == {}  # a file of before there was `about`


def without(part: str) -> str:
    return json.dumps({k: v for k, v in json.loads(text()).items() if k != part})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        *((body, "not a trace") for body in ("", "{}", "[]", "null", "3", '"x"', "{", '{"format": 1}')),
        *((without(part), f"it has no '{part}'") for part in ("spans", "clock", "device")),
        (text(span(), span()), "two spans have the id 3"),
        ("[" * 200_000, "nests too deeply"),
        (text(span(detail=json.loads('{"x":' * 100 + "1" + "}" * 100))), "its detail nests too deeply"),
        *((text(span()).replace(number, f"{word},"), "is not a number")
          for number in ("2.0,", "1,") for word in ("NaN", "Infinity", "-Infinity")),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused(body: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(body)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kind", "__import__", "unknown kind of span"), ("kind", ["kernel"], "unknown kind of span"),
        ("id", "3", "its id is '3', not a whole number"), ("id", True, "its id is True"),
        ("id", 1.5, "its id is 1.5"), ("id", 2**70, "not a whole number"),
        ("end", -1.0, "it goes from 1.0 to -1.0 us"), ("start", 3.0, "it goes from 3.0 to 2.0 us"),
        ("end", 1e300, "its end is 1e+300, not a number of us"), ("end", 10**400, "not a number of us"),
        ("end", None, "its end is None, not a number of us"), ("start", "now", "its start is 'now'"),
        ("name", 5, "its name is 5, not text"), ("name", "x" * 20_000, "its name has 20,000 characters"),
        ("stream", 1.0, "its stream is 1.0"), ("after", 1, "its 'after' is not a list"),
        ("after", [3], "it waits for 3, which did not come before it"), ("after", [9, 1], "it waits for 9"),
        ("name", "\ud800", "surrogates not allowed"), ("detail", [], "its detail is not an object"),
        ("detail", {"bytes": 10**400}, "its detail holds 1000"),
        ("detail", {"grid": [10**400, 1, 1]}, "its detail holds 1000"),
        ("detail", {"full_name": ["\ud800"]}, "surrogates not allowed"),
    ],
)  # fmt: skip
def test_each_wrong_field_is_named(field: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match="this trace is damaged") as caught:
        read(text(span(**{field: value})))
    assert message in str(caught.value)


def test_what_came_before_time_zero_is_kept() -> None:
    assert [(s.start, s.end) for s in read(text(span(start=-3.0, end=-1.0)))] == [(-3.0, -1.0)]


def test_too_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.json"
    with file.open("wb") as handle:
        handle.truncate(own_json.MOST_BYTES + 1)  # a sparse file: it takes no room
    with pytest.raises(UsageError, match="record a shorter stretch"):
        Trace.load(file)
    monkeypatch.setattr(own_json, "MOST_SPANS", 2)
    with pytest.raises(UsageError, match="it has 3 spans, and at most 2 are read"):
        read(text(span(), span(), span()))


def test_what_is_not_a_file_is_not_read_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "nothing.json")
    pipe = tmp_path / "pipe.json"
    getattr(os, "mkfifo", Path.mkdir)(pipe)  # not every system has named pipes
    (tmp_path / "loop.json").symlink_to("loop.json")
    with pytest.raises(UsageError, match="cannot be read"):
        Trace.load(tmp_path / "loop.json")
    for path in (tmp_path, pipe):
        with pytest.raises(UsageError, match="is not a file"):
            Trace.load(path)


PACKED = bytearray(gzip.compress(str(list(range(1000))).encode()))
PACKED[100:140] = bytes(40)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("t.json.gz", PACKED, "cannot be read"),
        ("t.json", b"\x80\x04\x95\xff", "not text in UTF-8"),  # how a pickle begins
        ("x.pftrace", b"\x0a\x02\x40\x05", "Perfetto's own format"),
    ],
)
def test_damaged_files_and_those_of_others_are_refused(
    name: str, body: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(body)
    with pytest.raises(UsageError, match=message):
        Trace.load(file)
    assert file.read_bytes() == body


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_a_trace_or_an_error_for_people(body: str) -> None:
    with pytest.raises(UsageError):
        read(body)


def taken(body: str) -> None:
    """Read a text, use what it gives, and write that; or nothing, where it is refused."""
    try:
        trace = read(body)
    except UsageError:
        return
    assert read(trace.to_json()) == trace
    usable(trace)


@given(st.sampled_from(FIELDS), PLAIN)
def test_any_value_in_any_field_is_taken_or_refused(field: str, value: object) -> None:
    taken(text(span(id=1, after=[]), {**span(), field: value}))


DETAILS = (
    "api", "block", "bytes", "cuda_stream", "domain", "fills", "full_name", "grid", "named", "nested",
    "other", "pageable", "registers", "shared", "thread", "waited_for_room", "why",
)  # fmt: skip


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """What passes the checks, however odd."""
    kinds = st.sampled_from(["kernel", "h2d", "d2h", "call", "wait", "work", "range"])
    rows: list[dict[str, object]] = []
    for number in range(draw(st.integers(0, 6))):
        start, kind = draw(st.floats(0, 1e6)), draw(kinds)
        on_device = kind in {"kernel", "h2d", "d2h"}
        changed = {
            "end": start + draw(st.floats(0, 1e6)),
            "stream": draw(st.none() | st.integers(-2, 3)) if on_device else None,
            "op": draw(st.none() | st.integers(0, 3)),
            "name": draw(st.sampled_from(["k", "h2d", "launch k", "malloc x", "load k"])),
            "after": draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else [],
            "detail": draw(st.dictionaries(st.sampled_from(DETAILS), PLAIN)),
        }
        rows.append(span(id=number, kind=kind, start=start, **changed))
    try:
        return read(text(*rows))
    except UsageError:
        return Trace()


@given(trace=traces())
def test_whatever_is_taken_can_be_used(trace: Trace, tmp_path: Path) -> None:
    usable(trace)
    trace.to_perfetto(tmp_path / "t.json")


def usable(trace: Trace) -> None:
    hold(trace)
    assert trace.table()
    assert agt.analyse(trace).table()
    assert trace.plot().svg()
    assert trace.plot().view()
    assert len(trace.sql("select * from spans")) == len(trace)
