"""Several streams together move no more data within device memory than that memory delivers."""

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice

N = 1 << 24  # elements: 64 MiB


def fill_or_copy(x: agt.DeviceArray, y: agt.DeviceArray | None) -> agt.DeviceOp[None]:
    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceOp[None]:
        context.memset(x) if y is None else context.copy(x, y)
        return agt.value(None)

    return agt.with_context(enqueue)


@pytest.mark.parametrize("copies", [False, True])
def test_streams_share_the_memory(sim: SimDevice, copies: bool) -> None:
    pairs = [(agt.zeros(N).sync(), agt.zeros(N).sync()) for _ in range(4)]
    with agt.record() as trace:
        for x, y in pairs:
            fill_or_copy(x, y if copies else None).async_on(agt.create_stream())
        agt.synchronize()
    spans = trace.device_spans
    assert len(spans) == 4
    took = max(span.end for span in spans) - min(span.start for span in spans)
    assert len(pairs) * 4 * N * (1 + copies) / (took * 1e3) <= sim.spec.dram_gb_s
    assert trace.metrics().overlap > 1  # and yet they are under way side by side
