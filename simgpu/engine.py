"""The event engine: streams as queues, kernels that share the SMs, one copy engine for each direction.

Between devices there are links, whose directions are shared in equal parts by whatever goes over them.

Time is virtual, in us, and moves only when something asks for it. Nothing depends on wall clocks, threads
or hashes: one program gives one sequence of events.

Kernels share a device in two ways. Places for blocks are handed out in the order in which the kernels came: a
later one gets its first place when all blocks of those before it have one, and there is room; an urgent one
gets the next. (Amert et al., "GPU scheduling on the NVIDIA TX2: hidden details revealed", RTSS 2017.) What
SMs and memory get done goes to the blocks that have places, in equal parts, as warps take turns.

A kernel whose threads wait for the host, or for another kernel, is paused: it holds its places, takes another
look when somebody may have written to memory, and has no end until then. What it has computed until a pause
counts as time from when it went on: it looks again no sooner than that, and the host sees each of its writes
no sooner than the kernel has worked up to it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from simgpu.errors import DeviceError, UpstreamError, given_up
from simgpu.interrupts import Held, let_through
from simgpu.queues import Command, EngineEvent, Port, Queue, ResourceDemand, Shows
from simgpu.spec import NVLINK

INFINITY = float("inf")
_NO_ROOM = 1e-9  # what rounding leaves of a device that is full


@dataclass(eq=False, slots=True)
class _Running:
    command: Command
    queue: Queue
    work: ResourceDemand
    came: float
    left: float  # us of its own
    goal: float  # how much of that is left when it starts to drain; then 0
    start: float | None = None  # when it got its first place
    held: float = 0.0  # places
    speed: float = 1.0
    look: bool = False  # whether somebody may have written to memory since it was paused

    def take(self, room: float) -> None:
        """Hold as many of these places as it could use now; its speed where these get all they demand.

        While it drains it could use half of them on average, because its blocks end one by one and none
        follows (`ResourceDemand.drain`).
        """
        wants = self.work.places if self.goal or not self.work.drain else self.work.places / 2
        self.held = min(wants, room)
        self.speed = self.held / wants

    @property
    def turn(self) -> int:
        """Who is first when places are handed out: blocks that have theirs, then what is urgent."""
        if self.start is not None and not self.goal:
            return 0  # it has no block left that could give way
        return 1 if self.work.urgent else 2

    @property
    def share(self) -> float:
        """Its part of the throughput, next to others."""
        return self.held * self.work.turn


class Engine:
    """All queues and resources of one simulated machine, and their common time."""

    def __init__(self) -> None:
        self.now = 0.0  # how far the devices have been simulated, in us
        # What has failed and nobody has been told of, in the order in which it failed.
        self.failures: list[tuple[Queue, DeviceError]] = []
        self._queues: list[Queue] = []
        self._running: list[_Running] = []
        self._serial = 0
        self.looks = 0  # how often a paused kernel went on, or the host saw what one wrote
        self.begun = 0  # commands
        self._until_shown: list[EngineEvent] = []

    def queue(self, device: int, pause: float = 0.0, switch: float = 0.0) -> Queue:
        """A new, empty queue on a device; see `Queue`."""
        self._queues = [q for q in self._queues if not (q.orphaned and q.idle)]
        queue = Queue(device, pause, switch)
        self._queues.append(queue)
        return queue

    def submit(self, queue: Queue, command: Command) -> None:
        """Append a command. Its `ready` time may not lie before `now`."""
        command.serial, self._serial = self._serial, self._serial + 1
        queue.waiting.append(command)

    def told(self, error: BaseException | None) -> None:
        """Somebody has got this error, and with it those that caused it: they need not be told again."""
        known: list[BaseException] = []
        while error is not None:
            known.append(error)
            error = error.__cause__
        if not known:
            return
        self.failures = [f for f in self.failures if not any(f[1] is k for k in known)]
        # A kept error would keep its traceback, and that the arrays of whoever raised it.
        for queue in self._queues:
            if queue.idle and any(queue.error is k for k in known):
                queue.error = queue.error_op = None

    def raise_failures(self, concerns: Callable[[Queue], bool]) -> None:
        """Raise the first error of these queues that nobody has been told of; the rest count as told."""
        failures = [error for queue, error in self.failures if concerns(queue)]
        for error in failures:
            self.told(error)
        if failures:
            raise failures[0]

    def run_until(self, limit: float, *, ask: bool = True) -> None:
        """Simulate up to and including `limit` us; unless we `ask`, nobody sees what the host has written."""
        if ask and self._running:
            self._ask_host()
        while self._step(limit):
            pass
        if limit > self.now:
            self._progress(limit)

    def run_to(self, *events: EngineEvent) -> bool:
        """Simulate until one of `events` has passed; False if none ever will."""
        if self._running:
            self._ask_host()
        while True:
            if Held.arrived is not None:
                let_through()
            for event in events:
                if event.passed:
                    return True
            if not self._step(INFINITY):
                return False

    def run_dry(self) -> None:
        """Simulate until nothing more can happen; paused kernels are given up."""
        self._ask_host()
        while self._step(INFINITY) or self.give_up():
            if Held.arrived is not None:
                let_through()

    @property
    def paused(self) -> list[_Running]:
        """Kernels that wait for somebody to write to memory, oldest first."""
        return [run for run in self._running if run.work.paused is not None]

    def when_shown(self) -> EngineEvent:
        """An event that passes when the host sees what a kernel wrote next, or work of a device is done."""
        event = EngineEvent()
        self._until_shown.append(event)
        return event

    @property
    def unseen(self) -> Shows:
        """What kernels have written to memory of the host that it is yet to see, in order."""
        shows = [show for run in self._running for show in run.work.shows or ()]
        return deque(sorted(shows, key=itemgetter(0)))

    def give_up(self) -> bool:
        """Nobody will write any more: the oldest paused kernel fails, or gives up; False if there is none."""
        for run in self.paused[:1]:
            self._go_on(run, last=True)
            return True
        return False

    def _ask_host(self) -> None:
        for run in self._running:
            if run.work.paused is not None:
                run.look = run.look or run.work.paused.stirred()

    def stir(self, by: _Running | None = None) -> None:
        """The device's memory may have changed."""
        for run in self._running:
            run.look = run.look if run is by else run.work.paused is not None

    def _go_on(self, run: _Running, *, last: bool) -> None:
        paused = run.work.paused
        assert paused is not None
        self.looks += 1
        changes = paused.changes
        try:
            work = self._attempt(run.queue, run.command, lambda: paused.go_on(last=last))
        except BaseException:
            self._drop(run)
            raise
        if paused.changes > changes + (not last):  # to look counts as one
            self.stir()
        run.look = False
        if work is None:
            if run.start is not None and run.command.in_vain is not None:
                run.command.in_vain(run.start, self.now)
            self._drop(run)
        elif work.paused is None:
            run.work, run.left, run.goal = work, max(work.us, 0.0), min(work.drain, work.us)
            self.stir()
            self._share()
        else:
            run.work, run.look = work, work.naps

    def _drop(self, run: _Running) -> None:
        self._running = [other for other in self._running if other is not run]
        run.queue.running = False
        self.stir()
        self._share()

    def _show(self, run: _Running, moment: float) -> None:
        """Let the host see what a kernel had written by then."""
        while (shows := run.work.shows) and shows[0][0] <= moment:
            write = shows.popleft()[1]
            write() if run.command.fills is None else run.command.fills(write)
            self.looks += 1
            self.stir(by=run)
            self._note_shown()

    def _note_shown(self) -> None:
        events, self._until_shown = self._until_shown, []
        for event in events:
            event.passed, event.at = True, self.now

    def _crowded(self, device: int) -> bool:
        """True if paused kernels hold all places of a device."""
        held = 0.0
        for run in self._running:
            if run.work.paused is not None and run.queue.device == device:
                held += run.held
        return held > 1 - _NO_ROOM

    def next_time(self) -> float | None:
        """When something happens next, in us; None if nothing ever will."""
        now, soonest = self.now, INFINITY
        for run in self._running:
            if run.work.shows:
                soonest = min(soonest, max(run.work.shows[0][0], now))
            if run.work.paused is not None:
                if run.look:
                    soonest = min(soonest, max(run.work.ready, now))
            elif run.speed > 0 and (then := now + (run.left - run.goal) / run.speed) < soonest:
                soonest = then
        for queue in self._queues:
            if queue.waiting and not queue.running and now < (start := _earliest(queue)) < soonest:
                soonest = start
        return soonest if soonest < INFINITY else None

    def _step(self, limit: float) -> bool:
        """Start what can start, and move on to the next moment. False if that lies after `limit`."""
        heads = [queue for queue in self._queues if queue.waiting and not queue.running]
        # In the order of submission, because ties must break in the same way in every run.
        if len(heads) > 1:
            heads.sort(key=lambda queue: queue.waiting[0].serial)
        again = False
        for queue in heads:
            if self._try_start(queue) and not queue.running:
                again = True
        if again:
            return True  # what this has set free can start now, too
        for run in self._running:  # oldest first: a paused kernel may have something to look at
            if run.look and run.work.ready <= self.now:
                self._go_on(run, last=False)
                return True
        moment = self.next_time()
        if moment is None or moment > limit:
            return False
        self._progress(moment)
        return True

    def _progress(self, moment: float) -> None:
        now, step, self.now = self.now, moment - self.now, moment
        done: list[_Running] = []
        going: list[_Running] = []
        shared = False
        for run in self._running:
            speed = run.speed
            # The expression for "when" in `next_time`, so that rounding cannot part the two.
            if speed > 0 and now + (run.left - run.goal) / speed <= moment:
                shared = shared or run.work.places > 0 or bool(run.work.ports)
                if not run.goal:
                    done.append(run)
                    continue
                run.left, run.goal = run.goal, 0.0
            else:
                run.left = max(run.goal, run.left - step * speed)
            going.append(run)
            if run.work.shows:
                self._show(run, moment)
        self._running = going
        if shared and going:
            self._share()
        for run in done:
            if run.work.shows:
                self._show(run, INFINITY)
            run.queue.running = False
            run.queue.last, run.queue.ended = run.command.resource, self.now
            if run.command.end is not None:
                start = run.came if run.start is None else run.start
                run.command.end(start, self.now, start - run.came)
        if done:
            self.stir()
            self._note_shown()  # since it may have asked for something, and not waited

    def _try_start(self, queue: Queue) -> bool:
        """Start the head of a queue, if that can start now."""
        command = queue.waiting[0]
        if _earliest(queue) > self.now:
            return False
        if command.awaits is not None and not command.awaits.passed:
            return False
        if command.resource in ("h2d", "d2h") and any(
            run.command.resource == command.resource and run.queue.device == queue.device
            for run in self._running
        ):
            return False
        if command.resource == "compute" and self._crowded(queue.device):
            return False
        queue.waiting.popleft()
        if queue.error_op is not None and command.op != queue.error_op:
            queue.error = queue.error_op = None  # another submission's failure is not this one's
        if command.awaits is not None:
            if command.awaits.ended > queue.ended:
                queue.last, queue.ended = command.awaits.last, command.awaits.ended
            self._inherit(queue, command)
        elif command.records is not None:
            event = command.records
            event.passed, event.at = True, self.now
            event.error, event.error_op = queue.error, queue.error_op
            event.last, event.ended, event.device = queue.last, queue.ended, queue.device
            if command.op is None:
                event.untold = next((error for of, error in self.failures if of is queue), None)
        elif queue.error is not None:
            if command.skipped is not None:
                command.skipped(queue.error)
                self.stir()  # whoever waits for this work waits in vain, and has to hear so
        else:
            self._begin(queue, command)
        return True

    def _inherit(self, queue: Queue, command: Command) -> None:
        event = command.awaits
        if event is None or event.error is None or queue.error is not None:
            return
        error = event.error
        if command.op is None or command.op != event.error_op:  # not an arm of the same operation
            error = UpstreamError(f"an operation that this one waits for had failed: {error}")
            error.__cause__ = event.error
        queue.error, queue.error_op = error, command.op
        self.failures.append((queue, error))

    def _begin(self, queue: Queue, command: Command) -> None:
        self.begun += 1
        work = self._attempt(queue, command, command.begin or (lambda: ResourceDemand(0.0)))
        if work is None:
            return
        self.stir()
        queue.running = True
        goal = min(work.drain, work.us)
        run = _Running(command, queue, work, self.now, max(work.us, 0.0), goal)
        self._running.append(run)
        if work.places or work.ports:
            self._share()
        run.look = work.naps

    def _attempt(
        self, queue: Queue, command: Command, act: Callable[[], ResourceDemand]
    ) -> ResourceDemand | None:
        """The work that a command asks for, or None if it has failed."""
        try:
            return act()
        except DeviceError as error:
            self._fail(queue, command, error)
            return None
        except BaseException as error:  # of the interpreter, or Ctrl-C while it ran
            self._fail(queue, command, given_up(error))
            raise

    def _fail(self, queue: Queue, command: Command, error: DeviceError) -> None:
        # What is kept here must not keep alive what the frames of its traceback hold: arrays, above all.
        queue.error, queue.error_op = error.with_traceback(None), command.op
        self.failures.append((queue, error))
        if command.skipped is not None:
            command.skipped(error)
            self.stir()

    def _share(self) -> None:
        """Give places to the kernels of each device, and throughput to those that have some."""
        kernels: dict[int, list[_Running]] = {}
        over_links: list[_Running] = []
        for run in self._running:  # in the order in which they came
            if run.work.places:
                kernels.setdefault(run.queue.device, []).append(run)
            if run.work.ports:
                over_links.append(run)
        for runs in kernels.values():
            room = 1.0
            for run in sorted(runs, key=attrgetter("turn")) if len(runs) > 1 else runs:
                run.take(room)
                room -= run.held
                if room < _NO_ROOM:
                    room = 0.0
                if run.held and run.start is None:
                    run.start = self.now
            # The throughput of a device goes by places and turns; one alone never needs more than there is.
            if len(runs) > 1:
                _divide([(run, run.share, run.work.demand) for run in runs if run.held])
        if over_links:
            _divide_links(over_links)


