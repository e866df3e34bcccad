"""Right answers to exercises of course/10_build_it_yourself.py in other forms than the solution's."""


# %% id=10-overlap
def overlap(*ops):
    def enqueue(context):
        ready = context.stream.record()
        arms = [context.fork() for _ in ops]
        for arm in arms:
            arm.stream.wait_event(ready)
        results = tuple(op(arm) for op, arm in zip(ops, arms))
        for arm in arms:
            context.stream.wait_event(arm.stream.record())
        return results

    return enqueue


# %% id=10-shared
def shared(op):
    """The first caller, whose stream has the source in it, waits for nothing."""
    result = event = None

    def enqueue(context):
        nonlocal result, event
        if event is None:
            result = op(context)
            event = context.stream.record()
        else:
            context.stream.wait_event(event)
        return result

    return enqueue


# %% id=10-future
import asyncio


class Future:
    def __init__(self, result, event):
        self.result = result
        self.event = event

    async def wait(self):
        while not self.event.done:  # noqa: ASYNC110 - to look again and again is what is tried here
            await asyncio.sleep(0)
        return self.result

    def __await__(self):
        return self.wait().__await__()


# %% id=10-round-robin
# - streams = [agt.create_stream() for _ in range(size)]
# + """Streams are made when their first turn comes."""
# + streams, turn = [], -1
# - streams.append(streams.pop(0))
# - return streams[-1]
# + nonlocal turn
# + turn = (turn + 1) % size
# + if turn == len(streams):
# +     streams.append(agt.create_stream())
# + return streams[turn]


# %% id=10-overlap
def overlap(*ops):
    """One arm stays at home."""

    def enqueue(context):
        begun = context.stream.record()
        arms = [context.fork() for _ in ops[1:]]
        for arm in arms:
            arm.stream.wait_event(begun)
        results = [op(arm) for op, arm in zip(ops[1:], arms, strict=True)]
        results[:0] = [op(context) for op in ops[:1]]
        for arm in arms:
            context.stream.wait_event(arm.stream.record())
        return tuple(results)

    return enqueue


# %% id=10-shared
def shared(op):
    """On the stream of the source nobody has to wait."""
    known = []

    def enqueue(context):
        if not known:
            known.append((op(context), context.stream, context.stream.record()))
        result, home, event = known[0]
        if context.stream is not home:
            context.stream.wait_event(event)
        return result

    return enqueue


# %% id=10-overlap
def overlap(*ops):
    """The first arm stays where it is, and who fails joins the others all the same."""

    def enqueue(context):
        begun = context.stream.record()
        arms = [context, *(context.fork() for _ in ops[1:])]
        try:
            for arm in arms[1:]:
                arm.stream.wait_event(begun)
            return tuple([op(arm) for op, arm in zip(ops, arms)])
        finally:
            for arm in arms[1:]:
                context.stream.wait_event(arm.stream.record())

    return enqueue


# %% id=10-and-then
def and_then(op, f):
    def enqueue(context):
        for step in (op, f):
            try:
                result = step(context) if step is op else step(result)(context)
            except Exception as error:
                error.add_note("in a chain")
                raise
        return result

    return enqueue
