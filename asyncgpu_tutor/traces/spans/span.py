"""One interval on one lane: the only schema for time in this package."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast, get_args

T = TypeVar("T")
K = TypeVar("K")

SpanKind = Literal[
    "kernel",  # a kernel runs
    "h2d",  # a copy, host to device
    "d2h",  # a copy, device to host
    "d2d",  # a copy within the device
    "peer",  # a copy to another device
    "memset",  # a fill with a byte
    "graph",  # a CUDA graph, where what is inside of it cannot be seen
    "call",  # the host is inside a call that enqueues something
    "wait",  # the host is blocked until the device is done
    "work",  # the host works on something else
    "range",  # a named stretch of host time around other spans
]

DEVICE_KINDS: frozenset[SpanKind] = frozenset(
    ("kernel", "h2d", "d2h", "d2d", "peer", "memset", "graph")
)
SPAN_KINDS: frozenset[str] = frozenset(get_args(SpanKind))

# In place of the number of a stream, for pages of unified memory: they move when somebody touches them, and
# wait in no queue.
UNIFIED_MEMORY = -1


@dataclass(frozen=True, slots=True)
class Span:
    """One interval on one lane.

    Attributes
    ----------
    id : int
        Unique in its trace; ascending in the order in which the host asked for things.
    kind : SpanKind
        What it is.
    name : str
        For people: the kernel's name, or what is copied.
    start, end : float
        In us since the trace began. A kernel's bar begins when its first block has a place.
    device : str
        Such as ``"sim:0"`` or ``"cuda:0"``.
    stream : int or None
        Number of the stream. None on the host's lane.
    op : int or None
        Number of the submission that it belongs to: one run of one composed operation.
    label : str
        Name of that operation.
    after : tuple of int
        Ids of the spans that had to end before this one could start: the one before it on its
        stream, those that an event made it wait for, and the host call that enqueued it. For a wait
        of the host: those that had to end before it could *end*.
    detail : mapping
        More about it: ``bytes``, ``grid``, ``block``, the ``full_name`` of a kernel of C++ and the like. JSON
        values only.
    """

    id: int
    kind: SpanKind
    name: str
    start: float
    end: float
    device: str
    stream: int | None = None
    op: int | None = None
    label: str = ""
    after: tuple[int, ...] = ()
    detail: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def duration(self) -> float:
        """`end - start`, in us."""
        return self.end - self.start

    @property
    def on_device(self) -> bool:
        """True if the device was busy, and not the host."""
        return self.kind in DEVICE_KINDS

    @property
    def talks(self) -> bool:
        """True for what goes over a link between GPUs: copies to a peer, and collectives, ours or NCCL's."""
        if self.kind != "kernel":
            return self.kind == "peer"
        return "ranks" in self.detail or self.name.startswith("nccl")

    @property
    def host(self) -> str:
        """Whose host did it, where that is a worker in another process; else empty."""
        return str(self.detail.get("host", ""))

    @property
    def waited_for_room(self) -> float:
        """Time before `start`, in us, for which a kernel was ready and had no place; 0 where nobody knows."""
        waited = self.detail.get("waited_for_room", 0.0)
        return float(waited) if isinstance(waited, int | float) else 0.0

    @property
    def waits(self) -> Sequence[tuple[float, float]]:
        """From when to when a kernel did nothing but wait, in us; empty where nobody knows."""
        waits = cast("Iterable[tuple[float, float]]", self.detail.get("waits", ()))
        try:
            return [(self.start + since, self.start + until) for since, until in waits]
        except (TypeError, ValueError):  # somebody else's word for something else
            return []

    @property
    def title(self) -> str:
        """The writing on its bar: the name that the program gave, or in one word what the host called."""
        if self.kind == "wait":
            return "wait"
        if self.kind == "call":
            return self.name.removeprefix("enqueue ").partition(" ")[0]
        given = self.detail.get("named")
        return f"{given}: {self.name}" if given and given != self.name else self.name


def grouped(things: Iterable[T], by: Callable[[T], K]) -> dict[K, list[T]]:
    """Put together what has the same key, in order; `itertools.groupby` would have it sorted."""
    found: dict[K, list[T]] = {}
    for thing in things:
        found.setdefault(by(thing), []).append(thing)
    return found


def by_number(device: str) -> str:
    """The key by which devices are sorted: sim:2 comes before sim:10."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(9), device)


def call_name(kind: SpanKind, name: str) -> str:
    """Name of the host's call that enqueues a device span."""
    if kind == "graph":
        return f"launch graph {name}"
    return f"launch {name}" if kind == "kernel" else f"enqueue {name}"
