"""Answering kernels that call the host, by packets in memory that both can see.

A kernel can't call a function of the host. But both can see pinned memory, so it writes a question there,
in a packet, and looks until the answer has come. The other side is `kernels/headers/hostcall.cuh`, which
says how a packet changes hands. Ending the kernel instead, and launching another one with the answer, would
lose all that its threads had in registers.

Python has neither atomics nor fences. It needs no atomics, because a packet's state has one writer at a
time: the kernel, until it has asked, and then the host, until it has answered. It would need fences on
hosts that reorder memory. An x86 keeps the order of its reads, and that of its writes, so this works there;
an Arm does not, and is refused.

To find the calls that wait, one search looks at all states at once, and all calls for one service are
answered at once, because an answer for each call alone would cost Python several microseconds. A handler
may await something. Its packet is then at work until that is done, and others are answered meanwhile.

Kernels can only wait if somebody answers, so blocking the loop while one runs would be a deadlock.
Therefore a kernel gives up after so many looks, and leaving the block tells all of them that the host is
gone.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Awaitable, Mapping, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.devices.event_loop import in_a_loop, loop_ways
from asyncgpu_tutor.errors import (
    CallRefusedError,
    DeviceError,
    HostcallError,
    UsageError,
    demand,
    whole,
)
from asyncgpu_tutor.ops.array_operations import h2d
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.ops.pinned import mapped, pin, pinned
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.serving import services

T = TypeVar("T")

# As in hostcall.cuh.
PER_STATE, PER_PACKET, ANSWER, HEAD = 4, 8, 4, 5
ASKED, ANSWERED, REFUSED, STOPPED, FAILED = 1, 2, 3, 4, 5

_ASKED = bytes([ASKED])  # a byte that no other of these words has

_CALLED = "while the host answered a kernel's call for service {}"

# A kernel gives up after so many looks. Each reads host memory over the bus twice: on an H100, 4 s in all.
_TURNS = 2_000_000

_FEW = 4  # calls that wait and are looked at one by one: more are found more quickly by NumPy


class Hostcalls:
    """The host's side of calls from kernels. `agt.hostcalls` makes it, and ``async with`` opens it.

    Attributes
    ----------
    answered : int
        How many calls have been answered.
    """

    def __init__(
        self,
        handlers: Mapping[int, services.Handler],
        batch_handlers: Mapping[int, services.BatchHandler],
        files: services.Files,
        packets: int,
        nbytes: int,
    ) -> None:
        for given in (handlers, batch_handlers):
            demand(given, Mapping, "handlers are functions by numbers, as in {16: function}")
            for service, handler in given.items():
                whole("the number of a service of yours", service, services.FIRST_FREE, 2**31 - 1)
                if not callable(handler):
                    raise UsageError(
                        f"the handler of service {service} is a function, and got {handler!r:.99}"
                    )
        for service in handlers.keys() & batch_handlers:
            raise UsageError(
                f"service {service} has a handler and a batch handler: leave one of them out"
            )
        packets, nbytes = whole("the number of packets", packets, 1), whole("nbytes", nbytes, 8)
        if nbytes % 8:
            raise UsageError(f"nbytes of hostcalls is a multiple of 8, and got {nbytes}")
        self.answered = 0
        self._device = current_device()
        if self._device.clock != "simulated" and not keeps_order(platform.machine()):
            raise UsageError(
                f"this host is {platform.machine()}, and hostcalls to a GPU need an x86: another may see a "
                "call's flag before its question, which only fences prevent, and Python has none. On the "
                "simulated device they work on any host"
            )
        self._files = files
        self._handlers = services.each(self._files, handlers)
        self._batch_handlers = services.together(self._device, batch_handlers)
        self._stacks = min(packets, 64)
        sizes = packets * np.cumsum([PER_STATE, PER_PACKET, nbytes // 8])
        mail: services.PacketWords = np.asarray(pinned(int(sizes[-1]) + 1, np.uint64))
        mail[:] = 0
        states, rows, data, self._given_up = np.split(mail, sizes)
        self._mail = mail
        self._looked_at = states
        self._states, self._stopped = states[::PER_STATE], states[1::PER_STATE]
        of_packets: services.PacketWords = rows.reshape(packets, PER_PACKET)
        # Taking entries of one column is several times as quick as taking rows.
        self._columns: list[services.PacketWords] = list(of_packets.T)
        self._data: npt.NDArray[np.uint8] = data.view(np.uint8).reshape(packets, nbytes)
        # A word at a time, Python reads and writes a memoryview several times as quickly as an array.
        self._words, self._first_row = mail.data, packets * PER_STATE
        self._arguments = [(row[1:2], row[2:3], row[3:4]) for row in of_packets]
        self._arrays: tuple[DeviceArray, DeviceArray] | None = None
        self._ways: Any = None  # of the loop that it is open in: see `AsyncioWays`
        self._at_work: dict[int, Awaitable[Any]] = {}  # handlers that await something, by packet
        self._running: set[Any] = set()  # futures of operations whose kernels call
        self._failure: BaseException | None = None
        self._told = False
        self._begun = 0  # of the calls that were found now, those whose answers come later

    @property
    def arrays(self) -> tuple[DeviceArray, DeviceArray]:
        """A kernel's parameters ``mail`` and ``stack``: ``kernel(*host.arrays, ...)``."""
        if self._arrays is None:
            raise UsageError("calls are open within a block: async with agt.hostcalls() as host")
        mail, stack = self._arrays
        return mail.borrow(), stack.borrow()

    async def run(self, op: Awaitable[T]) -> T:
        """Await an operation whose kernels call this host.

        Raises
        ------
        Exception
            The error of a handler, if one failed. Then no call is answered any more, and kernels end.
        HostcallError
            If a kernel gave up waiting for its answer.
        DeviceError
            If the operation fails.
        """
        demand(op, Awaitable, "run takes an operation")
        future = op.into_future() if isinstance(op, DeviceOp) else op
        if isinstance(future, DeviceFuture):
            self._running.add(future)
        try:
            result = await future
        except DeviceError:
            if self._failure is not None:
                self._raise()
            self._told = True  # what its kernels left undone is no news
            raise
        finally:
            self._running.discard(future)
        self._raise()
        return result

    # ------------------------------------------------------------------ opening and closing
    async def __aenter__(self) -> Hostcalls:
        if self._ways is not None:
            raise UsageError(
                "these hostcalls were open before, and their kernels were told that the host is gone: make "
                "new ones for each block, as in async with agt.hostcalls() as host"
            )
        self._ways = loop_ways()  # before anything is awaited: another task may enter meanwhile
        packets, nbytes = self._data.shape
        stack = np.zeros(HEAD + self._stacks + 2 + packets, np.uint64)
        stack[:HEAD] = packets, self._stacks, nbytes, _TURNS, 0
        tops, links = stack[HEAD : HEAD + self._stacks], stack[HEAD + self._stacks + 2 :]
        for packet in range(packets):
            which = packet % self._stacks
            links[packet], tops[which] = tops[which], packet + 1
        self._arrays = mapped(self._mail, "mail"), await h2d(pin(stack), name="stack")
        # Beginning at once saves a turn of the loop; but virtual time must be the same in each Python.
        eager = sys.version_info >= (3, 12) and self._device.clock != "simulated"
        self._tasks = await self._ways.background(eager=eager)
        self._tasks.start(self._serve(), name="hostcalls")
        self._device.may_be_asked(self._waited_for, True)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if self._failure is None:
                self._answer()  # kernels that did not wait for their answers may have ended meanwhile
        except Exception as failure:  # noqa: BLE001 - told below
            self._fail(failure)
        self._stop()  # before: a handler that is cancelled from here on has done nothing wrong
        try:
            await self._tasks.end_all()
        finally:
            for answer in self._at_work.values():  # those that were cancelled before they began
                self._device.answering(-1)
                if iscoroutine(answer):
                    answer.close()
            self._device.may_be_asked(self._waited_for, False)
            self._arrays = None
            self._files.close()
        try:
            if not self._told:
                self._raise()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"a call of a kernel had failed before: {failure!r}")

    def _stop(self) -> None:
        """Refuse all answers from now on; kernels look at this word while they wait."""
        self._stopped[:] = STOPPED
        self._states[self._states == ASKED] = REFUSED

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        self._stop()

    def _raise(self) -> None:
        if self._failure is not None:
            self._told = True
            raise self._failure
        if self._given_up[0] and not self._told:
            self._told = True
            raise HostcallError(
                f"{int(self._given_up[0])} calls from a kernel gave up waiting for the host: it must get "
                "turns of the event loop while the kernel runs, so await the operation, and do not block. Or "
                "the kernel has kept its packets: `hostcall_end` gives one back, for the next call"
            )

    # ------------------------------------------------------------------ answering
    async def _serve(self) -> None:
        answered = 0
        try:
            while True:
                await self._device.until_waited_for(answered, self._look_for_ends, self._asked)
                start, at_work, self._begun = self._device.now(), len(self._at_work), 0
                answered = self._answer()
                if (number := answered - self._begun) > 0 and self._device.log is not None:
                    name = "answer a call" if number == 1 else f"answer {number} calls"
                    self._device.note_answers(name, start)
                # Handlers at work need turns of the loop too. But one that has just begun can wait until the
                # next call has been looked for: a kernel that joins two of them asks for the other one now.
                if self._at_work and len(self._at_work) <= at_work:
                    await self._ways.sleep(0)
        except Exception as failure:  # noqa: BLE001 - raised where the kernel's operation is awaited
            self._fail(failure)
        finally:
            self._stop()

    def _asked(self) -> bool:
        # A packet whose handler is still at work is marked as asked, too.
        return int(np.count_nonzero(self._states == ASKED)) > len(self._at_work)

    def _waited_for(self) -> bool:
        """Tell whether a kernel waits for an answer that would not come while this thread is blocked."""
        return bool(self._at_work) or (in_a_loop() and bool((self._states == ASKED).any()))

    def _look_for_ends(self) -> None:
        # The thread that waits for the GPU may need seconds to get a word in: this one hardly ever pauses.
        for future in tuple(self._running):
            future.poll()

    def _answer(self) -> int:
        """Answer all calls that wait, and return how many there were."""
        # NumPy's comparison takes six times as long as this; for one call alone it is not needed at all.
        looked = self._looked_at.tobytes()
        first = looked.find(_ASKED)
        if first < 0:
            return 0
        few: list[int] = []
        while first >= 0 and len(few) < _FEW:
            few.append(first // (8 * PER_STATE))
            first = looked.find(_ASKED, first + 1)
        if first < 0:
            few = [packet for packet in few if packet not in self._at_work]
            rows = (self._first_row + packet * PER_PACKET for packet in few)
            if len(few) < 2 or not any(self._words[row] in self._batch_handlers for row in rows):
                for packet in few:
                    self._answer_alone(packet)
                return len(few)
        ready = (self._states == ASKED).nonzero()[0]
        if self._at_work:
            ready = np.array([p for p in ready.tolist() if p not in self._at_work], np.int64)
        asked = self._columns[0][ready]
        if len(ready) and asked.tobytes() == asked[:1].tobytes() * len(ready):  # nearly always
            self._answer_service(int(asked[0]), ready)
        else:
            for service in np.unique(asked).tolist():
                self._answer_service(service, ready[asked == service])
        return len(ready)

    def _answer_service(self, service: int, which: npt.NDArray[np.int64]) -> None:
        together = self._batch_handlers.get(service)
        if together is None:
            for packet in which.tolist():
                self._answer_alone(packet)
            return
        try:
            a, b, c = (column[which] for column in self._columns[1:ANSWER])
            try:
                found, state = together(a, b, c), ANSWERED
            except CallRefusedError as refusal:
                found, state = refusal.number, FAILED
            self._columns[ANSWER][which] = services.words(found)
        except Exception as failure:
            failure.add_note(_CALLED.format(service))
            raise
        # Last, because a kernel that sees this reads its answer.
        self._states[which] = state
        self.answered += len(which)

    def _answer_alone(self, packet: int) -> None:
        row = self._first_row + packet * PER_PACKET
        service, a, b, c = self._words[row : row + ANSWER].tolist()
        together = self._batch_handlers.get(service)
        try:
            if together is not None:
                self._hand_over(
                    packet, together(*(word.copy() for word in self._arguments[packet]))
                )
                return
            handler = self._handlers.get(service)
            if handler is None:
                raise UsageError(
                    f"a kernel asks for service {service}, which nobody has: "
                    f"agt.hostcalls({{{service}: function}}) has it"
                )
            answer = handler(services.HostcallRequest(service, a, b, c, self._data[packet]))
            if isawaitable(answer):  # a task answers later
                self._device.answering(1)
                self._begun += 1
                self._at_work[packet] = answer
                self._tasks.start(self._later(packet, answer, handler, a))
            else:
                self._hand_over(packet, answer)
        except CallRefusedError as refusal:
            self._hand_over(packet, refusal.number, FAILED)
        except Exception as failure:
            failure.add_note(_CALLED.format(service))
            raise

    async def _later(
        self, packet: int, answer: Awaitable[Any], handler: services.Handler, a: int
    ) -> None:
        # It hands over by itself, since a callback of the finished task would need one more turn of the loop.
        start = self._device.now()
        try:
            try:
                result, state = await answer, ANSWERED
            except CallRefusedError as refusal:
                result, state = refusal.number, FAILED
            if not self._stopped[packet]:
                self._hand_over(packet, result, state)
            if self._device.log is not None:
                self._device.note_answers(f"{getattr(handler, '__name__', 'answer')} {a}", start)
        except Exception as failure:  # noqa: BLE001 - raised where the kernel's operation is awaited
            failure.add_note(_CALLED.format(self._columns[0][packet]))
            self._fail(failure)
        except self._ways.cancelled as stop:
            if not self._stopped[packet]:  # it was not cancelled here: see `__aexit__`
                self._fail(
                    HostcallError(
                        f"the handler of service {self._columns[0][packet]} was cancelled, so a kernel's "
                        f"call has no answer: catch {type(stop).__name__} in it, and return one"
                    )
                )
        finally:
            self._device.answering(-1)
            self._at_work.pop(packet, None)  # a handler that need not wait is done already

    def _hand_over(self, packet: int, answer: Any, state: int = ANSWERED) -> None:
        """Write an answer, or the number of an error, and then that it is there."""
        word = services.words(answer)
        at = self._first_row + packet * PER_PACKET + ANSWER
        self._words[at] = word if type(word) is int else word.item()
        self._words[packet * PER_STATE] = state
        self.answered += 1


def keeps_order(machine: str) -> bool:
    """Tell whether a processor keeps the order of its reads, and that of its writes, as others see them."""
    return machine.lower() in ("x86_64", "amd64", "i386", "i686")


def hostcalls(
    handlers: Mapping[int, services.Handler] | None = None,
    *,
    batch_handlers: Mapping[int, services.BatchHandler] | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    folder: str | os.PathLike[str] | None = None,
    addresses: Sequence[str] = (),
    packets: int = 256,
    nbytes: int = 256,
) -> Hostcalls:
    """Answer kernels that call the host while they run.

    A kernel includes ``hostcall.cuh``, takes `Hostcalls.arrays` as its first two parameters, and asks for a
    service by its number: the time, random bits, printing, files (reading, writing, opening, closing),
    connections (connecting, sending, receiving), or one of your own.
    While the block is open, a task of the event loop answers; a core is busy with that.

    Parameters
    ----------
    handlers : mapping of int to callable, optional
        Your services, from number 16 on. Each gets a call, with its arguments ``call.a``, ``call.b``,
        ``call.c`` (0 to 2**64 - 1) and its bytes ``call.data``, and returns an int or a float, whose bits
        `__longlong_as_double` makes a double again; or None, for 0. It may be a coroutine function: other
        calls are answered meanwhile. `errors.CallRefusedError` tells the kernel a number instead of an
        answer; any other exception ends all calls.
    batch_handlers : mapping of int to callable, optional
        The same for all calls that are there at once: each gets three arrays, a, b and c, and returns an
        array of answers. This is the quicker way by far where many blocks call.
    files : sequence of path
        Those that kernels may read and write, by their numbers here.
    folder : path, optional
        Kernels may open plain files in it, and in folders below it, by name.
    addresses : sequence of str
        Those that kernels may connect to by TCP, each as ``"127.0.0.1:8080"``.
    packets : int
        How many calls may be under way at a time. If there are more, they wait.
    nbytes : int
        Bytes that go with a call, a multiple of 8.

    Returns
    -------
    Hostcalls
        For ``async with``; `Hostcalls.run` awaits an operation.

    Raises
    ------
    UsageError
        If a number is not possible.

    Notes
    -----
    On a GPU, what synchronises the device while the kernel waits keeps the host from answering it: allocating
    pinned memory, loading another kernel (an error, if it waits at that moment). Do so before. The host has
    to be an x86, and another is refused: an Arm (GH200, Jetson) may see a call's flag before its question,
    and would need fences, which Python does not have.

    Examples
    --------
    >>> import asyncio
    >>> import asyncgpu_tutor as agt, numpy as np
    >>> kernel = agt.Kernel('''
    ... #include "hostcall.cuh"
    ... __global__ void ask(unsigned long long* mail, unsigned long long* stack, unsigned long long* out) {
    ...     Hostcalls host = hostcalls(mail, stack);
    ...     unsigned long long answer = 0;
    ...     bool ok = hostcall(host, 16, blockIdx.x, 0, 0, answer);
    ...     if (ok) out[blockIdx.x] = answer;
    ... }''')
    >>> async def main():
    ...     out = await agt.zeros((3,), np.uint64)
    ...     async with agt.hostcalls({16: lambda call: 10 * call.a}) as host:
    ...         await host.run(kernel(*host.arrays, out.borrow(), grid=3, block=1))
    ...     return await agt.d2h(out)
    >>> asyncio.run(main())
    array([ 0, 10, 20], dtype=uint64)
    """
    allowed = services.Files(files, folder, addresses)
    return Hostcalls(handlers or {}, batch_handlers or {}, allowed, packets, nbytes)
