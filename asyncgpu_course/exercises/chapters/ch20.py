"""Exercises of 20_the_ladder: what each one checks."""

from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_course.checks.operations import WARP, exact_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, plain_report_on
from asyncgpu_course.exercises.exercise import Exercise


def multiplied(kernel: agt.Kernel, n: int, **launch: Any) -> Any:
    """The report on a product of two matrices, which is the right one."""
    a, b = exact_numbers(n, n, n), exact_numbers(n + 1, n, n)
    with case(f"n={n}"):
        return plain_report_on(kernel, [n, a, b], a @ b, **launch)


def check_own(mine: Any, _model: Any) -> None:
    """The product is right, and eight reads of shared memory do for sixteen multiply-adds."""
    kernel = as_kernel(mine, "own")
    for n in (128, 64, 192):
        report = multiplied(kernel, n, grid=(n // 64, n // 64), block=256)
        met, turns = report.counts.barriers // report.counts.blocks, n // 16
        cause = f"with n={n}, a block meets {met} times in {turns} steps, and twice a step is enough: when "
        must(met <= 2 * turns + 2, cause + "both tiles are there, and when all are done with them")
    counts, products = report.counts, 192**3 / WARP
    asked = counts.global_load_requests * WARP / (2 * 3 * 192**2)
    cause = f"the blocks fetch each number of a and b {asked:.1f} times on average, and once is enough: "
    must(asked <= 1.1, cause + "load every element of both tiles once, by one thread")
    reads = counts.shared_requests / products
    cause = f"the warps ask shared memory {reads:.2f} times for each multiply-add, and 0.6 is enough: read "
    cause += "four numbers of a column and four of a row, keep them, and do all sixteen products with them"
    must(reads <= 0.65, cause)


def check_turn(mine: Any, _model: Any) -> None:
    """Rows become columns, by whole sectors, and nobody meets in a bank."""
    kernel = as_kernel(mine, "turn")
    for n in (64, 32, 96, 224):
        x, blocks = exact_numbers(n, n, n), (n // 32, n // 32)
        with case(f"n={n}"):
            report = plain_report_on(kernel, [n, x], x.T, grid=blocks, block=(32, 32))
    counts = report.counts
    loads = "load", report.load_sectors_per_request, counts.global_load_requests
    stores = "store", report.store_sectors_per_request, counts.global_store_requests
    for what, sectors, asked in loads, stores:
        cause = f"a {what} of a warp touches {sectors:.0f} sectors, and four are enough: threads that are "
        must(sectors <= 4, cause + f"neighbours should {what} numbers that are neighbours")
        cause = f"the warps {what} {asked} times, and {n * n // WARP} times are enough: have all lanes of a "
        cause += f"warp {what} at once, and turn a tile in shared memory"
        must(asked <= n * n // WARP, cause)
    more = report.conflicts_per_request
    cause = f"each access to shared memory takes {more:.1f} passes more than one: "
    must(not counts.bank_conflicts, cause + "let the numbers of a column lie in different banks")
    share = counts.longest_chain * counts.warps / counts.warp_instructions
    cause = f"one warp does {share:.0f} times as much as warps do on average: let each thread move a number"
    must(share < 8, cause)


def check_four(mine: Any, _model: Any) -> None:
    """All numbers, whatever is left over, and a fourth of the requests."""
    kernel = as_kernel(mine, "four")
    for n in (1024, 1023, 1025, 1026, 4, 3, 1):
        x, by = exact_numbers(n, n), n % 5 - 1.5
        with case(f"n={n}"):
            report = plain_report_on(kernel, [n, by, x], x * by, grid=n // 256 + 1, block=96)
        least = -(-n // (4 * WARP))
        loads, stores = report.counts.global_load_requests, report.counts.global_store_requests
        for what, asked in ("load", loads), ("store", stores):
            cause = f"with n={n} the warps {what} {asked} times, and {least + 3} times are enough: let each "
            must(asked <= least + 3, cause + f"thread {what} four numbers at once, as a float4")


CHAPTER_20 = (
    Exercise("20-own", "Four by four elements a thread", "own", check_own),
    Exercise("20-turn", "Turn it without a conflict", "turn", check_turn),
    Exercise("20-four", "Four at a time", "four", check_four),
)
