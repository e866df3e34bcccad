"""Plausible wrong answers to the exercises of course/09_cuda_graphs.py; see tools/build_notebooks.py."""


# %% id=09-first-graph cause="captured 5 times, and once is enough"
def replay(op, stream, times):
    for _ in range(times):
        graph = op.graph_on(stream)
        graph.launch().async_on(stream)
    stream.synchronize()
    return graph


# %% id=09-first-graph cause="`increment` ran 0 times"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        graph.launch()
    stream.synchronize()
    return graph


# %% id=09-first-graph cause="called the driver for `increment` itself"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        op.async_on(stream)
    stream.synchronize()
    return graph


# %% id=09-first-graph cause="the host waited 5 times"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        graph.launch().sync_on(stream)
    return graph


# %% id=09-first-graph cause="returned before the device was done"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        graph.launch().async_on(stream)
    return graph


# %% id=09-first-graph cause="should be a plain function"
async def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        await graph.launch()
    return graph


# %% id=09-first-graph cause="should return the graph"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        graph.launch().async_on(stream)
    stream.synchronize()


# %% id=09-token-loop cause="for token 0, element 0 is"
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        results.append(await graph.launch())
    return results


# %% id=09-token-loop cause="`h2d` ran 0 times"
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        agt.memcpy(x.borrow(), token)
        answer = await graph.launch()
        results.append(answer.copy())
    return results


# %% id=09-token-loop cause="for token 0, element 0 is"
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        answer = await graph.launch()
        graph.update(agt.memcpy(x.borrow(), token))
        results.append(answer.copy())
    return results


# %% id=09-token-loop cause="`sync` blocks the event loop"
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        results.append(graph.launch().sync().copy())
    return results


# %% id=09-token-loop cause="the graph was launched 1 time, for 5 tokens"
async def run_tokens(graph, x, tokens):
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
    answer = await graph.launch()
    return [answer.copy() for _ in tokens]


# %% id=09-token-loop cause="should return a list of 5"
async def run_tokens(graph, x, tokens):
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = await graph.launch()
    return answer.copy()


# %% id=09-branches cause="is made to wait for"
def side_by_side(ops, stream):
    first, *others = ops
    both = agt.overlap(first, agt.zip(*others))
    return both.map(lambda results: (results[0], *results[1])).graph_on(stream)


# %% id=09-branches cause="is made to wait for"
def side_by_side(ops, stream):
    with agt.CudaGraph.scope(stream) as scope:
        for op in ops:
            scope.record(op)
    return scope.graph


# %% id=09-branches cause="should return one graph"
def side_by_side(ops, stream):
    return [op.graph_on(stream) for op in ops]


# %% id=09-branches cause="should return one graph"
def side_by_side(ops, stream):
    return agt.overlap(*ops)


# %% id=09-branches cause="for result 0, element 0 is 3"
def side_by_side(ops, stream):
    return agt.overlap(*reversed(ops)).graph_on(stream)


# %% id=09-branches cause="a launch should yield 3 results, and yields ("
def side_by_side(ops, stream):
    return agt.overlap(*ops[1:]).graph_on(stream)


# %% id=09-no-allocation cause="h2d(): 'h2d' allocates memory"
def capturable(slot, x, y, out):
    n = slot.size
    return (
        agt.h2d(slot)
        .and_then(lambda x: agt.relu(n, x, y.borrow().partition(256)))
        .and_then(lambda _: agt.d2h(y.borrow(), out=out))
    )


# %% id=09-no-allocation cause="zeros(): 'zeros' allocates memory"
def capturable(slot, x, y, out):
    n = slot.size
    return (
        agt.memcpy(x.borrow(), slot)
        .and_then(lambda _: agt.relu(n, x.borrow(), agt.zeros(n).partition(256)).output())
        .and_then(lambda y: agt.d2h(y, out=out))
    )


# %% id=09-no-allocation cause="a copy to the host into a new array"
def capturable(slot, x, y, out):
    n = slot.size
    return agt.zip(
        agt.memcpy(x.borrow(), slot),
        agt.relu(n, x.borrow(), y.borrow().partition(256)),
        agt.d2h(y.borrow()),
    )


# %% id=09-no-allocation cause="is pageable"
def capturable(slot, x, y, out):
    n = slot.size
    return agt.zip(
        agt.memcpy(x.borrow(), slot.copy()),
        agt.relu(n, x.borrow(), y.borrow().partition(256)),
        agt.d2h(y.borrow(), out=out),
    )


# %% id=09-no-allocation cause="in `out` after launch 0, element 0 is"
def capturable(slot, x, y, out):
    n = slot.size
    agt.memcpy(x.borrow(), slot).sync()
    return agt.zip(
        agt.relu(n, x.borrow(), y.borrow().partition(256)),
        agt.d2h(y.borrow(), out=out),
    )


# %% id=09-no-allocation cause="array 'x' was moved"
def capturable(slot, x, y, out):
    n = slot.size
    return agt.zip(
        agt.memcpy(x, slot),
        agt.relu(n, x, y.partition(256)),
        agt.d2h(y, out=out),
    )


# %% id=09-no-allocation cause="should return an operation"
def capturable(slot, x, y, out):
    n = slot.size
    return (
        agt.memcpy(x.borrow(), slot),
        agt.relu(n, x.borrow(), y.borrow().partition(256)),
        agt.d2h(y.borrow(), out=out),
    )


