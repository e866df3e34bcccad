"""Litmus tests of CUDA's memory: which outcomes are allowed, and which are seen."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import UsageError, whole
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.ops.array_operations import h2d
from asyncgpu_tutor.run.current import using

LitmusOutcome = tuple[int, ...]
FENCES = {"none": "", "block": "__threadfence_block();", "device": "__threadfence();"} | {
    f"device, {side} thread only": "__threadfence();" for side in ("first", "last")
}
# How a word is written, and how it is read.
LITMUS_KINDS = {
    "plain": ("{} = 1u;", "{}"),
    "volatile": ("*(volatile unsigned int*)&{} = 1u;", "*(volatile unsigned int*)&{}"),
    "atomic": ("atomicExch(&{}, 1u);", "atomicAdd(&{}, 0u)"),
}
# The threads of each test: W writes 1, R reads, F is the fence. And the one outcome that surprises.
SHAPES: Mapping[str, tuple[tuple[str, ...], LitmusOutcome]] = {
    "message passing": (("Wx F Wy", "Ry F Rx"), (1, 0)),
    "store buffering": (("Wx F Ry", "Wy F Rx"), (0, 0)),
    "load buffering": (("Rx F Wy", "Ry F Wx"), (1, 1)),
    "independent reads": (("Wx", "Wy", "Rx F Ry", "Ry F Rx"), (1, 0, 1, 0)),
}
STEP = 16  # words from one run's x to the next one's, so that they share no sector
# For each GPU on which tests were recorded, its name, and how often each test had each outcome.
_RECORDED = Path(__file__).resolve().parents[1] / "data" / "litmus.json"
_HEAD = """extern "C" __global__ void litmus(
    unsigned int* x, unsigned int* y, unsigned int* gate, unsigned int* out, unsigned int rounds)
{{
    unsigned int role = {role}, group = {group};
    if (threadIdx.x % 32 != 0) return;
    for (unsigned int round = 0; round < rounds; round++) {{
        unsigned int run = group * rounds + round, at = {step} * run;
        atomicAdd(&gate[run], 1u);
        while (atomicAdd(&gate[run], 0u) < {roles}u) {{ }}
"""


def source(shape: str, fence: str, kind: str, blocks: bool) -> str:
    """The kernel of a test, in CUDA C: its threads are of as many blocks, or warps of one block."""
    threads, (write, read), count, text = SHAPES[shape][0], LITMUS_KINDS[kind], 0, ""
    weak = SHAPES[shape][1]
    fenced = [role for role, steps in enumerate(threads) if "F" in steps]
    fenced = fenced[:1] if "first" in fence else fenced[1:] if "last" in fence else fenced
    for role, steps in enumerate(threads):
        text += f"        if (role == {role}) {{\n"
        kept = ""
        for step in steps.split():
            place = f"{step[-1]}[at]"
            if step == "F":
                text += f"            {FENCES[fence]}\n" if FENCES[fence] and role in fenced else ""
            elif step[0] == "W":
                text += f"            {write.format(place)}\n"
            else:
                text += f"            unsigned int r{count} = {read.format(place)};\n"
                kept += f"            out[{len(weak)} * run + {count}] = r{count};\n"
                count += 1
        text += f"{kept}        }}\n"
    roles, role, group = len(threads), "threadIdx.x / 32", "blockIdx.x"
    if blocks:
        role, group = f"blockIdx.x % {roles}", f"blockIdx.x / {roles}"
    head = _HEAD.format(role=role, group=group, roles=roles, step=STEP)
    return f"{head}{text}    }}\n}}\n"


def allowed(shape: str, fence: str, kind: str, blocks: bool) -> list[LitmusOutcome]:
    """The outcomes that CUDA's memory model allows. A race of plain accesses may have any."""
    weak = SHAPES[shape][1]
    enough = fence == "device" or (fence == "block" and not blocks)
    every = product((0, 1), repeat=len(weak))
    return [outcome for outcome in every if outcome != weak or kind == "plain" or not enough]


@dataclass(frozen=True)
class Litmus:
    """The outcomes of a litmus test. As the last line of a cell it is a table.

    Attributes
    ----------
    source : str
        The kernel, in CUDA C.
    allowed : list of tuple
        The outcomes that the memory model allows; each has what the loads gave, in the order of the source.
    seen : mapping of tuple to int
        How often each was seen on a simulated device whose memory is as late as CUDA allows.
    recorded : mapping of tuple to int, or None
        The same on a GPU, `where`; None if nobody has recorded this test.
    """

    source: str
    allowed: list[LitmusOutcome]
    seen: Mapping[LitmusOutcome, int]
    recorded: Mapping[LitmusOutcome, int] | None
    where: str

    def __str__(self) -> str:
        gpu = "" if self.recorded is None else f" {self.where} |"
        lines = [f"| loads | allowed | simulated |{gpu}", f"|---|---|---|{'---|' if gpu else ''}"]
        for outcome in product((0, 1), repeat=len(self.allowed[0])):
            may = "yes" if outcome in self.allowed else "**no**"
            more = "" if self.recorded is None else f" {self.recorded.get(outcome, 0):,} |"
            loads, seen = " ".join(map(str, outcome)), self.seen.get(outcome, 0)
            lines.append(f"| {loads} | {may} | {seen:,} |{more}")
        return "\n".join(lines)

    _repr_markdown_ = __str__


def litmus(
    shape: str,
    *,
    fence: str = "device",
    kind: str = "volatile",
    blocks: bool = True,
    runs: int = 200,
) -> Litmus:
    """Run a litmus test of CUDA's memory, and hold it against the model and a GPU.

    Parameters
    ----------
    shape : str
        ``"message passing"``, ``"store buffering"``, ``"load buffering"`` or ``"independent reads"``.
    fence : str, optional
        Between the two accesses of a thread: ``"none"``, ``"block"`` or ``"device"``; or in one of the two
        threads, ``"device, first thread only"`` or ``"device, last thread only"``.
    kind : str, optional
        How memory is accessed: ``"plain"``, ``"volatile"`` or ``"atomic"``.
    blocks : bool, optional
        Each thread is of a block of its own; otherwise they are warps of one block.
    runs : int, optional
        On the simulated device.

    Raises
    ------
    UsageError
        If there is no such test.
    """
    for given, known in ((shape, SHAPES), (fence, FENCES), (kind, LITMUS_KINDS)):
        if given not in [*known]:
            raise UsageError(f"{given!r} is not one of {', '.join(map(repr, known))}")
    whole("the number of runs", runs, 0)
    text, threads = source(shape, fence, kind, blocks), len(SHAPES[shape][0])
    width, seen = len(SHAPES[shape][1]), Counter[LitmusOutcome]()
    grid, block = (threads, 1) if blocks else (1, 32 * threads)
    with using(SimDevice(machine=SimMachine(), adversary=1)):
        kernel = Kernel(text)
        for _ in range(runs):
            words = [h2d(np.zeros(size, np.uint32)) for size in (STEP, STEP, 1, width)]
            out = kernel(*words, 1, grid=grid, block=block).last().to_host().sync()
            seen[tuple(int(value) for value in out)] += 1
    name = f"{shape}, {fence}, {kind}, {'blocks' if blocks else 'one block'}"
    recorded = json.loads(_RECORDED.read_text(encoding="utf-8"))
    newest = [one for one in reversed(recorded) if name in one["tests"]]
    found = ((one["device"], one["tests"][name]) for one in newest)
    where, known = next(found, ("", None))
    counts = None if known is None else {tuple(map(int, key)): n for key, n in known.items()}
    return Litmus(text, allowed(shape, fence, kind, blocks), seen, counts, where)
