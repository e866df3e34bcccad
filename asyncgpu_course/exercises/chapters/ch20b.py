"""Exercises of 20b_the_upper_rungs: what each one checks."""

from copy import copy
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results
from asyncgpu_course.checks.building import an_operation, run_now
from asyncgpu_course.checks.code_steps import waits_early
from asyncgpu_course.checks.device import CheckDevice
from asyncgpu_course.checks.operations import WARP, exact_numbers, noise
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, equal, plain_report_on
from asyncgpu_course.checks.sandbox import observe
from asyncgpu_course.checks.schedule import lazy
from asyncgpu_course.exercises.chapters.ch20 import multiplied
from asyncgpu_course.exercises.exercise import Exercise

_GOAL_US = 6.5
# Rows, numbers of each, and how far these are spread, and around what.
_ROWS = (3, 100, 1, 0), (2, 20, 300, 0), (4, 33, 1, -1e6), (1, 1, 1, 0), (2, 1024, 90, 500)
# Keys, how far scores are spread, and whether each is larger than the one before it.
_ATTENDED = (20, 1, False), (20, 3, True), (33, 60, False), (1, -60, False), (100, 2, False)


def _softmax(x: results.CheckedArray) -> results.CheckedArray:
    grown = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return grown / grown.sum(1, keepdims=True)