# %% id=09-layers cause="it is upside down"
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        op = make(count)
        graph = op.graph_on(stream)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains[count] = by_graph.metrics().makespan / by_calls.metrics().makespan
    return gains


# %% id=09-layers cause="the kernels alone"
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        op = make(count)
        graph = op.graph_on(stream)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains[count] = by_calls.metrics().serial / by_graph.metrics().serial
    return gains


# %% id=09-layers cause="with 1 layer, the gain is"
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        op = make(count)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            op.graph_on(stream).launch().sync_on(stream)
        gains[count] = by_calls.metrics().makespan / by_graph.metrics().makespan
    return gains


# %% id=09-layers cause="with 1 layer, the gain is"
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        op = make(count)
        graph = op.graph_on(stream)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains[count] = by_calls.metrics().device_makespan / by_graph.metrics().device_makespan
    return gains


# %% id=09-layers cause="with 4 layers, the gain is"
def speedups(make, counts, stream):
    gains = {}
    graph = make(counts[0]).graph_on(stream)
    for count in counts:
        with agt.record() as by_calls:
            make(count).sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains[count] = by_calls.metrics().makespan / by_graph.metrics().makespan
    return gains


# %% id=09-layers cause="a number for each of the counts"
def speedups(make, counts, stream):
    gains = []
    for count in counts:
        op = make(count)
        graph = op.graph_on(stream)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains.append(by_calls.metrics().makespan / by_graph.metrics().makespan)
    return gains


# %% id=09-break-even cause="with a capture of 100 µs, 30 µs by calls and 10 µs by graph, 5 runs"
def break_even(capture, by_calls, by_graph):
    saved = by_calls - by_graph
    if saved <= 0:
        return None
    return int(np.ceil(capture / saved))


# %% id=09-break-even cause="ZeroDivisionError"
def break_even(capture, by_calls, by_graph):
    return int(capture // (by_calls - by_graph)) + 1


# %% id=09-break-even cause="no number of runs is large enough"
def break_even(capture, by_calls, by_graph):
    saved = abs(by_calls - by_graph)
    if saved == 0:
        return None
    return int(capture // saved) + 1


# %% id=09-break-even cause="an `int`"
def break_even(capture, by_calls, by_graph):
    saved = by_calls - by_graph
    if saved <= 0:
        return None
    return capture / saved


# %% id=09-break-even cause="runs take"
def break_even(capture, by_calls, by_graph):
    if by_calls <= by_graph:
        return None
    return int(capture // by_calls) + 1


# %% id=09-shapes cause="captured 6 times, and 3 shapes came up"
def make_server(make, stream):
    def answer(x):
        slot = agt.pin(x)
        return make(slot).graph_on(stream).launch().sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="request 3, of shape (4, 8)"
def make_server(make, stream):
    known = []

    def answer(x):
        if not known:
            slot = agt.pinned(x.shape)
            known.extend([slot, make(slot).graph_on(stream)])
        slot, graph = known
        slot[: len(x)] = x
        return graph.launch().sync_on(stream)[: len(x)].copy()

    return answer


# %% id=09-shapes cause="request 3, of shape (4, 8)"
def make_server(make, stream):
    known = {}

    def answer(x):
        if len(x) not in known:
            slot = agt.pinned(x.shape)
            known[len(x)] = slot, make(slot).graph_on(stream)
        slot, graph = known[len(x)]
        slot[:, : x.shape[1]] = x
        return graph.launch().sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="request 0, of shape (4, 16), element (0, 0) is"
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.shape not in known:
            slot = agt.pinned(x.shape)
            known[x.shape] = slot, make(slot).graph_on(stream)
        slot, graph = known[x.shape]
        slot[:] = x
        return graph.launch().sync_on(stream)

    return answer


# %% id=09-shapes cause="request 2, of shape (4, 16), element (0, 0) is"
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.shape not in known:
            known[x.shape] = make(agt.pin(x)).graph_on(stream)
        return known[x.shape].launch().sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="launched 0 times, for 6 requests"
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.shape not in known:
            slot = agt.pinned(x.shape)
            known[x.shape] = slot, make(slot)
        slot, op = known[x.shape]
        slot[:] = x
        return op.sync_on(stream).copy()

    return answer


# %% id=09-layers cause="a gain should be a number, and one is None"
def speedups(make, counts, stream):
    return dict.fromkeys(counts)


# %% id=09-branches cause="a launch should yield 3 results, and yields None"
def side_by_side(ops, stream):
    return agt.overlap(*ops).map(lambda results: None).graph_on(stream)


# %% id=09-shapes cause="was changed while"
def make_server(make, stream):
    slots, graphs = {}, {}

    def server(x):
        if x.shape not in graphs:
            slots[x.shape] = agt.pinned(x.shape)
            graphs[x.shape] = make(slots[x.shape]).graph_on(stream)
        slots[x.shape][:] = x
        return graphs[x.shape].launch().async_on(stream)

    return server


# %% id=09-first-graph cause="the graph was launched 1 time, and 5 times is right"
def replay(op, stream, times):
    graph = agt.zip(*[op] * times).graph_on(stream)
    graph.launch().sync_on(stream)
    return graph


# %% id=09-first-graph cause="returned before the device was done"
def replay(op, stream, times):
    graph = op.graph_on(stream)
    own = agt.create_stream()
    for _ in range(times):
        graph.launch().async_on(own)
    stream.synchronize()
    return graph
