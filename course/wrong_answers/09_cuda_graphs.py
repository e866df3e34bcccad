"""Plausible wrong answers to the exercises of course/09_cuda_graphs.py; see tools/build_notebooks.py."""


# %% id=09-first-graph cause="captured 5 times, and 1 time is enough"
# - graph = op.graph_on(stream)
# - for _ in range(times):
# + for _ in range(times):
# +     graph = op.graph_on(stream)


# %% id=09-first-graph cause="`increment` ran 0 times"
# - graph.launch().async_on(stream)
# + graph.launch()


# %% id=09-first-graph cause="called the driver for `increment` itself"
# - graph.launch().async_on(stream)
# + op.async_on(stream)


# %% id=09-first-graph cause="the host waited 5 times"
# - graph.launch().async_on(stream)
# - stream.synchronize()
# + graph.launch().sync_on(stream)


# %% id=09-first-graph cause="returned before the device was done"
# - stream.synchronize()


# %% id=09-first-graph cause="nothing of it ran: an `async def` runs when"
async def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        await graph.launch()
    return graph


# %% id=09-first-graph cause="should return the graph"
# - return graph


# %% id=09-token-loop cause="with token 1, element 0 is"
# - answer = await graph.launch()
# - results.append(answer.copy())
# + results.append(await graph.launch())


# %% id=09-token-loop cause="`h2d` ran 0 times"
# - graph.update(agt.memcpy(x.borrow(), token))
# + agt.memcpy(x.borrow(), token)


# %% id=09-token-loop cause="with 5 tokens, with token 0, element 0 is 1, and should be 4.375"
#   for token in tokens:
# +     answer = await graph.launch()
# - answer = await graph.launch()


# %% id=09-token-loop cause="`sync` or `synchronize` blocks the event loop"
# - answer = await graph.launch()
# - results.append(answer.copy())
# + results.append(graph.launch().sync().copy())


# %% id=09-token-loop cause="a graph was launched 1 time, and 5 is right"
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


# %% id=09-no-allocation of=starter cause="h2d(): 'h2d' allocates memory"
# - .and_then(lambda x: agt.relu(n, x, agt.zeros(n).partition(256)).output())
# - .to_host()
# + .and_then(lambda x: agt.relu(n, x, y.borrow().partition(256)))
# + .and_then(lambda _: agt.d2h(y.borrow(), out=out))


# %% id=09-no-allocation cause="zeros(): 'zeros' allocates memory"
def capturable(slot, x, y, out):
    n = slot.size
    return (
        agt.memcpy(x.borrow(), slot)
        .and_then(lambda _: agt.relu(n, x.borrow(), agt.zeros(n).partition(256)).output())
        .and_then(lambda y: agt.d2h(y, out=out))
    )


# %% id=09-no-allocation of=above cause="`y` is gone, and its owner goes on using it"
# - .and_then(lambda _: agt.relu(n, x.borrow(), agt.zeros(n).partition(256)).output())
# + .and_then(lambda _: agt.relu(n, x.borrow(), y.partition(256)).output())


# %% id=09-no-allocation of=above cause="and memcpy both. Take one"
# - .and_then(lambda _: agt.relu(n, x.borrow(), agt.zeros(n).partition(256)).output())
# + .and_then(lambda found: agt.relu(n, found, y.borrow().partition(256)).output())


# %% id=09-no-allocation cause="a copy to the host into a new array"
# - agt.d2h(y.borrow(), out=out),
# + agt.d2h(y.borrow()),


# %% id=09-no-allocation cause="is pageable"
# - agt.memcpy(x.borrow(), slot),
# + agt.memcpy(x.borrow(), slot.copy()),


# %% id=09-no-allocation cause="building the operation already ran something"
# - n = slot.size
# + n = slot.size
# + agt.memcpy(x.borrow(), slot).sync()
# - agt.memcpy(x.borrow(), slot),


