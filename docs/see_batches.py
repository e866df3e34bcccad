"""Draw 64 requests to the service of answers.py, one by one and in batches of 32, as a GPU had them."""

import asyncio

from answers import DTYPE, SHAPE, InThreads, example, model

import asyncgpu_tutor as agt

agt.use("cuda")  # or an error, if there's no GPU


async def sixty_four(max_batch):
    service = InThreads(model, SHAPE, DTYPE, max_batch)
    running = asyncio.create_task(service.run())
    for _ in range(2):  # drawn is the second, for which all is loaded
        with agt.record("all") as trace:
            await asyncio.gather(*map(service, example(64)))
    running.cancel()
    await asyncio.wait([running])
    return trace


traces = [asyncio.run(sixty_four(max_batch)) for max_batch in (1, 32)]
took = [trace.metrics().makespan / 1000 for trace in traces]
print("one by one %.1f ms, in batches %.1f ms" % tuple(took))
titles = ["64 requests, one by one", "the same 64, in two batches"]
agt.compare_timelines(traces, titles, together=True).save("torch_batches.svg")
