"""Plausible wrong answers to the exercises of course/00_start_here.py; see tools/build_notebooks.py."""


# %% id=00-waited cause="waits 1 time"
def waited(trace):
    return trace.metrics().makespan


# %% id=00-waited cause="came out, and"
def waited(trace):
    return trace.metrics().host["call"]


# %% id=00-waited cause="came out, and"
def waited(trace):
    return max((span.duration for span in trace if span.kind == "wait"), default=0.0)


# %% id=00-waited cause="a number of microseconds should come out"
def waited(trace):
    return trace.metrics().host["wait"] > 0


# %% id=00-waited cause="a number of microseconds should come out"
def waited(trace):
    print(trace.metrics().host["wait"])


# %% id=00-both cause="no two operations were at work at the same time"
async def both(first, second):
    a = await agt.spawn(first)
    b = await agt.spawn(second)
    return a, b


# %% id=00-both cause="no two operations were at work at the same time"
async def both(first, second):
    return await agt.zip(first, second)


# %% id=00-both cause="`sync` keeps Python waiting"
async def both(first, second):
    a = agt.spawn(first)
    b = second.sync()
    return await a, b


# %% id=00-both cause="with result 0, element 0 is 2"
async def both(first, second):
    b = agt.spawn(second)
    a = agt.spawn(first)
    return await b, await a


# %% id=00-both cause="should return a list of 2, one for each in order, and returned"
async def both(first, second):
    a = agt.spawn(first)
    b = agt.spawn(second)
    await a
    return await b


# %% id=00-both cause="and returned one of 1"
async def both(first, second):
    a = agt.spawn(first)
    b = agt.spawn(second)
    await b
    return [await a]


# %% id=00-both cause="`d2h` ran 1 time"
async def both(first, second):
    a = agt.spawn(first)
    return await a, second
