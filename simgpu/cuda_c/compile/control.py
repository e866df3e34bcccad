"""From the form to closures: control.

A control step becomes a closure that takes the lanes that come in and returns those that go on. Where lanes
may be set aside (`waiting`), a closure that is entered again for those only passes them on to the step
where they were. `Team.resume` is its place, and each step knows which places are inside of it.

Lanes that leave by `break`, `continue` or `return` are put aside under the number of the exit
(`Team.left`), and join the others where that exit leads to, because they can't jump while the others go on.

A loop that spins is asked whether a turn has changed anything (`_spun`). If nobody is left who could end
its wait, and it only counts until it gives up, millions of turns would all be the same, so its counter
leaps near its end (`_leap`), and the turns in between are never run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.form import Evaluate, Execute, Instruction, Loop
from simgpu.cuda_c.compile.storage import begin
from simgpu.cuda_c.compile.summing import Summing, ends_in_time, sums_side_by_side
from simgpu.cuda_c.compile.waiting import Parks, Spin, Stop
from simgpu.cuda_c.lockstep import Mask, Team, join, split
from simgpu.cuda_c.lockstep.waiting_threads import Apart, in_whole_blocks, unchanged
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.text.source import Position
from simgpu.errors import UninitialisedReadError

_NEVER = 1 << 60  # further than a counter goes, and sums with it still fit into 64 bits
_LONG = 64  # turns that lanes may take while others, on another side of a branch, wait for theirs


def nothing(t: Team, m: Mask) -> Mask | None:
    """Do nothing; known by its identity, so that it can be left out."""
    return m


class Control:
    """Makes closures of steps, with what the passes found."""

    def __init__(self, parks: Parks | None = None, sums: Mapping[Loop, Summing] | None = None):
        self._parks = parks or Parks()
        self._sums = sums or {}
        self._makers: dict[type[Instruction], Any] = {
            form.BasicBlock: self._piece,
            form.Scoped: self._scoped,
            form.Branch: self._branch,
            form.Selection: self._selection,
            form.Loop: self._loop,
            form.Leave: self._leave,
        }

    def closure(self, steps: Sequence[Instruction]) -> Execute:
        """Steps one after the other."""
        body: list[Execute] = []
        spans: list[range] = []
        for step in steps:
            make = self._makers.get(type(step))
            part: Execute = nothing if make is None else make(step)
            if part is not nothing:
                body.append(part)
                spans.append(self._parks.spans.get(step, range(0)))
        if not body:
            return nothing
        if len(body) == 1:
            return body[0]
        return _in_turn(body, spans)

    def _attempt(self, step: Instruction, piece: form.BasicBlock, run: Execute) -> Execute:
        """A step that begins with a piece in which lanes may be set aside, and may go on later."""
        span = self._parks.spans.get(step)
        if span is None:
            return run
        place, at = span.start, piece.at

        def attempt(t: Team, m: Mask) -> Mask | None:
            if t.resume == place:
                t.resume = -1
            current: Mask | None = m
            while current is not None:
                count = t.waiters.count
                try:
                    out = run(t, current)
                except Apart as apart:
                    current = t.park(place, current, at, apart.bits, apart)
                    continue
                return out if t.waiters.count == count else t.waiters.without(out)
            return None

        return attempt

    def functions(self, steps: Sequence[Instruction]) -> None:
        """Make closures of the functions that are expanded in steps of straight code."""
        for step in steps:
            if isinstance(step, form.Expansion):
                step.body.run = self._scoped(step)
                step.body.places = self._parks.inside(step.steps)
                step.body.steps = None
            for part in form.pieces_of(step):
                self.functions(part.steps)

    def _computing(self, piece: form.BasicBlock) -> tuple[Evaluate, int]:
        """Make the functions of a piece that computes a value; returns what does, and its point."""
        assert piece.run is not None
        self.functions(piece.steps)
        return piece.run, piece.point

    def _piece(self, piece: form.BasicBlock) -> Execute:
        if piece.run is None:
            return nothing
        evaluate, point = self._computing(piece)

        def execute(t: Team, m: Mask) -> Mask | None:
            t.meter.charge(point, m)
            evaluate(t, m)
            return m

        return self._attempt(piece, piece, execute)

    def _scoped(self, step: form.Scoped) -> Execute:
        """Steps, behind which the variables of their scope are no more, even if a pointer is kept."""
        body, slots = self.closure(step.steps), step.ends
        if not slots:
            return body

        def evaluate(t: Team, m: Mask) -> Mask | None:
            out = body(t, m)
            over = t.waiters.without(m) if t.apart else m  # the others wait inside of their scope
            for slot in slots if over is not None else ():
                if (place := t.slots[slot]) is not None:
                    place.region.end(over)
            return out

        return evaluate

    def _branch(self, step: form.Branch) -> Execute:
        test, point = self._computing(step.head)
        then = self.closure(step.then)
        otherwise = None if step.otherwise is None else self.closure(step.otherwise)

        def evaluate(t: Team, m: Mask) -> Mask | None:
            meter = t.meter
            meter.charge(point, m)
            yes, no = split(m, test(t, m))
            if yes is None:
                return m if otherwise is None else otherwise(t, m)
            if no is None:
                return then(t, m)
            meter.branch(point, yes, no)
            yes = then(t, yes)
            if otherwise is not None:
                no = otherwise(t, no)
            return join(yes, no, m)

        again = [(self._parks.inside(step.then), then)]
        if otherwise is not None:
            again.append((self._parks.inside(step.otherwise or []), otherwise))
        if not any(places for places, _ in again):
            return self._attempt(step, step.head, evaluate)

        def resumed(t: Team, m: Mask) -> Mask | None:
            for places, side in again:
                if t.resume in places:
                    return side(t, m)
            return evaluate(t, m)

        return self._attempt(step, step.head, resumed)

    def _selection(self, step: form.Selection) -> Execute:
        (evaluate, point), leave = self._computing(step.head), step.exit
        values, bodies = step.values, [self.closure(case) for case in step.cases]
        places = [self._parks.inside(case) for case in step.cases]
        has_default = any(v is None for v in values)

        def execute(t: Team, m: Mask) -> Mask | None:
            for k, inside in enumerate(places):
                if t.resume in inside:
                    t.left[leave] = None
                    return through(t, m, None, [m if j == k else None for j in range(len(bodies))])
            t.meter.charge(point, m)
            value = evaluate(t, m)
            t.left[leave] = None
            rest: Mask | None = m
            chosen: list[Mask | None] = []
            for wanted in values:
                taken = None
                if rest is not None and wanted is not None:
                    taken, rest = split(rest, np.equal(value, wanted))
                    t.meter.branch(point, taken, rest)
                chosen.append(taken)
            return through(t, m, rest, chosen)

        def through(t: Team, m: Mask, rest: Mask | None, chosen: list[Mask | None]) -> Mask | None:
            current: Mask | None = None
            for wanted, taken, body in zip(values, chosen, bodies, strict=True):
                current = join(current, rest if wanted is None else taken, m)
                if current is not None:
                    current = body(t, current)
            out = join(current, t.left[leave], m)
            return out if has_default else join(out, rest, m)

        return self._attempt(step, step.head, execute)

    def _leave(self, step: form.Leave) -> Execute:
        target, slot = step.exit, step.slot
        if target is None:
            return _exiting
        if step.piece is None:

            def leave(t: Team, m: Mask) -> None:
                t.left[target] = join(t.left[target], m)

            return leave
        evaluate, point = self._computing(step.piece)

        def execute(t: Team, m: Mask) -> Mask | None:
            t.meter.charge(point, m)
            value: Any = evaluate(t, m)
            before = t.left[target]
            alone = before is None and not t.apart
            t.slots[slot] = value if alone else access.merge(m, value, t.slots[slot])
            t.left[target] = join(before, m)
            return None

        return self._attempt(step, step.piece, execute)

    def _loop(self, loop: Loop) -> Execute:
        self.functions([*loop.test.steps, *loop.step.steps])
        body = self.closure(loop.body)
        test, step = loop.test.run, loop.step.run
        points = test_point, step_point = loop.test.point, loop.step.point
        leave, again, at, after = loop.leave, loop.again, loop.at, loop.after
        found = self._sums.get(loop)
        together = sums_side_by_side(found, body, points) if found else None
        spin = self._parks.spins.get(loop, Spin())
        head, often, shares = spin.head, spin.often, spin.turns
        counted = test is not None and form.counting(loop.step) is not None
        ends = None if often else ends_in_time(loop)

        def evaluate(t: Team, entered: Mask) -> Mask | None:
            resume, t.left[leave] = t.resume, None
            finished: Mask | None = None
            first = after if resume < 0 else resume > head
            m: Mask | None = entered
            turns, known, before = _resumed(t, entered, spin), (0, 0), None
            woken = resume == spin.spot
            if together is not None:
                together(t, entered)
            begun = t.steps
            while True:
                turns += 1
                # Nothing tells what a turn has changed that was begun before the threads waited; and a first
                # turn that nobody has tested is no look in vain.
                if often and turns > 0 and not turns % often and not first:
                    known, before = t.launch.known, _counts(t, spin)
                if test is not None and not first:
                    changes = t.launch.changes
                    m, stop = _tested(t, m, test, test_point, head, at)
                    if often == turns == 1 and stop is not None and changes == t.launch.changes:
                        stop = _seen(t, stop, test_point, head, at, resume < 0)
                    finished = join(finished, stop, entered)
                    if m is None:
                        break
                inside, first = m, False
                assert inside is not None
                if ends and not turns & turns - 1:  # seldom
                    ends(t, inside, turns - 1, begun)
                t.take_step(at, inside, counted)
                t.left[again] = None
                m = join(body(t, inside), t.left[again], inside)
                # All that entered are charged, because a warp that breaks has begun the iteration too.
                t.meter.charge(step_point, inside)
                if m is None:
                    break
                if step is not None:
                    step(t, m)
                if before is not None:
                    m, before = _spun(t, m, spin, before, known, at, turns, woken), None
                if shares and (t.apart or t.launch.more or len(t.launch.teams) > 1):
                    m = m and t.take_turns(head, m, at)
                if m is None:
                    break
            return join(finished, t.left[leave], entered)

        return evaluate


def _resumed(t: Team, m: Mask, spin: Spin) -> int:
    """The number of turns at which lanes enter a loop: less than 0 where its counter has leapt."""
    if t.resume != spin.head:  # or are on the way to a loop inside
        return 0
    t.resume = -1
    # A counter may come to its end in the turn after the next test.
    return -int(_leap(t, m, spin.patience))


def _counts(t: Team, spin: Spin) -> list[Any]:
    """What tells whether a turn has changed anything, and then what counts how long it waits."""
    return [t.slots[slot] for slot in (*spin.watched, *spin.patience)]


def _spun(
    t: Team, m: Mask, spin: Spin, before: list[Any], known: tuple[int, int], at: Position, turns: int,
    woken: bool,
) -> Mask | None:  # fmt: skip
    """Set the lanes aside for which a turn has changed nothing, or only the time."""
    changes, reads = t.launch.known
    timed = reads != known[1]
    if timed and spin.naps:
        t.launch.naps = True  # until time has gone by, or memory has changed
        return t.park(spin.spot, m, at, m.bits)
    if spin.looks and (timed or not turns % _LONG):
        # It gives up by the clock, or goes on: so first those go on who are on another side of a branch.
        gone = t.waiters.bits if t.exited is None else t.waiters.bits | t.exited.bits
        if not (gone | m.bits).all():
            return t.park(spin.spot, m, at, m.bits, turn=t.waiters.count + 1)
    if timed or changes != known[0]:
        return m
    now, n = _counts(t, spin), len(spin.watched)
    for slot, old, new in zip(spin.patience, before[n:], now[n:], strict=True):
        was, is_now = (t.array(count).astype(np.int64) for count in (old, new))
        t.paces[slot] = np.where(m.bits, is_now - was, t.paces.get(slot, 0))
    # Where not every turn counts, it may be that none will.
    patient = not unchanged(m, before[n:], now[n:]).any()
    patient = patient and bool((_turns_left(t, m, spin.patience) < _NEVER).any())
    same = unchanged(m, before[:n], now[:n])
    same = in_whole_blocks(m, same) if spin.meets else same
    if woken and turns == spin.often and same.any():
        t.meter.asleep(m, same)
    return t.spun(spin.spot, m, at, same, patient)


def _seen(t: Team, stop: Mask, point: int, head: int, at: Position, first: bool) -> Mask | None:
    """Let lanes that have seen what they waited for go on, once all others who may see it have looked."""
    if first:
        t.meter.woken(stop)
    teams = t.launch.teams
    others = (team.waiters.curious(t.launch.changes) for team in teams if team is not t)
    if t.launch.hostile is None and any(others):
        if not first:
            t.meter.asleep(stop, stop.bits)  # the look is charged when they go on
        teams.remove(t)
        teams.append(t)  # behind the others
        return t.park(head, stop, at, stop.bits, turn=t.waiters.count + 1)
    if first:  # what others write in this moment is not there yet, so a GPU looks once more
        t.meter.charge(point, stop)
    return stop


def _tested(
    t: Team, m: Mask, test: Evaluate, point: int, head: int, at: Position
) -> tuple[Mask | None, Mask | None]:
    """Test whether a loop goes on: the lanes that stay in it, and the others."""
    current = m
    while True:
        t.meter.charge(point, current)
        try:
            stay, stop = split(current, test(t, current))
        except Apart as apart:
            parted = t.park(head, current, at, apart.bits, apart)
            if parted is None:
                return None, None
            current = parted
            continue
        if stop is not None:
            t.meter.branch(point, stay, stop)
        return stay, stop


def _leap(t: Team, m: Mask, slots: Mapping[int, Sequence[Stop]]) -> bool:
    """Let threads that are hurried have counted as if they had waited until a counter comes to a stop."""
    if not slots or not t.hurried:
        return False
    t.hurried, launch, left = False, t.launch, _turns_left(t, m, slots)
    most = (launch.limits.leap or _NEVER) - launch.leapt
    turns = np.where(left == _NEVER, 0, np.minimum(left, most))
    for slot in slots:
        value = t.array(t.slots[slot]).copy()
        value[m.index] += (turns * t.paces[slot][m.index]).astype(value.dtype)
        t.slots[slot] = value
    launch.leapt += max(1, int(turns.max()))  # the turn that follows is one, too
    return True


def _turns_left(t: Team, m: Mask, slots: Mapping[int, Sequence[Stop]]) -> NDArray[np.int64]:
    """The number of turns until a counter of each thread comes to a stop; `_NEVER` if none will."""
    left = np.full(m.n, _NEVER)
    for slot, stops in slots.items():
        count, pace = t.array(t.slots[slot])[m.index], t.paces[slot][m.index]
        limits, ways = np.iinfo(count.dtype), np.maximum(abs(pace), 1)
        for run, more in stops:
            stop = more if run is None else t.array(run(t, m))[m.index].astype(np.int64) + more
            # A number that its type doesn't hold is never reached.
            held = (stop >= limits.min) & (stop <= min(_NEVER, limits.max))
            # One short of the largest number, so that the next turn doesn't make it wrap round.
            stop = np.minimum(stop, limits.max - 1)
            turns = (stop - count.astype(np.int64)) * np.sign(pace) // ways
            # Behind a stop, what it is for may still come, in the next turn or the one after that.
            ahead = (turns > -2) & (pace != 0) & held
            left = np.where(ahead, np.minimum(left, np.maximum(turns, 0)), left)
    return left


def _in_turn(body: Sequence[Execute], spans: Sequence[range]) -> Execute:
    waits = any(spans)

    def evaluate(t: Team, m: Mask) -> Mask | None:
        parts: Iterable[Execute] = body
        if waits and t.resume >= 0:
            parts = body[next(k for k, places in enumerate(spans) if t.resume in places) :]
        current: Mask | None = m
        for part in parts:
            current = part(t, current)
            if current is None:
                return None
        return current

    return evaluate


def _exiting(t: Team, m: Mask) -> None:
    t.exited = join(t.exited, m)


def expanded(step: form.Expansion, entry: Sequence[Execute], unset: Any, at: Position) -> Evaluate:
    """A call of a function that is written out: `entry` gives its parameters their values.

    `unset` stands for a result that has no value yet; None if the function returns nothing.
    """
    # Of the step, the closure keeps only what runs.
    slot, target, name, body = step.slot, step.exit, step.name, step.body
    body.steps = step

    def evaluate(t: Team, m: Mask) -> Any:
        if t.resume not in body.places:
            for give in entry:
                give(t, m)
        t.left[target] = None
        begin(t, m, slot, unset)
        if body.run is None:
            assert body.steps is not None
            body.run = Control().closure([form.Scoped(body.steps.steps, body.steps.ends)])
            body.steps = None
        fell_off = body.run(t, m)
        if fell_off is not None and unset is not None:
            text = f"reaches the end of '{name}', which returns no value there"
            t.fault(UninitialisedReadError, at, int(fell_off.index[0]), text, array=name)
        return t.slots[slot]

    return evaluate