# %% id=09-no-allocation cause="array 'x' was moved"
# - agt.memcpy(x.borrow(), slot),
# - agt.relu(n, x.borrow(), y.borrow().partition(256)),
# - agt.d2h(y.borrow(), out=out),
# + agt.memcpy(x, slot),
# + agt.relu(n, x, y.partition(256)),
# + agt.d2h(y, out=out),


# %% id=09-no-allocation cause="should return an operation"
# - return agt.zip(
# + return (


# %% id=09-shapes of=starter cause="captured 46 times, and 43 times is enough: for each shape"
# - return make(agt.pin(x)).sync_on(stream)
# + slot = agt.pin(x)
# + return make(slot).graph_on(stream).launch().sync_on(stream).copy()


# %% id=09-shapes cause="at request 3, of shape (4, 8)"
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


# %% id=09-shapes cause="at request 4, of shape (64,)"
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


# %% id=09-shapes cause="request 0, of shape (4, 16), element (1, 0) is"
# - return graph.launch().sync_on(stream).copy()
# + return graph.launch().sync_on(stream)


# %% id=09-shapes cause="request 2, of shape (4, 16), element (0, 0) is"
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.shape not in known:
            known[x.shape] = make(agt.pin(x)).graph_on(stream)
        return known[x.shape].launch().sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="launched 0 times, and 46 is right"
#   if x.shape not in known:
# - known[x.shape] = slot, make(slot).graph_on(stream)
# - slot, graph = known[x.shape]
# +     known[x.shape] = slot, make(slot)
# + slot, op = known[x.shape]
# - return graph.launch().sync_on(stream).copy()
# + return op.sync_on(stream).copy()


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


# %% id=09-first-graph cause="a graph was launched 1 time, and 5 is right"
def replay(op, stream, times):
    graph = agt.zip(*[op] * times).graph_on(stream)
    graph.launch().sync_on(stream)
    return graph


# %% id=09-no-allocation cause="with `out` after launch 0, element 1 is"
# - agt.d2h(y.borrow(), out=out),
# + agt.d2h(x.borrow(), out=out),


# %% id=09-break-even cause="with 8 small copies, the answer is 2, and not 1"
def break_even(make, stream):
    clock = agt.current_device().now
    start = clock()
    graph = make().graph_on(stream)
    captured = clock()
    make().sync_on(stream)
    called = clock()
    graph.launch().sync_on(stream)
    launched = clock()
    saved = (called - captured) - (launched - called)
    return int((captured - start) / saved)


# %% id=09-break-even of=above cause="with 8 copies that take longer than a call, the answer is"
# - make().sync_on(stream)
# + make().async_on(stream)
# - graph.launch().sync_on(stream)
# + graph.launch().async_on(stream)
# - return int((captured - start) / saved)
# + return int((captured - start) / saved) + 1


# %% id=09-break-even of=above cause="with 8 small copies, the answer is 2, and not"
# - graph = make().graph_on(stream)
# + make().graph_on(stream)
# - graph.launch().sync_on(stream)
# + make().graph_on(stream).launch().sync_on(stream)
# - return int((captured - start) / saved)
# + return int((captured - start) / saved) + 1


# %% id=09-break-even of=above cause="a number of runs should be an `int`"
# - saved = (called - captured) - (launched - called)
# - return int((captured - start) / saved)
# + return (captured - start) / ((called - captured) - (launched - called))


# %% id=09-shapes cause="at the second one for request 42, of shape (4, 16), element (0, 0) is"
everything = {}


def make_server(make, stream):
    def answer(x):
        if x.shape not in everything:
            slot = agt.pinned(x.shape)
            everything[x.shape] = slot, make(slot).graph_on(stream)
        slot, graph = everything[x.shape]
        slot[:] = x
        return graph.launch().sync_on(stream).copy()

    return answer


