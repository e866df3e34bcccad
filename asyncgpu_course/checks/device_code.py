"""Checks of what device code does in which order, where running it does not tell; and places in it."""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.code_steps import CodeStep
from asyncgpu_course.checks.operations import cuda
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, Places, brief, left_in
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.internals import include_headers

NO_PACKET = ". Where a call has no packet, its number is -1: did it give it back before this?"
# A line of the whole text, as messages of kernels and of the compiler name it.
_PLACE = re.compile(r"\(line (?P<at>\d+) of the kernel\)|kernel\.cu:(?P<line>\d+):(?P<column>\d+)")


def all_lanes(steps: Sequence[CodeStep]) -> None:
    """The lanes of a warp are named, and not asked for."""
    cause = "`__activemask()`, or `coalesced_threads()`, names the lanes that happen to be here, and a GPU "
    cause += "may have split the warp: name all 32 by `0xffffffff`"
    must(all(step.name != "__activemask" for step in steps), cause)


@contextmanager
def own_lines(mine: object, before: str = "", after: str = "") -> Generator[None]:
    """Make whatever is rejected in the block name lines of the learner's own text.

    It was compiled between two others, and with the text of its headers. A line of those is quoted.
    """
    try:
        yield
    except Rejected as rejected:
        if re.search(r"'mail'\[\d+\], which is out of bounds", rejected.cause):
            rejected.cause = rejected.cause.removesuffix(NO_PACKET) + NO_PACKET
        if not isinstance(mine, str):
            raise
        whole = include_headers(before + mine + after).split("\n")
        ahead = include_headers(before + mine).count("\n") - mine.count("\n")

        def place(match: re.Match[str]) -> str:
            # Messages of a compiler know where each file's text begins, and faults count all lines.
            line = int(match["at"] or match["line"])
            own = line - (ahead if match["at"] else before.count("\n"))
            if 0 < own <= mine.count("\n") + 1:
                column = match["column"]
                return f"(line {own} of your text)" if match["at"] else f"kernel.cu:{own}:{column}"
            lines = whole if match["at"] else (before + mine + after).split("\n")
            quoted = f"`{lines[line - 1].strip()}`, which is not in your text"
            return f"(at {quoted})" if match["at"] else f"kernel.cu, at {quoted}"

        rejected.cause = _PLACE.sub(place, rejected.cause)
        raise


def left_by(
    name: str, mine: Any, files: Sequence[str], args: Any, places: Places, grid: int, block: int
) -> tuple[CheckedArray, ...]:
    """Return what a kernel `trial` leaves in these arrays, with the answer between two files of `cuda`."""
    size = str(np.size(args[0]))
    texts = [cuda(file).replace("COUNT", size) if file else "" for file in files]
    with trial(name, mine, *texts) as kernel:
        return left_in(places, kernel, args, grid=grid, block=block)


@contextmanager
def trial(
    name: str, mine: object, before: str, after: str = "", kernel: str = "trial"
) -> Generator[agt.Kernel]:
    """Yield a kernel that tries an answer between two texts; a rejection in the block names its lines."""
    kind = "the text of device code" if after else "the text of a kernel"
    if not isinstance(mine, str):
        raise Rejected(f"`{name}` should be {kind}, and is {brief(mine)}")
    with own_lines(mine, before, after):
        yield call(agt.Kernel, before + mine + after, kernel)


def keeps_waiting(mine: str, before: str, *args: Any, block: int = 1) -> None:
    """A wait for the host that counts its looks does not end before 100,000 of them. No clock ends it."""
    before, cast(Any, agt.current_device()).leap = "#define clock64() 1LL\n" + before, 100_000

    async def main() -> None:
        async with agt.hostcalls({16: lambda _: 0}, packets=4, nbytes=12_288) as host:
            kernel(*host.arrays, *args, grid=1, block=block).sync()  # so nobody answers

    with case("an answer that does not come"), own_lines(mine, before):
        kernel = call(agt.Kernel, before + mine)
        cause = "the kernel ends after fewer than 100,000 looks: "
        must(stays(lambda: call(main)), cause + "a host takes its time, and `block_on` waits")


def stays(run: Callable[[], object]) -> bool:
    """True if a kernel waits forever, or ends itself because it has waited for long."""
    try:
        run()
    except Rejected as rejected:
        if not isinstance(rejected.__cause__, agt.errors.DeadlockError):
            raise
        return True
    return False
