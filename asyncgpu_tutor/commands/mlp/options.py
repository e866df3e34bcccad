"""The options of ``python -m asyncgpu_tutor mlp``, and what they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path

import asyncgpu_tutor as agt
from asyncgpu_tutor import SchedulingPolicy
from asyncgpu_tutor.commands.mlp.pipeline import Network
from asyncgpu_tutor.commands.mlp.ways import WAYS
from asyncgpu_tutor.data import Digits, MlpInputs, load_digits, seed_inputs
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.run import resolve


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
    add("--layers", type=int, default=1, metavar="N", help="how many hidden layers (1)")
    add("--softmax", action="store_true", help="a softmax over each batch's outputs, at the end")
    add("--tiled", action="store_true", help="matrix products by tiles in shared memory")
    add(
        "--devices",
        type=int,
        choices=(1, 2),
        default=1,
        help="deal the batches out over two devices, --device and the next of its kind",
    )
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
        help="save the same way's trace: .json, or .pftrace for https://ui.perfetto.dev",
    )
    add("--nvtx", action="store_true", help="mark each batch for a profiler such as nsys")


def devices_of(args: argparse.Namespace) -> list[Device]:
    """The device that was asked for, and with ``--devices 2`` the next of its kind."""
    first = agt.current_device()
    if args.devices == 1:
        return [first]
    kind, _, number = first.name.partition(":")
    return [resolve(f"{kind}:{int(number) + i}") for i in range(args.devices)]


def network_of(args: argparse.Namespace) -> Network:
    """What is to be computed."""
    inputs = _inputs(args)
    if args.layers < 1:
        raise UsageError(f"--layers {args.layers} was asked for, and a network has at least 1")
    if isinstance(inputs, Digits) and (args.layers > 1 or args.softmax):
        option = "--softmax" if args.softmax else f"--layers {args.layers}"
        raise UsageError(
            f"--input digits has weights that were trained for one hidden layer and a threshold, and "
            f"{option} was asked for: leave it out, or use --input seed"
        )
    further = Network.deeper(inputs, args.layers)
    return Network(inputs, further, softmax=args.softmax, tiled=args.tiled)


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


def streams_of(args: argparse.Namespace) -> int:
    """How many streams the policy has."""
    if args.policy == "round-robin":
        streams = 4 if args.streams is None else args.streams
        return agt.StreamPoolRoundRobin(streams).size  # the pool refuses a wrong number
    if args.streams not in (None, 1):
        raise UsageError(
            f"--policy single has one stream, and --streams {args.streams} was asked for: leave it "
            "out, or use --policy round-robin"
        )
    return 1


def new_policy(streams: int) -> SchedulingPolicy:
    """A policy that deals out so many streams."""
    return agt.SingleStream() if streams == 1 else agt.StreamPoolRoundRobin(streams)
