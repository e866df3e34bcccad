"""The command line of the MLP: ``python -m asyncgpu_tutor mlp``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import report
from asyncgpu_tutor.commands.mlp.measuring import Outcome, measured
from asyncgpu_tutor.commands.mlp.pipeline import Network, upload_network
from asyncgpu_tutor.commands.mlp.verification import verify
from asyncgpu_tutor.commands.mlp.ways import WAYS, Job
from asyncgpu_tutor.data import Digits, MlpInputs, load_digits, seed_inputs
from asyncgpu_tutor.errors import AsyncGpuError, DeviceError, UsageError

SUCCESS, FAILURE, MISUSE = 0, 1, 2
MOST_STREAMS = 128  # so many kernels at a time are the most that any GPU runs
PICTURES, TRACES = (".png", ".svg", ".pdf"), (".json",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor mlp``."""
    add = parser.add_argument
    add("--device", default="auto", metavar="NAME", help="auto, sim, sim:N, cuda or cuda:N")
    add(
        "--how",
        choices=[*WAYS, "all"],
        default="all",
        help="how the batches are run: each way by itself, or all ways beside each other (all)",
    )
    add("--dim", type=int, default=64, help="samples in a batch, features of a sample (64)")
    add("--batches", type=int, default=4, help="how many batches (4)")
    add("--streams", type=int, default=4, help="how many streams the policy deals out (4)")
    add(
        "--input",
        choices=("seed", "digits"),
        default="seed",
        help="made-up numbers of any size, or handwritten digits with trained weights",
    )
    add("--layers", type=int, default=1, metavar="N", help="how many hidden layers (1)")
    add("--softmax", action="store_true", help="a softmax over each batch's outputs, at the end")
    add("--tiled", action="store_true", help="matrix products by tiles in shared memory")
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the best timeline beside the first, or that of --how: .png, .svg or .pdf",
    )
    add(
        "--trace",
        type=Path,
        metavar="FILE",
        help="save the same way's trace: .json, or .perfetto.json for https://ui.perfetto.dev",
    )


def run(args: argparse.Namespace) -> int:
    """Run the program and report on it.

    The exit code is 0 if all batches came back right; 1 if not, or if the device failed; 2 if what was asked
    for cannot be had.
    """
    code = SUCCESS
    # A task group raises groups of errors; except* also takes the single ones from elsewhere.
    try:
        network = _network(args)
        if args.streams > MOST_STREAMS:
            raise UsageError(
                f"--streams {args.streams} was asked for, and a GPU runs at most {MOST_STREAMS} kernels at a "
                "time: ask for fewer"
            )
        policy = agt.StreamPoolRoundRobin(args.streams)  # refuses a wrong number
        for option, path, endings in (
            ("--plot", args.plot, PICTURES),
            ("--trace", args.trace, TRACES),
        ):
            if path is not None:
                _check(option, path, endings)  # now, and not after the run
        with agt.using(None if args.device == "auto" else args.device):
            code = asyncio.run(_program(args, network, policy.size))
    except* DeviceError as group:
        code = _complain(group, FAILURE)
    except* AsyncGpuError as group:
        code = _complain(group, MISUSE)
    return code


def _network(args: argparse.Namespace) -> Network:
    inputs = seed_inputs(args.dim, args.batches) if args.input == "seed" else _digits(args)
    if args.layers < 1:
        raise UsageError(f"--layers {args.layers} was asked for, and a network has at least 1")
    further = Network.deeper(inputs, args.layers)
    return Network(inputs, further, softmax=args.softmax, tiled=args.tiled)


def _digits(args: argparse.Namespace) -> MlpInputs:
    digits = load_digits()
    fixed = {"dim": digits.dim, "batches": len(digits.batches), "layers": 1, "softmax": False}
    for option, value in fixed.items():
        given = getattr(args, option)
        if given != value:
            asked = f"--{option}" if given is True else f"--{option} {given}"
            raise UsageError(
                f"--input digits has {len(digits.batches)} batches of dim {digits.dim}, and weights that "
                f"were trained for one hidden layer and a threshold; {asked} was asked for: leave it out, "
                "or use --input seed"
            )
    return digits


