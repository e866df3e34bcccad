"""What is seen of each recording stays what it is, in every way of seeing it, unless somebody means it.

Whether a picture is good, no test can say; that a change of the code has changed it, one can. `seen.json` has
digests. After a change that is meant, when you have looked at what it did:
`python -m tests.asyncgpu_tutor.traces.test_what_is_seen`.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.formats.files import FOLDER

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
    "metrics": lambda trace: [trace.metrics(), trace],
    "Perfetto": perfetto,
    "file": Trace.to_json,
}


def traces() -> dict[str, Callable[[], Trace]]:
    out: dict[str, Callable[[], Trace]] = {
        name: lambda name=name: Trace.load_recording(name) for name in Trace.recordings()
    }
    return out | {path.name: lambda path=path: Trace.from_nsys(path) for path in REPORTS}


TRACES = traces()


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
