"""What each warp of one block does when, as the model of time has it.

The model plays no kernel through clock by clock: it adds up what the longest warp does, and what all of them
take from the SM and the memory makes that longer (`times`). But the interpreter comes to pieces of code,
barriers and waits for copies in the order of the program, so a `Tally` can note that order if one looks. The
rest is chosen. Within a piece a warp waits first, and computes then; loads of turns that a compiler does at
once are spread over these turns; and what others make longer is whatever the longest bound is about: loads,
shared memory or computing. So the last warp ends when the launch does. (If warps do different things between
barriers, they would end later: then all are drawn shorter.)
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from simgpu.common import LaunchDim
from simgpu.cuda_c import Counts, InterpreterLimits
from simgpu.cuda_c.cost.charges import Costs
from simgpu.cuda_c.cost.path import SHARED, TRIP
from simgpu.cuda_c.cost.tally import ROUNDS, Tally
from simgpu.cuda_c.lockstep import Mask
from simgpu.cuda_c.lockstep.masks import ThreadLayout
from simgpu.errors import UsageError
from simgpu.report.accesses import NO_VARIABLES, Variables, program_with
from simgpu.spec import DeviceSpec
from simgpu.times import chain_waits, kernel_time, resident_blocks, round_clocks

WarpState = Literal["load", "shared", "compute", "barrier"]
_LOAD, _SHARED, _COMPUTE, _BARRIER = range(4)
_WAITED, _MET = -1, -2  # where a piece of code has its number
_MOST = 1_000_000  # notes times warps of a block; these take 200 MB


class BlockTimeline(NamedTuple):
    """The block with the longest warp, in us since it could begin (`DeviceSpec.launch_us`)."""

    us: float  # until its last warp ends, and so the launch
    # For each warp, from when to when it is in which state, and copies that it has started are under way.
    warps: list[list[tuple[WarpState, float, float]]]
    flights: list[list[tuple[float, float]]]


class _Noted(Tally):
    """A tally that notes what came after what: the chains of a batch, the piece, and which warps."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.notes: list[tuple[NDArray[np.float64], int, NDArray[np.bool_], Any]] = []
        self.room = 0  # for notes

    def charge(self, point: int, mask: Mask, times: int = 1) -> None:
        super().charge(point, mask, times)
        self._note(point, mask.warps)

    def late(self, warps: Any, since: Any) -> None:
        self.settle()
        before = self._chains[ROUNDS].copy()
        super().late(warps, since)
        self._note(_WAITED, warps, (self._chains[ROUNDS] - before, since))

    def meet(self, layout: ThreadLayout, lanes: NDArray[np.int64]) -> None:
        super().meet(layout, lanes)
        self._note(_MET, np.isin(np.arange(layout.warps), layout.warp[lanes]))

    def _note(self, point: int, warps: NDArray[np.bool_], more: Any = None) -> None:
        if len(self.notes) == self.room:
            what = f"more than {self.room:,} pieces of code pass until this launch ends"
            raise UsageError(f"{what}: draw a shorter one")
        self.notes.append((self._chains, point, warps, more))


def block_timeline(
    spec: DeviceSpec, source: str, name: str, shape: tuple[LaunchDim, LaunchDim], args: Sequence[Any],
    shared_mem: int = 0, contract: bool = False, variables: Variables = NO_VARIABLES,
) -> BlockTimeline:  # fmt: skip
    """Run a launch in the interpreter, on these arguments, and say what the warps of a block do when."""
    program = program_with(source, variables, contract=contract)
    if program.kernel(name).code.watches:
        raise UsageError(
            f"threads of '{name}' wait for what others write, or for a phase of a barrier: when that is, the "
            "model of time doesn't say"
        )
    # With a watcher, turns that could be computed at once go one by one.
    limits = InterpreterLimits(watcher=lambda t, m, at, size, site: None, meter=_Noted)
    run = program.begin(name, *shape, args, dynamic_shared=shared_mem, limits=limits)
    tally = run.tally
    assert isinstance(tally, _Noted)
    tally.room = _MOST // -(-run.launch.threads // 32)
    counts = run.finish().counts
    each = run.launch.threads, counts.shared_bytes, counts.registers
    if counts.blocks > (fit := spec.sms * resident_blocks(spec, *each)):
        raise UsageError(
            f"of {counts.blocks:,} blocks {fit:,} fit on the device at once, and it isn't known when others "
            "begin: draw a smaller launch"
        )
    if not tally.notes:
        raise UsageError(f"'{name}' does nothing that takes time, so there is nothing to draw")
    return _played(spec, counts, program.kernel(name).costs(False), tally)


