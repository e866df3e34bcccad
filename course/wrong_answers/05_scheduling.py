"""Plausible wrong answers to the exercises of course/05_scheduling.py; see tools/build_notebooks.py."""


# %% id=05-round-robin cause="13 streams were used, and the pool has 3"
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def next_stream(self):
        return self.device.create_stream()


# %% id=05-round-robin of=above cause="has no device yet"
# - self.size = size
# + self.streams = [self.device.create_stream() for _ in range(size)]
# + self.turn = 0
# - return self.device.create_stream()
# + self.turn += 1
# + return self.streams[self.turn % len(self.streams)]


# %% id=05-round-robin of=above cause="make it by `self.device.create_stream()`"
# - self.size = size
# + self.streams = [agt.create_stream() for _ in range(size)]
# + self.turn = -1
# - return self.device.create_stream()
# + self.turn += 1
# + return self.streams[self.turn % len(self.streams)]


# %% id=05-round-robin of=above cause="this is a policy, made from your class"
#   class RoundRobin(agt.SchedulingPolicy):
#   return self.device.create_stream()
# +
# +
# + RoundRobin = RoundRobin(4)


# %% id=05-round-robin of=starter cause="`job1` went to the stream of `job0`, although there was a stream that had no job yet"
# - return self.device.default_stream  # your code
# + if not self.streams:
# +     self.streams = [self.device.create_stream() for _ in range(self.size)]
# + return self.streams[0]


# %% id=05-round-robin cause="4 streams were used, and the pool has 3"
# - self.turn = -1
# + self.turn = 0
# - if len(self.streams) < self.size:
# + turn = self.turn % (self.size + 1)
# + if turn == len(self.streams):
# - return self.streams[self.turn % self.size]
# + return self.streams[turn]


# %% id=05-round-robin cause="`job3` did not go to the stream of `job0`, whose turn it was"
# - self.turn = -1
# - self.turn += 1
# - return self.streams[self.turn % self.size]
# + return self.streams[-1]


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


# %% id=05-round-robin cause="should be a subclass of `agt.SchedulingPolicy`"
class RoundRobin:
    def __init__(self, size):
        self.size = size


# %% id=05-pool-size cause="2 streams won't be enough: a job would wait for a stream"
def streams_needed(length, pace, room):
    return max(1, min(int(length / pace), room))


# %% id=05-pool-size cause="40 streams would be more than you can use: 3 will do"
def streams_needed(length, pace, room):
    return int(np.ceil(length / pace))


# %% id=05-pool-size cause="16 streams would be more than you can use: 3 will do"
def streams_needed(length, pace, room):
    return room


# %% id=05-pool-size cause="a number of streams should be an `int`"
def streams_needed(length, pace, room):
    return min(length / pace, room)


# %% id=05-pool-size cause="4 streams would be more than you can use: 3 will do"
def streams_needed(length, pace, room):
    return min(length // pace + 1, room)


# %% id=05-pool-size cause="2 streams won't be enough"
def streams_needed(length, pace, room):
    return max(1, min(round(length / pace), room))


# %% id=05-pool-size cause="12 streams would be more than you can use"
def streams_needed(length, pace, room):
    return min(int(np.ceil(length / pace)) * 4, room)


# %% id=05-least-loaded cause="ends last, on a stream that had more to do than the others"
# - self.load = [0.0] * size
# - self.us = 0.0
# + self.load = [0] * size
# - self.us = us
# + pass
# - self.load[i] += self.us
# + self.load[i] += 1  # counts jobs


# %% id=05-least-loaded cause="the score is"
# - i = self.load.index(min(self.load))
# + i = self.load.index(max(self.load))


# %% id=05-least-loaded cause="'LeastLoaded' object has no attribute 'expect'"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()

    def next_stream(self):
        return self.device.create_stream()


# %% id=05-least-loaded of=above cause="9 streams were used, and the pool has 3"
#   def __init__(self, size):
#   super().__init__()
# +
# + def expect(self, us):
# +     pass


# %% id=05-when-it-pays cause="with a program of many small kernels"
def best_possible(trace):
    m = trace.metrics()
    return max(m.engine_busy.values())


# %% id=05-when-it-pays cause="with a program of uploads"
def best_possible(trace):
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    calls = [span for span in trace if span.kind == "call"]
    host = calls[-1].end - calls[0].start
    return max(host, sum(span.duration * span.detail["fills"] for span in kernels))


# %% id=05-when-it-pays cause="with a program of wide kernels and narrow ones"
def best_possible(trace):
    m = trace.metrics()
    jobs = {}
    for span in trace.device_spans:
        jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
    calls = [span for span in trace if span.kind == "call"]
    return max(calls[-1].end - calls[0].start, *m.engine_busy.values(), *jobs.values())


# %% id=05-when-it-pays of=above cause="with a program of downloads, and one upload"
#   m = trace.metrics()
# + copies = sum(busy for (_, engine), busy in m.engine_busy.items() if engine != "compute")
# + kernels = [span for span in trace.device_spans if span.kind == "kernel"]
# + work = sum(span.duration * span.detail["fills"] for span in kernels)
# - return max(calls[-1].end - calls[0].start, *m.engine_busy.values(), *jobs.values())
# + return max(calls[-1].end - calls[0].start, copies, work, *jobs.values())


# %% id=05-when-it-pays cause="with a program of kernels that fill the device"
# - walls.append(sum(span.duration * span.detail.get("fills", 0.0) for span in trace.device_spans))


# %% id=05-when-it-pays cause="with a program of"
def best_possible(trace):
    m = trace.metrics()
    calls = [span for span in trace if span.kind == "call"]
    walls = [calls[-1].end - calls[0].start]
    walls += [busy for (_, engine), busy in m.engine_busy.items() if engine != "compute"]
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    walls.append(sum(span.duration * span.detail["fills"] for span in kernels))
    return max(walls)


# %% id=05-when-it-pays of=above cause="with a program of jobs, of which one has many pieces"
# - return max(walls)
# + return max(*walls, *[span.duration for span in trace.device_spans])  # pieces, not jobs


# %% id=05-when-it-pays of=above cause="with a program of"
#   walls.append(sum(span.duration * span.detail["fills"] for span in kernels))
# + jobs = {}
# + for span in trace.device_spans:
# +     jobs.setdefault(span.op, []).append(span)
# + walls += [max(s.end for s in job) - min(s.start for s in job) for job in jobs.values()]


# %% id=05-when-it-pays cause="a time in µs should come out"
def best_possible(trace):
    m = trace.metrics()
    return {"host": m.host["call"], **m.engine_busy}


# %% id=05-when-it-pays cause="a time in µs should come out, and not nan"
def best_possible(trace):
    return float("nan")


# %% id=05-challenge of=starter cause="takes 360 µs: get below 340 µs. `job10` ends last: what did it wait for?"
# - for i, (op, _) in enumerate(jobs):
# + for i, (op, us) in enumerate(sorted(jobs, key=lambda job: -job[1])):


# %% id=05-challenge cause="it's right, but it takes"
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(5)]
    for i, (op, us) in enumerate(jobs):
        op.async_on(streams[i % 5])