# %% id=09-challenge cause="it's right, but it takes"
def talk(models, prompts, steps):
    said = []
    for (op, x, y), prompt in zip(models, prompts):
        stream, place, answers = agt.create_stream(), agt.pinned(y.shape), []
        feedback = agt.memcpy(x.borrow(), y.borrow())
        step = agt.zip(op, agt.d2h(y.borrow(), out=place), feedback).graph_on(stream).launch()
        agt.memcpy(x.borrow(), prompt).sync_on(stream)
        for _ in range(steps):
            step.sync_on(stream)
            answers.append(place.copy())
        said.append(answers)
    return said


# %% id=09-challenge cause="with model 0, token 1, element 0 is"
def talk(models, prompts, steps):
    stream, arms, places = agt.create_stream(), [], []
    for op, x, y in models:
        places.append(agt.pinned(y.shape))
        arms.append(agt.zip(op, agt.d2h(y.borrow(), out=places[-1])))
    launch = agt.overlap(*arms).graph_on(stream).launch()
    for (_, x, _), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    said = [[] for _ in models]
    for _ in range(steps):
        launch.sync_on(stream)
        for answers, place in zip(said, places):
            answers.append(place.copy())
    return said


# %% id=09-challenge of=above cause="with model 0, token 0, element 0 is"
# - arms.append(agt.zip(op, agt.d2h(y.borrow(), out=places[-1])))
# + feedback = agt.memcpy(x.borrow(), y.borrow())
# + arms.append(agt.zip(op, agt.d2h(y.borrow(), out=places[-1]), feedback))
# - answers.append(place.copy())
# + answers.append(place)


# %% id=09-challenge of=above cause="`talk` should return a list of 5, one for each in order, and returned one of 12"
# - stream, arms, places = agt.create_stream(), [], []
# + stream = agt.create_stream()
# + arms, places = [], []
# - places.append(agt.pinned(y.shape))
# - arms.append(agt.zip(op, agt.d2h(y.borrow(), out=places[-1])))
# + place = agt.pinned(y.shape)
# + answer, feedback = agt.d2h(y.borrow(), out=place), agt.memcpy(x.borrow(), y.borrow())
# + arms.append(agt.zip(op, answer, feedback))
# + places.append(place)
# - for _ in range(steps):
# + for _ in range(12):


# %% id=09-challenge cause="`talk` should return a list of 6"
def talk(models, prompts, steps):
    said = []
    op, x, y = models[0]
    agt.memcpy(x.borrow(), prompts[0]).sync()
    for _ in range(steps):
        op.sync()
        said.append(agt.d2h(y.borrow()).sync())
    return said


# %% id=09-challenge cause="`talk` should return a list of 5, one for each in order"
def talk(models, prompts, steps):
    said = []
    for (op, x, y), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).sync()
        op.sync()
        said.append([agt.d2h(y.borrow()).sync()])
    return said


# %% id=09-shapes cause="should return the function `answer`, and returned None"
#   return graph.launch().sync_on(stream).copy()
# -
# - return answer


# %% id=09-token-loop cause="no other task got a turn while the tokens were under way"
# - results = []
# + stream, results = agt.create_stream(), []
# - answer = await graph.launch()
# - results.append(answer.copy())
# + answer = graph.launch().async_on(stream)
# + while not stream.done:
# +     pass
# + results.append(np.array(answer.numpy()))


# %% id=09-shapes cause="request 3, of shape (4, 8), element (0, 0) is"
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.size not in known:
            slot = agt.pinned(x.shape)
            known[x.size] = slot, make(slot).graph_on(stream)
        slot, graph = known[x.size]
        slot[:] = x.reshape(slot.shape)
        return graph.launch().sync_on(stream).reshape(x.shape).copy()

    return answer


# %% id=09-first-graph cause="one of the streams that you were given"
# - def replay(op, stream, times):
# + def replay(op, stream, times):
# +     stream = agt.create_stream()