def _played(spec: DeviceSpec, counts: Counts, costs: Costs, tally: _Noted) -> BlockTimeline:
    threads, mhz = counts.threads // counts.blocks, spec.clock_mhz
    time = kernel_time(spec, counts, threads, counts.shared_bytes)
    batches = {id(chains): chains for chains, *_ in tally.notes}.values()
    chains = max(batches, key=lambda chains: tuple(chains[:, chains[0].argmax()]))
    warps = -(-threads // 32)
    block, longest = divmod(int(chains[0].argmax()), warps)
    mine = slice(block * warps, (block + 1) * warps)
    notes = [note[1:] for note in tally.notes if note[0] is chains and note[2][mine].any()]
    points, on = np.array([n[0] for n in notes]), np.array([n[1][mine] for n in notes])
    # What each piece costs each warp: rounds of loads, and clocks.
    rows = [(c.rounds, c.latency, c.busy, SHARED * c.near / c.room) for c in costs.charges]
    each = np.where(points < 0, 0.0, np.array(rows)[points].T)
    rounds, latency, busy, near = each[..., None] * on
    waited, meets = (np.flatnonzero(points == kind) for kind in (_WAITED, _MET))
    for k in waited:
        rounds[k] += notes[k][2][0][mine]
    progress = np.cumsum(latency + TRIP * rounds, axis=0)
    rounds *= counts.chain_load_rounds / max(rounds[:, longest].sum(), 1e-9)
    first = np.diff(np.cumsum(rounds, axis=0).clip(max=1), axis=0, prepend=0.0)
    # A warp works until its results are there, or as long as units are busy, and then waits for no result.
    clocks = time.bounds["latency"] * mhz - chain_waits(spec, counts, 1)
    by_results = clocks < counts.chain_latency + 0.5
    work = latency if by_results else busy
    work *= clocks / max(work[:, longest].sum(), 1e-9)
    spent = np.zeros((4, *on.shape))
    spent[_LOAD] = first * spec.first_load_clocks + (rounds - first) * round_clocks(spec, counts)
    spent[_SHARED] = np.minimum(near * by_results, work)
    spent[_COMPUTE] = work - spent[_SHARED]
    spent[_BARRIER, meets] = spec.barrier_clocks * on[meets]
    # The launch ends later than that warp, by what the bound is about; or its blocks begin later.
    whole = (time.us - spec.launch_us) * mhz
    longer = max(0.0, whole - _met(spent.copy(), on, meets))
    begin = longer if time.bound == "blocks" else 0.0
    rest = {bound: us for bound, us in time.bounds.items() if bound not in ("latency", "blocks")}
    loads = _LOAD, spent[_LOAD].copy()
    kinds = {"memory": loads, "sectors": loads, "shared": (_SHARED, near)}
    about, much = kinds.get(max(rest, key=rest.__getitem__), (_COMPUTE, work))
    about, much = (about, much) if much[:, longest].any() else (_COMPUTE, work)
    spent[about] += much * (longer - begin) / max(much[:, longest].sum(), 1e-9)
    spent *= (whole - begin) / _met(spent, on, meets) / mhz
    at = begin / mhz + np.cumsum(spent.sum(axis=0), axis=0)
    flights: list[list[tuple[float, float]]] = [[] for _ in range(warps)]
    for k in waited:
        since = notes[k][2][1][mine]
        for w in np.flatnonzero(on[k] & np.isfinite(since)):
            trip = np.interp((since[w], since[w] + TRIP), progress[:, w], at[:, w])
            flights[w].append((float(trip[0]), float(trip[1])))
    bars = [_bars(spent[..., w], begin / mhz) for w in range(warps)]
    return BlockTimeline(whole / mhz, bars, flights)


def _met(spent: NDArray[Any], on: NDArray[Any], meets: NDArray[Any]) -> float:
    """Have each warp wait at each barrier for the last one; return when all have ended, in clocks."""
    at, done = np.zeros(on.shape[1]), 0
    for k in meets:
        at += spent[:, done:k].sum(axis=(0, 1))
        spent[_BARRIER, k] += np.where(on[k], at[on[k]].max() - at, 0.0)
        done = k
    return float((at + spent[:, done:].sum(axis=(0, 1))).max())


def _bars(spent: NDArray[Any], begin: float) -> list[tuple[WarpState, float, float]]:
    """One warp's states, one after the other; equal ones that follow each other are one."""
    taken = np.flatnonzero(spent.T.ravel() > 0)
    states, ends = taken % 4, begin + np.cumsum(spent.T.ravel()[taken])
    last = np.flatnonzero(np.diff(states, append=-1))
    names, ends = [get_args(WarpState)[state] for state in states[last]], ends[last].tolist()
    return list(zip(names, [begin, *ends], ends, strict=False))