def _check(option: str, path: Path, endings: Sequence[str]) -> None:
    if path.suffix not in endings:
        raise UsageError(f"{option} {path}: a name that ends in {' or '.join(endings)} is wanted")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}; make it first")


async def _program(args: argparse.Namespace, network: Network, streams: int) -> int:
    device = agt.current_device()
    print("=== Async MLP pipeline ===")
    print(f"Device: {device.name}, {device.description}")

    print("Allocating model weights...")
    # The weights get a stream of their own, so that the batches begin with the policy's first stream.
    weights = await upload_network(network).schedule(agt.SingleStream())
    for weight in weights:
        shape = "x".join(str(size) for size in weight.shape)
        print(f"  {weight.name}: {shape} on device (share count {weight.share_count})")

    hows = list(WAYS) if args.how == "all" else [args.how]
    shown = "streams" if args.how == "all" else args.how
    batches = [agt.pin(batch) for batch in network.inputs.batches]
    number = f"{len(batches)} batch{'es' * (len(batches) > 1)}"
    print(f"Launched {number} {WAYS[shown].launched}, awaiting results...")
    outcomes: dict[str, Outcome] = {}
    for how in hows:
        # Each way gets a policy of its own, so that its first batch goes to the policy's first stream.
        policy = agt.SingleStream() if streams == 1 else agt.StreamPoolRoundRobin(streams)
        job = Job(batches, weights, policy, streams, network.softmax, network.tiled)
        outcomes[how] = await measured(job, WAYS[how].start)

    outcome = outcomes[shown]
    print(report.shares_line("in flight", outcome.in_flight))
    print(*report.batch_lines(outcome, network.softmax), sep="\n")
    print(report.shares_line("when all are done", outcome.after))
    if isinstance(network.inputs, Digits):
        print(*report.quality_lines(network.inputs, outcome), sep="\n")
    table = report.rows(outcomes, streams)
    best = min(table, key=lambda row: row.makespan)
    beside = [table[0]] if best is table[0] else [table[0], best]
    print(*report.table_lines(table), *report.timeline_lines(beside), sep="\n")
    print(*report.conclusion_lines(table), sep="\n")
    _write(args, beside)
    return _verdict(network, outcomes)


def _verdict(network: Network, outcomes: dict[str, Outcome]) -> int:
    """Say whether all is right; returns the exit code."""
    problems: dict[str, list[str]] = {}
    for how, outcome in outcomes.items():
        for problem in verify(network, outcome):
            problems.setdefault(problem, []).append(how)
    for problem, hows in problems.items():
        where = "" if len(hows) == len(outcomes) else f" (--how {', '.join(hows)})"
        print(f"FAILED: {problem}{where}.")
    if problems:
        return FAILURE
    print("SUCCESS: All batches completed.")
    return SUCCESS


def _write(args: argparse.Namespace, shown: Sequence[report.Row]) -> None:
    """Write the files that were asked for."""
    if args.trace is not None:
        trace = shown[-1].trace
        viewed = args.trace.name.endswith(".perfetto.json")
        save = trace.to_perfetto if viewed else trace.save
        save(args.trace)
        print(f"Trace of {shown[-1].name!r} written to {args.trace}")
    if args.plot is not None:
        titles = [f"Async MLP: {row.name}" for row in shown]
        if len(shown) == 1:
            picture = shown[0].trace.plot(title=titles[0])
        else:
            picture = agt.compare(*[row.trace for row in shown], titles=titles).plot()
        picture.save(args.plot, dpi=150)
        print(f"Timeline drawn in {args.plot}")


def _complain(group: BaseExceptionGroup[AsyncGpuError], code: int) -> int:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            _complain(error, code)
        else:
            told = "; ".join([str(error), *getattr(error, "__notes__", ())])
            verdict = "FAILED: " if code == FAILURE else ""
            print(f"asyncgpu-tutor mlp: {verdict}{told}", file=sys.stderr)
    return code
