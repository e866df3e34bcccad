"""`python -m simgpu` lists the GPUs that can be simulated; with `--passes FILE`, prints a file's kernels."""

import argparse
import sys
from pathlib import Path

from simgpu.cuda_c import compile_source
from simgpu.errors import SimGpuError
from simgpu.gpus import SPECS


def command_line() -> None:
    """Print a line for each GPU, or each kernel of a file as the interpreter has it between its passes."""
    parser = argparse.ArgumentParser("python -m simgpu", description=command_line.__doc__)
    parser.add_argument("--passes", metavar="FILE", type=Path, help="a source in CUDA C")
    file = parser.parse_args().passes
    if file is not None:
        try:
            program = compile_source(file.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError, SimGpuError) as error:
            sys.exit(f"{file} cannot be read as CUDA C: {error}")
        print("\n\n".join(map(program.passes, program.kernels)))
        return
    for name, spec in SPECS.items():
        gigabytes = spec.memory_bytes / 1e9
        print(f"{name:<8} {spec.name}: {spec.sms} SMs, {gigabytes:.0f} GB")


if __name__ == "__main__":
    command_line()
