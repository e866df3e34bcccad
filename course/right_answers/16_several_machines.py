"""Right answers to exercises of course/16_several_machines.py in other forms than the solution's."""


# %% id=16-recipe
from functools import reduce


async def in_one(gpu, x, stages):
    return await gpu(reduce(agt.DeviceOp.and_then, stages, x.op()).to_host())


# %% id=16-recipe
async def in_one(gpu, x, stages):
    """One function does it all over there."""

    def all_of_them(array, left=tuple(stages)):
        if not left:
            return agt.d2h(array)
        return left[0](array).and_then(lambda array: all_of_them(array, left[1:]))

    return await gpu(x.op().and_then(all_of_them))


# %% id=16-place
import asyncio


async def score_all(gpus, weights, batches, layer):
    """One recipe for each GPU, with all of its batches."""

    async def share(k):
        op, mine = agt.h2d(weights).share(), batches[k :: len(gpus)]

        def layers(w):
            return agt.zip(*[layer(x, w) for x in mine])

        return await gpus[k](op.and_then(layers))

    parts = await asyncio.gather(*[share(k) for k in range(len(gpus))])
    return [parts[i % len(gpus)][i // len(gpus)] for i in range(len(batches))]


# %% id=16-place
async def score_all(gpus, weights, batches, layer):
    """The weights come when a GPU has its first batch."""
    there, results = {}, []
    for i, x in enumerate(batches):
        gpu = gpus[i % len(gpus)]
        if gpu not in there:
            there[gpu] = await gpu.put(weights)
        results.append(await gpu(there[gpu].op().and_then(lambda w: layer(x, w))))
    return results


# %% id=16-handles
async def settle(gpu, x, step, limit):
    """The first recipe takes x along."""
    op = agt.h2d(x)
    while True:
        look = op.and_then(step).and_then(lambda a: agt.zip(agt.value(a[0]), agt.d2h(a[1])))
        there, moved = await gpu(look)
        if moved < limit:
            return await gpu(there.op().to_host())
        op = there.op()


# %% id=16-drop
async def best(gpu, recipes):
    """A function of its own, whose variables go when it returns."""

    async def better(kept, recipe):
        array, score = await gpu(recipe)
        return max(kept, (score[0], array), key=lambda pair: pair[0])

    kept = (-np.inf, None)
    for recipe in recipes:
        kept = await better(kept, recipe)
    return kept[1]


# %% id=16-drop
async def best(gpu, recipes):
    found = []
    for recipe in recipes:
        found.append(await gpu(recipe))
        found.sort(key=lambda pair: -pair[1][0])
        del found[1:]
    return found[0][0]


# %% id=16-challenge
import asyncio


async def spread(gpus, there, batches, layer):
    """A call for each GPU, in which its batches overlap."""

    def share(k):
        mine = batches[k :: len(gpus)]
        return gpus[k](there[k].op().and_then(lambda w: agt.overlap(*[layer(x, w) for x in mine])))

    parts = await asyncio.gather(*[share(k) for k in range(len(gpus))])
    return [parts[i % len(gpus)][i // len(gpus)] for i in range(len(batches))]


# %% id=16-dies
import asyncio


async def careful(gpus, recipe, batches):
    """In rounds: what was lost in one is dealt out in the next."""
    alive, results, lost = list(gpus), {}, {}

    async def attempt(gpu, i):
        try:
            results[i] = await gpu(recipe(batches[i]))
        except agt.errors.WorkerLostError as error:
            lost[gpu] = error

    while left := [i for i in range(len(batches)) if i not in results]:
        if not alive:
            raise lost[gpus[0]]
        await asyncio.gather(*[attempt(alive[n % len(alive)], i) for n, i in enumerate(left)])
        alive = [gpu for gpu in gpus if gpu not in lost]
    return [results[i] for i in range(len(batches))]


# %% id=16-dies
import asyncio


async def careful(gpus, recipe, batches):
    """A queue: whoever is free takes the next batch, and puts it back when it dies."""
    todo, results = list(enumerate(batches)), {}

    async def serve(gpu):
        while len(results) < len(batches):
            if not todo:
                await agt.sleep(100)
                continue
            i, x = todo.pop()
            try:
                results[i] = await gpu(recipe(x))
            except agt.errors.WorkerLostError as error:
                todo.append((i, x))
                return error

    ended = await asyncio.gather(*[serve(gpu) for gpu in gpus])
    if len(results) < len(batches):
        raise ended[0]
    return [results[i] for i in range(len(batches))]


# %% id=16-dies
import asyncio


async def careful(gpus, recipe, batches):
    """A list of those that are alive."""
    alive = list(gpus)

    async def one(i, x):
        while True:
            gpu = alive[i % len(alive)]
            try:
                return await gpu(recipe(x))
            except agt.errors.WorkerLostError:
                if gpu in alive:
                    alive.remove(gpu)
                if not alive:
                    raise

    return await asyncio.gather(*[one(i, x) for i, x in enumerate(batches)])
