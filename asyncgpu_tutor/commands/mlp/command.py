"""The command line of the MLP: ``python -m asyncgpu_tutor mlp``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, ranges
from asyncgpu_tutor.commands.mlp.conclusions import conclusion_lines
from asyncgpu_tutor.commands.mlp.job import Job, Side
from asyncgpu_tutor.commands.mlp.measuring import Outcome, measured
from asyncgpu_tutor.commands.mlp.options import devices_of, network_of, new_policy, streams_of
from asyncgpu_tutor.commands.mlp.pipeline import Network, upload_network
from asyncgpu_tutor.commands.mlp.printout import (
    Row,
    batch_lines,
    best,
    quality_lines,
    rows,
    shares_line,
    table_lines,
    timeline_lines,
    weight_line,
)
from asyncgpu_tutor.commands.mlp.verification import verify
from asyncgpu_tutor.commands.mlp.ways import WAYS
from asyncgpu_tutor.data import Digits
from asyncgpu_tutor.errors import AsyncGpuError, DeviceError, UsageError
from asyncgpu_tutor.types import Device

SUCCESS, FAILURE, MISUSE = 0, 1, 2


def run(args: argparse.Namespace) -> int:
    """Run the program and report on it.

    The exit code is 0 if all batches came back right; 1 if not, or if the device failed; 2 if what was asked
    for cannot be had.
    """
    code = SUCCESS
    # A task group raises groups of errors; except* also takes the single ones from elsewhere.
    try:
        network, streams = network_of(args), streams_of(args)
        for path in (args.trace, args.plot):  # now, and not after the run
            if path is not None and not path.absolute().parent.is_dir():
                raise UsageError(
                    f"cannot write {path}: there is no folder {path.parent}; make it first"
                )
        # With None the current device stays.
        device = None if args.device == "auto" else args.device
        with _nvtx(args.nvtx), agt.using(device):
            code = asyncio.run(_program(args, network, streams))
    except* DeviceError as group:
        code = _complain(group, FAILURE)
    except* AsyncGpuError as group:
        code = _complain(group, MISUSE)
    return code


async def _program(args: argparse.Namespace, network: Network, streams: int) -> int:
    devices = devices_of(args)
    print("=== Async MLP pipeline ===")
    for device in devices:
        print(f"Device: {device.name}, {device.description}")

    print("Allocating model weights...")
    weights = [await _upload(network, device) for device in devices]
    for weight in (weight for side in weights for weight in side):
        print(weight_line(weight, several=len(devices) > 1))

    hows = list(WAYS) if args.how == "all" else [args.how]
    shown = "streams" if args.how == "all" else args.how
    batches = [agt.pin(batch) for batch in network.inputs.batches]
    number = f"{len(batches)} batch{'es' * (len(batches) > 1)}"
    print(f"Launched {number} {WAYS[shown].launched}, awaiting results...")
    outcomes: dict[str, Outcome] = {}
    for how in hows:
        # Each way gets a policy of its own, so that its first batch goes to the policy's first stream.
        sides = [
            Side(device, new_policy(streams), side)
            for device, side in zip(devices, weights, strict=True)
        ]
        job = Job(batches, sides, streams, network.softmax, network.tiled)
        outcomes[how] = await measured(job, WAYS[how].start)

    outcome = outcomes[shown]
    print(shares_line("in flight", outcome.in_flight))
    print(*batch_lines(outcome, network.softmax), sep="\n")
    print(shares_line("when all are done", outcome.after))
    if isinstance(network.inputs, Digits):
        print(*quality_lines(network.inputs, outcome), sep="\n")
    table = rows(outcomes, streams)
    beside = [table[0]] if best(table) is table[0] else [table[0], best(table)]
    print(*table_lines(table), *timeline_lines(beside), sep="\n")
    print(*conclusion_lines(table, len(devices)), sep="\n")
    _write(args, beside)
    return _verdict(network, outcomes)


def _verdict(network: Network, outcomes: dict[str, Outcome]) -> int:
    """Say whether all is right; the exit code."""
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


async def _upload(network: Network, device: Device) -> tuple[DeviceArray, ...]:
    # The weights get a stream of their own, so that the batches begin with the policy's first stream.
    with agt.using(device):
        return await upload_network(network).schedule(agt.SingleStream())


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


def _write(args: argparse.Namespace, shown: Sequence[Row]) -> None:
    """Write the files that were asked for."""
    try:
        if args.trace is not None:
            trace = shown[-1].trace
            save = trace.to_perfetto if args.trace.suffix == ".pftrace" else trace.save
            save(args.trace)
            print(f"Trace of {shown[-1].name!r} written to {args.trace}")
        if args.plot is not None:
            _draw(shown, args.plot)
            print(f"Timeline drawn in {args.plot}")
    except (OSError, ValueError) as error:  # the folder or the kind of picture does not exist
        raise UsageError(f"cannot write what --plot or --trace asked for: {error}") from error


def _draw(shown: Sequence[Row], path: Path) -> None:
    titles = [f"Async MLP: {row.name}" for row in shown]
    if len(shown) == 1:
        picture = shown[0].trace.plot(title=titles[0])
    else:
        picture = agt.compare(*[row.trace for row in shown], titles=titles).plot()
    picture.save(path, dpi=150)


def _complain(group: BaseExceptionGroup[AsyncGpuError], code: int) -> int:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            _complain(error, code)
        else:
            told = "; ".join([str(error), *getattr(error, "__notes__", ())])
            verdict = "FAILED: " if code == FAILURE else ""
            print(f"asyncgpu-tutor mlp: {verdict}{told}", file=sys.stderr)
    return code
