"""The command line of the tutor: ``python -m asyncgpu_tutor COMMAND``.

Each command lives in a module of its own, which is imported only when it is the one asked for: `mlp` is
``add_mlp_arguments(parser)`` and ``run_mlp(args)``, and so with each name. The course adds its own to them:
``asyncgpu-tutor`` is its script.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import cast

from asyncgpu_tutor import __version__
from asyncgpu_tutor.errors import AsyncGpuError

# For each command, the module that it is implemented in, and one line about it.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "mlp": (
        "asyncgpu_tutor.commands.mlp",
        "run the four-batch asynchronous MLP and report on what happened",
    ),
    "profile": (
        "asyncgpu_tutor.commands.profile",
        "run a program under Nsight Systems, or read a profile, and say what it shows",
    ),
    "serve": (
        "asyncgpu_tutor.commands.serve",
        "let people and programs talk to the language model, over HTTP",
    ),
}


def run_command(
    argv: Sequence[str] | None = None, known: Mapping[str, tuple[str, str]] = COMMANDS
) -> int:
    """Run one of the known commands with these arguments, or those of the process; the exit code.

    It is 0 for success, and 2 if what was asked for cannot be had, which is said in a line.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in words if not word.startswith("-")), None)

    parser = argparse.ArgumentParser(
        prog="asyncgpu-tutor", description="Asynchronous GPU programming in Python: a course."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (home, about) in known.items():
        subparser = commands.add_parser(name, help=about, description=about)
        if name == chosen:
            module = import_module(home)
            getattr(module, f"add_{name}_arguments")(subparser)
            subparser.set_defaults(run=getattr(module, f"run_{name}"))

    args = parser.parse_args(words)
    run = cast("Callable[[argparse.Namespace], int]", args.run)
    try:
        code = run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read this has seen enough, as head does. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell reports of a program that ended so: 128 + SIGPIPE
    except (AsyncGpuError, OSError, MemoryError) as error:
        said = str(error) or "there is not enough memory"
        print(f"asyncgpu-tutor {chosen}: {said}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(run_command())
