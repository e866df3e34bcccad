"""Exercises of 13_hostcalls: what each one checks."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import code_steps
from asyncgpu_course.checks import interleavings as orders
from asyncgpu_course.checks.device_code import own_lines
from asyncgpu_course.checks.operations import beside_host, cuda, wide
from asyncgpu_course.checks.rejection import Rejected, about, case, must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, brief, equal, left_in
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.checks.trials import cases, in_late_memory
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import SimDevice, count

# ------------------------------------------------------------------ the host's side of a mailbox
ANSWERED = 2  # the flag, when the kernel may read
_LOOKS = 2000  # at the mail, of one answer
LOOKED = 150
MORE = 2  # questions than are due that the host would answer
PRICE = np.uint64(3_000_000_019)  # so a cost needs more bits than an `int` has, or a `float`


class _Mail(np.ndarray[Any, np.dtype[np.uint32]]):
    """A mailbox that notices who looks into it again and again, or raises the flag too early."""

    looks = since_answer = 0
    since = -1.0
    answered = False  # whether something was put into `mail[2]` since the flag was raised last
    old: Any = 77  # what `mail[1]` is until somebody finds a 1 in `mail[0]`; then None

    def __getitem__(self, index: Any) -> Any:
        now = agt.current_device().now()
        if _Mail.looks == 0:  # whoever else has a turn has it with this one
            asyncio.get_running_loop().call_soon(setattr, _Mail, "looks", 0)
        _Mail.looks += 1
        cause = "nothing else has a turn while you look again and again: `await agt.sleep(1)` in the loop"
        must(_Mail.looks <= _LOOKS, cause)
        _Mail.since_answer, _Mail.since = _Mail.since_answer + (now != _Mail.since), now
        flag = np.asarray(self)[0]
        cause = f"`mail[0]` was {flag} at the last {2 * _LOOKS} looks: "
        must(_Mail.since_answer <= 2 * _LOOKS, cause + "the kernel goes on when it is 2")
        _Mail.old = None if flag == 1 and index != 1 else _Mail.old
        return np.asarray(self)[index] if index != 1 or _Mail.old is None else _Mail.old

    def __setitem__(self, index: Any, value: Any) -> None:
        asked = np.asarray(self)[1].item()
        super().__setitem__(index, value)
        written = np.zeros(self.size, np.bool_)
        written[index] = True
        flag, letter, answer = np.asarray(self).tolist()
        cause = "your function writes to `mail[1]`, where the kernel's letter is: "
        must(letter == asked, cause + "the answer goes to `mail[2]`")
        if written[0] and flag == ANSWERED:
            # An answer that got there on a way that is not seen here, by a slice, can be told by its value.
            early = not _Mail.answered and (bool(written[2]) or answer != 2 * letter)
            _Mail.answered, _Mail.old, _Mail.since_answer = False, letter, 0
            cause = "your function sets `mail[0]` to 2 before the answer is in `mail[2]`, so the kernel may "
            must(not early, cause + "read an old number there: first the answer, then the flag")
        elif written[2]:
            _Mail.answered = True


def _impatient() -> SimDevice:
    device = cast(SimDevice, agt.current_device())
    device.machine.patience_s = 0.05  # since nobody else is at work here
    return device


def _zeros(size: int) -> CheckedArray:
    return agt.pin(np.zeros(size, np.uint32))


def _answer(mine: Any, _model: Any, rounds: int, first: int) -> None:
    """Each letter is answered, in its turn, and the kernel ends."""
    _impatient()
    plain, answers = _zeros(3), _zeros(rounds)
    _Mail.looks, _Mail.since_answer, _Mail.answered, _Mail.old = 0, 0, False, 77
    waits, gate = list[bool](), _zeros(1)

    async def opened() -> None:
        for k in range(rounds):  # some letters come soon, and others do not
            await agt.sleep(1 + (250 if rounds > 1 else 1500) * (k % 3 != 1))
            gate[0] = k + 1

    async def main() -> None:
        letters = agt.Kernel(cuda("13_letters"))
        # First: what is no coroutine is refused before there is an operation that nobody would run.
        answering = asyncio.ensure_future(mine(plain.view(_Mail), rounds))
        arrays = map(agt.mapped, (plain, answers, gate))
        op = letters(rounds, first, *arrays, grid=1, block=1)
        running, opening = agt.spawn(op), asyncio.ensure_future(opened())
        await asyncio.wait([answering, running], return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            answering.result()  # which may be an error
        await running
        await agt.sleep(10)  # for a last look
        waits.append(not answering.done())
        answering.cancel()
        opening.cancel()

    call(main)
    for k, got in enumerate(answers.tolist()):
        letter = (k != 4) * (first + k * (k - 1))
        cause = f"letter {k + 1} of {rounds} asked for the double of {letter}, and the kernel read {got}: "
        cause += "each letter gets the double of what is in `mail[1]` once `mail[0]` is 1"
        must(got == 2 * letter, cause)
    cause = "the kernel has ended, and your function still waits: it should end after "
    must(not waits[0], cause + count(rounds, "letter"))


# ------------------------------------------------------------------ the kernel's side
def check_ask(mine: Any, model: Any) -> None:
    """Each question is asked; the wait has an end, with a host and without."""
    kernel = as_kernel(mine, "ASK")
    steps = code_steps.steps(kernel.source, kernel.name)
    by_atomic = "atomicA", "atomicC", "load"
    looks = [s for s in steps if (s.kind, s.value) == ("read", 0) or s.name.startswith(by_atomic)]
    deepest = max((step.depth for step in looks), default=0)
    slept = [s for s in steps if s.name == "__nanosleep" and s.depth >= deepest and s.value != 0]
    cause = "the wait does not sleep between two looks. Put `__nanosleep(100)` into it: it leaves the bus to "
    cause += "others, and by it the simulated device knows that the loop waits, and lets Python have a turn"
    must(bool(slept), cause)
    device = _impatient()
    cases(_asked, [(3, LOOKED), (1, 10 * LOOKED)], "{:question}")(kernel, model)
    with case("a host that never answers"):
        cause = "the kernel has not come back after 1.1 million turns: after a million it should `return`, "
        cause += "which neither a wait without a count does nor `__trap()`, nor going on with the "
        must(all(_gives_up(kernel, 1_100_000, n) for n in (1, 2)), cause + "next question")
        cause = "the kernel gives up too early: a host may take its time, up to a million turns"
        # Not a million, since turns of nested loops are told to a percent.
        must(not _gives_up(kernel, 990_000), cause)
    device.leap = 600_000  # turns until each answer
    cause = "the count of turns goes on from question to question, and should begin anew at each"
    must(_answered(kernel, 2, 0, device.machine.engine.give_up)[2][1] == wide(101), cause)


def _gives_up(kernel: agt.Kernel, turns: int, n: int = 2) -> bool:
    """True if it returns after so many turns without an answer, and has written nothing."""
    cast(SimDevice, agt.current_device()).leap = turns
    mail, out = _zeros(3), _zeros(2)
    mail[2] = 77  # from an earlier question
    try:
        call(kernel(agt.mapped(mail), n, agt.mapped(out), grid=1, block=1).sync)
    except Rejected as rejected:
        if not isinstance(rejected.__cause__, agt.errors.KernelFault):
            raise
        return False
    equal(out, np.zeros(2, np.uint32))
    return True


def _answered(
    kernel: agt.Kernel, n: int, looks: int, at_each: Callable[[], object] = lambda: None
) -> tuple[int, list[int], CheckedArray]:
    """The number of answers that were given, the questions, and what the kernel wrote down."""
    mail, out, asked, answers = _zeros(3), _zeros(n + MORE), list[int](), 0

    async def host() -> None:
        nonlocal answers
        for _ in range(20_000):
            if mail[0] == 1:
                asked.append(int(mail[1]))
                at_each()
                for look in range(looks):  # each change has the kernel look once more
                    mail[2] = look
                    await agt.sleep(1)
                mail[2] = wide(int(mail[1]))
                mail[0] = 2
                answers += 1
            if answers == n + MORE:
                return
            await agt.sleep(1)

    async def main() -> None:
        answering = asyncio.ensure_future(host())
        try:
            await kernel(agt.mapped(mail, "mail"), n, agt.mapped(out, "out"), grid=1, block=1)
        finally:
            answering.cancel()

    call(main)
    return answers, asked, out[:n]


def _asked(kernel: agt.Kernel, _model: Any, n: int, looks: int) -> None:
    answers, asked, out = _answered(kernel, n, looks)
    cause = f"the kernel ended after {answers} of them: it should go on when the flag is 2, and wait for "
    must(len(asked) == answers, cause + "that up to a million turns, since the host takes its time")
    wanted = [100 + k for k in range(n)]
    must(asked == wanted, f"the host was asked for {asked}, and {wanted} is right")
    equal(out, np.array([wide(k) for k in wanted], np.uint32))


def _late_ask(mine: Any, _model: Any, n: int) -> None:
    """Questions are published before the flag, and answers read behind it, each time."""
    kernel, zeros = as_kernel(mine, "ASK"), np.zeros(n, np.uint32)
    after = cuda("13_ask").replace("NAME", kernel.name)
    trial = call(agt.Kernel, cuda("13_ask_before") + kernel.source + after, "trial")
    args = np.zeros(3, np.uint32), n, zeros, zeros
    for _ in range(4):  # since it is chance who is late
        out, asked = left_in((1, 2), trial, args, grid=2, block=1)
        for k, (letter, answer) in enumerate(zip(asked.tolist(), out.tolist(), strict=True)):
            fence = f"for question {k} there is no `__threadfence_system()` between "
            cause = fence + "the question and the flag, so the host read an old letter: "
            must(letter == 100 + k, cause + "first the question, then the fence, then the flag")
            cause = fence + "the last look at the flag and the answer, or no `volatile` there: "
            must(answer == 300 - k, cause + "it is old")


# ------------------------------------------------------------------ the free stack
PACKETS = 3
_LINKS = {("next", p): p + 1 if p + 1 < PACKETS else None for p in range(PACKETS)}
_MANY = 2**31
INTERRUPTIONS = 4  # of a thread that could go on; a single one can give a packet two owners


def _taking(stack: Any, number: int, back: tuple[int, ...] = ()) -> orders.Thread:
    """A thread that takes so many packets, and gives these of them back, in this order."""

    def thread() -> Generator[Any, Any, Any]:
        held: list[Any] = []
        for _ in range(number):
            held += [cast(Any, (yield from stack.pop()))]
        for i in back:
            if held[i] is not None:
                yield from stack.push(held[i])
        return [packet for i, packet in enumerate(held) if i not in back]

    return thread


# How many packets the second thread takes, and which of them it gives back; at the end, which one the first
# does. From the third row on the stack has been used before, and the top is what it was when as many are back
# as were taken, in another order.
STACKS = [
    (1, (), "two threads that take a packet each"),
    (2, (0,), "one thread that takes a packet, and one that takes two and gives one back"),
    (3, (0,), "one thread that takes a packet, and one that takes three and gives one back"),
    (3, (1, 2, 0), "one thread that takes a packet, and one that takes three and gives all back"),
    (2, (0,), "two threads that empty the stack, and give a packet each back", (0,)),
]


def check_stack(mine: Any, model: Any) -> None:
    """No packet is lost or has two owners, and the tag counts the swaps."""
    cases(_stack, STACKS, "{2}")(mine, model)
    begun = {"top": (0, _MANY), **_LINKS}  # as if there had been so many swaps
    for back in ((), (2,), (2, 1, 0)):
        # One more than there are: a look at an empty pile is no swap.
        alone = call(next, orders.interleavings([_taking(mine, PACKETS + 1, back)], begun))
        tag, pushes = alone.memory["top"][1], len(back)
        cause = "no packet is lost: for that, `pop` alone, or `push` alone, may raise the tag. But each swap "
        cause += f"should: from {_MANY}, where this test begins, 3 in `pop` and {pushes} in `push` should "
        cause += f"take it to {_MANY + 3 + pushes}, and it is {tag} (an empty pile keeps its tag)"
        must(tag == _MANY + 3 + pushes, cause)


def _stack(mine: Any, _model: Any, number: int, back: Any, _: str, first: Any = ()) -> None:
    """In every order of few interruptions, each packet has one owner, or is on the stack."""
    memory = {"top": getattr(mine, "start", None), **_LINKS}
    threads = [_taking(mine, 1, first), _taking(mine, number, back)]

    def packets(outcome: orders.FinalState) -> tuple[str, list[str]]:
        """The order, and packets of the threads and of one that takes those which are left."""
        (rest,) = orders.interleavings([_taking(mine, PACKETS + 1)], outcome.memory)
        held = [p for owner in outcome.results for p in owner if p is not None or number < PACKETS]
        owned = [*held, *(p for p in rest.results[0] if p is not None)]
        return "".join("AB"[i] for i in outcome.order), sorted(map(str, owned))

    def all_orders() -> list[tuple[str, list[str]]]:
        (used,) = orders.interleavings([_taking(mine, 1, (0,))], memory)
        cause = 'a pair was stored in ("next", packet): '
        cause += "it is the number of the packet below, or None"
        must(not any(isinstance(used.memory[link], tuple) for link in _LINKS), cause)
        begun = used.memory if back else memory
        return [packets(o) for o in orders.interleavings(threads, begun, INTERRUPTIONS)]

    found = call(all_orders)
    wrong = [(order, owned) for order, owned in found if owned != [str(p) for p in range(PACKETS)]]
    if wrong:
        order, owned = wrong[0]
        what = "a packet got two owners, or was lost"
        if "None" in owned:
            what = "`pop` gave up although a packet was there: look again instead"
        some = f"in {len(wrong)} of {len(found)} orders, such as {order} of the steps of A and B, "
        raise Rejected(some + what)


# ------------------------------------------------------------------ a kernel that calls
def check_bill(mine: Any, model: Any) -> None:
    """Each block asks for its own price, once; nothing is written where no answer came."""
    kept = "give each packet back by `hostcall_end`. The device says: {}"
    with own_lines(mine):
        kernel = as_kernel(mine, "BILL")
        with about("gave up waiting", kept):
            cases(_billed, [(9, 0), (40, 0)], "{} blocks")(kernel, model)
        cases(_billed, [(40, 2)], "a host that stops")(kernel, model)
        cases(_billed, [(40, 0, True)], "a host that refuses some")(kernel, model)
    text, spy, spied, services = _spying(mine, "16")
    services[16] = lambda _: 3  # pyright: ignore
    ones, costs = (agt.mapped(agt.pin(np.ones(9, dtype))) for dtype in (np.int32, np.uint64))
    # One of the nine blocks gets no packet, and another one gets no answer.
    how: Any = {"handlers": services, "packets": 16, "grid": 9, "all_back": False}
    with own_lines(text, spy), case(UNLUCKY), beside_host(spied, 9, ones, ones, costs, **how):
        pass


def _billed(kernel: agt.Kernel, _: Any, blocks: int, stop_at: int, refuses: bool = False) -> None:
    few, many = np.random.default_rng(4).integers(0, (3, 50), (blocks, 2)).astype(np.int32).T
    many *= 40_000_003  # so they need more bits than a `float` has, and costs more than a `double`
    items, amounts = (few, many) if blocks == 9 else (many, few)
    items[-1] = 0  # which costs nothing
    right = PRICE * items.astype(np.uint64) * amounts.astype(np.uint64)
    costs, asked, together = agt.pin(np.full(blocks, 7, np.uint64)), list[int](), list[int]()
    refused, packets = (items % 3 == 1) & refuses, 64 if refuses else 8

    def prices(items: Any, *_: Any) -> Any:
        asked.extend(items.tolist())
        together.append(len(items))
        if stop_at and len(asked) >= stop_at:
            raise LookupError("sold out")
        return PRICE * items

    def price(asking: Any) -> Any:
        (cost,) = prices(np.full(1, asking.a, np.uint64))
        if asking.a % 3 == 1:
            raise agt.errors.CallRefusedError(13)
        return cost

    args = blocks, *(agt.h2d(agt.pin(x)).sync() for x in (items, amounts)), agt.mapped(costs)
    how: Any = {"handlers": {16: price}} if refuses else {"batch_handlers": {16: prices}}
    with beside_host(kernel, *args, packets=packets, grid=blocks, forgiven=(LookupError,), **how):
        if stop_at or refuses:
            cause = "a block changed its cost although it got no answer: look at what `hostcall` returns, "
            cause += "and write nothing where that is false, not even a 0"
            must(bool(((costs == 7) | ~refused & (costs == right)).all()), cause)
        if stop_at:
            return
        cause = f"the host was asked {len(asked)} times, for {sorted(set(asked))[:6]}...: each block asks "
        must(sorted(asked) == sorted(items.tolist()), cause + "once, for the price of its own item")
        equal(costs, np.where(refused, np.uint64(7), right))
        cause = "the host was never asked by two blocks at a time: let each block ask for its "
        must(refuses or max(together) > 1, cause + "own item, and no block for others")


def _batch(mine: Any, _model: Any, number: int) -> None:
    """Right for any number of calls and each list of prices, and Python does not go from one to the next."""
    rng = np.random.default_rng(7)
    lists = PRICE * rng.integers(1, 40_000_000, (2, 64)).astype(np.uint64)
    handlers, steps = [call(mine, prices) for prices in lists], 0

    def trace(*_: object) -> Any:
        nonlocal steps
        steps += 1
        return trace

    for turn, which in ("first", 0), ("other handler's", 1), ("second", 0):
        a, b = rng.integers(0, 64, (2, number)).astype(np.uint64)
        before, steps = sys.gettrace(), 0
        sys.settrace(trace)
        try:
            got = call(handlers[which], a.copy(), b.copy(), np.zeros(number, np.uint64))
        finally:
            sys.settrace(before)
        with case(f"the {turn} batch"):
            equal(got, lists[which][a] * b)
        cause = f"Python takes {steps} steps, one call after the other: `prices[items]` gives all at once"
        must(steps < max(number, 500), cause)


# ------------------------------------------------------------------ the challenge
BLOCKS, THREADS, PIECE = 4, 32, 64
_FILES = [(500, 64), (700, 304), (807, 8), (6144, 256)]  # their bytes, and those of a piece
_GOAL_US = 130.0  # which takes four rounds, and not more threads than there are packets for


def check_pipeline(mine: Any, model: Any) -> float:
    """One launch turns a file into another; the score is how long that takes."""
    files = cases(_piped, _FILES, "a file of {} bytes, in pieces of {}")
    late, held = about("in shared memory, which ", _ROUNDS), about("gave up waiting", HELD)
    with own_lines(mine), late, held:
        took, rounds = cast(Any, files(as_kernel(mine, "PIPELINE"), model))
    _far_apart(mine)
    for service in ("HOSTCALL_READ", "HOSTCALL_WRITE", ALL_ANSWERED):
        _spied(mine, service)
    cause = f"the file is right, and takes {took:.0f} µs: get below {_GOAL_US:.0f}. "
    must(took < _GOAL_US, cause + f"Its calls were answered in {count(rounds, 'round')}")
    return took


_LATE = "a packet is used after `hostcall_end`, and may be somebody else's then: give it back last"
ALONE = "there was no answer, and a packet is used: look at what `hostcall_wait` returns, each time"
_TURNS = "the file was right by luck: is there a barrier between those who change bytes and the one who asks?"
_ROUNDS = "{}. In a loop that may be from the round before: does a `__syncthreads()` follow its last read?"
HELD = (
    "{}. Does a thread keep its packet while it waits at a barrier, or in its warp, for others that want "
    "one? There are 16, so then all of them wait forever (hold and wait)"
)
ALL_ANSWERED, UNLUCKY = "99", "no packet for one call, and no answer to another"
NONE = "`hostcall_begin` gives -1 where the host has stopped, and that is no packet: return then"


def _spying(mine: object, service: str) -> tuple[str, str, agt.Kernel, dict[int, Any]]:
    """The text, what comes before it to notice how it uses packets, both together, and whom they tell."""
    text = mine.source if isinstance(mine, agt.Kernel) else str(mine)
    spy = cuda("13_spy").replace("SERVICE", service)

    def told(cause: str) -> Any:
        return lambda _: must(False, cause)  # pyright: ignore

    services = {100: told(_LATE), 102: told(ALONE), 103: told(NONE)}
    return text, spy, as_kernel(spy + text, "the kernel"), services


def _far_apart(mine: object) -> None:
    """Pieces begin where more than 16 bits say so. Of each, a host of the check's own has few bytes."""
    text, wrote = mine.source if isinstance(mine, agt.Kernel) else str(mine), dict[int, bytes]()

    def read(asking: Any) -> int:
        asking.data[:9] = list(f"at {asking.b:6}".encode())
        return 9

    def write(asking: Any) -> int:
        wrote[asking.b] = bytes(asking.data[: asking.c])
        return asking.c

    how: Any = {"handlers": {16: read, 17: write}, "grid": BLOCKS, "block": THREADS, "packets": 16}
    with own_lines(text, before := cuda("13_own_files")), case("pieces of 4096 bytes"):
        kernel = as_kernel(before + text, "PIPELINE")
        with beside_host(kernel, 18, 4096, nbytes=4096, **how):
            if not wrote:  # it calls the services by their numbers
                return
            for at in range(0, 18 * 4096, 4096):
                right, found = f"AT {at:6}".encode(), wrote.get(at, "nothing")
                due = f"{right!r} should be written at byte {at} of the file, and {found} was"
                must(found == right, due)