# %% id=09-challenge cause="is in no copy from memory that a kernel has written"
def talk(models, prompts, steps):
    said = []
    for i, prompt in enumerate(prompts):
        word, words = np.array(prompt), []
        for _ in range(steps):
            for _ in range(8):
                word = np.float32(0.9) * word + np.float32(i - 1.5)
            words.append(word)
        said.append(words)
    return said


# %% id=09-shapes cause="isn't one of the streams"
# - known = {}
# + known, stream = {}, agt.create_stream()


# %% id=09-first-graph cause="with times=11, `increment` ran 5 times, and should run 11 times"
# - for _ in range(times):
# + for _ in range(min(times, 5)):


# %% id=09-token-loop cause="with 9 tokens, `h2d` ran 5 times, and should run 9 times"
# - for token in tokens:
# + for token in tokens[:5]:
# - answer = await graph.launch()
# - results.append(answer.copy())
# + results.append((await graph.launch()).copy())


# %% id=09-first-graph cause="with times=11, element 0 is 0, and should be 11"
graphs = {}


def replay(op, stream, times):  # one graph for each name
    if op.label not in graphs:
        graphs[op.label] = op.graph_on(stream)
    for _ in range(times):
        graphs[op.label].launch().async_on(stream)
    stream.synchronize()
    return graphs[op.label]


# %% id=09-no-allocation cause="with 4999 elements, with `out` after launch 0, element"
def capturable(slot, x, y, out):
    return agt.zip(
        agt.memcpy(x.borrow(), slot),
        agt.relu(slot.size, x.borrow(), y.borrow(), grid=16, block=64),
        agt.d2h(y.borrow(), out=out),
    )


# %% id=09-token-loop cause="the error doesn't come out of your function"
# - answer = await graph.launch()
# - results.append(answer.copy())
# + try:
# +     results.append((await graph.launch()).copy())
# + except Exception:
# +     results.append(None)


# %% id=09-challenge cause="with everything asked once more, about other numbers"
MEMO = {}


def talk(models, prompts, steps):
    if steps in MEMO:
        return MEMO[steps]
    stream = agt.create_stream()
    words = [[agt.pinned(y.size) for _ in range(steps)] for op, x, y in models]

    def one(model, prompt, outs):
        op, x, y = model
        ops = [agt.memcpy(x.borrow(), prompt)]
        return ops

    graph = agt.overlap(
        *[agt.zip(op, agt.memcpy(x.borrow(), y.borrow())) for op, x, y in models]
    ).graph_on(stream)
    outs = []
    for (op, x, y), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    for s in range(steps):
        graph.launch().async_on(stream)
        outs.append(
            [
                agt.d2h(x.borrow(), out=words[k][s]).async_on(stream)
                for k, (op, x, y) in enumerate(models)
            ]
        )
    stream.synchronize()
    MEMO[steps] = words
    return words


# %% id=09-challenge cause="element 0 of the result was not there yet"
def talk(models, prompts, steps):
    stream = agt.create_stream()
    words = [[agt.pinned(y.size) for _ in range(steps)] for op, x, y in models]
    def one(model, prompt, outs):
        op, x, y = model
        ops = [agt.memcpy(x.borrow(), prompt)]
        return ops
    graph = agt.overlap(*[
        agt.zip(op, agt.memcpy(x.borrow(), y.borrow())) for op, x, y in models
    ]).graph_on(stream)
    outs = []
    for (op, x, y), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    for s in range(steps):
        graph.launch().async_on(stream)
        outs.append([agt.d2h(x.borrow(), out=words[k][s]).async_on(stream) for k, (op, x, y) in enumerate(models)])
    agt.create_stream().synchronize()
    return words


# %% id=09-challenge of=above cause="with a device that takes its time (adversary 1)"
# - agt.create_stream().synchronize()


# %% id=09-challenge of=above cause="with model 0, token 2, element 0 of the result was not there yet"
#   graph.launch().async_on(stream)
# + event = stream.record()
# - agt.create_stream().synchronize()
# + event.synchronize()


