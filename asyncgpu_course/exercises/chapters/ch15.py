"""Exercises of 15_several_gpus: what each one checks."""

import warnings
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results, schedule
from asyncgpu_course.checks.building import an_operation, built
from asyncgpu_course.checks.operations import cuda, filled, layer, noise, step, step_kernel
from asyncgpu_course.checks.rejection import about, case, must
from asyncgpu_course.checks.results import CheckedArray, equal
from asyncgpu_course.checks.sandbox import Observed, left_whole, observe, private_fleet
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count, happens_before


def _free(trace: agt.Trace, one: agt.types.Span, other: agt.types.Span, cure: str) -> None:
    for early, late in ((one, other), (other, one)):
        cause = f"`{late.name}` on {late.device} waits for `{early.name}` on {early.device}: {cure}"
        must(not happens_before(trace, early, late), cause, early, late)


def _is_sum(
    got: Any, place: str, due: list[str], known: dict[str, CheckedArray], cure: str = ""
) -> None:
    """This is the sum of the arrays that are due. If it adds up others of these, a rejection says which."""
    names = [name for name, array in known.items() if array.shape == np.shape(got)]
    if names:
        columns, flat = np.stack([known[name].ravel() for name in names], 1), np.ravel(got)
        times: CheckedArray = np.round(np.linalg.lstsq(columns, flat, rcond=None)[0])
        parts = {name: int(n) for name, n in zip(names, times, strict=True) if n}
        sums = [name if n == 1 else f"{n} times {name}" for name, n in parts.items()]
        missing = ", ".join(name for name in due if name not in parts)
        lacks = f"and lacks {missing}" if missing else f"and should be {' + '.join(due)}"
        wrong = parts != dict.fromkeys(due, 1) and np.allclose(columns @ times, flat, atol=1e-3)
        must(not wrong, f"{place} is {' + '.join(sums) or 'zero'}, {lacks}{cure}")
    with case(place):
        equal(got, np.sum([known[name] for name in due], 0))


# ------------------------------------------------------------------ split
def _batch(rows: int) -> tuple[CheckedArray, CheckedArray]:
    return agt.pin(noise(rows, rows, 40)), noise(7, 40, 24)


def _split(answer: Any, gpus: int, rows: int) -> Observed:
    with private_fleet(gpus) as fleet:
        batch, w = _batch(rows)  # of this machine, which knows what is pinned there
        weights = [agt.h2d(agt.pin(w)).on(device).sync().share() for device in fleet]
        late = batch.copy()
        batch[:] = 0
        op = built("split", answer, agt.Trace(), layer, batch, weights)
        batch[:] = late
        # A copy of the batch is pageable, and it's wrong here for another reason, which is told.
        with warnings.catch_warnings(action="ignore", category=agt.errors.PageableCopyWarning):
            return observe(op.sync)


def _shares(run: Observed, gpus: int, rows: int) -> None:
    """Each GPU has its share of the rows, at the same time as the others, and the results are in order."""
    parts = results.listed("split", run.result, gpus)
    sizes = [len(part) for part in parts]
    cause = f"the parts have {sizes} rows, and should have {rows} together, "
    must(sum(sizes) == rows and max(sizes) - min(sizes) <= 1, cause + "and differ by one at most")
    batch, w = _batch(rows)
    right = np.split(batch @ w, np.cumsum(sizes)[:-1])
    cause = "the batch got its numbers only when `split` had returned, and the results are those of what was "
    must(any(map(np.any, parts)), cause + "there before: cut it into views, and copy nothing yet")
    results.each_equal(parts, right, "part")
    schedule.launches(run.trace, "sgemm_naive", gpus)
    work = run.trace.find("sgemm_naive")
    idle = gpus - len({span.device for span in work})
    cause = f"{count(idle, 'GPU')} did nothing: `op.on(device)` says where a part runs"
    must(not idle, cause, *work)
    for one, other in pairwise(work):
        _free(run.trace, one, other, "they should work at the same time")


