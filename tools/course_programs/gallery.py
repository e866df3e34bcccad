"""The programs of chapters 14 and 14b, room by room. The kernels are those of the page, as it is or was."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp

from .programs import Body, on_page, recorded

_NO_LONGER_SHOWN = Path(__file__).with_name("gallery.cu").read_text("utf-8")


def _kernel(name: str, page: str = "14_gallery") -> agt.Kernel:
    return agt.Kernel(on_page(page, f"void {name}("))


# ------------------------------------------------------------------ room 1
@recorded("14_mandelbrot", "six bands of the Mandelbrot set: the branches of one graph")
async def six_bands() -> Body:
    """Five of them take equally long, however much black they have."""
    width, height, bands = 192, 144, 6
    rows, mandelbrot = height // bands, _kernel("mandelbrot")
    outs = [agt.zeros((rows, width), np.int32).sync() for _ in range(bands)]
    grid, block = (width // 8, rows // 4), (8, 4)
    arms = [
        mandelbrot(k * rows, width, height, 600, out.borrow(), grid=grid, block=block)
        for k, out in enumerate(outs)
    ]
    return _launched(agt.overlap(*arms).named("six bands"))


def _launched(op: DeviceOp[Any], times: int = 1) -> Body:
    """An operation as a graph, launched so many times, with one wait."""
    stream = agt.create_stream()
    launch = op.graph_on(stream).launch()

    async def body() -> None:
        for _ in range(times):
            launch.async_on(stream)
        stream.synchronize()

    return body


# ------------------------------------------------------------------ darts, once an encore
def _players() -> list[DeviceOp[Any]]:
    darts = agt.Kernel(_NO_LONGER_SHOWN, "darts")
    boards = [agt.zeros(8, np.uint32).sync() for _ in range(8)]
    return [
        darts(k * 256 * 400, 400, board.borrow(), grid=2, block=128)
        for k, board in enumerate(boards)
    ]


@recorded("14_darts_one_by_one", "eight players throw darts: the host waits for each")
async def players_one_by_one() -> Body:
    """Nobody overlaps."""
    players, stream = _players(), agt.create_stream()

    async def body() -> None:
        for player in players:
            player.sync_on(stream)

    return body


@recorded("14_darts", "the same eight players as the branches of one graph")
async def players_at_once() -> Body:
    """One call starts all."""
    return _launched(agt.overlap(*_players()).named("all players"))


# ------------------------------------------------------------------ words in a text, once room 3
@recorded("14_grep", "three words in one text: the text goes up once, and three searches share it")
async def three_words() -> Body:
    """The page's text is a file that changes; this one has as many letters, and stays."""
    words, find_word = ("the", "kernel", "device"), agt.Kernel(_NO_LONGER_SHOWN, "find_word")
    letters = " ".join(np.random.default_rng(3).choice([*words, "a", "waits", "for"], 8000))
    text = _letters(letters)

    def search(source: DeviceOp[Any], word: str) -> DeviceOp[Any]:
        given = agt.zip(
            source, agt.h2d(_letters(word), word), agt.zeros(8192, np.int32), agt.zeros(1, np.int32)
        )
        found = given.and_then(
            lambda g: find_word(
                text.size, g[0], len(word), *g[1:], grid=-(-text.size // 256), block=256
            )
        )
        return found.and_then(lambda g: agt.zip(agt.d2h(g[2]), agt.d2h(g[3]))).named(word)

    async def body() -> None:
        source = agt.h2d(text, "text").map(lambda array: array.share()).shared()
        agt.overlap(*(search(source, word) for word in words)).sync()

    return body


def _letters(text: str) -> NDArray[np.uint8]:
    return agt.pin(np.frombuffer(text.encode(), np.uint8))


# ------------------------------------------------------------------ ranks of pages, once room 4
def _village(n: int) -> list[DeviceArray]:
    """Links between pages: those to page i come from the sources begin[i] to begin[i + 1]."""
    rng = np.random.default_rng(0)
    source = np.repeat(np.arange(n), 4)
    near = (source + rng.integers(1, 12, source.size)) % n
    famous = (n * rng.random(source.size) ** 3).astype(int)
    target = np.where(rng.random(source.size) < 0.7, near, famous)
    order = np.argsort(target, kind="stable")
    begin = np.searchsorted(target[order], np.arange(n + 1)).astype(np.int32)
    pages = (begin, source[order].astype(np.int32), np.full(n, 0.25, np.float32))
    return [agt.h2d(agt.pin(part)).sync().share() for part in pages]


@recorded("14_ranks_by_host", "the ranks of 256 pages: the host launches each round, and looks")
async def ranks_by_host() -> Body:
    """A conversation for each round."""
    n, stream = 256, agt.create_stream()
    pages, pagerank = _village(n), agt.Kernel(_NO_LONGER_SHOWN, "pagerank")

    async def body() -> None:
        rank, rounds = agt.full(n, 1 / n).sync_on(stream), agt.zeros(1, np.int32).sync_on(stream)
        change = 1.0
        while change > 1e-4:
            one = agt.zeros(1, np.uint32).and_then(
                lambda page: pagerank(
                    1, *pages, rank.borrow(), page, rounds.borrow(), grid=1, block=n
                )
            )
            page = one.and_then(lambda given: agt.d2h(given[4])).sync_on(stream)
            change = page.view(np.float32)[0]
        agt.d2h(rank).sync_on(stream)

    return body


@recorded("14_ranks", "the same ranks by one launch, which ends by itself")
async def ranks_by_gpu() -> Body:
    """And it keeps a diary, which the host reads at the end."""
    n, stream = 256, agt.create_stream()
    pages, pagerank = _village(n), agt.Kernel(_NO_LONGER_SHOWN, "pagerank")

    async def body() -> None:
        given = agt.zip(agt.full(n, 1 / n), agt.zeros(100, np.uint32), agt.zeros(1, np.int32))
        done = given.and_then(lambda g: pagerank(100, *pages, *g, grid=1, block=n))
        done.and_then(lambda g: agt.zip(*map(agt.d2h, g[3:]))).sync_on(stream)

    return body


# ------------------------------------------------------------------ galaxies
STARS = 256


def _two_steps() -> list[DeviceOp[Any]]:
    """From a pair of arrays to another, and back."""
    galaxy_step = _kernel("galaxy_step")
    rng = np.random.default_rng(3)
    start = [agt.pin(rng.uniform(-1, 1, 2 * STARS).astype(np.float32)) for _ in range(2)]
    at, speed = (agt.h2d(part).sync() for part in start)
    there, back = (agt.zeros(2 * STARS).sync() for _ in range(2))
    orders = ((at, speed, there, back), (there, back, at, speed))
    return [
        galaxy_step(STARS, *(array.borrow() for array in order), grid=STARS // 64, block=64)
        for order in orders
    ]


@recorded("14_galaxies_by_calls", "twenty steps of 256 stars, a call for each")
async def galaxies_by_calls() -> Body:
    """The device waits for the host between two steps."""
    two, stream = _two_steps(), agt.create_stream()

    async def body() -> None:
        for k in range(20):
            two[k % 2].async_on(stream)
        stream.synchronize()

    return body


@recorded("14_galaxies", "the same twenty steps by ten launches of a graph of two")
async def galaxies_by_graph() -> Body:
    """Half as many calls, each of which costs less."""
    return _launched(agt.zip(*_two_steps()).named("two steps"), 10)


# ------------------------------------------------------------------ room 5
async def _heads(combine: Any, name: str) -> Body:
    words, attention = 20, _kernel("attention", "14b_more_rooms")
    rng = np.random.default_rng(0)

    def head() -> DeviceOp[Any]:
        q, k, v = (
            agt.h2d(agt.pin(rng.standard_normal(words * 24, np.float32))).sync() for _ in range(3)
        )
        share, out = agt.zeros(words * words).sync(), agt.zeros(words * 24).sync()
        lent = [array.borrow() for array in (q, k, v, share, out)]
        return attention(words, *lent, grid=1, block=32)

    return _launched(combine(*(head() for _ in range(4))).named(name))


recorded("14_attention_in_turn", "four heads of attention in a graph, one after the other")(
    partial(_heads, agt.zip, "in turn")
)


recorded("14_attention", "the same four heads as the branches of a graph")(
    partial(_heads, agt.overlap, "at once")
)