# %% id=09-challenge of=above cause="element 0 of the result was not there yet"
# - agt.create_stream().synchronize()
# - return words
# + return [[np.array(w) for w in row] for row in words]


# %% id=09-challenge of=above cause="with 5 tokens of 6 models, with model 4, token 0, element 0 is"
# - agt.zip(op, agt.memcpy(x.borrow(), y.borrow())) for op, x, y in models
# + agt.zip(op, agt.memcpy(x.borrow(), y.borrow())) for op, x, y in models[:4]
# - agt.create_stream().synchronize()
# + stream.synchronize()


# %% id=09-shapes cause="the error doesn't come out of your function"
# - return graph.launch().sync_on(stream).copy()
# + try:
# +     return graph.launch().sync_on(stream).copy()
# + except agt.DeviceError:
# +     return np.zeros(x.shape)


# %% id=09-break-even cause="`make` that takes long, the answer is 2, and not 1"
def break_even(make, stream):
    clock = agt.current_device().now

    def quickest(run):
        best = float("inf")
        for _ in range(5):
            start = clock()
            run()
            stream.synchronize()
            best = min(best, clock() - start)
        return best

    by_call = quickest(lambda: make().async_on(stream))
    to_write = quickest(lambda: make().graph_on(stream))
    launch = make().graph_on(stream).launch()
    by_graph = quickest(lambda: launch.async_on(stream))
    return round(to_write / (by_call - by_graph))


# %% id=09-break-even of=above cause="with 6 copies that take longer than a call, the answer is 3, and not 2"
# - to_write = quickest(lambda: make().graph_on(stream))
# + op = make()
# + to_write = quickest(lambda: op.graph_on(stream))
# - return round(to_write / (by_call - by_graph))
# + return int(to_write / (by_call - by_graph)) + 1


# %% id=09-challenge cause="array 'x8' has shape (96,), and the host array has (64,)"
def talk(models, prompts, steps):
    stream = agt.create_stream()
    outs, arms = [], []
    for (op, x, y), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
        out = agt.pinned(models[0][2].size)
        outs.append(out)
        arms.append(agt.zip(op, agt.d2h(y.borrow(), out=out), agt.memcpy(x.borrow(), y.borrow())))
    launch = agt.overlap(*arms).graph_on(stream).launch()
    said = [[] for _ in models]
    for _ in range(steps):
        launch.sync_on(stream)
        for answers, out in zip(said, outs):
            answers.append(np.array(out))
    return said


# %% id=09-challenge of=above cause="with the prompt of model 0, which belongs to the caller"
# - out = agt.pinned(models[0][2].size)
# + out = prompt


# %% id=09-first-graph cause="with times=11, the host waited 2 times"
# - graph = op.graph_on(stream)
# + graph = op.graph_on(stream)
# + launch = graph.launch()
# - graph.launch().async_on(stream)
# + launch.async_on(stream)
# + if _ % 10 == 9:
# +     stream.synchronize()


# %% id=09-shapes cause="at the first one for request 44, of shape (4, 16), element (1, 0) is"
def make_server(make, stream):
    known, old = {}, {}

    def answer(x):
        if x.shape not in known:
            slot = agt.pin(np.array(x))
            known[x.shape] = slot, make(slot).graph_on(stream).launch()
        k = (x.shape, float(x.flat[0]))
        if k in old:
            return old[k].copy()
        slot, launch = known[x.shape]
        slot[...] = x
        old[k] = launch.sync_on(stream).copy()
        return old[k]
        return launch.sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="for request 6, of shape (16, 4), the result has shape (4, 16)"
def make_server(make, stream):
    known = {}

    def answer(x):
        if tuple(sorted(x.shape)) not in known:
            slot = agt.pin(np.array(x))
            known[tuple(sorted(x.shape))] = slot, make(slot).graph_on(stream).launch()
        slot, launch = known[tuple(sorted(x.shape))]
        slot[...] = x.reshape(slot.shape)
        return launch.sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="for request 7, of shape (64, 1), the result has shape (64,)"
