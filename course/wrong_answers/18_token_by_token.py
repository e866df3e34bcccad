"""Plausible wrong answers to the exercises of course/18_token_by_token.py; see tools/build_notebooks.py."""


# %% id=18-say cause="`tell` was called with [343, 0, 12, 413, -241], and [343, 0, 12, 413, 240] was said: the"
# - tell(now if now >= 0 else -1 - now)
# + tell(now)


# %% id=18-say cause="`tell` was called with [343, 0, 12, 413], and [343, 0, 12, 413, 240] was said"
# - tell(now if now >= 0 else -1 - now)
# - if now < 0:
# -     return
# + if now < 0:
# +     return
# + tell(now)


# %% id=18-say cause="an operation was captured 5 times, and 1 time is enough: capture before the loop, and launch"
def say(step, token, stream, tell):
    while True:
        out = agt.pinned(1, np.int32)
        whole = agt.zip(step(), agt.d2h(token.borrow(), out=out))
        whole.graph_on(stream).launch().sync_on(stream)
        now = int(out[0])
        tell(now if now >= 0 else -1 - now)
        if now < 0:
            return


# %% id=18-say cause="the host waited 10 times, and should wait 5 times: once for each token is enough if the launch"
def say(step, token, stream, tell):
    launch = step().graph_on(stream).launch()
    while True:
        launch.sync_on(stream)
        now = int(agt.d2h(token.borrow()).sync_on(stream)[0])
        tell(now if now >= 0 else -1 - now)
        if now < 0:
            return


# %% id=18-say cause="the host reads an array that 'd2h' of operation 'zip'"
# - launch.sync_on(stream)
# + launch.async_on(stream)


# %% id=18-say cause="token 0 was told only after the next step: tell it as soon as it's there"
def say(step, token, stream, tell):  # tells all of them in the end
    out, tokens = agt.pinned(1, np.int32), []
    launch = agt.zip(step(), agt.d2h(token.borrow(), out=out)).graph_on(stream).launch()
    while not tokens or tokens[-1] >= 0:
        launch.sync_on(stream)
        tokens.append(int(out[0]))
    for now in tokens:
        tell(now if now >= 0 else -1 - now)


# %% id=18-say cause="`tell` wants an int, and got array([-241], dtype=int32) (Pinned)"
# - tell(now if now >= 0 else -1 - now)
# + tell(out)


# %% id=18-say cause="`tell` was called with [0, 413, 240], and [343, 0, 12, 413, 240] was said"
# - whole = agt.zip(step(), agt.d2h(token.borrow(), out=out))
# + whole = agt.zip(step(), step(), agt.d2h(token.borrow(), out=out))


# %% id=18-keep cause="-1, 0), with `keys`, element (0, 5, 0) is -0.345683, and should be 0.608633"
# - if (place < 0) return;


# %% id=18-keep cause="0, 7, 9, 1), with `keys`, element (1, 0, 0) is 0.990275, and should be -0.408404"
# - int slot = blockIdx.x, i = threadIdx.x, place = length[slot];
# + int slot = blockIdx.x, i = threadIdx.x, place = length[0];


# %% id=18-keep cause="0, 7, 9, 1), with `keys`, element (0, 3, 0) is 1.39881, and should be -0.943922"
# - keys[to] = qkv[slot * 3 * size + size + i];
# - values[to] = qkv[slot * 3 * size + 2 * size + i];
# + values[to] = qkv[slot * 3 * size + size + i];
# + keys[to] = qkv[slot * 3 * size + 2 * size + i];


# %% id=18-keep cause="0, 7, 9, 1), with `keys`, element (0, 3, 0) is 1.7291, and should be -0.943922"
# - keys[to] = qkv[slot * 3 * size + size + i];
# - values[to] = qkv[slot * 3 * size + 2 * size + i];
# + keys[to] = qkv[slot * 3 * size + i];
# + values[to] = qkv[slot * 3 * size + size + i];


# %% id=18-keep cause="0, 7, 9, 1), kernel 'keep': block (0, 0, 0), thread (0, 0, 0) writes 'keys'[72], and so does"
# - int to = (slot * context + place) * size + i;
# + int to = slot * context + place * size + i;


