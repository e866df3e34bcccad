"""Launches that were computed before, and need not be interpreted again.

Lessons run a pipeline again and again: on one stream and on four, to warm up and to measure, and each
attempt at an exercise once more. Interpreting is by far the slowest thing that we do. The same kernel on
the same bytes does the same, and to compare bytes takes a thousandth of what it takes to interpret what
reads them. So launches are kept, with the bytes before and after them. They are found by a checksum of the
bytes, and then compared. A version of each array would be less work, but an input that was copied anew has
a new version and the same bytes. What else a result depends on has to be in the key, and where it can't be,
because a kernel follows addresses or waits for others, the launch isn't kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from weakref import WeakValueDictionary

from simgpu.cuda_c import GlobalMemory, LaunchResult, MemoryState
from simgpu.sampled_reference import Values

Done = tuple[LaunchResult, str | None]  # how its values were computed, if in no usual way

ROOM = 128 << 20  # bytes of launches that are kept in all
LARGEST = 32 << 20  # bytes of the memory that one launch is given
OVERHEAD = 16 << 10  # bytes of a launch besides its arrays, of which it may have none


@dataclass(frozen=True, eq=False)
class _PastLaunch:
    """The contents of some memories before a launch, and of those that it changed after it."""

    before: list[MemoryState]
    after: list[MemoryState | None]
    done: Done


class Remembered:
    """The latest launches that did not fail, as far as there is room."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.used = 0
        self._launches: OrderedDict[Hashable, _PastLaunch] = OrderedDict()
        # What several launches were given, such as weights, is kept once; and so is what one has left to the
        # next. It takes room for as long as one of them holds it.
        self._states: WeakValueDictionary[Hashable, MemoryState] = WeakValueDictionary()
        self._holders = dict[MemoryState, int]()
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
        memories, order = list(places.values()), [*places]
        given: list[Hashable] = [
            order.index(id(v))
            if isinstance(v, GlobalMemory)
            else None
            if v is None
            else (v.dtype.char, v.tobytes())
            for v in values
        ]
        if sum(map(attrgetter("nbytes"), memories)) > LARGEST:
            return execute()
        sums = [*map(GlobalMemory.checksum, memories)]
        key = (kind, tuple(given), tuple(sums))
        with self._lock:
            known = self._launches.get(key)
        if known is not None and all(map(GlobalMemory.holds, memories, known.before)):
            for memory, state in zip(memories, known.after, strict=True):
                if state is not None:
                    memory.become(state)
            with self._lock:
                if key in self._launches:
                    self._launches.move_to_end(key)
            return known.done
        before = [*map(self._state, memories, sums)]
        done, after = execute(), list[MemoryState | None]()
        for memory, state in zip(memories, before, strict=True):
            changed = not memory.holds(state)
            after.append(self._state(memory, memory.checksum()) if changed else None)
        self._keep(key, _PastLaunch(before, after, done))
        return done

    def _state(self, memory: GlobalMemory, checksum: Hashable) -> MemoryState:
        """What a memory holds now, as it is known, or a new copy of it."""
        state = self._states.get(checksum)
        if state is None or not memory.holds(state):
            state = self._states[checksum] = memory.state()
        return state

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._launches.clear()
            self._holders.clear()
            self.used = 0

    def _keep(self, key: Hashable, launch: _PastLaunch) -> None:
        with self._lock:
            replaced = self._launches.pop(key, None)
            if replaced is not None:
                self._count(replaced, -1)
            self._launches[key] = launch
            self._count(launch, 1)
            while self.used > self.room:
                _, oldest = self._launches.popitem(last=False)
                self._count(oldest, -1)

    def _count(self, launch: _PastLaunch, by: int) -> None:
        """Reckon with the room that a launch takes (1), or gives back (-1)."""
        self.used += by * OVERHEAD
        for state in (*launch.before, *filter(None, launch.after)):
            held = self._holders.pop(state, 0)
            if held + by:
                self._holders[state] = held + by
            if not held or not held + by:
                self.used += by * state.nbytes


LAUNCHES = Remembered()  # of all simulated devices of the process