def _divide(users: list[tuple[_Running, float, float]]) -> None:
    """Divide something by the shares of its users, which need so much at full speed, and get no more."""
    left = 1.0
    while users:
        part = left / sum([share for _, share, _ in users])
        hungry = [user for user in users if user[0].speed * user[2] > part * user[1]]
        if len(hungry) == len(users):
            for run, share, need in users:
                run.speed = part * share / need
            return
        left -= sum(
            [run.speed * need for run, share, need in users if run.speed * need <= part * share]
        )
        users = hungry


def _divide_links(runs: list[_Running]) -> None:
    """Slow down what asks for more of a link than it gets: equal parts, and nobody more than it could use."""
    ports: dict[Port, list[_Running]] = {}
    groups: dict[int, list[_Running]] = {}
    for run in runs:
        if not run.work.places:
            run.speed = 1.0
        for port in run.work.ports:
            ports.setdefault(port, []).append(run)
        if run.work.together is not None:
            groups.setdefault(id(run.work.together), []).append(run)
    for users in ports.values():
        _divide([(run, 1.0, run.work.load) for run in users])  # who has no place needs nothing
    for members in groups.values():
        slowest = min([run.speed for run in members])
        for run in members:
            run.speed = slowest


def _earliest(queue: Queue) -> float:
    """When the head of a queue may start, for all that its stream and the host know."""
    command = queue.waiting[0]
    resource, last, ready, event = command.resource, queue.last, command.ready, command.awaits
    if event is not None and event.passed and event.device != queue.device:
        return max(ready, event.at + NVLINK.event_us)
    if resource == "none" or last == "none":
        return ready
    if resource != last:
        return max(queue.ended + queue.switch, ready)
    pause = queue.pause if command.gap is None else command.gap
    return max(queue.ended + (pause if resource == "compute" else 0.0), ready)
