"""The command line: ``asyncgpu-tutor calibrate``."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, cast

from asyncgpu_tutor.commands.calibrate.gpu import measured_spec
from asyncgpu_tutor.devices.simulated import save_spec
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.run import resolve

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor calibrate``."""
    parser.add_argument("--device", default="cuda", metavar="NAME", help="cuda or cuda:N (cuda)")
    parser.add_argument("file", type=Path, help="where to write the spec: a .json file")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and write."""
    if args.file.suffix != ".json":
        raise UsageError(f"{args.file} should end in .json, by which ASYNCGPU_SPEC knows a file")
    device = resolve(args.device)
    if device.simulated:
        raise UsageError(f"{device.name} is simulated: there is nothing to measure")
    spec = measured_spec(cast("CupyDevice", device))
    save_spec(spec, args.file)
    sources = dict(spec.sources)
    for field in dataclasses.fields(spec):
        if field.name in sources:
            value = getattr(spec, field.name)
            print(f"{field.name:20} {value:>14.6g}   {sources[field.name][:60]}")
    print(f"Written to {args.file}. To simulate this GPU: ASYNCGPU_SPEC={args.file}")
    return 0
