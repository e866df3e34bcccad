"""The command line of the MLP: ``python -m asyncgpu_tutor mlp``."""

import argparse
import asyncio
import sys

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import report
from asyncgpu_tutor.commands.mlp.pipeline import upload
from asyncgpu_tutor.commands.mlp.ways import WAYS, MlpJob, measured
from asyncgpu_tutor.commands.options import picture
from asyncgpu_tutor.data import Digits, MlpInputs, load_digits, seed_inputs
from asyncgpu_tutor.errors import AsyncGpuError, DeviceError, UsageError

SUCCESS, FAILURE, MISUSE = 0, 1, 2


def add_mlp_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor mlp``."""
    add = parser.add_argument
    add("--device", metavar="NAME", help="auto, sim, sim:N, cuda or cuda:N")
    told = "how the batches are run: one way by itself, or all of them side by side (all)"
    add("--how", choices=[*WAYS, "all"], default="all", help=told)
    told = "made-up numbers, or handwritten digits with trained weights"
    add("--input", choices=("seed", "digits"), default="seed", help=told)
    add("--dim", type=int, default=64, help="samples and features of made-up numbers (64)")
    told = "draw the first timeline beside the best, as .svg"
    add("--plot", type=picture, metavar="FILE", help=told)


def run_mlp(args: argparse.Namespace) -> int:
    """Run the program and report on it; the exit code.

    0 if all batches came back right; 1 if not, or if the device failed; 2 if it cannot be had.
    """
    code = SUCCESS
    # A task group raises groups of errors; except* also takes the single ones from elsewhere.
    try:
        inputs = load_digits() if args.input == "digits" else seed_inputs(args.dim)
        if inputs.dim != args.dim:
            raise UsageError(f"--dim {args.dim} does not fit: digits have dim {inputs.dim}")
        with agt.using(args.device):
            code = asyncio.run(_program(args, inputs))
    except* DeviceError as group:
        code = _complain(group, "FAILED: ", FAILURE)
    except* AsyncGpuError as group:
        code = _complain(group, "", MISUSE)
    return code


def _complain(group: BaseExceptionGroup[AsyncGpuError], verdict: str, code: int) -> int:
    for error in group.exceptions:
        told = "; ".join([str(error), *getattr(error, "__notes__", ())])
        print(f"asyncgpu-tutor mlp: {verdict}{told}", file=sys.stderr)
    return code


async def _program(args: argparse.Namespace, inputs: MlpInputs) -> int:
    device = agt.current_device()
    print("=== Async MLP pipeline ===")
    print(f"Device: {device.name}, {device.description}")
    # The weights get a stream of their own, so that the batches begin with the policy's first stream.
    weights = await upload(inputs).schedule(agt.SingleStream())
    for weight in weights:
        print(f"  {weight.name}: {'x'.join(map(str, weight.shape))} on device")

    hows = list(WAYS) if args.how == "all" else [args.how]
    batches = [agt.pin(batch) for batch in inputs.batches]
    # Each way gets a job of its own, so that its first batch goes to the policy's first stream.
    outcomes = {how: await measured(MlpJob(batches, *weights), WAYS[how].start) for how in hows}

    shown = outcomes[hows[-1]].outputs
    print(*report.batch_lines(shown), sep="\n")
    if isinstance(inputs, Digits):
        print(*report.quality_lines(inputs, shown), sep="\n")
    traces = {how: outcome.trace for how, outcome in outcomes.items()}
    print(*report.table_lines(traces), sep="\n")
    if args.plot is not None:
        best = min(hows, key=lambda how: report.until_done(traces[how]).makespan)
        titles = {how: f"Async MLP: {WAYS[how].name}" for how in (hows[0], best)}
        drawn = traces[best].plot(title=titles[best])
        if len(titles) > 1:
            parts = (traces[how] for how in titles)
            beside = [t.from_first(s for s in t if s.kind != "range") for t in parts]
            drawn = agt.compare_timelines(beside, list(titles.values()))
        drawn.save(args.plot)
        print(f"Timeline drawn in {args.plot}")

    found = [
        f"FAILED: {problem} (--how {how})."
        for how, outcome in outcomes.items()
        for problem in report.problems(inputs, outcome.outputs)
    ]
    print(*(found or ["SUCCESS: All batches completed."]), sep="\n")
    return FAILURE if found else SUCCESS