def make_server(make, stream):
    known = {}

    def answer(x):
        if np.squeeze(x).shape not in known:
            slot = agt.pin(np.array(x))
            known[np.squeeze(x).shape] = slot, make(slot).graph_on(stream).launch()
        slot, launch = known[np.squeeze(x).shape]
        slot[...] = x.reshape(slot.shape)
        return launch.sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="at request 8, of shape (2, 2, 16), could not broadcast"
def make_server(make, stream):
    known = {}

    def answer(x):
        if (len(x), x.shape[-1]) not in known:
            slot = agt.pin(np.array(x))
            known[len(x), x.shape[-1]] = slot, make(slot).graph_on(stream).launch()
        slot, launch = known[len(x), x.shape[-1]]
        slot[...] = x
        return launch.sync_on(stream).copy()

    return answer


# %% id=09-shapes cause="at the first one for request 44, of shape (4, 16), element (1, 0) is"
def make_server(make, stream):
    known, old = {}, {}

    def answer(x):
        if x.shape not in known:
            slot = agt.pin(np.array(x))
            known[x.shape] = slot, make(slot).graph_on(stream).launch()
        slot, launch = known[x.shape]
        if id(x) not in old:
            slot[...] = x
            old[id(x)] = launch.sync_on(stream).copy()
        return old[id(x)]

    return answer


# %% id=09-token-loop cause="with 5 tokens, `h2d` ran 3 times"
async def run_tokens(graph, x, tokens):
    results, seen = [], {}
    for token in tokens:
        if seen.get(float(token[0])) is not None:
            results.append(seen[float(token[0])])
            continue
        graph.update(agt.memcpy(x.borrow(), token))
        results.append((await graph.launch()).copy())
        seen[float(token[0])] = results[-1]
    return results


# %% id=09-first-graph cause="`increment` ran 0 times, and should run 5 times"
GRAPHS = {}


def replay(op, stream, times):  # one graph for each stream, whatever is to run there
    if stream not in GRAPHS:
        GRAPHS[stream] = op.graph_on(stream)
    for _ in range(times):
        GRAPHS[stream].launch().async_on(stream)
    stream.synchronize()
    return GRAPHS[stream]


# %% id=09-first-graph cause="with times=1, `increment` ran 2 times, and should run once"
def replay(op, stream, times):  # the first launch to try it, and the last to wait
    graph = op.graph_on(stream)
    graph.launch().async_on(stream)
    for _ in range(times - 2):
        graph.launch().async_on(stream)
    graph.launch().sync_on(stream)
    return graph


# %% id=09-token-loop cause="a caller's token after the call, number 0, element 0 is"
async def run_tokens(graph, x, tokens):  # the results where the tokens were
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        token[:] = await graph.launch()
    return tokens


# %% id=09-token-loop cause="with 5 tokens, with token 0, element 0 is 4, and should be 4.375"
# - answer = await graph.launch()
# - results.append(answer.copy())
# + results.append(np.round(await graph.launch()))


# %% id=09-no-allocation cause="with `slot` after launch 0, element 1 is 0, and should be -1.38712"
# - def capturable(slot, x, y, out):
# + def capturable(slot, x, y, out):  # the slot is only to be read
# - agt.relu(n, x.borrow(), y.borrow().partition(256)),
# + agt.relu(n, x.borrow(), y.borrow().partition(256)),
# + agt.d2h(y.borrow(), out=slot),


# %% id=09-shapes cause="with two servers, at the first one for request 7, of shape (64, 1), element (0, 0) is"
def make_server(make, stream):  # by the number of rows, and of elements
    known = {}

    def answer(x):
        key = len(x), x.size
        if key not in known:
            slot = agt.pinned(x.shape)
            known[key] = slot, make(slot).graph_on(stream)
        slot, graph = known[key]
        slot[:] = x.reshape(slot.shape)
        return graph.launch().sync_on(stream).copy().reshape(x.shape)

    return answer


