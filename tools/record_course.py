"""Record the course's programs on a GPU, for those who have none.

    python tools/record_course.py --out asyncgpu_tutor/traces/recordings

makes the recordings that come with the package.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from course_programs import RUNS, Run, find_run, record_run

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import AsyncGpuError, UsageError
from asyncgpu_tutor.run.recording import TimeSource


def main(argv: Sequence[str] | None = None) -> int:
    """Record, and write the files."""
    parser = argparse.ArgumentParser(description="Record the course's programs on a GPU.")
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write NAME.json for each program into this folder",
    )
    add("--only", nargs="+", metavar="NAME", help="these programs only")
    add("--device", default="cuda", metavar="NAME", help="cuda, cuda:N, sim or sim:N (cuda)")
    add(
        "--source",
        default="auto",
        choices=("auto", "cupti", "events"),
        help="of times; see agt.record",
    )
    add("--list", action="store_true", help="name the programs and do nothing")
    add("--tries", type=int, default=5, help="the median run of so many is kept (5)")
    add("--print", action="store_true", help="print each trace as text")
    args = parser.parse_args(argv)
    if args.list:
        for name, program in RUNS.items():
            print(f"{name:<40} {program.about}")
        return 0
    programs = [find_run(name) for name in args.only] if args.only else list(RUNS.values())
    with agt.using(args.device):
        _record_all(programs, args)
    return 0


def _record_all(programs: Sequence[Run], args: argparse.Namespace) -> None:
    facts = machine_facts()
    for program in programs:
        trace = asyncio.run(_median_run(program, args.source, args.tries))
        trace.about = {**trace.about, **facts, "kind": "recorded"}
        if args.print:
            print(trace.table())
        if args.out is not None:
            path = args.out / f"{program.name}.json"
            write(trace, path)
            print(f"{path}: {len(trace)} spans, {trace.metrics().makespan:.1f} us, {trace.clock}")


async def _median_run(program: Run, source: TimeSource, tries: int) -> Trace:
    if program.cold or tries < 2 or agt.current_device().simulated:
        return await record_run(program, source)
    traces = [await record_run(program, source) for _ in range(tries)]
    return sorted(traces, key=lambda trace: trace.metrics().makespan)[tries // 2]


def write(trace: Trace, path: Path) -> None:
    """Save a trace, one span a line: readable, and small."""
    body = json.loads(trace.to_json())
    spans = body.pop("spans")
    lines = ",\n".join(
        json.dumps(_rounded(span), sort_keys=True, separators=(",", ":")) for span in spans
    )
    head = json.dumps(body, indent=1, sort_keys=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{head[:-2]},\n "spans": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error}") from error


def _rounded(span: dict[str, object]) -> dict[str, object]:
    """Without more digits than a ns, and without what is empty."""
    kept = {key: value for key, value in span.items() if value not in (None, "", [], {})}
    for key in ("start", "end"):
        value = span[key]
        assert isinstance(value, float | int)
        kept[key] = round(value, 3)
    return kept


def machine_facts() -> dict[str, object]:
    """Device, driver, versions, command and date, for a recording to say how it was made."""
    facts: dict[str, object] = {
        "gpu": agt.current_device().description.partition(",")[0],
        "python": platform.python_version(),
        "package": agt.__version__,
        "command": "python tools/record_course.py",
        "date": datetime.now(UTC).date().isoformat(),
    }
    if not agt.current_device().simulated:
        facts["driver"] = _driver()
        for name in ("cupy-cuda12x", "cupy-cuda13x"):
            try:
                facts[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
    return facts


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = done.stdout.split()
    return lines[0] if lines and not done.returncode else "unknown"


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except AsyncGpuError as error:
        sys.exit(f"record_course: {error}")