# ------------------------------------------------------------------ place
def _work(x: Any) -> agt.DeviceOp[Any]:
    blocks = x.partition(128)  # only the size of `x` says which part it is
    return step_kernel(f"work_{x.size - _SIZE}")(x.size, 0.5, 1.0, blocks, blocks).output()


def _placed(answer: Any, gpus: int, steps: int) -> Observed:
    with private_fleet(gpus) as fleet:
        parts = [agt.h2d(agt.pin(x), f"part {i}").sync() for i, x in enumerate(_rank_parts(gpus))]
        op = built("both", answer, agt.Trace(), parts, fleet, _work, steps)

        def home(arrays: object) -> agt.DeviceOp[Any]:
            found = results.listed("both", arrays, gpus)
            for i, end in enumerate(getattr(array, "device", fleet[0]).name for array in found):
                must(end == "sim:0", f"part {i} ended on {end}, and should come back to sim:0")
            return agt.zip(*[agt.d2h(array) for array in found])

        return observe(op.and_then(home).sync)


def _rank_parts(gpus: int) -> list[CheckedArray]:
    return [noise(i, _SIZE + i) for i in range(gpus)]


def _moved_once(run: Observed, gpus: int, steps: int) -> None:
    """Each part goes over and comes back once, makes all steps on its GPU, and waits for no other part."""
    trace = run.trace
    for i in range(gpus):
        done = trace.find(f"work_{i}")
        where = " and ".join(sorted({str(span.device) for span in done}) or ["no GPU"])
        cause = f"part {i} had {count(len(done), 'round')} of `work`, on {where}, and should "
        cause += f"have {steps} on sim:{i}: each part has a GPU of its own"
        there = all(span.device == f"sim:{i}" for span in done) and len(done) == steps
        must(there, cause, *done[:1])
    copies = [*trace.find("peer copy"), *trace.find("h2d")]
    cause = f"the parts moved {count(len(copies), 'time')}, and {2 * (gpus - 1)} are enough: "
    cause += "a part goes over before its first step and back after its last"
    must(len(copies) <= 2 * (gpus - 1), cause, *copies[1:3])
    for i, k in combinations(range(gpus), 2):
        ends = trace.find(f"work_{i}")[0], trace.find(f"work_{k}")[-1]
        _free(trace, *ends, "`agt.overlap` lets parts go side by side")
    right: list[CheckedArray] = []
    for part in _rank_parts(gpus):
        right.append(part)
        for _ in range(steps):
            right[-1] = right[-1] * np.float32(0.5) + np.float32(1)
    results.in_order("both", run.result, right, "part")


# ------------------------------------------------------------------ ring
_LAYERS = "W1", "W10", "W0"  # in no order that anything but `shapes` has
_SIZE = 3000


def _plus(x: agt.DeviceArray, y: agt.DeviceArray) -> agt.DeviceOp[Any]:
    return agt.Kernel(cuda("07_add"))(y.size, x.borrow(), y.borrow().partition(128)).output()


def _ringed(answer: Any, ranks: int, size: int) -> Observed:
    with private_fleet(ranks) as fleet:
        group, hosts = agt.group(*fleet), noise(ranks, ranks, ranks, size)
        there = [[agt.h2d(agt.pin(c)).on(d).sync() for c in hosts[r]] for r, d in enumerate(fleet)]
        rooms = [agt.zeros(size).on(device).sync() for device in fleet]

        def recipe(rank: int) -> agt.DeviceOp[Any]:
            parts = [array.borrow() for array in there[rank]]
            op = an_operation("ring", answer(group, rank, parts, rooms[rank].borrow(), _plus))
            return op.and_then(lambda _: agt.zip(*[agt.d2h(part) for part in parts]))

        return observe(group.on_each, recipe)