# %% id=09-shapes of=above cause="at request 10, of shape (2, 2, 8)"
# - def make_server(make, stream):  # by the number of rows, and of elements
# + def make_server(make, stream):
# - key = len(x), x.size
# + key = x.shape[:2]
# - slot[:] = x.reshape(slot.shape)
# - return graph.launch().sync_on(stream).copy().reshape(x.shape)
# + slot[...] = x.reshape(slot.shape)
# + return graph.launch().sync_on(stream).copy()


# %% id=09-shapes cause="an operation was captured 45 times, and 43 times is enough"
# - def make_server(make, stream):
# + def make_server(make, stream):  # never more than eight graphs
# - if x.shape not in known:
# + if x.shape not in known:
# +     if len(known) == 8:
# +         known.pop(next(iter(known)))


# %% id=09-break-even slip cause="That comes out if a run ends when Python has submitted it, and not when the device is done: wait for each, by calls and by a graph"
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_graph = took(lambda: launch.async_on(stream))


# %% id=09-break-even slip cause="That comes out if a run by calls ends when Python has submitted it, and not when the device is done: wait for it"
# - launch = make().graph_on(stream).launch()
# - capture = took(lambda: make().graph_on(stream))
# - by_calls = took(lambda: make().sync_on(stream))
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_calls = took(lambda: make().async_on(stream))
# + capture = took(lambda: make().graph_on(stream))
# + launch = make().graph_on(stream).launch()
# + by_graph = took(lambda: launch.sync_on(stream))
# - return int(capture / (by_calls - by_graph)) + 1
# + return int(capture // (by_calls - by_graph)) + 1


# %% id=09-break-even slip cause="That comes out if every run ends when Python has submitted it, and not when the device is done: wait for each"
# - by_calls = took(lambda: make().sync_on(stream))
# + by_calls = took(lambda: make().async_on(stream))
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_graph = took(lambda: launch.async_on(stream))


# %% id=09-break-even slip cause="That comes out if you round down, and 1.2 runs are 2"
# - return int(capture / (by_calls - by_graph)) + 1
# + return int(capture / (by_calls - by_graph))


# %% id=09-break-even slip cause="That comes out if you round to the nearest, and 1.2 runs are 2"
# - return int(capture / (by_calls - by_graph)) + 1
# + return round(capture / (by_calls - by_graph))


# %% id=09-break-even slip cause="That comes out if you divide by all of a run by calls: with a graph, a run saves the difference between that and a launch"
# - return int(capture / (by_calls - by_graph)) + 1
# + return int(capture / by_calls) + 1


# %% id=09-break-even slip cause="That comes out if you add one run too many: with one less, the graph is quicker already"
# - return int(capture / (by_calls - by_graph)) + 1
# + return int(capture / (by_calls - by_graph)) + 2


# %% id=09-break-even slip cause="That comes out if the time of the capture includes a launch"
# - capture = took(lambda: make().graph_on(stream))
# + capture = took(lambda: make().graph_on(stream).launch().sync_on(stream))


# %% id=09-break-even slip cause="That comes out if the runs by calls don't include `make()`: a program without a graph describes everything in each run"
# - by_calls = took(lambda: make().sync_on(stream))
# + op = make()
# + by_calls = took(lambda: op.sync_on(stream))


# %% id=09-break-even slip cause="That comes out if the capture doesn't include `make()`: whoever captures describes once, too"
# - capture = took(lambda: make().graph_on(stream))
# + op = make()
# + capture = took(lambda: op.graph_on(stream))


# %% id=09-break-even slip cause="That comes out if each launch includes a capture: capture before you look at the clock"
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_graph = took(lambda: make().graph_on(stream).launch().sync_on(stream))