# %% id=05-challenge cause="it's right, but it takes"
def run_jobs(jobs):
    agt.overlap(*[op for op, us in jobs]).sync()


# %% id=05-challenge cause="`job1` ran 0 times, and should run once"
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(3)]
    long = [op for op, us in jobs if us > 100]
    for op, stream in zip(long, streams, strict=True):
        op.async_on(stream)


# %% id=05-round-robin cause="make it by `self.device.create_stream()`"
# - self.streams.append(self.device.create_stream())
# + self.streams.append(agt.create_stream())


# %% id=05-round-robin cause="which stream is next, and waits for nobody"
# - return self.streams[self.turn % self.size]
# + s = self.streams[self.turn % self.size]
# + s.synchronize()
# + return s


# %% id=05-round-robin cause="`StreamPoolRoundRobin` picked the stream"
def RoundRobin(size):
    return agt.StreamPoolRoundRobin(size)


# %% id=05-pool-size cause="4 streams won't be enough"
def streams_needed(length, pace, room):
    import math

    return max(1, min(int(length / pace + 0.999), room))


# %% id=05-least-loaded cause="with 21 jobs on 3 streams, the score is"
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0
        self.us = 0.0
        self.loads = []

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
            self.loads = [0.0] * self.size
        i = self.loads.index(min(self.loads))
        self.loads[i] += self.us if self.us > 50 else 0
        return self.streams[i]


# %% id=05-least-loaded of=above cause="with 21 jobs on 3 streams, the score is"
# - self.loads[i] += self.us if self.us > 50 else 0
# + self.loads[i] += self.us // 100


# %% id=05-least-loaded of=above cause="with 21 jobs on 3 streams, the score is"
#   if not self.streams:
#   self.loads = [0.0] * self.size
# + self.turn += 1
# + if self.turn % 10 == 0:
# +     self.loads = [0.0] * self.size
# - self.loads[i] += self.us if self.us > 50 else 0
# + self.loads[i] += self.us


# %% id=05-least-loaded of=above cause="make it by `self.device.create_stream()`"
# - self.streams = [self.device.create_stream() for _ in range(self.size)]
# + self.streams = [agt.create_stream() for _ in range(self.size)]
# - self.loads[i] += self.us if self.us > 50 else 0
# + self.loads[i] += self.us


# %% id=05-when-it-pays cause="75 µs came out, and it should be 301 µs"
def best_possible(trace):
    m = trace.metrics()
    calls = [span for span in trace if span.kind == "call"]
    walls = [calls[-1].end - calls[0].start]
    walls += [m.engine_busy.get(("sim:0", e), 0) for e in ("h2d", "d2h")]
    walls.append(
        sum(s.duration * s.detail["fills"] for s in trace.device_spans if s.kind == "kernel")
    )
    jobs = {}
    for s in trace.device_spans:
        jobs[s.op] = jobs.get(s.op, 0) + s.duration
    walls.append(max(jobs.values(), default=0))
    return max(walls)