# %% id=18-keep cause="0, 7, 9, 1), with `keys`, element (0, 3, 0) is 0.911752, and should be -0.943922"
# - int to = (slot * context + place) * size + i;
# + int to = (slot * context + place + 1) * size + i;


# %% id=18-keep cause="0, 7, 9, 1), with `values`, element (0, 3, 0) is 0.431175, and should be 1.39881"
# - values[to] = qkv[slot * 3 * size + 2 * size + i];


# %% id=18-while cause="`say` ran 80 times, and should run 6 times"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + return agt.zip(*[step() for _ in range(40)], agt.d2h(text.borrow(), out=out)).graph_on(stream)


# %% id=18-while cause="`say` ran 18 times, and should run 17 times"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + loop = agt.CudaGraph.while_loop(going.borrow(), agt.zip(step(), step()))


# %% id=18-while cause="with `out` after the launch, element 0 is 0, and should be 228"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + return agt.zip(agt.d2h(text.borrow(), out=out), loop).graph_on(stream)


# %% id=18-while cause="with `out` after the launch, element 0 of the result was not there yet: wait for the device"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + return agt.CudaGraph.while_loop(going.borrow(), step()).graph_on(stream)


# %% id=18-while cause="while_loop(): a body holds kernels, memsets and copies within the device, one after the other,"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + back = agt.d2h(text.borrow(), out=out)
# + return agt.CudaGraph.while_loop(going.borrow(), agt.zip(step(), back)).graph_on(stream)


# %% id=18-while cause="`whole` should return a graph, and returned <DeviceOp zip, of 2: while_loop, d2h: op.sync()..."
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + return agt.zip(loop, agt.d2h(text.borrow(), out=out))


# %% id=18-while cause="`say` ran 7 times, and should run 6 times"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + return agt.zip(step(), loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)


# %% id=18-two cause="race on array 'x': 'reply' of operation 'reply'"
# - one.wait_event(other.record())


# %% id=18-two cause="race on array 'x': 'ask' of operation 'ask'"
# - other.wait_event(one.record())


# %% id=18-two cause="nothing on the device makes `reply` wait for the `ask` before it"
# - other.wait_event(one.record())
# + one.synchronize()
# - one.wait_event(other.record())
# + other.synchronize()


# %% id=18-two cause="which isn't `other`, where it belongs"
# - second.async_on(other)
# + second.async_on(one)


# %% id=18-two cause="race on array 'x': 'ask' of operation 'ask'"
# - first.async_on(one)
# - other.wait_event(one.record())
# + other.wait_event(one.record())
# + first.async_on(one)


# %% id=18-two cause="`take_turns` returned before the device was done"
# - one.synchronize()
# - other.synchronize()


# %% id=18-two cause="the host waited 5 times, and should wait 2 times: let the streams wait for each other, and"
# - one.wait_event(other.record())
# + one.wait_event(other.record())
# + other.synchronize()


# %% id=18-two cause="`ask` ran 6 times, and should run 3 times"
# - for _ in range(times):
# + for _ in range(2 * times):


# %% id=18-two cause="element 0 is 49, and should be 28"
#   for _ in range(times):
# +     second.async_on(other)
# +     one.wait_event(other.record())
# - second.async_on(other)
# - one.wait_event(other.record())


# %% id=18-challenge cause="it's right, but it takes 1"
# - launch = rooms[longest].fused_step().graph_on(streams[longest]).launch()
# - for _ in range(lasts[longest]):
# -     launch.async_on(streams[longest])
# + rooms[longest].talk().async_on(streams[longest])


# %% id=18-challenge cause="it's right, but it takes 1"
def say_all(rooms, lasts):  # a graph for each, the longest first
    streams, texts = [agt.create_stream() for _ in rooms], {}
    order = sorted(range(len(rooms)), key=lambda i: -lasts[i])
    for i in order:
        loop = agt.CudaGraph.while_loop(rooms[i].arrays["going"].borrow(), rooms[i].fused_step())
        loop.graph_on(streams[i]).launch().async_on(streams[i])
    for i in reversed(order):
        both = [agt.d2h(rooms[i].arrays[name].borrow()) for name in ("text", "said")]
        text, said = agt.zip(*both).sync_on(streams[i])
        texts[i] = text[0, : said[0] + 1].tolist()
    return [texts[i] for i in range(len(rooms))]