def _spied(mine: object, service: str) -> None:
    """Packets are used while they are one's own, also where one call for this service has no answer."""
    text, spy, spied, services = _spying(mine, service)
    told_by_file = service == ALL_ANSWERED
    forgiven = (agt.errors.AsyncGpuError,) if told_by_file else ()
    how: Any = {"handlers": services, "forgiven": forgiven, "all_back": False}
    words = "an answer to each call" if told_by_file else UNLUCKY
    with own_lines(text, spy), case(words), _filed(spied, b"a" * 500, PIECE, **how) as (_, got):
        must(not told_by_file or b"?" not in got, _LATE)
        must(not told_by_file or got == b"A" * 500, _TURNS)


@contextmanager
def _filed(kernel: agt.Kernel, text: bytes, piece: int, **how: Any) -> Generator[Any]:
    """Yield how long a kernel takes over a file, and the bytes of the new one."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "log.txt", Path(folder) / "LOUD.TXT"
        old.write_bytes(text)
        args, files = (-(-len(text) // piece), piece), [old, new]
        how |= {"grid": BLOCKS, "block": THREADS, "packets": 16, "nbytes": piece}
        with beside_host(kernel, *args, files=files, **how) as took:
            yield took, new.read_bytes() if new.exists() else b""


def _piped(kernel: agt.Kernel, _model: Any, size: int, piece: int) -> Any:
    """How long it takes, and how many rounds of answers that are."""
    text = bytes(np.random.default_rng(size).permutation(np.arange(size) % 256).tolist())
    with agt.record() as trace, _filed(kernel, text, piece) as (took, got):
        must(len(got) == size, f"the new file has {len(got)} bytes, and {size} is right")
        for at, (a, b) in enumerate(zip(got, text.upper(), strict=True)):
            must(a == b, f"byte {at} of the new file is {brief(chr(a))}, and {chr(b)!r} is right")
    return took, sum(span.kind == "work" for span in trace)


CHAPTER_13 = (
    Exercise("13-answer", "The host's side", "answer",
             cases(_answer, [(3, 10), (1, 7), (20, 2**30)], "{:letter}")),
    Exercise("13-ask", "The kernel's side", "ASK", check_ask, in_late_memory(_late_ask, 4)),
    Exercise("13-stack", "A stack for many", "FreeStack", check_stack),
    Exercise("13-bill", "A kernel that calls", "BILL", check_bill),
    Exercise("13-batch", "Many answers at once", "price_all", cases(_batch, [(1,), (1000,)], "{:call}")),
    Exercise("13-pipeline", "Fewer rounds", "PIPELINE", check_pipeline),
)  # fmt: skip
