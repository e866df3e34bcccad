"""Launches that were computed before, and need not be interpreted again.

Lessons run a pipeline again and again: on one stream and on four, to warm up and to measure, and each
attempt at an exercise once more. Interpreting is by far the slowest thing that we do. The same kernel on
the same bytes does the same, and to compare bytes takes a thousandth of what it takes to interpret what
reads them. So launches are kept, with the bytes before and after them. Comparing the bytes,
and not a version of each array, also finds inputs that were copied anew. What else a result depends on has
to be in the key, and where it can't be, because a kernel follows addresses or waits for others, the launch
isn't kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from simgpu.cuda_c import GlobalMemory, LaunchResult, MemoryState
from simgpu.sampled_reference import Values

Done = tuple[LaunchResult, str | None]  # how its values were computed, if in no usual way

ROOM = 128 << 20  # bytes of launches that are kept in all
LARGEST = 32 << 20  # bytes of the memory that one launch is given
EACH = 8  # launches of one kind that are kept: each is compared with
OVERHEAD = 16 << 10  # bytes of a launch besides its arrays, of which it may have none


@dataclass(frozen=True, eq=False)
class _PendingLaunch:
    """The contents of some memories before a launch, and of those that it changed after it."""

    before: list[MemoryState]
    after: list[MemoryState | None]
    done: Done


class Remembered:
    """The latest launches that did not fail, as far as there is room."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.used = 0
        self._launches: OrderedDict[Hashable, list[_PendingLaunch]] = OrderedDict()
        self._lock = threading.Lock()

    def run(
        self,
        kind: Hashable,
        values: Values,
        variables: Iterable[GlobalMemory],
        execute: Callable[[], Done],
    ) -> Done:
        """The same as `execute`, which is a launch on `values`, its arguments.

        `kind` tells launches apart besides these: the kernel, its shape. `variables` are what else it can
        read and write.
        """
        # The same memory given twice is not the same as two that hold the same.
        places = {id(v): v for v in (*values, *variables) if isinstance(v, GlobalMemory)}
        memories = list(places.values())
        order = {place: number for number, place in enumerate(places)}
        given: list[Hashable] = [
            order[id(v)] if isinstance(v, GlobalMemory) else v and (v.dtype.char, v.tobytes())
            for v in values
        ]
        shapes = [(memory.nbytes, memory.readonly) for memory in memories]
        key = (kind, tuple(given), tuple(shapes))
        if sum([nbytes for nbytes, _ in shapes]) > LARGEST:
            return execute()
        with self._lock:
            known = list(self._launches.get(key, ()))
        before: list[MemoryState | None] = [None] * len(memories)
        for launch in known:
            held = [*map(GlobalMemory.holds, memories, launch.before)]
            if all(held):
                for memory, state in zip(memories, launch.after, strict=True):
                    if state is not None:
                        memory.become(state)
                with self._lock:
                    if key in self._launches:
                        self._launches.move_to_end(key)
                return launch.done
            # What another launch has kept of an array, such as weights, is kept once.
            same = zip(before, held, launch.before, strict=True)
            before = [state if holds else mine for mine, holds, state in same]
        states = [state or memory.state() for state, memory in zip(before, memories, strict=True)]
        done = execute()
        after = [
            None if memory.holds(state) else memory.state()
            for memory, state in zip(memories, states, strict=True)
        ]
        self._keep(key, _PendingLaunch(states, after, done))
        return done

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._launches.clear()
            self.used = 0

    def _keep(self, key: Hashable, launch: _PendingLaunch) -> None:
        with self._lock:
            launches = self._launches.pop(key, [])
            self.used -= _nbytes(launches)
            launches = self._launches[key] = [*launches[1 - EACH :], launch]
            self.used += _nbytes(launches)
            while self.used > self.room:
                _, oldest = self._launches.popitem(last=False)
                self.used -= _nbytes(oldest)


LAUNCHES = Remembered()  # of all simulated devices of the process


def _nbytes(launches: list[_PendingLaunch]) -> int:
    """What they keep: of arrays some keep one together."""
    states = {id(s): s for launch in launches for s in (*launch.before, *launch.after) if s}
    return OVERHEAD * len(launches) + sum([state.nbytes for state in states.values()])