def _around(run: Observed, ranks: int, size: int) -> None:
    """All have all sums, by hand, and nobody sent more than a ring has to."""
    theirs = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
    by_library = [span for span in run.trace if span.name in theirs]
    must(not by_library, "the library did it: use `group.exchange` today", *by_library[:1])
    chunks, every = noise(ranks, ranks, ranks, size), range(ranks)
    known = {f"part {i} of rank {r}": chunks[r, i] for r in every for i in every}
    complete = np.isclose(np.array(run.result), chunks.sum(0), atol=1e-4).all(2).sum(1)
    cure = ". Each rank has one complete part by now: let these go around, and replace what's there"
    half_way = bool((complete == 1).all())
    for rank, parts in enumerate(run.result):
        for i, part in enumerate(parts):
            due = [f"part {i} of rank {r}" for r in every]
            _is_sum(part, f"in the end, part {i} on rank {rank}", due, known, cure * half_way)
    sends, most = [s for s in run.trace if s.name in ("exchange", "send")], 2 * (ranks - 1)
    for rank in every:
        mine = [span for span in sends if span.detail["rank"] == rank]
        parts = sum(int(str(span.detail["bytes"])) for span in mine) // (4 * size)
        cause = f"rank {rank} sent {count(parts, 'part')}, and {most} are enough: in each step, send one part"
        must(parts <= most, cause, *mine[:1])


# ------------------------------------------------------------------ order
def _finished(ranks: int, shapes: Sequence[results.ResultShape]) -> list[dict[str, CheckedArray]]:
    """The gradients of each rank, in its own order; the last has no W10, and one between has only that."""
    found: list[dict[str, CheckedArray]] = []
    for rank in range(ranks):
        order = [(rank + i) % 3 for i in range(3)]
        mine = {_LAYERS[i]: noise(10 * rank + i, *shapes[i]) for i in order}
        if rank == ranks - 1:
            del mine[_LAYERS[1]]
        elif rank:
            mine = {_LAYERS[1]: mine[_LAYERS[1]]}
        found.append(mine)
    return found


def _agreed(answer: Any, ranks: int, sizes: Sequence[results.ResultShape]) -> Observed:
    shapes = dict(zip(_LAYERS, sizes, strict=True))
    with private_fleet(ranks) as fleet:
        group = agt.group(*fleet)
        there = [
            {name: agt.h2d(agt.pin(host)).on(device).sync() for name, host in mine.items()}
            for device, mine in zip(fleet, _finished(ranks, sizes), strict=True)
        ]

        def recipe(rank: int) -> agt.DeviceOp[Any]:
            with left_whole(there[rank], shapes):
                op = an_operation("reduce_all", answer(group, there[rank], shapes))

            def home(arrays: Any) -> agt.DeviceOp[Any]:
                absent = [name for name in shapes if name not in there[rank]]
                few = absent and getattr(arrays, "__len__", int)() < len(sizes)
                cause = f"rank {rank} has nothing for `{', '.join(absent)}`, "
                must(not few, cause + "and contributes zeros to that sum")
                found = results.listed("reduce_all", arrays, len(sizes))
                return agt.zip(*[agt.d2h(array) for array in found])

            return op.and_then(home)

        return observe(group.on_each, recipe)


def _one_order(run: Observed, ranks: int, sizes: Sequence[results.ResultShape]) -> None:
    """Each rank has the sums of all layers, those included that it had nothing of."""
    there = enumerate(_finished(ranks, sizes))
    known = {f"{name} of rank {r}": array for r, mine in there for name, array in mine.items()}
    for rank, sums in enumerate(run.result):
        for weights, total in zip(_LAYERS, sums, strict=True):
            due = [name for name in known if name.startswith(f"{weights} ")]
            _is_sum(total, f"the sum of {weights} on rank {rank}", due, known)


# ------------------------------------------------------------------ overlapped
ROWS, N = 32, 8192