# %% id=09-break-even slip cause="That comes out if each launch includes a capture: capture once, before you look at the clock"
# - launch = make().graph_on(stream).launch()
# - capture = took(lambda: make().graph_on(stream))
# - by_calls = took(lambda: make().sync_on(stream))
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_calls = took(lambda: make().sync_on(stream))
# + capture = took(lambda: make().graph_on(stream))
# + launch = make().graph_on(stream).launch()
# + by_graph = took(lambda: make().graph_on(stream).launch().sync_on(stream))
# - return int(capture / (by_calls - by_graph)) + 1
# + return int(capture // (by_calls - by_graph)) + 1


# %% id=09-break-even slip cause="That comes out if you take the slowest of five, or the mean: the quickest is the one that nothing has disturbed"
# - return min(times)
# + return max(times)


# %% id=09-break-even slip cause="That comes out if you take the mean of five, or measure once: the quickest of five is the one that nothing has disturbed"
# - return min(times)
# + return sum(times) / 5


# %% id=09-break-even slip cause="That comes out if you take the first of five: the quickest is the one that nothing has disturbed"
# - return min(times)
# + return times[0]


# %% id=09-break-even slip cause="That comes out if you take the first of five, and the quickest is the one that nothing has disturbed"
# - return min(times)
# + return times[0]
# - launch = make().graph_on(stream).launch()
# - capture = took(lambda: make().graph_on(stream))
# - by_calls = took(lambda: make().sync_on(stream))
# - by_graph = took(lambda: launch.sync_on(stream))
# + by_calls = took(lambda: make().sync_on(stream))
# + capture = took(lambda: make().graph_on(stream))
# + launch = make().graph_on(stream).launch()
# + by_graph = took(lambda: launch.sync_on(stream))


# %% id=09-shapes cause="an operation was captured 45 times, and 43 times is enough"
# - if x.shape not in known:
# + if x.shape not in known:
# +     if len(known) >= 10:
# +         known.clear()


# %% id=09-token-loop cause="`h2d` ran 4 times"
async def run_tokens(graph, x, tokens):
    seen = {}
    results = []
    for token in tokens:
        key = token.tobytes()
        if key not in seen:
            graph.update(agt.memcpy(x.borrow(), token))
            seen[key] = (await graph.launch()).copy()
        results.append(seen[key])
    return results


# %% id=09-token-loop cause="takes things out of its caller's list"
async def run_tokens(graph, x, tokens):
    results = []
    while tokens:
        graph.update(agt.memcpy(x.borrow(), tokens.pop(0)))
        results.append((await graph.launch()).copy())
    return results


# %% id=09-token-loop cause="with results in the wrong order, it seems: token 0"
# - return results
# + return [*results[1:], results[0]]


# %% id=09-break-even cause="take the mean of five, or measure once: the quickest of five is"
def break_even(make, stream):
    clock = agt.current_device().now
    start = clock()
    make().sync_on(stream)
    called = clock()
    launch = make().graph_on(stream).launch()
    captured = clock()
    launch.sync_on(stream)
    saved = (called - start) - (clock() - captured)
    return int((captured - called) // saved) + 1


# %% id=09-challenge cause="it's right, but it takes 1875 µs: get below 1850"
# - launch = agt.overlap(*arms).graph_on(stream).launch()
# + launch = agt.zip(*arms).graph_on(stream).launch()


# %% id=09-shapes cause="at the first one for request 45, of shape (2, 16), element (0, 0) is -1"
def make_server(make, stream):
    known, memo = {}, {}

    def answer(x):
        key = x.shape, x.tobytes()
        if key not in memo:
            if x.shape not in known:
                slot = agt.pinned(x.shape)
                known[x.shape] = slot, make(slot).graph_on(stream)
            slot, graph = known[x.shape]
            slot[...] = x
            memo[key] = graph.launch().sync_on(stream).copy()
        return memo[key]

    return answer
