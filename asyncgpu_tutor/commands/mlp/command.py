"""The command line of the MLP: ``python -m asyncgpu_tutor mlp``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace, ranges
from asyncgpu_tutor.commands.mlp.checks import verify
from asyncgpu_tutor.commands.mlp.pipeline import upload
from asyncgpu_tutor.commands.mlp.program import ShareCounts, run_batches, warm_up
from asyncgpu_tutor.commands.mlp.report import (
    batch_lines,
    quality_lines,
    shares_line,
    timeline_lines,
    weight_line,
)
from asyncgpu_tutor.data import Digits, MlpInputs, load_digits, seed_inputs
from asyncgpu_tutor.errors import AsyncGpuError, DeviceError, UsageError
from asyncgpu_tutor.scheduling import SchedulingPolicy

__all__ = ["add_arguments", "run"]

SUCCESS, FAILURE, MISUSE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor mlp``."""
    add = parser.add_argument
    add("--device", default="auto", metavar="NAME", help="auto, sim, sim:N, cuda or cuda:N")
    add("--dim", type=int, default=64, help="samples in a batch, features of a sample (64)")
    add("--batches", type=int, default=4, help="how many batches (4)")
    add("--streams", type=int, help="how many streams the round-robin policy has (4)")
    add(
        "--policy",
        choices=("round-robin", "single"),
        default="round-robin",
        help="each batch on the next stream of a pool, or all on one stream",
    )
    add(
        "--input",
        choices=("seed", "digits"),
        default="seed",
        help="made-up numbers of any size, or handwritten digits with trained weights",
    )
    add("--plot", type=Path, metavar="FILE", help="draw the timeline: .png, .svg or .pdf")
    add("--trace", type=Path, metavar="FILE", help="save the trace as JSON")
    add("--nvtx", action="store_true", help="mark each batch for a profiler such as nsys")


def run(args: argparse.Namespace) -> int:
    """Run the program and report on it.

    Returns
    -------
    int
        0 if all batches came back right; 1 if not, or if the device failed; 2 if what was asked for
        cannot be had.
    """
    code = SUCCESS
    # A task group raises groups of errors; except* also takes the single ones from elsewhere.
    try:
        inputs = _inputs(args)
        streams, policy = _policy(args)
        device = None if args.device == "auto" else args.device  # None: the current one
        with _nvtx(args.nvtx), agt.using(device, policy):
            code = asyncio.run(_program(args, inputs, streams))
    except* DeviceError as group:
        code = _complain(group, FAILURE)
    except* AsyncGpuError as group:
        code = _complain(group, MISUSE)
    return code


async def _program(args: argparse.Namespace, inputs: MlpInputs, streams: int) -> int:
    device = agt.current_device()
    print("=== Async MLP pipeline ===")
    print(f"Device: {device.name}, {device.description}")
    await warm_up(inputs, streams)

    print("Allocating model weights...")
    # On a stream of their own: the batches get those of the policy, from the first one on.
    w0, w1 = await upload(inputs).schedule(agt.SingleStream())
    print(weight_line(w0), weight_line(w1), sep="\n")

    def launched(counts: ShareCounts) -> None:
        print(f"Launched {len(inputs.batches)} batches concurrently, awaiting results...")
        print(shares_line("in flight", counts))

    outcome = await run_batches(inputs.batches, w0, w1, launched)
    print(*batch_lines(outcome), sep="\n")
    print(shares_line("when all are done", outcome.after))
    if isinstance(inputs, Digits):
        print(*quality_lines(inputs, outcome), sep="\n")
    print(*timeline_lines(outcome.trace), sep="\n")
    _write(args, outcome.trace)

    problems = verify(inputs, outcome)
    if problems:
        print(*(f"FAILED: {problem}." for problem in problems), sep="\n")
        return FAILURE
    print("SUCCESS: All batches completed.")
    return SUCCESS


def _inputs(args: argparse.Namespace) -> MlpInputs:
    if args.input == "seed":
        return seed_inputs(args.dim, args.batches)
    digits = load_digits()
    for option, fixed in (("dim", digits.dim), ("batches", len(digits.batches))):
        given = getattr(args, option)
        if given != fixed:
            raise UsageError(
                f"--input digits has {len(digits.batches)} batches of dim {digits.dim}, and "
                f"--{option} {given} was asked for: leave it out, or use --input seed"
            )
    return digits


def _policy(args: argparse.Namespace) -> tuple[int, SchedulingPolicy]:
    """How many streams, and the policy that deals them out."""
    if args.policy == "round-robin":
        streams = 4 if args.streams is None else args.streams
        return streams, agt.StreamPoolRoundRobin(streams)
    if args.streams not in (None, 1):
        raise UsageError(
            f"--policy single has one stream, and --streams {args.streams} was asked for: leave it "
            "out, or use --policy round-robin"
        )
    return 1, agt.SingleStream()


@contextmanager
def _nvtx(wanted: bool) -> Generator[None]:
    if not wanted or ranges.enabled():
        yield
        return
    ranges.enable()
    try:
        yield
    finally:
        ranges.disable()


def _write(args: argparse.Namespace, trace: Trace) -> None:
    """Write the files that were asked for."""
    try:
        if args.trace is not None:
            trace.save(args.trace)
            print(f"Trace written to {args.trace}")
        if args.plot is not None:
            _draw(trace, _title(args), args.plot)
            print(f"Timeline drawn in {args.plot}")
    except (OSError, ValueError) as error:  # no such folder; no such kind of picture
        raise UsageError(f"cannot write what --plot or --trace asked for: {error}") from error


def _draw(trace: Trace, title: str, path: Path) -> None:
    import matplotlib.pyplot as plt  # slow to import

    trace.plot(title=title)
    plt.savefig(path, dpi=150)  # pyright: ignore[reportUnknownMemberType] - as in timeline.draw
    plt.close()


def _title(args: argparse.Namespace) -> str:
    return f"Async MLP: {args.batches} batches of {args.dim} x {args.dim}, {args.policy} policy"


def _complain(group: BaseExceptionGroup[AsyncGpuError], code: int) -> int:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            _complain(error, code)
        else:
            told = "; ".join([str(error), *getattr(error, "__notes__", ())])
            verdict = "FAILED: " if code == FAILURE else ""
            print(f"asyncgpu-tutor mlp: {verdict}{told}", file=sys.stderr)
    return code
