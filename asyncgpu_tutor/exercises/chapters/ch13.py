"""Exercises of 13_hostcalls: what each one checks."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.device_code import Fence, fenced, in_own_lines
from asyncgpu_tutor.exercises.checks.interleavings import interleavings
from asyncgpu_tutor.exercises.checks.results import Array, as_kernel, brief, equal
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import SimDevice
from asyncgpu_tutor.exercises.sandbox import call

# ------------------------------------------------------------------ the host's side of a mailbox
LETTERS = """__global__ void letters(volatile unsigned* mail, int n, unsigned* answers) {
    for (int k = 0; k < n; ++k) {
        mail[1] = 10 + k * k;
        __threadfence_system();
        mail[0] = 1;
        int turns = 0;
        while (mail[0] != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        answers[k] = mail[2];
    }
}"""
ANSWERED = 2  # the flag, when the kernel may read
LOOKS = 5000  # at the mail, of one answer


class _Mail(np.ndarray[Any, np.dtype[np.uint32]]):
    """A mailbox that notices who looks into it again and again, or raises the flag too early."""

    looks = 0
    since = -1.0
    answered = False  # whether something was put into `mail[2]` since the flag was raised last

    def __getitem__(self, index: Any) -> Any:
        now = agt.current_device().now()
        if now != self.since:
            _Mail.since, _Mail.looks = now, _Mail.looks // 2
        _Mail.looks += 1
        if _Mail.looks > LOOKS:
            raise Rejected(
                "your function looks at the flag again and again, and nothing else has a turn meanwhile: "
                "`await agt.sleep(1)` in the loop"
            )
        return np.asarray(self)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        written = np.zeros(3, np.bool_)
        written[index] = True
        flag, letter, answer = np.asarray(self).tolist()
        if written[0] and flag == ANSWERED:
            # An answer that got there on a way that is not seen here, by a slice, can be told by its value.
            early = not _Mail.answered and (bool(written[2]) or answer != 2 * letter)
            _Mail.answered = False
            if early:
                raise Rejected(
                    "your function sets `mail[0]` to 2 before the answer is in `mail[2]`. From then on the "
                    "kernel may read it, and find an old number there: first the answer, then the flag"
                )
        elif written[2]:
            _Mail.answered = True


def _impatient() -> SimDevice:
    device = cast(SimDevice, agt.current_device())
    device.machine.patience_s = 0.05  # since nobody else is at work here
    return device


def check_answer(mine: Any, _model: Any) -> None:
    """Each letter is answered, in its turn, and the kernel ends."""
    _impatient()
    for rounds in (3, 1, 20):
        plain, answers = agt.pin(np.zeros(3, np.uint32)), agt.pin(np.zeros(rounds, np.uint32))
        _Mail.looks, _Mail.answered = 0, False

        async def main(
            plain: Array = plain, answers: Array = answers, rounds: int = rounds
        ) -> None:
            letters = agt.Kernel(LETTERS)
            op = letters(agt.mapped(plain), rounds, agt.mapped(answers), grid=1, block=1)
            await asyncio.gather(mine(plain.view(_Mail), rounds), op)

        with case(f"{rounds} letters"):
            call(cast(Any, main))
            for k, got in enumerate(answers.tolist()):
                right = 2 * (10 + k * k)
                if got != right:
                    raise Rejected(
                        f"letter {k} asked for the double of {10 + k * k}, and the kernel read {got}: "
                        "each letter wants an answer of its own, the double of what is in `mail[1]` then"
                    )


# ------------------------------------------------------------------ the kernel's side
ASK_FENCES = (
    Fence(
        "the question and the flag",
        "on a GPU the host may see the flag first, and read an old letter",
        before=r"\bmail\s*\[\s*1\s*\]\s*=(?!=)",
        after=r"\bmail\s*\[\s*0\s*\]\s*=(?!=)",
    ),
    Fence(
        "the last look at the flag and the answer",
        "a GPU may read an old answer",
        before=r"\bmail\s*\[\s*0\s*\](?!\s*=(?!=))",
        after=r"\bmail\s*\[\s*2\s*\]",
    ),
)


def check_ask(mine: Any, _model: Any) -> None:
    """Questions are published before the flag; the wait has an end, with a host and without."""
    kernel = as_kernel(mine, "ASK")
    fenced(kernel.source, "__threadfence_system", ASK_FENCES)
    if "__nanosleep" not in kernel.source:
        raise Rejected(
            "the wait does not sleep between two looks. Put `__nanosleep(100)` into it: it leaves the bus to "
            "others, and by it the simulated device knows that the loop waits, and lets Python have a turn"
        )
    _impatient()
    for n in (3, 1):
        mail, out = agt.pin(np.zeros(3, np.uint32)), agt.pin(np.zeros(n, np.uint32))
        asked: list[int] = []

        async def host(mail: Array = mail, asked: list[int] = asked, n: int = n) -> None:
            for _ in range(20_000):
                if mail[0] == 1:
                    asked.append(int(mail[1]))
                    mail[2] = mail[1] + 5
                    mail[0] = 2
                if len(asked) == n:
                    return
                await agt.sleep(1)

        async def main(mail: Array = mail, out: Array = out, n: int = n) -> None:
            answering = asyncio.ensure_future(host())
            try:
                await kernel(agt.mapped(mail), n, agt.mapped(out), grid=1, block=1)
            finally:
                answering.cancel()

        with case(f"{n} questions"):
            call(cast(Any, main))
            wanted = [100 + k for k in range(n)]
            if asked != wanted:
                raise Rejected(f"the host was asked for {asked}, and {wanted} is right")
            equal(out, np.array(wanted, np.uint32) + 5)
    mail, out = agt.pin(np.zeros(3, np.uint32)), agt.pin(np.zeros(2, np.uint32))
    with case("a host that never answers"):
        call(kernel(agt.mapped(mail), 2, agt.mapped(out), grid=1, block=1).sync)
        equal(out, np.zeros(2, np.uint32))


# ------------------------------------------------------------------ the free stack
PACKETS = 3


def _taking(stack: Any, number: int, *, back: bool) -> Callable[[], Generator[Any, Any, Any]]:
    """A thread that takes so many packets, and gives the first of them back."""

    def thread() -> Generator[Any, Any, Any]:
        held: list[Any] = []
        for _ in range(number):
            packet = cast(Any, (yield from stack.pop()))
            held += [] if packet is None else [packet]
        if back and held:
            yield from stack.push(held.pop(0))
        return held

    return thread


def _left(stack: Any, memory: dict[Any, Any]) -> list[Any]:
    """What is still on the stack, taken off by one thread alone."""

    def drain() -> Generator[Any, Any, Any]:
        found: list[Any] = []
        while len(found) <= PACKETS:
            packet = cast(Any, (yield from stack.pop()))
            if packet is None:
                break
            found.append(packet)
        return found

    (outcome,) = interleavings([drain], memory)
    return outcome.results[0]


def check_stack(mine: Any, _model: Any) -> None:
    """In every order, each packet has one owner, or is on the stack."""
    links = {("next", p): p + 1 if p + 1 < PACKETS else None for p in range(PACKETS)}
    memory = {"top": getattr(mine, "start", None), **links}
    one, several = _taking(mine, 1, back=False), _taking(mine, 2, back=True)
    for threads, words in (
        ([one, one], "two threads that take a packet each"),
        (
            [one, several],
            "one thread that takes a packet, and one that takes two and gives one back",
        ),
    ):

        def run(threads: Any = threads) -> tuple[int, tuple[int, ...] | None]:
            bad, first, number = 0, None, 0
            for number, outcome in enumerate(interleavings(threads, memory), 1):  # noqa: B007
                found = [p for held in outcome.results for p in held]
                found += _left(mine, outcome.memory)
                if sorted(map(str, found)) != sorted(map(str, range(PACKETS))):
                    bad, first = bad + 1, first or outcome.order
            return number, first if bad else None

        with case(words):
            number, order = call(run)
            if order is not None:
                raise Rejected(
                    f"a packet got two owners, or was lost, in one of {number} orders: the threads took "
                    f"their steps as {''.join('AB'[i] for i in order)}"
                )


# ------------------------------------------------------------------ a kernel that calls
@in_own_lines
def check_bill(mine: Any, _model: Any) -> None:
    """Each block asks for its own price, once; nothing is written where no answer came."""
    kernel = as_kernel(mine, "BILL")
    _impatient()
    rng = np.random.default_rng(4)
    for blocks in (9, 40):
        items, amounts = rng.integers(0, 50, (2, blocks)).astype(np.int32)
        asked: list[int] = []

        async def main(
            stop_at: int, items: Array = items, amounts: Array = amounts, asked: list[int] = asked
        ) -> Array:
            def price(it: Any) -> int:
                asked.append(it.a)
                if len(asked) == stop_at:
                    raise LookupError("sold out")
                return 100 + it.a

            device_items, device_amounts = await agt.zip(
                agt.h2d(agt.pin(items)), agt.h2d(agt.pin(amounts))
            )
            costs = agt.pin(np.full(len(items), 7, np.uint64))
            async with agt.hostcalls({16: price}, packets=8) as host:
                sizes = (len(items), device_items, device_amounts, agt.mapped(costs))
                with suppress(LookupError):
                    await host.run(kernel(*host.arrays, *sizes, grid=len(items), block=1))
            return costs

        with case(f"{blocks} blocks"):
            costs = call(cast(Any, main), 0)
            if sorted(asked) != sorted(items.tolist()):
                raise Rejected(
                    f"the host was asked {len(asked)} times, for {sorted(set(asked))[:6]}...: each block "
                    "asks once, for the price of its own item"
                )
            equal(costs, ((100 + items) * amounts).astype(np.uint64))
        with case("a host that stops"):
            asked.clear()
            costs = call(cast(Any, main), 2)
            right = ((100 + items) * amounts).astype(np.uint64)
            if not bool(((costs == 7) | (costs == right)).all()):
                raise Rejected(
                    "a block wrote down a cost although it got no answer: look at what `hostcall` returns"
                )


# ------------------------------------------------------------------ many answers at once
class _Prices(np.ndarray[Any, np.dtype[np.uint64]]):
    """A price list that counts how often somebody looks something up."""

    lookups = 0

    def __getitem__(self, index: Any) -> Any:
        _Prices.lookups += 1
        return np.asarray(self)[index]


def check_batch(mine: Any, _model: Any) -> None:
    """Right for any number of calls, and a look-up for all of them."""
    rng = np.random.default_rng(7)
    prices = rng.integers(1, 500, 64).astype(np.uint64)
    for number in (1, 132):
        a, b = rng.integers(0, 64, (2, number)).astype(np.uint64)
        _Prices.lookups = 0
        with case(f"{number} calls"):
            handler = call(mine, prices.view(_Prices))
            got = call(handler, a, b, np.zeros(number, np.uint64))
            equal(np.asarray(got), prices[a] * b)
            if _Prices.lookups > 1:
                raise Rejected(
                    f"it looks up {_Prices.lookups} prices one after the other: an array of items "
                    "gives all prices at once, as in `prices[items]`"
                )


# ------------------------------------------------------------------ the challenge
BLOCKS, THREADS, PIECE = 4, 32, 64
GOAL_US = 210.0  # half of what one thread takes that does all of it


@in_own_lines
def check_pipeline(mine: Any, _model: Any) -> float:
    """One launch turns a file into another; the score is how long that takes."""
    kernel = as_kernel(mine, "PIPELINE")
    device = _impatient()
    took = 0.0
    for size in (500, 1536):
        rng = np.random.default_rng(size)
        text = bytes(rng.choice(list(b"abc defghijk\n"), size).tolist())
        with tempfile.TemporaryDirectory() as folder:
            names = [Path(folder) / "log.txt", Path(folder) / "LOUD.TXT"]
            names[0].write_bytes(text)
            pieces = -(-size // PIECE)

            async def main(names: list[Path] = names, pieces: int = pieces) -> float:
                async with agt.hostcalls(files=names, nbytes=PIECE, packets=16) as host:
                    start = device.now()
                    await host.run(kernel(*host.arrays, pieces, PIECE, grid=BLOCKS, block=THREADS))
                    return device.now() - start

            with case(f"a file of {size} bytes"):
                took = call(cast(Any, main))
                got = names[1].read_bytes() if names[1].exists() else b""
                _same_text(got, text.upper())
    if took >= GOAL_US:
        raise Rejected(f"the file is right, and takes {took:.0f} µs: get below {GOAL_US:.0f}")
    return took


def _same_text(got: bytes, right: bytes) -> None:
    if got == right:
        return
    if len(got) != len(right):
        raise Rejected(f"the new file has {len(got)} bytes, and {len(right)} is right")
    at = next(i for i, (a, b) in enumerate(zip(got, right, strict=True)) if a != b)
    raise Rejected(
        f"byte {at} of the new file is {brief(chr(got[at]))}, and {chr(right[at])!r} is right"
    )


EXERCISES = (
    Exercise("13-answer", "The host's side", "answer", check_answer),
    Exercise("13-ask", "The kernel's side", "ASK", check_ask),
    Exercise("13-stack", "A stack for many", "FreeStack", check_stack),
    Exercise("13-bill", "A kernel that calls", "BILL", check_bill),
    Exercise("13-batch", "Many answers at once", "price_all", check_batch),
    Exercise("13-pipeline", "One launch for a file", "PIPELINE", check_pipeline),
)
