"""Plausible wrong answers to the exercises of course/05_scheduling.py; see tools/build_notebooks.py."""


# %% id=05-round-robin cause="7 streams were used, and the pool has 3"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def next_stream(self):
        return self.device.create_stream()


# %% id=05-round-robin cause="`job1` went to the stream of `job0`, and a stream that had nothing yet was there"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        return self.streams[0]


# %% id=05-round-robin cause="4 streams were used, and the pool has 3"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0

    def next_stream(self):
        turn = self.turn % (self.size + 1)
        if turn == len(self.streams):
            self.streams.append(self.device.create_stream())
        self.turn += 1
        return self.streams[turn]


# %% id=05-round-robin cause="`job3` did not go to the stream of `job0`, whose turn it was"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []

    def next_stream(self):
        if len(self.streams) < self.size:
            self.streams.append(self.device.create_stream())
        return self.streams[-1]


# %% id=05-round-robin cause="two pools share a stream"
class RoundRobin(agt.SchedulingPolicy):
    streams = []

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.turn = 0

    def next_stream(self):
        turn = self.turn % self.size
        if turn == len(self.streams):
            self.streams.append(self.device.create_stream())
        self.turn += 1
        return self.streams[turn]


# %% id=05-round-robin cause="has no device yet"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.streams = [self.device.create_stream() for _ in range(size)]
        self.turn = 0

    def next_stream(self):
        self.turn += 1
        return self.streams[self.turn % len(self.streams)]


# %% id=05-round-robin cause="should be a subclass of `agt.SchedulingPolicy`"
class RoundRobin:
    def __init__(self, size):
        self.size = size


# %% id=05-pool-size cause="2 streams are too few: a job would wait for a stream"
def streams_needed(length, pace, fills):
    at_work = min(length / pace, 1 / fills)
    return max(1, int(at_work))


# %% id=05-pool-size cause="3 streams are more than can be of use: 1 are enough"
def streams_needed(length, pace, fills):
    return max(1, int(np.ceil(length / pace)))


# %% id=05-pool-size cause="are more than can be of use"
def streams_needed(length, pace, fills):
    return max(1, int(np.ceil(1 / fills)))


# %% id=05-pool-size cause="a number of streams is an `int`"
def streams_needed(length, pace, fills):
    return min(length / pace, 1 / fills)


# %% id=05-pool-size cause="are more than can be of use"
def streams_needed(length, pace, fills):
    return int(min(length / pace, 1 / fills)) + 1


# %% id=05-pool-size cause="are too few"
def streams_needed(length, pace, fills):
    return max(1, round(min(length / pace, 1 / fills)))


# %% id=05-least-loaded cause="ends last, on a stream that had more to do than others"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.load = [0] * size

    def expect(self, us):
        pass

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        i = self.load.index(min(self.load))
        self.load[i] += 1  # counts jobs
        return self.streams[i]


# %% id=05-least-loaded cause="the score is"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.load = [0.0] * size
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        i = self.load.index(max(self.load))
        self.load[i] += self.us
        return self.streams[i]


# %% id=05-least-loaded cause="the score is"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.load = [0.0] * size
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        i = self.load.index(min(self.load))
        self.load[i] = self.us  # the last job, not the sum
        return self.streams[i]


# %% id=05-least-loaded cause="the score is"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0

    def expect(self, us):
        pass

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        for stream in self.streams:
            if stream.done:
                return stream
        self.turn += 1
        return self.streams[self.turn % self.size]


# %% id=05-least-loaded cause="9 streams were used, and the pool has 3"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()

    def expect(self, us):
        pass

    def next_stream(self):
        return self.device.create_stream()


# %% id=05-least-loaded cause="'LeastLoaded' object has no attribute 'expect'"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()

    def next_stream(self):
        return self.device.create_stream()


# %% id=05-express cause="is short, and shares stream"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        if self.us > self.limit:
            return self.streams[-1]
        self.turn += 1
        return self.streams[self.turn % self.size]


# %% id=05-express cause="the short jobs should take turns on 2 streams"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        return self.streams[-1] if self.us > self.limit else self.streams[0]


# %% id=05-express cause="the long jobs belong on one stream"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        if self.us < self.limit:
            return self.streams[-1]
        self.turn += 1
        return self.streams[self.turn % (self.size - 1)]


# %% id=05-express cause="4 streams were used, and the pool has 3"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.limit = limit
        self.short = agt.StreamPoolRoundRobin(size)
        self.long = agt.SingleStream()
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        policy = self.long if self.us > self.limit else self.short
        policy.bind(self.device)
        return policy.next_stream()


# %% id=05-express cause="dealt out [4]"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        self.turn += 1  # for a long one, too
        if self.us > self.limit:
            return self.streams[-1]
        return self.streams[self.turn % (self.size - 1)]


# %% id=05-express cause="the short jobs should take turns on 2 streams"
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.asked = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        self.asked += 1
        if self.us > self.limit:
            return self.streams[-1]
        return self.streams[min(self.asked, self.size - 1) - 1]


# %% id=05-when-it-pays cause="for a program of many small kernels"
def best_possible(trace):
    m = trace.metrics()
    return max(m.engine_busy.values())


# %% id=05-when-it-pays cause="for a program of uploads"
def best_possible(trace):
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    return max(m.host["call"], sum(span.duration * span.detail["fills"] for span in kernels))


# %% id=05-when-it-pays cause="for a program of downloads, and one upload"
def best_possible(trace):
    m = trace.metrics()
    copies = sum(busy for (_, engine), busy in m.engine_busy.items() if engine != "compute")
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    work = sum(span.duration * span.detail["fills"] for span in kernels)
    jobs = {}
    for span in trace.device_spans:
        jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
    return max(m.host["call"], copies, work, *jobs.values())


# %% id=05-when-it-pays cause="for a program of long and narrow jobs"
def best_possible(trace):
    m = trace.metrics()
    jobs = {}
    for span in trace.device_spans:
        jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
    return max(m.host["call"], *m.engine_busy.values(), *jobs.values())


# %% id=05-when-it-pays cause="for a program of kernels that fill the device"
def best_possible(trace):
    m = trace.metrics()
    walls = [m.host["call"]]
    walls += [busy for (_, engine), busy in m.engine_busy.items() if engine != "compute"]
    jobs = {}
    for span in trace.device_spans:
        jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
    return max(walls + list(jobs.values()))


# %% id=05-when-it-pays cause="for a program of"
def best_possible(trace):
    m = trace.metrics()
    walls = [m.host["call"]]
    walls += [busy for (_, engine), busy in m.engine_busy.items() if engine != "compute"]
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    walls.append(sum(span.duration * span.detail["fills"] for span in kernels))
    return max(walls)


# %% id=05-when-it-pays cause="for a program of many small kernels"
def best_possible(trace):
    return trace.metrics().device_makespan


# %% id=05-when-it-pays cause="a time in µs should come out"
def best_possible(trace):
    m = trace.metrics()
    return {"host": m.host["call"], **m.engine_busy}


# %% id=05-when-it-pays cause="a time in µs should come out, and this did: nan"
def best_possible(trace):
    return float("nan")