# %% id=05-round-robin cause="whose turn it was"
# - self.size = size
# - self.streams = []
# - self.turn = -1
# + self.size, self.streams, self.turn = size, [], -1
# - self.turn += 1
# + self.turn += 1
# + if self.turn == 3 * self.size:
# +     self.turn += 1


# %% id=05-challenge cause="takes things out of its caller's list"
def run_jobs(jobs):
    jobs.sort(key=lambda j: j[1])
    while jobs:
        jobs.pop()[0].async_on(agt.create_stream())


# %% id=05-pool-size cause="nothing of it ran: an `async def`"
async def streams_needed(length, pace, room):
    import math

    return max(1, min(math.ceil(length / pace), room))


# %% id=05-when-it-pays cause="with a program of small uploads, 25 µs came out, and it should be 131 µs"
def best_possible(trace):
    m = trace.metrics()
    launches = [s for s in trace if s.kind == "call" and s.name.startswith("launch")]
    walls = [launches[-1].end - launches[0].start] if launches else [0.0]
    for (device, engine), us in m.engine_busy.items():
        if engine != "compute":
            walls.append(us)
    sms = 0.0
    per_op = {}
    for span in trace.device_spans:
        if "fills" in span.detail:
            sms += span.duration * span.detail["fills"]
        per_op[span.op] = per_op.get(span.op, 0.0) + span.duration
    walls.append(sms)
    walls.append(max(per_op.values()))
    return max(walls)


# %% id=05-round-robin cause="with a pool of 10, two pools share a stream, or a turn"
class RoundRobin(agt.SchedulingPolicy):
    turn = -1

    def __init__(self, size):
        super().__init__()
        self.size, self.streams = size, {}

    def next_stream(self):
        RoundRobin.turn += 1
        turn = RoundRobin.turn % self.size
        if turn not in self.streams:
            self.streams[turn] = self.device.create_stream()
        return self.streams[turn]


# %% id=05-least-loaded cause="after another policy got a very long one (what a policy knows belongs in `self`)"
#   class LeastLoaded(agt.SchedulingPolicy):
# +     load = [0.0] * 16
# +
# - self.size = size
# - self.streams = []
# - self.load = [0.0] * size
# - self.us = 0.0
# + self.size, self.streams, self.us = size, [], 0.0
# - i = self.load.index(min(self.load))
# + i = min(range(self.size), key=self.load.__getitem__)


# %% id=05-when-it-pays cause="with a program of wide kernels and narrow ones, 588 µs came out"
# - walls.append(sum(span.duration * span.detail.get("fills", 0.0) for span in trace.device_spans))
# + kernels = [span for span in trace.device_spans if span.kind == "kernel"]
# + widest = max([span.detail["fills"] for span in kernels], default=0.0)
# + walls.append(widest * sum(span.duration for span in kernels))


# %% id=05-round-robin cause="two pools share a stream, or a turn: make each stream by `create_stream()`"
# - self.streams.append(self.device.create_stream())
# + self.streams.append(self.device.create_stream() if self.streams else self.device.default_stream)


# %% id=05-pool-size cause="with jobs of 0 µs, one every 40 µs, and room for 16, 0 streams won't be enough"
# - return max(1, min(int(np.ceil(length / pace)), room))
# + return min(int(np.ceil(length / pace)), room)


# %% id=05-pool-size cause="64 streams won't be enough"
# - return max(1, min(int(np.ceil(length / pace)), room))
# + return max(1, min(int(np.ceil(length / pace)), room, 64))


# %% id=05-challenge cause="your function puts its caller's list into another order"
# - longest_first = sorted(jobs, key=lambda job: -job[1])
# - for op, us in longest_first:
# + jobs.sort(key=lambda job: -job[1])
# + for op, us in jobs:


# %% id=05-challenge cause="`job0` ran 0 times, and should run once"
# - longest_first = sorted(jobs, key=lambda job: -job[1])
# + longest_first = [job for job in jobs if job[1] > 100] + [job for job in jobs if job[1] < 100]


# %% id=05-challenge cause="`job12` ran 0 times, and should run once"
# - longest_first = sorted(jobs, key=lambda job: -job[1])
# + longest_first = sorted(jobs[:12], key=lambda job: -job[1])


# %% id=05-challenge cause="it's right, but it takes"
# - longest_first = sorted(jobs, key=lambda job: -job[1])
# + longest_first = jobs[::4] + [job for i, job in enumerate(jobs) if i % 4]


# %% id=05-challenge cause="has no order, because it describes work"
# - longest_first = sorted(jobs, key=lambda job: -job[1])
# + longest_first = sorted(jobs, reverse=True)


# %% id=05-when-it-pays cause="163 µs came out, and it should be 207 µs: in this program, the host's calls"
# - calls = [span for span in trace if span.kind == "call"]
# - walls = [calls[-1].end - calls[0].start]
# + walls = [m.host["call"]]
