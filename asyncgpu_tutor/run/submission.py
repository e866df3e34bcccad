"""One run of one operation: submitted, executing, settled.

When Python drops the last reference to an array, its memory may be given to somebody else at once. A GPU
that is still working on it doesn't know. So a submission holds everything that its operations touch
(`keep`), records an event behind the last of them, and lets go when somebody has seen that event pass, and
not before. An allocation that is freed in the order of a stream would do this for one stream and for device
memory. A run may have several streams, and it touches host arrays, too.

Somebody who awaits or blocks sees the event pass. But tasks are cancelled and results are forgotten, and
then nobody looks. A callback from the driver would tell, but after a fault it never comes. So each new
submission looks at two earlier ones (`_let_go`), which keeps the list short and makes no call long. Of a
graph that is launched over and over on one stream only the latest run is in the list (`give_way`): it keeps
what those before it keep, and is over after them.

Every run goes through `enqueue`: built or prepared, blocked on or awaited, recorded or not, on every
device. All that must happen for a run is in that function, because a second way would sooner or later
forget one of those things. Recordings and NVTX ranges hang on two switches that are nearly always off. To
enqueue work without putting its memory into `keep` breaks all of this, and only shows under load.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import Lent, deliver
from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.errors import DeviceError, KernelFault, UpstreamError
from asyncgpu_tutor.run.context import ExecutionContext, Run, numbers
from asyncgpu_tutor.run.current import SchedulingPolicy, current_device, of_this_process
from asyncgpu_tutor.traces import nvtx
from asyncgpu_tutor.traces.spans.tag import CURRENT, forbid_nested_wait

T = TypeVar("T")
_ARRAYS = {DeviceArray, Partition}  # what most launches yield, and what nothing takes the place of
SubmissionBody = Callable[[ExecutionContext], T]

# Submissions that nobody has seen complete yet: they keep what the device still uses alive. Somebody may ask
# how the first ones went; the others are forsaken. One that is looked at and is not over goes behind the
# others of its kind, so nobody has looked at the first ones for longest.
_asked: dict[int, Submission[Any]] = {}
_forsaken: dict[int, Submission[Any]] = {}
# Each new submission looks at two earlier ones of a kind, if there are more than FEW or MANY of it. A look at
# all of them at once was a pause of 250 us in the host's lane (H200, 2026-11-22). Forsaken ones go soon: with
# 64 of them a batch took 2 to 5 us longer, as its memory came back late and was in no cache any more. The
# others count their shared handles until they go, as they did when they were submitted.
_LOOKS = 2
FEW, MANY = 8, 64


class Submission(Run, Generic[T]):
    """One run of one operation."""

    handles: T | None = None  # or a Lent: `deliver` and `release` read it
    # Behind all of its work. None before that is enqueued, and again once somebody has seen it pass.
    event: Event | None = None
    settled = False  # whether somebody has seen it complete
    forsaken = False  # whether nobody will ask how it went

    def renew(self) -> None:
        """It is settled, and about to be enqueued again, by who runs the same on one stream over and over.

        To make a submission and its context takes Python a sixth of what it does for the launch of a graph.
        """
        self.op = next(numbers)
        self.over = self.settled = self.known = False
        self.arms = self.checks = ()
        self.kernels.clear()

    def completed(self) -> bool:
        """Tell whether the host knew that the device is done with it, and look. Never blocks."""
        event = self.event
        return self.settled or (event is not None and event.seen)

    def settle(self, asked: bool = False, known: bool = True) -> None:
        """It has completed. Nobody needs its event any more, unless it may still be asked how it went."""
        self.settled = True
        self.known = known
        self.keep.clear()
        self.operations.clear()
        (_forsaken if self.forsaken else _asked).pop(self.op, None)
        if not asked:
            self.event = None

    def give_way(self) -> None:
        """A later run on its stream keeps alive all that it keeps, so nobody need look at this one."""
        if self.forsaken:
            _forsaken.pop(self.op, None)
            self.keep.clear()

    def deliver(self) -> T:
        """The result, with host arrays in place of handles. Once."""
        handles, self.handles = self.handles, None
        for check in self.checks:
            check()
        parts = cast("tuple[Any, ...]", handles)
        if type(handles) is tuple and {*map(type, parts)} <= _ARRAYS:
            return cast("T", handles)
        return deliver(handles)

    def release(self) -> Any:
        """The handles of the result. Once."""
        # A HostArray asks its submission whether it is ready. Were it kept here as well, only the garbage
        # collector would part the two, and pinned memory is too dear to wait for that.
        handles: Any = self.handles
        self.handles = None
        return handles.handles_of(self) if type(handles) is Lent else handles

    def reclaim(self) -> None:
        """Memory is short: let go of what has completed without anybody looking."""
        _settle_retired()

    def blame(self, error: BaseException) -> BaseException:
        """The error of its work, told so that it names the operation and its kernels."""
        if not isinstance(error, DeviceError):
            return error
        names = ", ".join(dict.fromkeys(self.kernels)) or "none"
        told: DeviceError
        if isinstance(error, KernelFault | UpstreamError):
            told = error
            note = f"in {self.describe()}"
        else:
            told = type(error)(
                f"{self.describe()} failed: {error} (its kernels, in order: {names})"
            )
            told.__cause__ = error
            note = f"kernels that it launched: {names}"
        if note not in getattr(told, "__notes__", ()):
            told.add_note(note)
        return told


def lasting(error: BaseException, label: str) -> Exception:
    """Return the error that later callers of a failed run get: an interrupt is not theirs."""
    if isinstance(error, Exception):
        return error
    return DeviceError(
        f"{label!r} was ended by {error!r} while it was being submitted, and runs at most once: build it "
        "again"
    )


def in_flight() -> int:
    """Number of submissions that nobody has seen complete yet.

    Launches of one graph in a row, on one stream, count as one where nobody waits for them.
    """
    return len(_asked) + len(_forsaken)


def submit(
    body: SubmissionBody[T],
    stream: Stream,
    policy: SchedulingPolicy | None,
    label: str,
    what: str = "",
    blocking: bool = False,
    spawned: bool = False,
    forsaken: bool = False,
) -> Submission[T]:
    """Run `body`, which enqueues work and returns handles, and mark the end of that work.

    `what` is the call for which that is done, for the message of `NestedSyncError`. Whatever `body` raises,
    what it had enqueued by then is kept alive until the device is done with it. If nobody will ask how it
    went, it is `forsaken`, and can be let go of early.
    """
    submission: Submission[T] = Submission(label, stream, blocking, spawned)
    submission.forsaken = forsaken
    enqueue(submission, body, ExecutionContext(stream, policy, submission), what)
    return submission


def enqueue(
    submission: Submission[T], body: SubmissionBody[T], context: ExecutionContext, what: str = ""
) -> None:
    """Enqueue a submission that is made, or is to run again: see `Submission.renew`."""
    before = CURRENT.get()
    if before is not None and not before.over:
        forbid_nested_wait(what or f"an operation ({submission.label!r})")
    if len(_forsaken) > FEW:
        _let_go(_forsaken)
    # Now and then also where there are few, for what an interrupt or a closed loop left.
    if len(_asked) > MANY or submission.op % MANY == 0:
        _let_go(_asked)
    stream = submission.stream
    device = of_this_process(stream.device)
    other = device.activate()
    ranged = None if nvtx.current_domain is None else nvtx.push(submission.label)
    token = CURRENT.set(submission)
    try:
        submission.handles = body(context)
    except Exception as error:
        error.add_note(f"while {submission.describe()} was being submitted")
        if isinstance(error, RecursionError):
            error.add_note(
                "operations that are arguments of each other nest, and these nest too deeply: chain "
                "them with and_then instead, which may be of any length"
            )
        raise
    finally:
        # It is registered first: where recording its end fails, too, what it kept stays alive.
        (_forsaken if submission.forsaken else _asked)[submission.op] = submission
        try:
            submission.event = stream.record()
        except DeviceError as error:  # of work before it: after a fault a GPU does nothing any more
            raise submission.blame(error) from error
        except KeyboardInterrupt:  # the simulated device has given up what it was interpreting
            submission.event = stream.record()
            raise
        finally:
            submission.over = True
            CURRENT.reset(token)
            if ranged is not None:
                ranged.pop_range()
            if other is not None:
                device.restore(other)


def wait(submission: Submission[T]) -> T:
    """Block the host until the submission has completed, and hand over its result.

    Raises `DeviceError` if the device failed in it.
    """
    __tracebackhide__ = True  # a test of somebody's kernel shows their lines, not ours
    event = submission.event
    # While the device works the host has time: what can be done before the end is done now.
    submission.operations.clear()
    handles: Any = submission.handles
    # Arrays that are there, and will only be written; a container of the user's own is made after the wait.
    lent = type(handles) is Lent and handles.early
    early = submission.deliver() if lent else None
    try:
        if event is not None:  # another thread may have seen it pass, and told so
            event.synchronize()
    except DeviceError as error:
        submission.settle()
        blamed = submission.blame(error)
        raise blamed from blamed.__cause__
    submission.settle()
    return cast("T", early) if lent else submission.deliver()


def synchronize() -> None:
    """Block the host until the current device has nothing left to do."""
    try:
        of_this_process(current_device()).synchronize()
    finally:
        _settle_retired()


def _settle_retired() -> None:
    for submission in [*_asked.values(), *_forsaken.values()]:
        _settle_if_retired(submission)


def _settle_if_retired(submission: Submission[Any]) -> None:
    number, event = submission.op, submission.event
    # While the driver is asked, another thread may settle it and enqueue it anew: see `renew`.
    if event is not None and event.retired and submission.op == number:
        submission.settle(not submission.forsaken, known=False)  # a future may still ask its event


def _let_go(kind: dict[int, Submission[Any]]) -> None:
    """Settle what completed unseen, such as results that nobody waited for and cancelled tasks."""
    try:
        oldest = list(islice(kind.items(), _LOOKS))
    except RuntimeError:  # another thread submits or settles something just now
        return
    for number, submission in oldest:
        _settle_if_retired(submission)
        if kind.pop(number, None) is not None:
            kind[number] = submission  # behind the others
            if submission.settled:  # by another thread, which may have missed it
                kind.pop(number, None)
