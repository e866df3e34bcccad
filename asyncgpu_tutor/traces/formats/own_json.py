"""This package's own form of a trace: JSON, written here and read here, whoever wrote it.

A file of a stranger may be of any size, nest to any depth and hold any values. So there are caps, and each
field is checked: the type, that times are finite and in order, that ids are unique, and that nothing waits
for what came later, which rules out cycles.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, NoReturn, cast

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats.damage import NO_WORK, Damage, ProfileRecord
from asyncgpu_tutor.traces.spans.notebook_output import damage_of
from asyncgpu_tutor.traces.spans.relations import causal
from asyncgpu_tutor.traces.spans.span import DEVICE_KINDS, SPAN_KINDS, Span, SpanKind

# What a trace is made of: spans, clock, device, and facts.
Parts = tuple[list[Span], str, str, dict[str, object]]

_FORMAT = "asyncgpu_tutor.trace/1"

MOST_BYTES = 256 * 2**20  # of a trace as JSON: about a million spans
MOST_SPANS = 1_000_000
_MOST_VALUES = 18_000_000  # in its JSON: 256 MB of PyTorch's profiler hold about 15 million
MOST_WHOLE = 2**63  # more than any count of bytes or blocks, and a float can still hold it
_MOST_CHARACTERS = 10_000  # of a name
_MOST_DEPTH = 16  # of what a span's detail holds
_LONGEST = 1e15  # us: thirty years, and a float still tells one ns from the next


def write_own_json(
    spans: Iterable[Span], clock: str, device: str, about: Mapping[str, object]
) -> str:
    """The JSON text of a trace; the same trace gives the same text."""
    rows = [asdict(span) for span in spans]
    body: dict[str, object] = {"format": _FORMAT, "clock": clock, "device": device, "spans": rows}
    if about:
        body["about"] = dict(about)
    return json_text(body, indent=1, sort_keys=True)


def json_text(body: object, **how: Any) -> str:
    """JSON, as any reader takes it; `UsageError` if it would hold what JSON has not."""
    try:
        return json.dumps(body, allow_nan=False, **how)
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error).partition(":")[0]  # behind it, some versions of Python say the number
        raise UsageError(
            f"this trace cannot be written as JSON: {why}. Its `about` and the details of its spans may "
            "hold texts, finite numbers of Python's, lists, and dicts whose keys are texts"
        ) from None


def read_own_json(body: Mapping[str, object]) -> Parts:
    """Spans, clock, device and facts of what `write_own_json` wrote, `parsed`. Nothing in it is run."""
    if body.get("format") != _FORMAT:
        told = "'traceEvents', as traces of PyTorch and Chrome have"
        raise UsageError(
            f"this is not a trace: it has neither {told}, nor the 'format' {_FORMAT!r}"
        )
    try:
        clock, device = (_text(body[key], key, 1000) for key in ("clock", "device"))
        about, damage = _mapping(body.get("about", {}), "about"), Damage()
        # A saved trace still has the calls of work that was left out before.
        known = "damage" in about
        spans = _spans(body["spans"], damage, modelled=clock == "simulated", known=known)
        return spans, clock, device, damage.told(about)
    except KeyError as error:
        raise UsageError(f"this trace is damaged: it has no {error}") from None
    except ValueError as error:
        raise UsageError(f"this trace is damaged: {error}") from None


def parsed(
    text: str, hook: Callable[[dict[str, Any]], object] | None = None, damage: Damage | None = None
) -> dict[str, object]:
    """The object in a JSON text, with what `hook` makes of those in it; Chrome's events may stand alone.

    With `damage`, a trace may have the known faults of PyTorch's writer.
    """
    if len(text) > MOST_BYTES:
        raise UsageError(
            f"this trace has {len(text):,} characters, and {MOST_BYTES:,} is the limit"
        )
    values = sum(map(text.count, ",[{"))
    if values > _MOST_VALUES:
        raise UsageError(f"this trace has {values:,} values, and {_MOST_VALUES:,} is the limit")
    try:
        found: Any = json.loads(text, object_hook=hook, parse_constant=_no_constant)
    except RecursionError:
        raise UsageError("this is not a trace: its JSON nests too deeply") from None
    except ValueError as error:
        if damage is not None and '"traceEvents"' in text:
            return _mended(text, hook, damage, error)
        raise UsageError(f"this is not a trace: it is not JSON ({error})") from None
    if isinstance(found, list):
        return {"traceEvents": cast(list[object], found)}
    if not isinstance(found, dict):
        raise UsageError(
            f"this is not a trace: its JSON is a {type(found).__name__}, not an object"
        )
    return cast(dict[str, object], found)


# What PyTorch writes by version, and what it should be: paths of Windows and quotes that are not escaped, and
# words where JSON has none (pytorch/pytorch#98432 and #113001, pytorch/kineto#750).
_FAULTS: Mapping[str, tuple[str, str]] = {
    "single backslashes": (r'(?<!\\)((?:\\\\)*)\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})', r"\1\\\\"),
    "quotes in names": (r'(?<![\\{\[,:\s])"(?![,:}\]\s])', r"\\" + '"'),
    "bare words for numbers": (r"(:\s?)(?:N/A|-?nan|-?inf)(?=\s?[,}])", r"\1null"),
}
_MOST_MENDED = 4_000_000  # places of one fault


def _mended(
    text: str, hook: Callable[[dict[str, Any]], object] | None, damage: Damage, error: ValueError
) -> dict[str, object]:
    """As `parsed`, for a text that is JSON but for the known faults of PyTorch's writer."""
    found: list[str] = []
    for name, (pattern, mend) in _FAULTS.items():
        better = re.sub(pattern, mend, text, count=_MOST_MENDED)
        found += [name] if better != text else []
        text = better
    try:
        body = json.loads(text, object_hook=hook, strict=False)
    except (ValueError, RecursionError):
        raise UsageError(
            f"this is not a trace: it is not JSON ({error}). Some versions of PyTorch write a trace that is "
            "none, with raw backslashes or quotes in names: repair that place by hand, or record it without "
            "with_stack, or by a newer PyTorch"
        ) from None
    damage.add(
        "of a file that is not quite JSON was mended, as some versions of PyTorch write it",
        ", ".join(found or ["raw line breaks"]),
    )
    return body


