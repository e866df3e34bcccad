"""Right answers to exercises of course/09_cuda_graphs.py in other forms than the solution's."""


# %% id=09-first-graph
def replay(op, stream, times):
    graph = op.prepare().launch().graph_on(stream)
    for _ in range(times - 1):
        graph.launch().async_on(stream)
    graph.launch().sync_on(stream)
    return graph


# %% id=09-token-loop of=starter
# + import numpy as np
# +
# +
# - results.append(await graph.launch())
# + await agt.memcpy(x.borrow(), token)
# + results.append(np.array(await graph.launch()))


# %% id=09-token-loop
async def run_tokens(graph, x, tokens):
    fed = [agt.memcpy(x.borrow(), token).and_then(lambda _: graph.launch()) for token in tokens]
    return [(await op).copy() for op in fed]


# %% id=09-token-loop
import asyncio
import numpy as np


async def run_tokens(graph, x, tokens):
    stream, results = agt.create_stream(), []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = graph.launch().async_on(stream)
        while not stream.done:  # noqa: ASYNC110 - to look again and again is what is tried here
            await asyncio.sleep(0)
        results.append(np.array(answer.numpy()))
    return results


# %% id=09-no-allocation
def capturable(slot, x, y, out):
    n = slot.size
    copied = agt.memcpy(x.borrow(), slot)
    cut = copied.and_then(lambda _: agt.relu(n, x.borrow(), x.borrow().partition(64)))
    return cut.and_then(lambda _: agt.d2h(x.borrow(), out=out))


# %% id=09-break-even
def break_even(make, stream):
    def us(run):
        traces = []
        for _ in range(5):
            with agt.record() as trace:
                run()
            traces.append(trace)
        return min(trace.metrics().makespan for trace in traces)

    graph = make().graph_on(stream)
    capture = us(lambda: make().graph_on(stream))
    saved = us(lambda: make().sync_on(stream)) - us(lambda: graph.launch().sync_on(stream))
    return next(runs for runs in range(1, 1000) if runs * saved > capture)


# %% id=09-shapes
import numpy as np


class make_server:
    def __init__(self, make, stream):
        self.make, self.stream = make, stream
        self.lanes = {}

    def __call__(self, x):
        if x.shape not in self.lanes:
            slot = agt.pin(x)
            self.lanes[x.shape] = slot, self.make(slot).named("mine").graph_on(self.stream).launch()
        slot, launch = self.lanes[x.shape]
        np.copyto(slot, x)
        return np.array(launch.sync_on(self.stream))


# %% id=09-challenge
import numpy as np


KEEP = r"""
extern "C" __global__ void keep(unsigned int n, const float* y, float* x, unsigned int* turn, float* history)
{
    unsigned int i = threadIdx.x;
    history[turn[i] * n + i] = y[i];
    x[i] = y[i];
    turn[i] += 1;
}
"""


def talk(models, prompts, steps):
    stream, keep = agt.create_stream(), agt.Kernel(KEEP)
    arms, histories = [], []
    for op, x, y in models:
        n = y.size
        turn = agt.zeros(n, np.uint32).sync_on(stream)
        histories.append(agt.zeros((steps, n)).sync_on(stream))
        kept = keep(n, y.borrow(), x.borrow(), turn, histories[-1].borrow(), grid=1, block=n)
        arms.append(agt.zip(op, kept))
    launch = agt.overlap(*arms).graph_on(stream).launch()
    for (_, x, _), prompt in zip(models, prompts, strict=True):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    for _ in range(steps):
        launch.async_on(stream)
    return [list(agt.d2h(history.borrow()).sync_on(stream)) for history in histories]


# %% id=09-break-even
def break_even(make, stream):
    """All three are timed in turns."""
    clock, launch = agt.current_device().now, make().graph_on(stream).launch()
    runs = (
        lambda: make().sync_on(stream),
        lambda: make().graph_on(stream),
        lambda: launch.sync_on(stream),
    )
    times = [[], [], []]
    for _ in range(5):
        for run, found in zip(runs, times, strict=True):
            start = clock()
            run()
            found.append(clock() - start)
    call, capture, again = map(min, times)
    number = 1
    while capture + number * again >= number * call:
        number += 1
    return number


# %% id=09-token-loop
async def run_tokens(graph, x, tokens):
    """An error of a token that says which one it was."""
    results = []
    for i, token in enumerate(tokens):
        try:
            graph.update(agt.memcpy(x.borrow(), token))
            results.append((await graph.launch()).copy())
        except agt.DeviceError:
            raise ValueError(f"token {i}") from None
    return results


# %% id=09-challenge
def talk(models, prompts, steps):
    """The host sends each answer back, as it came."""
    stream, arms, slots, outs = agt.create_stream(), [], [], []
    for op, x, y in models:
        slots.append(agt.pinned(x.shape))
        outs.append(agt.pinned(y.shape))
        feed, answer = agt.memcpy(x.borrow(), slots[-1]), agt.d2h(y.borrow(), out=outs[-1])
        arms.append(agt.zip(feed, op, answer))
    launch = agt.overlap(*arms).graph_on(stream).launch()
    for slot, prompt in zip(slots, prompts, strict=True):
        slot[:] = prompt
    said = [[] for _ in models]
    for _ in range(steps):
        launch.sync_on(stream)
        for answers, slot, out in zip(said, slots, outs, strict=True):
            answers.append(out.copy())
            slot[:] = out
    return said
