"""Right answers to exercises of course/05_scheduling.py in other forms than the solution's."""


# %% id=05-round-robin
class RoundRobin(agt.SchedulingPolicy):
    """Round robin, written with a generator, without the constructor of the class that it is derived from."""

    def __init__(self, size):
        self.size = size
        self.turns = None

    def _forever(self):
        streams = []
        for _ in range(self.size):
            streams.append(self.device.create_stream())
            yield streams[-1]
        while True:
            yield from streams

    def next_stream(self):
        self.turns = self.turns or self._forever()
        return next(self.turns)


# %% id=05-pool-size
import numpy as np


streams_needed = lambda length, pace, room: np.int64(max(1, min(-(-length // pace), room)))


# %% id=05-when-it-pays
from asyncgpu_course import solved
import numpy as np


best_possible = lambda trace: np.float32(solved("05-when-it-pays")(trace))


# %% id=05-challenge
def run_jobs(jobs):
    lanes = [agt.create_stream() for _ in range(3)]
    for op, stream in zip([op for op, us in jobs if us > 100], lanes):
        op.named("long").async_on(stream)
    agt.zip(*[op for op, us in jobs if us <= 100]).async_on(agt.create_stream())


# %% id=05-least-loaded
import heapq


class LeastLoaded(agt.SchedulingPolicy):
    """Streams in a heap, each behind what it has been given."""

    def __init__(self, size):
        super().__init__()
        self.size, self.heap, self.us = size, [], 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if len(self.heap) < self.size:
            given, stream = 0.0, self.device.create_stream()
        else:
            given, _, stream = heapq.heappop(self.heap)
        heapq.heappush(self.heap, (given + self.us, stream.number, stream))
        return stream


# %% id=05-round-robin
class RoundRobin(agt.SchedulingPolicy):
    """All streams are made at once, when the first is asked for."""

    def __init__(self, size):
        super().__init__()
        self.size, self.streams, self.turn = size, [], -1

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        self.turn += 1
        return self.streams[self.turn % self.size]


# %% id=05-challenge
def run_jobs(jobs):
    """Each job takes as long as is said; a record costs hardly any time."""
    from asyncgpu_course import solved

    with agt.record() as trace:
        solved("05-challenge")(jobs)
        agt.synchronize()
    lengths = {f"job{i}": us for i, (_, us) in enumerate(jobs)}
    assert all(abs(span.duration - lengths[span.name]) < 0.5 for span in trace.device_spans)
