"""The command line: `simgpu check`, `simgpu judge`, and without a command the GPUs that can be simulated."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from simgpu.cuda_c import compile_source, join_headers
from simgpu.errors import SimGpuError, UsageError
from simgpu.gpus import SPECS

_CHECK = """Says of each kernel of a file whether it can be read, and launches it as FILE_spec.py says.
Exit code: 0 all is well, 1 something is wrong, 2 a file or a spec cannot be used, 3 nothing is wrong, but not
every kernel could be read, or not within the limits."""
_JUDGE = """Judges an answer, which is only ever interpreted: values at sizes and seeds that it can't know,
hazards, and modelled time beside the baseline's. Exit code: 0 accepted, 1 rejected, 2 a file or the spec
cannot be used, 3 undecided: it needs what simgpu doesn't have, or more time or memory than it may take."""


def command_line() -> None:
    """Run a command, and end with its exit code if that isn't 0."""
    parser = argparse.ArgumentParser("simgpu", description=__doc__)
    parser.add_argument("--passes", metavar="FILE", type=Path, help="how kernels are lowered")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    check = commands.add_parser("check", help="read a file, launch its kernels", description=_CHECK)
    check.add_argument("file", type=Path, help="CUDA C")
    check.add_argument("--spec", type=Path, help="by default FILE_spec.py, if it is there")
    check.add_argument("-I", dest="include", type=Path, action="append", default=[])
    check.add_argument("--draft", action="store_true", help="print a first spec for the file")
    judge = commands.add_parser("judge", help="judge an answer", description=_JUDGE)
    judge.add_argument("spec", type=Path, help="a spec with a reference")
    judge.add_argument("answer", type=Path, help="CUDA C")
    judge.add_argument("--kernel", help="the one that is asked for, if the spec has several")
    judge.add_argument("--baseline", type=Path, help="by default the kernel's file beside the spec")
    judge.add_argument("--seed", type=int, help="of an earlier verdict, to judge the same again")
    for command, seconds, megabytes in ((check, 300, 4096), (judge, 60, 1024)):
        add = command.add_argument
        add("--seconds", type=float, default=seconds, help=f"limit of time ({seconds})")
        add("--megabytes", type=int, default=megabytes, help=f"of memory ({megabytes})")
        add("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    try:
        code, said, report = _run(asked)
    except (OSError, UnicodeDecodeError, SimGpuError) as error:
        as_json = getattr(asked, "json", False)
        code, said, report = 2, f"{error}", {"error": f"{error}"} if as_json else None
    if report is not None and asked.json:
        said = json.dumps(report, indent=2)
    print(said, file=sys.stdout if report or code != 2 else sys.stderr)
    if code:
        sys.exit(code)


def _run(asked: argparse.Namespace) -> tuple[int, str, dict[str, Any] | None]:
    """The exit code of a command, what it says, and its report."""
    if asked.command == "judge":
        from simgpu.judging.judge import CODES, judge_kernel

        names = ("spec", "answer", "baseline", "kernel", "seed", "seconds", "megabytes")
        found = judge_kernel(**{name: getattr(asked, name) for name in names})
        return CODES[found["verdict"]], f"{found['verdict']}: {found['sentence']}", found
    if asked.command == "check":
        from simgpu.judging import checking, draft, limits

        if asked.draft:
            with limits.within_limits(asked.file, asked.seconds, asked.megabytes):
                text = draft.drafted(join_headers(asked.file, asked.include), asked.file.name)
            return (0, text, None) if text else (2, f"no kernel of {asked.file} can be read", None)
        given = (asked.file, asked.spec, asked.include, asked.seconds, asked.megabytes)
        report = checking.check_file(*given)
        return report["code"], "\n".join(checking.check_words(report)), report
    if asked.passes is not None:
        try:
            program = compile_source(asked.passes.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError, SimGpuError) as error:
            raise UsageError(f"{asked.passes} cannot be read as CUDA C: {error}") from error
        return 0, "\n\n".join(map(program.passes, program.kernels)), None
    row = "{:<8} {}: {} SMs, {:.0f} GB".format
    rows = (row(k, spec.name, spec.sms, spec.memory_bytes / 1e9) for k, spec in SPECS.items())
    return 0, "\n".join(rows), None


if __name__ == "__main__":
    command_line()
