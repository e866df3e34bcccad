"""Collectives: what the ranks of a group do together, each as an operation on a stream of its own.

Ranks have to call the same things in the same order. If one calls a sum where another calls a broadcast,
NCCL doesn't notice: GPUs wait for each other forever, or add up the wrong bytes. Such a hang says nothing
of its cause, which is in two places of the program at once.

So each rank numbers its calls, and each call is held against those that other ranks of this process have
made under the same number, before it is enqueued (`Ledger`). The first one that does not fit raises, and
names both calls and their lines. Waiting for a time limit would tell only that something hangs, and not
what. Sends and receives are numbered for each pair, since those of one pair have no order with those of
another. Two groups over the same devices are numbered apart, but have to be called in one order as well,
since a GPU that waits in one of them may have no room for the other (`Group._crossed`).

Ranks in other processes can't be asked without a message for each call, so a cluster compares their calls
when a recipe has ended.
"""

import itertools
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import FrameType
from typing import Any, TypeVar, cast

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.devices.event_loop import loop_ways
from asyncgpu_tutor.devices.opening import open_group
from asyncgpu_tutor.devices.protocol import CollectiveCall, Device, DeviceCommunicator, Stream
from asyncgpu_tutor.ops.array_operations import Take
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, choose, evaluate, line_of
from asyncgpu_tutor.run.capture import CaptureContext
from asyncgpu_tutor.run.context import ExecutionContext, check_same, check_written
from asyncgpu_tutor.run.current import policy_for, resolve, using
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.run.last_use import UsedMemory, come_after
from asyncgpu_tutor.run.submission import submit

T = TypeVar("T")
_REDUCTIONS = ("sum", "prod", "max", "min")
_Array = DeviceArray | DeviceOp[DeviceArray]
_Key = tuple[tuple[int, int] | None, int]
_facts = attrgetter("what", "count", "dtype", "reduce", "root")


