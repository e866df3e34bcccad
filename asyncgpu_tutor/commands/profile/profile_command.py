"""``asyncgpu-tutor profile``: run, profile, export, analyse, draw."""

from __future__ import annotations

import argparse
from pathlib import Path

from asyncgpu_tutor import Trace, analyse
from asyncgpu_tutor.commands.profile import nsys
from asyncgpu_tutor.types import Analysis

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor profile``."""
    add = parser.add_argument
    add("--dim", type=int, default=256, help="size of the MLP that is profiled (256)")
    add("--streams", type=int, default=4, help="how many streams it has (4)")
    add(
        "--program",
        metavar="NAME",
        help="profile this program of the course instead (record-course --list)",
    )
    add(
        "--out",
        type=Path,
        default=Path("profile"),
        metavar="FOLDER",
        help="where files go (profile/)",
    )
    add(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="analyse this export (.sqlite), report (.nsys-rep) or trace (.json); profile nothing",
    )
    add(
        "--within",
        metavar="RANGE",
        help="only what this NVTX range holds (record, or the program's name)",
    )
    add("--whole", action="store_true", help="the whole program, its warm-up too")


def run(args: argparse.Namespace) -> int:
    """Do the round trip, or the second half of it."""
    trace = _trace(args)
    analysis = analyse(trace)
    print(analysis.table())
    args.out.mkdir(parents=True, exist_ok=True)
    _draw(analysis, args.out / "analysis.png")
    trace.save(args.out / "trace.json")
    trace.to_perfetto(args.out / "trace.pftrace")
    print(f"\nPicture, trace and a file for https://ui.perfetto.dev are in {args.out}")
    return 0


def _trace(args: argparse.Namespace) -> Trace:
    source: Path | None = args.source
    if source is None:
        nsys.find()  # raises now, and not after a run of some seconds
        args.out.mkdir(parents=True, exist_ok=True)
        if args.program:
            program = ["record-course", "--only", args.program, "--tries", "1"]
        else:
            program = [
                "mlp",
                "--how",
                "streams",
                "--dim",
                str(args.dim),
                "--streams",
                str(args.streams),
                "--device",
                "cuda",
            ]
        print(f"Profiling python -m asyncgpu_tutor {' '.join(program)} ...")
        source = nsys.profile(program, args.out / "report")
        print(f"Report: {source}")
    if source.suffix == ".nsys-rep":
        source = nsys.export(source)
        print(f"Export: {source}\n")
    if source.suffix == ".json":
        return Trace.load(source)
    within = args.within or args.program or "record"
    return Trace.from_nsys(source, within=None if args.whole else within)


def _draw(analysis: Analysis, path: Path) -> None:
    import matplotlib.pyplot as plt  # matplotlib is slow to import, and other commands need none

    figure = analysis.plot()
    figure.savefig(path, dpi=150)  # pyright: ignore[reportUnknownMemberType] - as in timeline.draw
    plt.close(figure)