def _spans(rows: object, damage: Damage, *, modelled: bool, known: bool) -> list[Span]:
    """The spans that rows of JSON describe; a ValueError says what is wrong with all of them."""
    if not isinstance(rows, list):
        raise ValueError("'spans' is not a list")
    found = cast(list[object], rows)
    if len(found) > MOST_SPANS:
        raise ValueError(f"it has {len(found):,} spans, and at most {MOST_SPANS:,} are read")
    spans: dict[int, Span] = {}
    for index, row in enumerate(found):
        try:
            span = _span(row)
        except (ValueError, TypeError) as error:
            damage.add("left out: a field in it is damaged", f"span number {index}: {error}")
            after = cast(Mapping[str, object], row).get("after") if isinstance(row, dict) else None
            damage.unread.update(
                map(repr, cast(list[object], after) if isinstance(after, list) else ())
            )
            continue
        if span.id in spans:
            raise ValueError(f"two spans have the id {span.id}")
        spans[span.id] = span
    calls = {span.id for span in spans.values() if span.kind == "call"}
    looked = (
        ProfileRecord(
            s, s.name, s.start, s.end,
            s.on_device and not modelled,  # a model may give anything no time, and begins at 0
            s.on_device and not modelled and s.detail.get("bytes") != 0,
            s.id if s.id in calls else None, max((i for i in s.after if i in calls), default=None),
        )
        for _, s in sorted(spans.items())
    )  # fmt: skip
    kept: list[Span] = damage.sound(list(looked))
    if found and not kept:
        raise ValueError(" ".join(damage_of(damage.told({}))))
    asked = {i for span in spans.values() for i in span.after}
    asked |= {i for i in calls if repr(i) in damage.unread}
    for span in () if known else kept:
        if span.kind == "call" and span.name.startswith("launch ") and span.id not in asked:
            damage.add(NO_WORK, span.name)
    return causal(kept)


def _mapping(given: object, what: str) -> dict[str, object]:
    """A JSON object with plain values, not nested deeper than `_MOST_DEPTH`."""
    if not isinstance(given, dict):
        raise ValueError(f"its {what} is not an object")
    found = cast(dict[str, object], given)  # JSON has no other keys
    _plain(found, what, _MOST_DEPTH + 1)
    return found


def _span(row: object) -> Span:
    if not isinstance(row, dict):
        raise ValueError("it is not an object")
    fields = cast(Mapping[str, object], row)
    for needed in ("id", "kind", "name", "start", "end", "device"):
        if needed not in fields:
            raise ValueError(f"it has no {needed!r}")
    kind, number = fields["kind"], _whole_number(fields["id"], "id")
    if not isinstance(kind, str) or kind not in SPAN_KINDS:
        raise ValueError(f"unknown kind of span {kind!r}")
    start, end = _time(fields["start"], "start"), _time(fields["end"], "end")
    if not start <= end:  # below 0 is what came before time zero: see `Trace.from_first`
        raise ValueError(f"it goes from {start} to {end} us")
    after = fields.get("after", [])
    if not isinstance(after, list | tuple):
        raise ValueError("its 'after' is not a list")
    before = tuple(_whole_number(i, "after") for i in cast(list[object], after))
    if any(i >= number for i in before):
        raise ValueError(f"it waits for {max(before)}, which did not come before it ({number})")
    stream, op = (
        None if fields.get(n) is None else _whole_number(fields[n], n) for n in ("stream", "op")
    )
    if (stream is None) == (kind in DEVICE_KINDS):
        raise ValueError(f"its stream is {stream}, and it is a {kind}")
    name, device, label = (_text(fields.get(n, ""), n) for n in ("name", "device", "label"))
    more = stream, op, label, before, _mapping(fields.get("detail", {}), "detail")
    return Span(number, cast(SpanKind, kind), name, start, end, device, *more)


def _whole_number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= MOST_WHOLE:
        raise ValueError(f"its {what} is {value!r:.60}, not a whole number")
    return value


def _time(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LONGEST:
        raise ValueError(f"its {what} is {value!r:.60}, not a number of us")
    return float(value)


def _text(value: object, what: str, most: int = _MOST_CHARACTERS) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its {what} is {value!r:.60}, not text")
    if len(value) > most:
        raise ValueError(f"its {what} has {len(value):,} characters")
    value.encode()  # half of a pair of UTF-16 is no text, and JSON can hold it
    return value


def _plain(value: object, what: str, depth: int) -> None:
    if depth == 0:
        raise ValueError(f"its {what} nests too deeply")
    if isinstance(value, dict | list):
        found = cast(dict[object, object] | list[object], value)
        for part in found.values() if isinstance(found, dict) else found:
            _plain(part, what, depth - 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"its {what} holds {value}")
    elif isinstance(value, int) and abs(value) >= MOST_WHOLE:
        raise ValueError(f"its {what} holds {value!r:.60}")
    elif isinstance(value, str):
        value.encode()  # as in `_text`


def _no_constant(name: str) -> NoReturn:
    """Refuse what Python's JSON has and JSON has not: NaN and the infinities."""
    raise ValueError(f"{name} is not a number")
