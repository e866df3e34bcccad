"""Right answers to exercises of course/17_teach_it_something.py in other forms than the solution's."""


# %% id=17-rate
import numpy as np


def falling(make, rates, stream):
    rate = agt.zeros(1).sync_on(stream)
    launch = make(rate).graph_on(stream).launch()
    for number in rates:
        agt.memcpy(rate.borrow(), agt.pin(np.full(1, number, np.float32))).async_on(stream)
        launch.async_on(stream)
    stream.synchronize()


# %% id=17-live
# - def watched(step, loss, rounds, every, stream, draw):
# - places, waiting = agt.pinned((2, 1)), []
# - for number in range(rounds):
# + def watched(step, loss, rounds, every, stream, draw):  # a pinned number for each round
# +     waiting = []
# +     for _ in range(rounds):
# - out = places[number % 2]
# + out = agt.pinned(1)