def _gradient(name: str, ones: Any, state: Any, out: Any) -> agt.DeviceOp[Any]:
    """Fill `out` with the sum of `state`, which takes long enough for Python to get ahead."""
    source = agt.matvec_naive.source.replace("matvec_naive", name)
    rows = out.borrow().partition(ROWS)
    return agt.Kernel(source)(ROWS, N, ones.borrow(), state.borrow(), rows).output()


def _trained(answer: Any, gpus: int, layers: int) -> Observed:
    with private_fleet(gpus) as fleet:
        group = agt.group(*fleet)
        states = [agt.full(N, k / N).on(device).sync() for k, device in enumerate(fleet, 1)]
        ones = [agt.ones((ROWS, N)).on(device).sync() for device in fleet]
        empty = [agt.h2d(agt.pin(filled(ROWS, 0)), f"gradient {i}") for i in range(layers)]
        sums = [[op.on(device).sync() for device in fleet] for op in empty]

        def gradient(i: int) -> agt.DeviceOp[Any]:
            def one(rank: int) -> agt.DeviceOp[Any]:
                first = _gradient(f"gradient_{i}", ones[rank], states[rank], sums[i][rank])
                return agt.zip(first, step(f"back_{i}", 0.5, 0.0, states[rank], states[rank]))

            arms = [one(rank).on(device) for rank, device in enumerate(fleet)]
            return agt.overlap(*arms).map(lambda _: None)

        reduces = [group.all_reduce([a.borrow() for a in arrays]) for arrays in sums]
        gradients = [gradient(i) for i in range(layers)]
        agt.zip(*gradients, *reduces)  # so nobody is warned of those that stay unrun
        cause = "`reduces[0]` begins before `gradients[0]` is over, and needs what that computes. That's a {}"
        with about("race on array 'gradient 0'", cause):
            run = observe(built("overlapped", answer, agt.Trace(), gradients, reduces).sync)
        run.result = [[agt.d2h(a.borrow()).on(a.device).sync() for a in arrays] for arrays in sums]
    return run


def _hidden(run: Observed, gpus: int, layers: int) -> None:
    """Each all-reduce comes after its gradient, and no later gradient waits for it."""
    trace = run.trace
    for i in range(layers):
        schedule.launches(trace, f"gradient_{i}", gpus)
    schedule.launches(trace, "all_reduce", gpus * layers)
    total = gpus * (gpus + 1) / 2
    for i, arrays in enumerate(run.result):
        with case(f"gradient {i}"):
            for array in arrays:
                equal(array, filled(ROWS, total * 0.5**i))
    for device in (f"sim:{rank}" for rank in range(gpus)):
        reduced = [span for span in trace.find("all_reduce") if span.device == device]
        for i, k in combinations(range(layers), 2):
            (after,) = [s for s in trace.find(f"gradient_{k}") if s.device == device]
            cause = f"gradients[{k}] and reduces[{i}] don't need each other. (A group does its "
            cause += "calls in the order in which they are launched, and `overlap` and `zip` "
            _free(trace, reduced[i], after, cause + "launch their arms in order)")


# ------------------------------------------------------------------ halo
_Arrays = list[list[agt.DeviceArray]]
MIDDLE, COLUMNS = 12, 30  # of a band, which has a row above and a row below its middle


def _spread(before: Any, here: Any, after: Any, out: Any) -> agt.DeviceOp[Any]:
    (n, columns), above = here.shape, before.shape[0]
    kernel = agt.Kernel(cuda("15_spread").replace("NAME", "edge" if n == 1 else "middle"))
    parts = (array.borrow() for array in (before, here, after, out))
    return kernel(columns, above, n, *parts, grid=1, block=32).last()


def _bands(ranks: int) -> tuple[CheckedArray, list[CheckedArray]]:
    """A sheet of a band for each rank, between two rows of 0, and the bands a step later."""
    sheet = noise(ranks, ranks * (MIDDLE + 2), COLUMNS)
    wide = np.pad(sheet, ((1, 1), (0, 0)))
    return wide, np.split((wide[:-2] + sheet + wide[2:]) / np.float32(3), ranks)