class Ledger:
    """The calls of all ranks, in order, as long as others have not come to them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._numbers: Counter[tuple[int, tuple[int, int] | None]] = Counter()
        self._open: dict[_Key, list[CollectiveCall]] = {}
        self._lock = threading.Lock()

    def beside(self, call: CollectiveCall) -> list[CollectiveCall]:
        """Calls of other ranks to which this one belongs, before it is entered."""
        return list(self._open.get((call.ends, self._numbers[call.rank, call.ends]), ()))

    def incomplete(self) -> list[list[CollectiveCall]]:
        """The calls of each collective to which not all ranks have come."""
        with self._lock:
            return [list(calls) for calls in self._open.values()]

    def enter(self, call: CollectiveCall) -> str:
        """Note a call; what is wrong with it, next to those of other ranks."""
        with self._lock:
            ends = call.ends
            number = self._numbers[call.rank, ends]
            self._numbers[call.rank, ends] += 1
            others = self._open.setdefault((ends, number), [])
            wrong = next((words for o in others if (words := _disagreement(o, call))), "")
            others.append(call)
            if len(others) == (self._size if ends is None else 2):
                del self._open[ends, number]
            return wrong


def _disagreement(first: CollectiveCall, call: CollectiveCall) -> str:
    facts = [_facts(first), _facts(call)]
    if call.ends is not None:
        facts = [fact[1:] for fact in facts]
    crossed = call.what == "exchange" and any(
        (one.to == other.rank) != (other.origin == one.rank)
        for one, other in ((first, call), (call, first))
    )
    if facts[0] == facts[1] and not crossed:
        return ""
    return (
        f"ranks disagree: rank {first.rank} calls {first}, and rank {call.rank} calls {call}. All ranks "
        "of a group have to call the same collectives, of one size and dtype, in one order"
    )


class Group:
    """Ranks that compute together: one device each.

    Made by `group`, or by the `group` of a cluster. Its operations can be a part of any other. Run on the
    devices of a group, one recipe does the same on each; or give one call the arrays of all ranks, by rank.

    Attributes
    ----------
    size : int
        How many ranks there are.
    devices : tuple of Device
        Those of this process, by rank.
    """

    def __init__(
        self, size: int, devices: Mapping[int, Device], communicator: DeviceCommunicator | None
    ) -> None:
        self.size = size
        self.devices = tuple(devices.values())
        self._ranks = {id(device): rank for rank, device in devices.items()}
        self._communicator = communicator
        self._ledger = Ledger(size) if len(devices) == size else None  # it takes all ranks
        self._last = {rank: UsedMemory() for rank in devices}
        self._streams: dict[Device, Stream] = {}  # where one call does the part of each rank
        self._broken = ""
        self.name = ""  # by which other processes know it
        self._number = next(_numbers)
        _groups.add(self)
        self.log: list[CollectiveCall] = []  # for whoever compares the calls of several processes

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process it is what is called so there: the same ranks, seen from one of them.
        if not self.name:
            raise errors.CannotTravelError(
                f"{self!r} is of this process alone: the group() of a cluster makes one that its workers know"
            )
        return named_group, (self.name,)

    def __repr__(self) -> str:
        here = ", ".join(device.name for device in self.devices) or "none of them here"
        return f"<group {self._number}, {self.size} ranks: {here}>"

    def rank(self, on: ExecutionContext | Device) -> int:
        """The rank of a device, or of the one on which a context's operation runs."""
        device: Device = on.device if isinstance(on, ExecutionContext) else on
        rank = self._ranks.get(id(device))
        if rank is None:
            if not hasattr(device, "name"):
                raise errors.UsageError(
                    "rank() takes a device of the group or a context, as in group.rank(group.devices[0]), "
                    f"and got {device!r}"
                )
            raise errors.DeviceMismatchError(f"{device.name} is no rank of {self!r}")
        return rank

    async def on_each(self, recipe: Callable[[int], DeviceOp[T]]) -> list[T]:
        """Run ``recipe(rank)`` on the device of each rank, all of them at once; their results, by rank.

        It returns when all have ended, and raises the error that came first. (The ranks of a cluster are run
        by its GPUs instead.)
        """
        failed: list[BaseException] = []

        async def one(rank: int, device: Device) -> Any:
            submission = None
            try:
                with using(device, policy_for(device).at(device)):
                    op = as_op(recipe(rank))
                    op._used = True
                    run, (stream, policy) = op._run, choose(None)
                    submission = await device.apart(lambda: submit(run, stream, policy, op.label))
                return await DeviceFuture.of(submission)
            except Exception as error:  # noqa: BLE001 - a recipe may raise anything, and it is raised below
                failed.append(error)
                if submission is None and self._communicator is not None:
                    complaint = f"rank {rank} does not come, since it failed: {error}"
                    self._broken = self._broken or complaint
                    self._communicator.fail(self._broken)

        found = await loop_ways().all_of([one(rank, d) for rank, d in enumerate(self.devices)])
        if failed:
            raise failed[0]
        return found

    # ------------------------------------------------------------------ operations
    def all_reduce(self, x: _Array | Sequence[DeviceArray], reduce: str = "sum") -> DeviceOp[Any]:
        """Add up the arrays of all ranks, element by element, in place: afterwards each has the sums.

        Parameters
        ----------
        x : DeviceArray or DeviceOp, or a sequence of arrays
            This rank's array, or those of all ranks.
        reduce : {"sum", "prod", "max", "min"}
            What becomes of the elements.
        """
        return self._op("all_reduce", x, _itself, _line(sys._getframe(1)), reduce=_known(reduce))

    def all_gather(self, x: _Array | Sequence[DeviceArray]) -> DeviceOp[Any]:
        """Give each rank a new array of shape ``(ranks, *x.shape)`` with the arrays of all, by rank."""

        def target(array: DeviceArray, context: ExecutionContext) -> DeviceArray:
            shape = (self.size, *array.shape)
            return context.empty(shape, array.dtype, f"{array.name} of all ranks")

        return self._op("all_gather", x, target, _line(sys._getframe(1)))

    def reduce_scatter(
        self, x: _Array | Sequence[DeviceArray], reduce: str = "sum"
    ) -> DeviceOp[Any]:
        """Reduce as `all_reduce` does, and give each rank its part of the rows, in a new array."""

        def target(array: DeviceArray, context: ExecutionContext) -> DeviceArray:
            rows = array.shape[0] if array.shape else 1
            if rows % self.size:
                raise errors.ArrayShapeError(
                    f"reduce_scatter gives each of {self.size} ranks as many rows, and array "
                    f"{array.name!r} of shape {array.shape} has {rows}"
                )
            shape = (rows // self.size, *array.shape[1:])
            return context.empty(shape, array.dtype, f"part of {array.name}")

        return self._op("reduce_scatter", x, target, _line(sys._getframe(1)), reduce=_known(reduce))

    def broadcast(self, x: _Array | Sequence[DeviceArray], root: int = 0) -> DeviceOp[Any]:
        """Copy the root's array into those of all other ranks."""
        return self._op("broadcast", x, _itself, _line(sys._getframe(1)), root=self._one(root))

    def send(self, x: _Array, to: int) -> DeviceOp[DeviceArray]:
        """Send an array to another rank, which has to call `recv`; yields it again."""
        return self._op("send", x, None, _line(sys._getframe(1)), to=self._one(to))

    def recv(self, into: _Array, source: int) -> DeviceOp[DeviceArray]:
        """Fill an array with what another rank sends, and yield it."""
        return self._op("recv", into, _itself, _line(sys._getframe(1)), origin=self._one(source))

    def exchange(
        self, x: DeviceArray, to: int | None, into: DeviceArray, source: int | None
    ) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
        """Send one array and receive another at the same time; yields both.

        All ranks call it. A `send` ends when the other rank receives, so that two ranks which both send first
        wait forever; this is the way around. None is for nobody, as at the edge of a grid.

        Raises
        ------
        UsageError
            If it would receive into the memory that it sends.
        """
        _arrays("exchange", x, into)
        check_same(into, x.shape, x.dtype, f"array {x.name!r}")
        # An array of another library may begin within this one.
        apart = abs(x._memory.ptr - into._memory.ptr)
        if None not in (to, source) and x.device is into.device and apart < x.nbytes:
            raise errors.UsageError(
                f"exchange sends array {x.name!r} and receives into the same memory, where what comes may "
                "overwrite what is still to be sent: receive into another array, as in agt.dup(x)"
            )
        where, ends = _line(sys._getframe(1)), (to, source)
        to, origin = (end if end is None else self._one(end) for end in ends)

        def act(
            context: ExecutionContext, arrays: tuple[DeviceArray, ...]
        ) -> tuple[DeviceArray, ...]:
            _capturable("exchange", context, several=False)
            given, got = arrays
            check_written(got, "exchange")
            memory = context._touch(given), context._touch(got)
            facts = "exchange", self.rank(context), given.size, given.dtype
            call = CollectiveCall(*facts, *memory, to=to, origin=origin, where=where)
            self._enqueue_parts([(call, context)])
            return arrays

        return Take("exchange", (x, into), act, count=2)

    # ------------------------------------------------------------------ how
    def _op(
        self,
        what: str,
        x: Any,
        target: Callable[[DeviceArray, ExecutionContext], DeviceArray] | None,
        where: str,
        **options: Any,
    ) -> DeviceOp[Any]:
        """A rank gives its array, except to `recv`, and gets the `target`, which may be that array itself."""
        if isinstance(x, DeviceOp):
            made = cast("DeviceOp[DeviceArray]", x)
            return made.and_then(lambda array: self._op(what, array, target, where, **options))
        several = isinstance(x, Sequence)
        given = tuple(cast("Sequence[DeviceArray]", x)) if several else (x,)
        if several and len(given) != self.size:
            raise errors.UsageError(
                f"{what} takes the array of this rank, or one for each of {self.size} ranks, and got "
                f"{len(given)}"
            )
        _arrays(what, *given)
        swapped = [array for array in given if not array.dtype.isnative]
        if "reduce" in options and swapped:
            kind = swapped[0].dtype
            raise errors.ArrayDTypeError(
                f"{what} computes with numbers in this machine's byte order, and array {swapped[0].name!r} "
                f"has dtype {kind.str}: upload it as host.astype({kind.newbyteorder('=').name!r})"
            )

        def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> Any:
            _capturable(what, context, several)
            branches = self._branches(context) if several else [context]
            calls: list[tuple[CollectiveCall, ExecutionContext]] = []
            results: list[DeviceArray] = []
            for branch, array in zip(branches, arrays, strict=True):
                given = branch._touch(array)
                result = array if target is None else target(array, branch)
                if target is _itself:
                    check_written(array, what)
                ends = given if what != "recv" else None, result.memory if target else None
                facts = what, self.rank(branch), array.size, array.dtype
                if facts[1] in (options.get("to"), options.get("origin")):
                    raise errors.UsageError(
                        f"rank {facts[1]} calls {what} with itself at the other end, and would wait "
                        "for itself forever: name another rank, or copy with agt.dup(x)"
                    )
                calls.append((CollectiveCall(*facts, *ends, **options, where=where), branch))
                results.append(result)
            try:
                self._enqueue_parts(calls)
            finally:
                _join(context, branches)
            return tuple(results) if several else results[0]

        return Take(what, given, act, count=self.size if several else None)

    def _one(self, rank: int) -> int:
        return errors.whole(f"the rank in {self!r}", rank, 0, self.size - 1)

    def _branches(self, context: ExecutionContext) -> list[ExecutionContext]:
        """A context for each rank, whose stream goes on from here; elsewhere always the same one.

        A rank does one collective after the other in any case, so more streams would only cost events.
        """
        if isinstance(context, CaptureContext):  # what is written down forks by itself
            return [context.at(device) for device in self.devices]
        fork = context.stream.record()
        branches: list[ExecutionContext] = []
        for device in self.devices:
            branch = context
            if device is not context.device:
                if device not in self._streams:
                    self._streams[device] = device.create_stream(urgent=True)
                branch = context.on(self._streams[device])
                branch.stream.wait_event(fork)
            branches.append(branch)
        return branches

    def _enqueue_parts(self, calls: Sequence[tuple[CollectiveCall, ExecutionContext]]) -> None:
        communicator = self._communicator
        assert communicator is not None  # `rank` has refused a group without a rank here
        context = calls[0][1]
        if isinstance(context, CaptureContext):
            come_after(context.stream, list(self._last.values()), context._run)
            context._run.kernels.append(calls[0][0].what)
            home = self.rank(context._run.stream.device)
            parts = sorted((call for call, _ in calls), key=lambda call: call.rank != home)
            context.collective(communicator, parts)
            return
        for call, context in calls:
            if self._broken:
                raise errors.CollectiveError(
                    f"{self._broken}. This group is of no more use: make one anew"
                )
            if self._ledger is None:
                self.log.append(replace(call, source=None, target=None))
            else:
                others = self._ledger.beside(call)
                self._broken = self._ledger.enter(call) or self._crossed(call, others)
            if self._broken:
                communicator.fail(self._broken)
                raise errors.CollectiveError(self._broken)
            come_after(context.stream, [self._last[call.rank]], context._run)
            context._run.kernels.append(call.what)
            context._run.checks += (communicator.check,)
        ends = calls[0][0].ends
        parts = [(call, context.stream) for call, context in calls]
        communicator.enqueue(parts, self.size if ends is None else 2)

    def _incomplete(self) -> list[list[CollectiveCall]]:
        ledger, communicator = self._ledger, self._communicator
        if ledger is None or communicator is None or self._broken or communicator.broken:
            return []  # nobody waits in a group that is of no more use
        return ledger.incomplete()

    def _crossed(self, call: CollectiveCall, others: list[CollectiveCall]) -> str:
        """What is wrong with a call, next to those of other groups of the same devices: their order."""
        mine = self.devices[call.rank]
        for group in [each for each in _groups if each is not self]:
            for calls in group._incomplete():
                there = {group.devices[each.rank]: each for each in calls}
                ends = calls[0].ends or range(group.size)
                for other in others:
                    theirs = self.devices[other.rank]
                    if not {mine, theirs} <= {group.devices[rank] for rank in ends}:
                        continue
                    first, second = there.get(mine), there.get(theirs)
                    if first and not second:
                        ahead, behind, then, instead = mine, theirs, call, other
                    elif second and not first and second.serial < other.serial:
                        ahead, behind, then, instead = theirs, mine, other, call
                    else:
                        continue
                    return (
                        f"two groups are called in opposite orders: {ahead.name} calls {there[ahead]}, of "
                        f"group {group._number}, and then {then}, of group {self._number}; "
                        f"{behind.name} calls {instead}, of group {self._number}, before it comes to "
                        f"group {group._number}. Call them in one order on all devices"
                    )
        return ""


def _capturable(what: str, context: ExecutionContext, several: bool) -> None:
    if context._run.captures and not (several and what in ("all_reduce", "broadcast")):
        raise errors.CaptureError(
            f"{what} is not captured: a capture is of one device, and takes the parts of all ranks in one "
            "call that allocates nothing, as in group.all_reduce([x, y]) or group.broadcast([x, y])"
        )


def _join(context: ExecutionContext, branches: Sequence[ExecutionContext]) -> None:
    for stream in [b.stream for b in branches if b.stream is not context.stream]:
        context.stream.wait_event(stream.record())


def _itself(array: DeviceArray, _: ExecutionContext) -> DeviceArray:
    return array


def _arrays(what: str, *given: object) -> None:
    for array in given:
        if not isinstance(array, DeviceArray):
            got = "an operation" if isinstance(array, DeviceOp) else type(array).__name__
            raise errors.ArrayDTypeError(
                f"{what} takes device arrays, and got {got}: agt.h2d(x) makes one of a host array, and "
                "and_then hands on the one that an operation yields"
            )


def _known(reduce: str) -> str:
    if reduce not in _REDUCTIONS:
        raise errors.UsageError(f"{reduce!r} is no reduction: say one of {', '.join(_REDUCTIONS)}")
    return reduce


def _line(frame: FrameType) -> str:
    """The place of a call. A cell of a notebook has a file too, but nobody knows that by its name."""
    code, line = frame.f_code, frame.f_lineno
    if code is evaluate.__code__:  # of a method itself, as in and_then(group.all_reduce)
        code, line = line_of(*frame.f_locals["bind"]._origin())
    if "ipykernel_" not in code.co_filename:
        return f"{code.co_filename.rpartition(os.sep)[2]}:{line}"  # a Path takes longer than all the checks
    return f"line {line} of the cell" + f" with `{code.co_name}`" * code.co_name.isidentifier()


_named: dict[str, Group] = {}
_numbers = itertools.count(1)
_groups: weakref.WeakSet[Group] = weakref.WeakSet()  # all of this process


def name_group(group: Group, name: str) -> Group:
    """Have recipes that come from other processes find a group."""
    group.name = name
    _named[name] = group
    return group


def forget_group(name: str) -> None:
    """A group that is of no more use."""
    _named.pop(name, None)


def named_group(name: str) -> Group:
    """The group of that name, as it is in this process."""
    if name not in _named:
        raise errors.UsageError(
            f"there is no group {name!r} here: its cluster is closed, or another one"
        )
    return _named[name]


def group(*devices: str | Device) -> Group:
    """Make a group of ranks of devices of this process, one rank for each, in this order.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> ranks = agt.group("sim:0", "sim:1")
    >>> arrays = [agt.full(2, rank + 1.0).on(d).sync() for rank, d in enumerate(ranks.devices)]
    >>> sums = ranks.all_reduce(arrays).sync()
    >>> sums[1].to("sim:0").to_host().sync().tolist()
    [3.0, 3.0]
    """
    resolved = [resolve(device) for device in devices]
    if not resolved or len(set(resolved)) < len(resolved):
        raise errors.UsageError(
            "a group has at least one device, and each once: agt.group('cuda:0', 'cuda:1')"
        )
    return Group(len(resolved), dict(enumerate(resolved)), open_group(resolved))
