"""A program of the course that can be run again and again, and recorded."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace, ranges
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.run.recording import TimeSource
from asyncgpu_tutor.traces.spans.uncollected import uncollected
from asyncgpu_tutor.types import Span

Body = Callable[[], Awaitable[None]]
Prepare = Callable[[], Awaitable[Body]]

# A program runs so often on a GPU before it is recorded, because modules are loaded, memory pools grow, and
# Python specialises code that runs often.
WARM_UP = 25
ROUNDS = 3  # come between the warm-up and the round that is kept


@dataclass(frozen=True)
class Run:
    """One program."""

    name: str  # that of its recording; the chapter's number comes first
    about: str  # what it shows, in a line
    # A coroutine function that makes what the program needs, and returns it as a coroutine function.
    prepare: Prepare
    cold: bool = False  # it is recorded without having been run before


RUNS: dict[str, Run] = {}


def recorded(name: str, about: str, *, cold: bool = False) -> Callable[[Prepare], Prepare]:
    """Put a program into the table: decorates the coroutine function that prepares it."""

    def register(prepare: Prepare) -> Prepare:
        assert name not in RUNS
        RUNS[name] = Run(name, about, prepare, cold)
        return prepare

    return register


def on_page(page: str, *words: str) -> str:
    """The CUDA C on a page of the course, such as ``"14_gallery"``, in which all of these words are.

    So a recording runs the kernels that its page shows. The pages in ``solutions/`` are read, because
    learners work in those of ``notebooks/``.
    """
    return next(text for text in _texts(page) if all(word in text for word in words))


@cache
def _texts(page: str) -> list[str]:
    """All texts in triple quotes on a page."""
    file = Path(__file__).resolve().parents[2] / "solutions" / f"{page}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return re.findall(r'"""(.*?)"""', code, re.DOTALL)


def find_run(name: str) -> Run:
    """The program of that name; a `UsageError` says which there are."""
    if name not in RUNS:
        close = get_close_matches(name, RUNS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"there is no program {name!r}; there are: {', '.join(RUNS)}.{hint}")
    return RUNS[name]


async def record_run(run: Run, source: TimeSource = "auto") -> Trace:
    """Warm the program up, run it once more, and return the trace of that; `source` as for `agt.record`."""
    body = await run.prepare()
    steady = not (run.cold or agt.current_device().simulated)
    if not run.cold:
        for _ in range(1 if agt.current_device().simulated else WARM_UP):
            await body()
    agt.synchronize()
    outer = agt.record(source) if steady else nullcontext()
    gc.collect()
    # Without the garbage collector, as `timeit` does it: its pauses fall anywhere.
    with uncollected(), outer:
        # The first rounds of a recording are not kept, because the host is slow right after a pause.
        for _ in range(ROUNDS if steady else 0):
            await body()
        with ranges.across(run.name), agt.record("auto" if steady else source) as trace:
            await body()
    trace.about = {**trace.about, "run": run.name, "shows": run.about}
    trace.spans[:] = _numbered(trace.spans)
    return trace


def _numbered(spans: Sequence[Span]) -> list[Span]:
    """With streams and operations numbered from 1 on, by first use: what came before is of no interest."""
    streams = {0: 0}  # the null stream stays what it is
    ops: dict[int, int] = {}
    for span in spans:
        if span.stream is not None:
            streams.setdefault(span.stream, len(streams))
        if span.op is not None:
            ops.setdefault(span.op, len(ops) + 1)
    return [
        replace(
            span,
            stream=None if span.stream is None else streams[span.stream],
            op=None if span.op is None else ops[span.op],
            name=_renamed(span, streams),
        )
        for span in spans
    ]


def _renamed(span: Span, streams: Mapping[int, int]) -> str:
    words, _, number = span.name.rpartition(" ")
    if span.kind == "wait" and words == "synchronize stream" and int(number) in streams:
        return f"{words} {streams[int(number)]}"
    return span.name


def trace_of(name: str, source: TimeSource = "auto") -> Trace:
    """Record the program of that name on the current device; for scripts, which have no event loop."""
    return asyncio.run(record_run(find_run(name), source))
