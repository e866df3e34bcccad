"""Traces in Chrome's format, as the PyTorch profiler (Kineto) writes them, and as this package does.

Format: "Trace Event Format", https://perfetto.dev/docs/getting-started/other-formats. What Kineto puts into
``cat`` and ``args`` was looked at in traces of PyTorch 1.9 to 2.6. Times there are us, or fractions of them.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats._nsys_rows import ActivityRow, ApiCallRow, Export, NvtxRow, sound
from asyncgpu_tutor.traces.formats.damage import NO_WORK, Damage
from asyncgpu_tutor.traces.formats.own_json import MOST_WHOLE
from asyncgpu_tutor.traces.spans.cuda_calls import LAUNCHING_CALLS, WAITS
from asyncgpu_tutor.traces.spans.kernel_names import kernel_name
from asyncgpu_tutor.traces.spans.span import SpanKind

# By category in small letters. PyTorch 1.8 and 1.9 have others, with capitals.
_WORK: Mapping[str, SpanKind] = {
    "kernel": "kernel", "gpu_memcpy": "d2d", "memcpy": "d2d", "gpu_memset": "memset", "memset": "memset",
}  # fmt: skip
_DIRECTIONS: Mapping[str, SpanKind] = {"HtoD": "h2d", "DtoH": "d2h", "PtoP": "peer"}
_CALLS = frozenset(("cuda_runtime", "cuda_driver", "runtime"))
_OPERATORS = frozenset(("cpu_op", "operator"))
_RANGES = _OPERATORS | {"user_annotation"}

# Of which nothing is told, and which may be most of a file.
_NOISE = frozenset(("python_function", "ac2g", "fwdbwd", "async_cpu_to_gpu"))
_FACTS = ("device", "stream", "correlation", "grid", "block", "bytes")
_FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
_KNOWN = _RANGES | _CALLS | _WORK.keys()

ChromeEvent = dict[str, Any]


def slimming(most: int) -> Callable[[ChromeEvent], ChromeEvent | None]:
    """A function that makes an object of a file small, for at `most` so many events."""
    events = itertools.count(1)

    def slimmed(found: ChromeEvent) -> ChromeEvent | None:
        if "ph" not in found or not (
            "ts" in found or "pid" in found
        ):  # it may be of an event's args
            return found
        if found["ph"] not in ("X", "B", "E") or str(found.get("cat")) in _NOISE:
            return None
        if next(events) > most:
            raise UsageError(
                f"this trace has more than {most:,} events, and no more are read: record a shorter stretch "
                "of the program, or fewer activities"
            )
        return _slim(found)

    return slimmed


def _slim(found: ChromeEvent) -> ChromeEvent:
    """An event without what no span is made of, which is most of it."""
    args = _object(found.get("args"))
    kept = {
        k: sys.intern(v) if isinstance(v := found[k], str) else v for k in _FIELDS if k in found
    }
    facts = {key: args[key] for key in _FACTS if key in args}
    return {**kept, "args": facts} if facts else kept


def collect_events(events: object, gpus: object, damage: Damage) -> Export:
    """The rows that a trace is made of; times become whole ns. `gpus` are the ``deviceProperties``."""
    found = cast(list[object], events) if isinstance(events, list) else []
    whole = list(_whole_field(map(_object, found), damage))
    # Another program's events have categories of their own, and all of them are ranges.
    foreign = not any(_category(event) in _KNOWN for event, *_ in whole)
    made = [_work(event, start, end) for event, start, end in whole]
    work = sorted((w for w in made if w is not None), key=lambda w: (w.start, w.correlation))
    threads: dict[tuple[object, object], int] = {}

    def thread(event: ChromeEvent) -> int:
        return threads.setdefault((str(event.get("pid")), str(event.get("tid"))), len(threads) + 1)

    known = {w.correlation for w in work if w.correlation}
    calls: list[ApiCallRow] = []
    seen: set[int] = set()
    for event, start, end in sorted(whole, key=lambda item: item[1]):
        name, number = _name(event), _number_in(_object(event.get("args")).get("correlation"))
        if _category(event) not in _CALLS or (number and number in seen):
            continue
        kind = "launch" if number in known else "wait" if name.startswith(WAITS) else None
        if kind is None and name.startswith(LAUNCHING_CALLS):
            if number not in damage.unread:
                damage.add(NO_WORK, name)
        elif kind is not None:
            seen.add(number)
            calls.append(ApiCallRow(kind, name, start, end, thread(event), number))
    ranges = sorted(_ranges(whole, thread, foreign), key=lambda r: r.start)
    source = "the file's own clock" if foreign else "PyTorch profiler"
    about: dict[str, object] = {"source": source, "foreign": True}
    gpu = _object(cast(list[object], gpus)[0] if isinstance(gpus, list) and gpus else None)
    sizes = (_number_in(gpu.get(key)) for key in ("numSms", "maxThreadsPerMultiprocessor"))
    if at_once := _number_in(math.prod(sizes)):
        about["threads_at_once"] = at_once
    name = str(gpu.get("name", ""))[:100]
    return sound(Export(work, calls, ranges, frozenset((0, 7)), name, about), damage)


def _whole_field(
    events: Iterable[ChromeEvent], damage: Damage
) -> Iterator[tuple[ChromeEvent, int, int]]:
    """The events that last, with start and end in ns; begin and end may be two, and an end may be missing."""
    opened: dict[tuple[str, str], list[tuple[ChromeEvent, int]]] = {}
    last = 0
    for event in events:
        if (kind := event.get("ph")) not in ("X", "B", "E"):
            continue
        try:
            start, end = _times(event)
        except ValueError as error:
            damage.add("left out: it has no times", f"{_name(event)}: {error}")
            damage.unread.add(_number_in(_object(event.get("args")).get("correlation")))
            continue
        last = max(last, end)
        stack = opened.setdefault((str(event.get("pid")), str(event.get("tid"))), [])
        if kind == "X":
            yield event, start, end
        elif kind == "B":
            stack.append((event, start))
        elif stack:
            begun, start = stack.pop()
            yield begun, start, max(start, end)
    for stack in opened.values():
        yield from ((event, start, max(start, last)) for event, start in stack)


def _times(event: ChromeEvent) -> tuple[int, int]:
    """Start and end in ns."""
    times: list[int] = []
    for key in ("ts", "dur") if event["ph"] == "X" else ("ts",):
        value = event.get(key, 0 if key == "dur" else None)
        try:
            us = float(value)
        except (TypeError, ValueError, OverflowError):
            us = math.nan
        if not abs(us) <= 1e18:
            raise ValueError(f"{key} is {value!r:.40}, not a time in us")
        # 1.7e15 us since 1970 and more digits than a float has: the ns are counted apart.
        times.append(round(us * 1000) if not isinstance(value, int) else value * 1000)
    return times[0], sum(times)


def _work(event: ChromeEvent, start: int, end: int) -> ActivityRow | None:
    kind = _WORK.get(_category(event))
    if kind is None:
        return None
    args, name = _object(event.get("args")), _name(event)
    sizes = ((key, _three(args.get(key))) for key in ("grid", "block"))
    detail: dict[str, object] = {key: size for key, size in sizes if size}
    if kind == "kernel":
        name, full = kernel_name(name)
        detail |= full
    elif kind == "d2d":
        for words, direction in _DIRECTIONS.items():
            kind = direction if words in name else kind
        if "Pageable" in name:
            detail["pageable"] = True
    size = _whole(args.get("bytes"))
    if size is not None and 0 <= size < MOST_WHOLE:
        detail["bytes"] = size
    given = (args.get("device", event.get("pid")), args.get("stream", event.get("tid")))
    device, stream, call = (_number_in(number) for number in (*given, args.get("correlation")))
    name = name if kind == "kernel" else kind
    return ActivityRow(kind, name, start, end, device, stream, call, detail)


def _ranges(
    whole: list[tuple[ChromeEvent, int, int]], thread: Callable[[ChromeEvent], int], foreign: bool
) -> Iterator[NvtxRow]:
    """Ranges that the program named, and the outermost operators; those inside would be too many."""
    last: dict[int, int] = {}
    ordered = sorted(whole, key=lambda item: (item[1], -item[2]))
    for number, (event, start, end) in enumerate(ordered, 1):
        sort = _category(event)
        if not foreign and sort not in _RANGES:
            continue
        on = thread(event)
        if sort in _OPERATORS:
            if start < last.get(on, start):
                continue
            last[on] = end
        yield NvtxRow(number, _name(event), "", start, end, on, True)


def _category(event: ChromeEvent) -> str:
    return str(event.get("cat", "")).lower()


def _whole(value: object) -> int | None:
    """A whole number; some programs write each as a fraction, 7 as 7.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _three(value: object) -> list[int]:
    parts = [_whole(part) for part in cast(list[Any], value)] if isinstance(value, list) else []
    known = [part for part in parts if part is not None and abs(part) < MOST_WHOLE]
    return known if len(known) == len(parts) else []


def _object(value: object) -> ChromeEvent:
    return cast(ChromeEvent, value) if isinstance(value, dict) else {}


def _name(event: ChromeEvent) -> str:
    # Half of a pair of UTF-16 is no text, and JSON can hold it.
    name = str(event.get("name", ""))[:1000].encode(errors="replace").decode()
    return name or "(no name)"


def _number_in(value: object) -> int:
    """A small whole number, whatever the file has in its place."""
    try:
        number = int(str(value if (whole := _whole(value)) is None else whole))
    except ValueError:
        return 0
    return number if 0 <= number < MOST_WHOLE else 0
