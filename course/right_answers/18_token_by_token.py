"""Right answers to exercises of course/18_token_by_token.py in other forms than the solution's."""


# %% id=18-challenge
# - streams = [agt.create_stream() for _ in rooms]
# - *others, longest = sorted(range(len(rooms)), key=lambda i: lasts[i])
# - for i in reversed(others):
# -     rooms[i].talk().async_on(streams[i])
# - launch = rooms[longest].fused_step().graph_on(streams[longest]).launch()
# - for _ in range(lasts[longest]):
# -     launch.async_on(streams[longest])
# - texts = {i: told(rooms[i], streams[i]) for i in [*others, longest]}
# - return [texts[i] for i in range(len(rooms))]
# + streams = [agt.create_stream() for _ in rooms]
# + for made, last, stream in zip(rooms, lasts, streams):  # a choice by length, in their order
# +     loop = agt.CudaGraph.while_loop(made.arrays["going"].borrow(), made.fused_step())
# +     if last < 9:
# +         made.talk().async_on(stream)
# +     else:
# +         loop.graph_on(stream).launch().async_on(stream)
# + return [told(*both) for both in zip(rooms, streams)]


# %% id=18-while
# - loop = agt.CudaGraph.while_loop(going.borrow(), step())
# - return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)
# + first, more = agt.CudaGraph.cond, agt.CudaGraph.while_loop
# + two = agt.zip(step(), first(going.borrow(), step()))
# + return agt.zip(first(going.borrow(), step()), more(going.borrow(), two), agt.d2h(text.borrow(), out=out)).graph_on(stream)
