"""``asyncgpu-tutor profile``: run a program under Nsight Systems, or read a file, and report on it."""

import argparse
import sys
from pathlib import Path

from asyncgpu_tutor import Trace, analyse
from asyncgpu_tutor.commands.options import picture
from asyncgpu_tutor.commands.profile import nsys
from asyncgpu_tutor.errors import UsageError

OURS = "record"  # the range that agt.record() leaves in a profile
_MLP = ("mlp", "--how", "streams", "--dim", "256", "--device", "cuda")


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor profile``."""
    add = parser.add_argument
    told = "what to profile, such as -- python my.py; without it, the MLP of the course at dim 256"
    add("command", nargs="*", metavar="-- COMMAND", help=told)
    told = "profile nothing: read an export (.sqlite), a report (.nsys-rep), or a trace of "
    told += "PyTorch's profiler, of Chrome (.json, .json.gz) or of this package (.json)"
    add("--from", dest="source", type=Path, metavar="FILE", help=told)
    told = "write the trace here, as trace.json and for https://ui.perfetto.dev (without it: into profile/ "
    told += "if a program is run, nowhere if a file is read)"
    add("--out", type=Path, metavar="FOLDER", help=told)
    add("--plot", type=picture, metavar="FILE", help="also draw it into this .svg")
    add("--within", metavar="RANGE", help="only what was asked for within NVTX ranges of this name")
    add("--whole", action="store_true", help="the whole program, including its warm-up")
    told = "only this stretch of time, in us as the report shows them; either may be left out"
    add("--window", type=_window, metavar="FROM:TO", help=told)


def run_profile(args: argparse.Namespace) -> int:
    """Do the round trip, or the second half of it."""
    if args.command and args.source:
        raise UsageError("--from and a command were given; choose one of them")
    if args.within is not None and args.whole:
        raise UsageError("--within and --whole were given; choose one of them")
    trace = _trace(args)
    if args.window is not None:
        start, end = args.window
        last = max((span.end for span in trace), default=0.0)
        trace = trace.between(start, max(min(end, last), start + 1e-3))
        if not trace.spans:
            raise UsageError(f"--window: nothing is there; the trace ends at {last:,.1f} us")
    analysis = analyse(trace)
    print(analysis.table())
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        trace.save(args.out / "trace.json")
        trace.to_perfetto(args.out / "trace.perfetto.json")
        print(f"\nThe trace, and a file for https://ui.perfetto.dev, are in {args.out}")
    if args.plot is not None:
        analysis.plot().save(args.plot)
        print(f"Picture: {args.plot}")
    return 0


def _window(text: str) -> tuple[float, float]:
    """The times of FROM:TO in us, each of which may be left out."""
    first, colon, second = text.replace(",", "").partition(":")
    try:
        start, end = float(first or 0), float(second or "inf")
    except ValueError:
        colon, start, end = "", 0.0, 0.0
    if not colon or not start < end:
        raise argparse.ArgumentTypeError(
            f"{text}: give two times in us, such as 100:250, :250 or 100:"
        )
    return start, end


def _trace(args: argparse.Namespace) -> Trace:
    source: Path | None = args.source
    if source is None:
        source = _profiled(args)
    elif not source.is_file():
        raise UsageError(f"there is no file {source}")
    if source.suffix == ".nsys-rep":
        source = nsys.export(source)
        print(f"Export: {source}\n")
    if source.suffix == ".sqlite":
        return _of_export(source, args)
    if args.within is not None:
        raise UsageError(f"--within is for exports (.sqlite), and {source} is none: try --window")
    return Trace.load(source)


def _profiled(args: argparse.Namespace) -> Path:
    nsys.find_nsys()  # raises now, and not after a run of some seconds
    args.out = args.out or Path("profile")
    args.out.mkdir(parents=True, exist_ok=True)
    command = list(args.command) or [sys.executable, "-m", "asyncgpu_tutor", *_MLP]
    print(f"Profiling {' '.join(command)} ...", flush=True)
    report = nsys.profile(command, args.out / "report", shown=bool(args.command))
    print(f"Report: {report}")
    return report


def _of_export(source: Path, args: argparse.Namespace) -> Trace:
    """Load the range that was asked for; else what agt.record() has marked, if anything; else all."""
    if args.whole or args.within is not None:
        return Trace.from_nsys(source, within=args.within)
    try:
        trace = Trace.from_nsys(source, within=OURS)
    except UsageError as error:
        if "there is no NVTX range" not in str(error):
            raise
        return Trace.from_nsys(source)
    print(f"Only what agt.record() has marked (the range {OURS!r}); --whole has the rest.\n")
    return trace
