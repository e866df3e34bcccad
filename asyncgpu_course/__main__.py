"""The command line: ``asyncgpu-tutor COMMAND`` or ``python -m asyncgpu_course COMMAND``.

It has the tutor's commands, and ``start``, which brings the pages, and ``doctor``.
"""

from collections.abc import Sequence

from asyncgpu_tutor import __main__ as tutor

EVERY_COMMAND = {
    "doctor": (
        "asyncgpu_course.doctor",
        "say what this machine has, what is missing, and what to do about it",
    ),
    **tutor.COMMANDS,
    "start": ("asyncgpu_course.start", "put the course into a folder, and open it in JupyterLab"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command with these arguments, or those of the process; the exit code."""
    return tutor.run_command(argv, EVERY_COMMAND)


if __name__ == "__main__":
    raise SystemExit(main())