# %% id=18-challenge cause="it's right, but it takes 3"
# - streams = [agt.create_stream() for _ in rooms]
# + streams = [agt.create_stream()] * len(rooms)


# %% id=18-challenge cause="it's right, but it takes 3"
# - rooms[i].talk().async_on(streams[i])
# + rooms[i].talk().sync_on(streams[i])


# %% id=18-challenge cause="and came out as"
# - return [texts[i] for i in range(len(rooms))]
# + return [texts[i] for i in [*others, longest]]


# %% id=18-challenge cause="and came out as"
# - return text[0, : said[0] + 1].tolist()
# + return text[0, : said[0]].tolist()


# %% id=18-challenge cause="and came out as"
# - return text[0, : said[0] + 1].tolist()
# + return text[0].tolist()


# %% id=18-challenge cause="and came out as"
# - for _ in range(lasts[longest]):
# + for _ in range(lasts[longest] // 2):


# %% id=18-challenge cause="should return a list of 3"
# - return [texts[i] for i in range(len(rooms))]
# + return texts


# %% id=18-say cause="a graph was launched 6 times, and 5 is right: one a token"
# - if now < 0:
# + if now < 0:
# +     launch.sync_on(stream)  # so that nothing is left


# %% id=18-while cause="the text was said before any launch"
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + graph = agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + graph.launch().sync_on(stream)  # to warm up
# + return graph


# %% id=18-say cause="a token is copied by a call of its own: put the copy into the graph, behind the step"
# - whole = agt.zip(step(), agt.d2h(token.borrow(), out=out))
# + whole = step()
# - launch.sync_on(stream)
# + launch.async_on(stream)
# + agt.d2h(token.borrow(), out=out).sync_on(stream)


# %% id=18-say cause="`tell` was called with [343, 0], and"
# - if now < 0:
# + if now <= 0:


# %% id=18-while cause="6 steps ran outside of a loop"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + loop = agt.zip(*[agt.CudaGraph.cond(going.borrow(), step()) for _ in range(120)])


# %% id=18-keep cause="accesses to memory: let each thread keep one number of the key"
# - if (place < 0) return;
# - int to = (slot * context + place) * size + i;
# - keys[to] = qkv[slot * 3 * size + size + i];
# - values[to] = qkv[slot * 3 * size + 2 * size + i];
# + if (place < 0 || i > 0) return;
# + for (int to = (slot * context + place) * size; i < size; i++) {
# +     keys[to + i] = qkv[slot * 3 * size + size + i];
# +     values[to + i] = qkv[slot * 3 * size + 2 * size + i];
# + }


# %% id=18-while cause="6 steps ran outside of a loop, and there may be any number of them"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + loop = [agt.CudaGraph.cond(going.borrow(), step()) for _ in range(text.size)]
# + loop.append(agt.CudaGraph.while_loop(going.borrow(), step()))  # finds nothing to do
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + return agt.zip(*loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)


# %% id=18-say cause="`say` ran on stream 1 of the picture, which isn't `stream`, where it belongs"
# - out = agt.pinned(1, np.int32)
# + stream, out = agt.create_stream(), agt.pinned(1, np.int32)


# %% id=18-keep cause="with size=40, context=6 and lengths (2, -1, 0), "
# - int to = (slot * context + place) * size + i;
# + int to = (slot * context + place) * 24 + i;


# %% id=18-keep cause="with size=40, context=6 and lengths (2, -1, 0), "
# - int to = (slot * context + place) * size + i;
# + int to = (slot * 10 + place) * size + i;


# %% id=18-while cause="the graph was captured on another stream than the given one"
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# + stream, loop = agt.create_stream(), agt.CudaGraph.while_loop(going.borrow(), step())
