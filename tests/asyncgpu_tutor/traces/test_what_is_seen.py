"""What is seen of each recording stays what it is, in every way of seeing it, unless somebody means it.

Whether a picture is good, no test can say; that a change of the code has changed it, one can. `seen.json` has
digests, also of made-up traces, which have what no recording has. After a change that is meant, when you have
looked at what it did: `python -m tests.asyncgpu_tutor.traces.test_what_is_seen`.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.formats.files import FOLDER
from asyncgpu_tutor.traces.spans import Span, SpanKind
from asyncgpu_tutor.traces.spans.span import call_name
from tests.asyncgpu_tutor.traces.invariants import hold

SEEN = Path(__file__).with_name("seen.json")
# The swarm takes seconds, and has nothing that others have not.
REPORTS = [path for path in sorted((FOLDER / "nsys").glob("*.sqlite")) if path.stem != "swarm"]
LONG = re.compile(r"\d+\.\d{7,}")  # its last digits depend on how a version of Python sums


def perfetto(trace: Trace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        trace.to_perfetto(Path(folder, "trace.json"))
        return Path(folder, "trace.json").read_text(encoding="utf-8")


def part(trace: Trace) -> Trace:
    spans = trace.device_spans
    return trace.between(spans[len(spans) // 4].start, spans[-len(spans) // 4].end)


def analysed(trace: Trace) -> list[object]:
    found = agt.analyse(trace)
    return [found._repr_html_(), found, found.streams, found.gaps, found.host_late]


WAYS: dict[str, Callable[[Trace], Any]] = {
    "picture": lambda trace: trace.plot(title="A <title>", lesson="A lesson")._repr_html_(),
    "picture of the critical path": lambda trace: trace.plot(
        highlight="critical path", whole=True
    ).svg(),
    "picture of a part": lambda trace: part(trace).plot(lanes=["streams"]).svg(),
    "two pictures": lambda trace: agt.compare_timelines([trace, part(trace)], together=True).svg(),
    "live picture": lambda trace: json.dumps(trace.plot().view()),
    "table": lambda trace: trace.table(),
    "findings": agt.diagnose,
    "analysis": analysed,
    "metrics": lambda trace: [trace.metrics(), trace],
    "Perfetto": perfetto,
    "file": Trace.to_json,
}
NAMES = ("k", "at::gemm<float, 128>(float*, int)", "nccl_sum", "pair of arrays")
KINDS: tuple[SpanKind, ...] = ("kernel", "kernel", "h2d", "d2h", "d2d", "memset", "peer", "graph")
BETWEEN: tuple[tuple[SpanKind, str], ...] = (
    ("wait", "pageable copy"), ("wait", "event"), ("work", "a job"), ("call", "malloc x"), ("call", "load k"),
)  # fmt: skip


def made_up(seed: int) -> Trace:
    """A program of 150 pieces of work, on one device or two, with whatever a span can say of itself."""
    draw = Random(seed)
    which, us, host = (
        range(1 + seed % 2),
        draw.choice((0.4, 4.0, 90.0)),
        draw.choice((0.0, 0.0, 3e4)),
    )
    began, host = (7e3, 7e3 + host) if seed > 7 else (0, host)
    last = dict[tuple[str, int], Span]()  # of each stream
    spans = [Span(0, "call", "malloc the first", began, host, "")]
    for number in range(5, 755, 5):
        kind, name, device = draw.choice(KINDS), draw.choice(NAMES), f"cuda:{draw.choice(which)}"
        stream = -1 if draw.random() < 0.1 and kind in ("h2d", "d2h") else draw.choice((0, 7, 1))
        op = draw.choice((None, number // 20, number))
        whose = (op, draw.choice(("", "batch", f"batch {number}")))
        by: dict[str, object] = {"thread": draw.randint(1, 2)} if seed % 3 else {}
        by |= {"host": device} if seed % 2 and seed % 5 else {}
        begun, host = host, host + draw.uniform(0.1, 1.5) * us
        called = {**by, "api": "cudaLaunch"} if draw.random() < 0.3 else by
        asks = call_name(kind, name)
        spans.append(Span(number, "call", asks, begun, host, "", None, *whose, (), called))
        needed = [last[key] for key in last if key == (device, stream) or draw.random() < 0.3]
        ready = max(host, *(span.end for span in needed), 0) + us * draw.choice((0, 0, 1, 3, 60))
        end = ready + us * draw.choice((0, 0.01, 1, 2, 5, 9))
        facts: list[dict[str, object]] = [
            {"bytes": number * 1000}, {"pageable": True}, {"grid": [number, 2, 1], "block": [32, 4, 1]},
            {"fills": 0.95}, {"waited_for_room": us}, {"waits": [[0.1, 0.2 * us], [0.3 * us, us]]},
            {"named": "mine"}, {"full_name": f"{name} of a library"}, {"ranks": 2}, {"why": "prefetched"},
            {"node": number}, {"other": True}, {"grid": ["all"], "block": "some"},
        ]  # fmt: skip
        detail = {key: value for fact in draw.sample(facts, 4) for key, value in fact.items()}
        after, where = (number, *(span.id for span in needed)), (ready, end, device, stream)
        last[device, stream] = Span(number + 1, kind, name, *where, *whose, after, detail)
        spans.append(last[device, stream])
        if draw.random() < 0.3:
            what: tuple[SpanKind, str] = draw.choice(BETWEEN)
            waits = what[0] == "wait"
            begun, host, after = host, max(host, end) if waits else host + us, (number + 1,) * waits
            spans.append(Span(number + 2, *what, begun, host, "", None, *whose, after, by))
        if draw.random() < 0.1:
            sent = {**by, "sent": begun} if seed % 4 else by
            for i, nth in enumerate((10, 9), number + 3):  # two that began at once
                name, end = f"cuda:0: call {nth}", host + nth * us
                spans.append(Span(i, "range", name, begun, end, "", detail=sent))
    clock = ("simulated", "CUDA events", "PyTorch profiler", "Nsight Systems")[seed % 4]
    windows = [[-2, -1], [0, host / 3], [host / 2, host]]
    about = [{}, {"foreign": True}, {"damage": ["3 records were left out"]}, {"clocks_within_us": 2.5},
             {"windows": windows, "within": "record"}][seed % 5]  # fmt: skip
    trace = Trace(spans, clock, "simulated H200, times are modelled" if seed % 2 else "", about)
    return trace.with_lane("mine", [(0, host / 2, "half of it")]) if seed % 3 == 1 else trace


def traces() -> dict[str, Callable[[], Trace]]:
    out: dict[str, Callable[[], Trace]] = {
        name: lambda name=name: Trace.load_recording(name) for name in Trace.recordings()
    }
    out |= {f"made up {seed}": lambda seed=seed: made_up(seed) for seed in range(9)}
    return out | {path.name: lambda path=path: Trace.from_nsys(path) for path in REPORTS}


TRACES = traces()


@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, 5, 6, 7, 8]
)  # another one has windows, which cut pauses
def test_no_made_up_trace_is_impossible(seed: int) -> None:
    hold(made_up(seed))


def seen(trace: Trace) -> dict[str, str]:
    texts = {
        way: LONG.sub(lambda long: f"{float(long[0]):.6g}", str(see(trace)))
        for way, see in WAYS.items()
    }
    return {way: hashlib.sha256(text.encode()).hexdigest()[:8] for way, text in texts.items()}


@pytest.mark.parametrize("name", TRACES)
def test_it_looks_as_before(name: str) -> None:
    known, found = json.loads(SEEN.read_text())[name], seen(TRACES[name]())
    changed = [way for way in WAYS if known.get(way) != found[way]]
    assert changed == [], "look at them, and if that is meant: see the top of this file"


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(seen(load()))}" for name, load in TRACES.items()]
    SEEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