def check_one_barrier(mine: Any, _model: Any) -> None:
    """The product is right, with one barrier a step and one load of each number."""
    kernel = as_kernel(mine, "ahead")
    for n in (64, 16, 32, 48, 96):
        report = multiplied(kernel, n, grid=(n // 16, n // 16), block=(16, 16))
        counts, turns = report.counts, n // 16
        passed = counts.barriers // counts.blocks
        cause = f"with n={n}, a block passes {passed} barriers for {turns} steps, and one a step is enough: "
        # There may be one more behind the first tile, and one behind the `init` of a barrier.
        must(passed <= turns + 2, cause + "with two tiles, nobody writes what others still read")
        asked = counts.global_load_requests / (2 * turns * n * n / WARP)
        must(asked <= 1, f"each number is fetched {asked:.1f} times by a block, and once is enough")
    _asks_ahead(kernel, 64, 0)
    _asks_ahead(kernel, 96, 35)


def _asks_ahead(kernel: agt.Kernel, n: int, block: int) -> None:
    """A block asks for the next step's numbers before it multiplies this one's, and puts them down then."""
    given, turns = [n, *np.zeros((2, n, n), np.float32)], n // 16
    run, arrays = results.accesses_of(kernel, given, (n, n), (16, 16, 1), (turns, turns, 1))
    line = waits_early(kernel.source, kernel.name, {*arrays[:2]})
    cause = f"each thread waits (line {line} of the kernel) after asking for the next numbers: "
    must(not line, cause + "multiply this step's first, then use the next ones")
    each = [(at, mine) for at in run.steps if len(mine := at.elements[at.threads // 256 == block])]
    copied, since, whole = any(at.apart for at, _ in each), np.inf, 0
    used = np.array([len(mine) * (at.array not in arrays and not at.atomic) for at, mine in each])
    wrote = np.array([at.write for at, _ in each])
    # How many steps' numbers have been read from tiles, and put there: a barrier's `init` is one more.
    done, put = np.cumsum(used * ~wrote), np.cumsum(used * wrote)
    done, put = done * turns / done[-1], np.ceil(put * turns / put[-1] - 0.1)
    for (at, mine), read, written in zip(each, done, put, strict=True):
        if at.array in arrays[:2]:
            step = int((mine % n if at.array == arrays[0] else mine // n).max()) // 16
            cause = f"`{at.array}`'s numbers of step {step} are asked for (line {at.line} of the kernel) "
            cause += f"when those of step {step - 1} are multiplied already: ask first, and multiply then"
            must(not step or read <= step - 1, cause)
        elif at.write and at.array not in arrays and not copied:
            cause = "the next numbers are put into their tile before this one's are multiplied, so each "
            cause += "thread waits for them first: keep them in variables until then"
            must(read >= written - 1, cause)
        elif not at.write and at.array not in arrays and not at.atomic:
            # A wait for the first tile, or for one that came meanwhile, may be there, too.
            whole += at.trips.max() > since + 0.9
            cause = "the next numbers are waited for before this one's are multiplied: multiply between a "
            must(whole <= 1, cause + "copy and the wait for it")
            since = np.inf
        if at.apart and at.array in arrays:
            since = at.trips.max()


def check_small(mine: Any, _model: Any) -> float:
    """The product is right, for two sizes, and soon there for 256."""
    device = cast(CheckDevice, agt.current_device())
    spec = copy(device.spec)
    for n in (128, 256):
        # In halves, or with the 11 bits of TF32, numbers of `a` lose what is added last.
        a = 512 * exact_numbers(n, n, n) + exact_numbers(n + 2, n, n)
        b = exact_numbers(n + 1, n, n)
        with case(f"n={n}"):
            given = [agt.h2d(it).sync() for it in (a, b)]
            out = agt.full((n, n), results.UNWRITTEN).sync()
            building = observe(mine, n, *[it.borrow() for it in (*given, out)])
            lazy(building.trace)
            run = run_now(an_operation("small", building.result))
            equal(agt.d2h(out.borrow()).sync(), a @ b)
    spans, kinds = run.trace.device_spans, {"kernel", "memset"}
    other = next((span.name for span in spans if span.kind not in kinds), "")
    must(not other, f"kernels alone should make the product, and there was `{other}` besides")
    must(device.spec == spec, "the device isn't the one that it was: leave its `spec` as it is")
    took = sum(span.duration for span in spans)
    cause = f"it's right, but what it runs takes {took:.2f} µs: get below {_GOAL_US} µs"
    must(took < _GOAL_US, cause)
    return took


def check_fused(mine: Any, _model: Any) -> None:
    """The softmax of each row of a product, of which nothing is stored and read again."""
    kernel = as_kernel(mine, "fused")
    for count, scale, least in ((3, 1, -9), (2, 8, -99), (2, 9, 1), (4, 0, 0)):
        a = noise(count, count, WARP).clip(least) * np.float32(scale)
        b = noise(count + 1, WARP, 128).clip(max=-least) * np.float32(scale)
        scores = a.astype(np.float64) @ b
        with case(f"scores from {scores.min():.0f} to {scores.max():.0f}"):
            right = _softmax(scores).astype(np.float32)
            report = plain_report_on(kernel, [a, b], right, grid=count, block=WARP)
        loads, stores = report.counts.global_load_requests, report.counts.global_store_requests
        for what, asked, most in ("load", loads, count * 8 * WARP), ("store", stores, count * 4):
            cause = f"the warps {what} {asked} times, and {most} times are enough: "
            must(asked <= most, cause + "do all of the softmax in registers")
    cause = "the block has shared memory for all 128 scores: "
    must(report.counts.shared_bytes < 128 * 4, cause + "leave them in registers, where they are")


def check_rows(mine: Any, _model: Any) -> None:
    """The softmax of each row, however large its numbers, with two reads of each."""
    kernel = as_kernel(mine, "rows")
    for count, n, scale, middle in _ROWS:
        x = noise(n, count, n) * np.float32(scale) + np.float32(middle)
        with case(f"rows of {n} numbers from {x.min():.0f} to {x.max():.0f}"):
            right = _softmax(x).astype(np.float32)
            report = plain_report_on(kernel, [n, x], right, grid=count, block=WARP)
        asked, most = report.counts.global_load_requests, 2 * count * -(-n // WARP)
        cause = f"{count} rows of {n} numbers took {asked} loads of a warp, and {most} are enough: find the "
        must(asked <= most, cause + "largest and the sum in one go")
        again = report.counts.load_bytes / x.nbytes
        cause = f"each number of a row of {n} was read {again:.1f} times: a row may be longer than lanes can "
        cause += "keep, so remember the largest and a sum, and read it again"
        must(n < 1000 or again >= 2, cause)


def check_attend(mine: Any, _model: Any) -> None:
    """Values by their weights, however large the scores, with one read of each key and value."""
    kernel = as_kernel(mine, "attend")
    for n, scale, rising in _ATTENDED:
        q, k, v = (noise(n + i, rows, WARP) for i, rows in enumerate((3, n, n)))
        if scale < 0:  # so that all scores are far below 0
            q, k = abs(q), abs(k)
        scores = (q * np.float32(scale)).astype(np.float64) @ k.T
        if rising:  # each score of query 0 is larger than the last
            k = k[np.argsort(scores[0])]
            scores = (q * np.float32(scale)).astype(np.float64) @ k.T
        with case(f"{n} keys, scores from {scores.min():.1f} to {scores.max():.1f}"):
            given = [n, q * np.float32(scale), k, v]
            right = (_softmax(scores) @ v).astype(np.float32)
            report = plain_report_on(kernel, given, right, grid=3, block=WARP)
        asked, most = report.counts.global_load_requests, 3 * (2 * n + 1)
        cause = f"3 queries and {n} keys took {asked} loads of a warp, and {most} are enough: "
        must(asked <= most, cause + "read each key and each value once, in one loop")
        stored = report.counts.global_store_requests
        cause = f"a warp stores {stored // 3} times, and once is enough: keep `out` until it's done"
        must(stored <= 3, cause)
        run, (_, keys, values, _) = results.accesses_of(kernel, given, (3, WARP), (WARP, 1, 1))
        seen: dict[str, set[int]] = {keys: set(), values: set()}
        for at in run.steps:
            seen.get(at.array, set()).update((at.elements // WARP).tolist())
            ahead = len(seen[keys]) - len(seen[values])
            cause = f"with {n} keys, {ahead} of them are read before the values of any: add a value by its "
            cause += "weight as soon as its score is there, and no score has to be kept"
            must(ahead <= 64, cause)
        room = (run.own_bytes + report.counts.shared_bytes) // 4
        cause = f"there's room for {room} numbers in arrays, and there may be any number of keys: "
        must(n < 100 or room < n, cause + "keep only the largest score, the sum and `out`")


CHAPTER_20B = (
    Exercise("20b-ahead", "One barrier a step", "ahead", check_one_barrier),
    Exercise("20b-challenge", "Challenge: 256 x 256", "small", check_small),
    Exercise("20b-fused", "Softmax behind the product", "fused", check_fused),
    Exercise("20b-rows", "Softmax on the way", "rows", check_rows),
    Exercise("20b-attend", "Attention on the way", "attend", check_attend),
)