def _advanced(answer: Any, ranks: int) -> Observed:
    with private_fleet(ranks) as fleet:
        group, sheet = agt.group(*fleet), _bands(ranks)[0][1:-1]
        cuts = 1, 1 + MIDDLE
        olds, halos, news = _Arrays(), _Arrays(), _Arrays()  # of all ranks
        for device, band in zip(fleet, np.split(sheet, ranks), strict=True):
            parts = [agt.pin(np.ascontiguousarray(part)) for part in np.split(band, cuts)]
            olds.append([agt.h2d(part).on(device).sync() for part in parts])
            news.append([agt.zeros(part.shape).on(device).sync() for part in parts])
            halos.append([agt.zeros((1, COLUMNS)).on(device).sync() for _ in range(2)])

        def recipe(rank: int) -> agt.DeviceOp[Any]:
            mine = ([a.borrow() for a in arrays[rank]] for arrays in (olds, halos, news))
            op = an_operation("advance", answer(group, rank, *mine, _spread))
            left = *news[rank], *halos[rank]
            return op.and_then(lambda _: agt.zip(*[agt.d2h(a.borrow()) for a in left]))

        return observe(group.on_each, recipe)


def _seamless(run: Observed, ranks: int) -> None:
    """Heat spreads over the whole sheet, and no GPU's middle part waited for its neighbours."""
    sheet, right = _bands(ranks)
    for rank, parts in enumerate(run.result):
        beyond = [sheet[[i]] for i in (rank * len(right[0]), (rank + 1) * len(right[0]) + 1)]
        with case(f"rank {rank}"):
            results.each_equal(parts[:3], np.split(right[rank], (1, 1 + MIDDLE)), "part")
            results.each_equal(parts[3:], beyond, "`halo`, from above and from below, row")
    schedule.launches(run.trace, "middle", ranks)
    schedule.launches(run.trace, "edge", 2 * ranks)
    for device in (f"sim:{rank}" for rank in range(ranks)):
        mine = [span for span in run.trace if span.device == device]
        (middle,) = [span for span in mine if span.name == "middle"]
        talks = [span for span in mine if span.name in ("exchange", "send", "recv")]
        for talk in talks:
            _free(run.trace, talk, middle, "the middle needs no neighbour")
        rows = sum(int(str(s.detail["bytes"])) for s in talks if s.name != "recv") // (4 * COLUMNS)
        cause = f"{device} sent {count(rows, 'row')}, and 2 are enough: each neighbour needs one"
        must(rows <= 2, cause, *talks[2:3])
        first = min(talks, key=lambda span: span.start)
        cause = f"on {device} Python launches the talk before the middle, which takes longest: give the "
        cause += "middle the first arm of the `overlap`"
        must(middle.start <= first.start, cause, first, middle)


CHAPTER_15 = (
    Exercise("15-split", "A share for each GPU", "split",
             runs(_split, _shares, [(2, 64), (3, 50), (4, 10), (1, 7)], "{:GPU} and {} rows")),
    Exercise("15-ring", "A better ring", "ring",
             runs(_ringed, _around, [(4, 500), (3, 64), (2, 64)], "{:rank}")),
    Exercise("15-order", "One order for all", "reduce_all", runs(_agreed, _one_order,
                  [(2, ((64,),) * 3), (3, ((64,), (4, 8), (48,)))], "{:rank} and layers of {}")),
    Exercise("15-overlapped", "Talk while you work", "overlapped",
             runs(_trained, _hidden, [(2, 3), (2, 4), (3, 2), (2, 1)], "{:GPU} and {:layer}")),
    Exercise("15-place", "Move it once", "both",
             runs(_placed, _moved_once, [(2, 3), (3, 5), (4, 1)], "{:GPU} and {:step}")),
    Exercise("15-halo", "Talk to the neighbours", "advance",
             runs(_advanced, _seamless, [(2,), (4,)], "{:rank}")),
)  # fmt: skip
