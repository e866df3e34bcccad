"""The promises that hold for each trace that was read, however odd or damaged its file."""

import math

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.analysis.idle import Evidence, idle_of_streams

IDLE = {"hidden synchronisation", "lazy module loading", "allocation in the loop"}


def hold(trace: Trace) -> None:
    """No cause comes after its effect, and nothing costs more time than there was."""
    by_id = {span.id: span for span in trace}
    for span in trace:
        latest = span.end if span.kind == "wait" else span.start
        assert all(by_id[i].start <= latest for i in span.after if i in by_id)
    m = trace.metrics()
    close = 1e-6 * (1 + m.makespan)
    for name in trace.devices or [""]:
        part = trace.of(name) if name else trace
        m, found, facts = part.metrics(), agt.diagnose(part), Evidence(part)
        pauses = idle_of_streams(facts)
        assert all(p.blocker is None or p.blocker.start <= p.end for p in pauses)
        for _, stream in m.stream_busy:
            own = [p.duration for p in pauses if p.span.stream == stream]
            assert math.fsum(own) <= m.device_makespan + close
        idle = math.fsum(p.duration for p in facts.idle)
        assert math.isclose(idle, m.device_idle, abs_tol=close)
        assert all(0 <= f.cost <= m.makespan + close for f in found)
        for kinds in (IDLE, {"host-bound"}, {"gaps"}):
            told = math.fsum(f.cost for f in found if f.name in kinds)
            assert told <= m.makespan - m.device_active + close
        free = [not f.cost for f in found]
        assert free == sorted(free)
