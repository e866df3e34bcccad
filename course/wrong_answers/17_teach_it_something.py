"""Plausible wrong answers to the exercises of course/17_teach_it_something.py; see tools/build_notebooks.py."""


# %% id=17-loss cause="element 0 is inf, and should be 6.26166e-14"
# - float most = mine[0], sum = 0.0f;
# - for (int j = 1; j < tokens; j++) most = fmaxf(most, mine[j]);
# + float most = 0.0f, sum = 0.0f;


# %% id=17-loss cause="element 0 is -1.11238, and should be 1.30477"
# - out[i] = logf(sum) + most - mine[right[i]];
# + out[i] = logf(sum) - mine[right[i]];


# %% id=17-loss cause="kernel 'loss': block (0, 0, 0), thread (39, 0, 0) reads 'logits'[1209], which is out of"
# - out[i] = logf(sum) + most - mine[right[i]];
# + out[i] = logf(sum) + most - mine[i];


# %% id=17-loss cause="kernel 'loss': block (0, 0, 0), thread (40, 0, 0) reads 'logits'[1200], which is out of"
# - if (i >= examples) return;


# %% id=17-loss cause="element 0 is inf, and should be 6.26166e-14"
# - float most = mine[0], sum = 0.0f;
# + float most = 0.0f, sum = 0.0f;
# - for (int j = 1; j < tokens; j++) most = fmaxf(most, mine[j]);
# + for (int j = 0; j < tokens; j++) most += mine[j] / tokens;


# %% id=17-loss cause="with the gradients, where the logits were, element (0, 0) is"
# - mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + mine[j] = expf(mine[j] - most) / sum - (j == right[i]);


# %% id=17-loss cause="with the gradients, where the logits were, element (0, 0) is"
# - mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + mine[j] = ((j == right[i]) - expf(mine[j] - most) / sum) / examples;


# %% id=17-loss cause="with the gradients, where the logits were, element (0, 0) is"
# - for (int j = 0; j < tokens; j++)
# -     mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;


# %% id=17-loss cause="element 0 is"
# - out[i] = logf(sum) + most - mine[right[i]];
# - for (int j = 0; j < tokens; j++)
# -     mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + for (int j = 0; j < tokens; j++)
# +     mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + out[i] = logf(sum) + most - mine[right[i]];


# %% id=17-ahead cause="race on array 'here 0': 'h2d' of operation 'memcpy'"
# - stream.wait_event(other.record())


# %% id=17-ahead cause="race on array 'here 0': 'step' of operation 'step'"
# - other.wait_event(used[i])


# %% id=17-ahead cause="the copy of batch 1 waited for the step of batch 0: it goes into the other array, so it"
# - i = number % 2
# + i = 0


# %% id=17-ahead cause="the copy of batch 1 waited for the step of batch 0: it goes into the other array, so it"
# - used[i] = stream.record()
# + used = [stream.record()] * 2


# %% id=17-ahead cause="`train` returned before the device was done"
# - stream.synchronize()


# %% id=17-ahead cause="with the weights in the end, element 0 is 3.06359, and should be 3.93652"
# - for number, batch in enumerate(batches):
# + for number, batch in enumerate(batches[1:] + batches[:1]):


# %% id=17-ahead cause="`step` ran 5 times, and should run 4 times"
# - for number, batch in enumerate(batches):
# + for number, batch in enumerate([*batches, batches[0]]):


# %% id=17-ahead cause="a batch was copied 8 times, and 4 is right: each of them once"
# - agt.memcpy(here[i].borrow(), batch).async_on(other)
# + agt.memcpy(here[i].borrow(), batch).async_on(other)
# + agt.memcpy(here[i].borrow(), batch).async_on(other)


# %% id=17-rate cause="with the weights in the end, element 0 is 0.0951231, and should be 3.28262"
# - graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))


# %% id=17-rate cause="the pinned host array behind 'zeros' was changed while its copy may have been in flight: leave"
# - given = agt.pin(np.array(rates, np.float32))
# + given = agt.pinned(1)
# - graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))
# + given[0] = rates[i]
# + graph.update(agt.memcpy(rate.borrow(), given))


# %% id=17-rate cause="a step was captured 4 times, and once is right: a graph reads its rate where it always was, so"
# - rate = agt.zeros(1).sync_on(stream)
# - graph = make(rate).graph_on(stream)
# - for i in range(len(rates)):
# -     graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))
# -     graph.launch().async_on(stream)
# + for number in rates:
# +     rate = agt.full(1, number).sync_on(stream)
# +     make(rate).graph_on(stream).launch().sync_on(stream)


# %% id=17-rate cause="the host waited 6 times, and should wait 2 times: the rates can be put into the queue, and so"
# - graph.launch().async_on(stream)
# + graph.launch().sync_on(stream)


# %% id=17-rate cause="`step` ran 5 times, and should run 4 times"
# - for i in range(len(rates)):
# + graph.launch().async_on(stream)
# + for i in range(len(rates)):


# %% id=17-rate cause="with the weights in the end, element 0 is 0.470123, and should be 3.28262"
# - graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))
# - graph.launch().async_on(stream)
# + graph.launch().async_on(stream)
# + graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))


# %% id=17-live cause="the host reads an array that 'd2h' of operation 'd2h'"
# - mark.synchronize()
# - draw(float(out[0]))
# - out, mark = waiting.pop()
# - mark.synchronize()
# - draw(float(out[0]))
# + draw(float(out[0]))
# + out, mark = waiting.pop()
# + draw(float(out[0]))


# %% id=17-live cause="the host reads an array that 'd2h' of operation 'd2h'"
# - out = places[number % 2]
# + out = places[0]


# %% id=17-live cause="`draw` was called 2 times, and 3 is right: once a round"
# - out, mark = waiting.pop()
# - mark.synchronize()
# - draw(float(out[0]))


# %% id=17-live cause="`step` ran 15 times, and should run 12 times"
# - for _ in range(every):
# + for _ in range(every + 1):


# %% id=17-live cause="in round 0, 1.99813 was drawn, and the loss was 1.97012"
# - out, mark = waiting.pop(0)
# + out, mark = waiting.pop(1)


# %% id=17-snapshot cause="race on array 'spare': 'd2h' of operation 'd2h'"
# - stream.wait_event(other.record())
# - agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
# + agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)


# %% id=17-snapshot cause="race on array 'spare': 'd2d' of operation 'memcpy'"
# - other.wait_event(stream.record())


# %% id=17-snapshot cause="the steps of round 1 waited for the copy of a snapshot to the host: let them wait for a copy"
# - stream.wait_event(other.record())
# - agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
# - other.wait_event(stream.record())
# - agt.d2h(spare.borrow(), out=host).async_on(other)
# + other.wait_event(stream.record())
# + agt.d2h(weights.borrow(), out=host).async_on(other)
# + stream.wait_event(other.record())


# %% id=17-snapshot cause="`train` returned before the device was done"
# - stream.synchronize()
# - other.synchronize()


# %% id=17-snapshot cause="with the snapshot after round 0, element 0 is 1.99253, and should be 1.88049"
# - for host in hosts:
# + for host in hosts[::-1]:


# %% id=17-snapshot cause="`step` ran 3 times, and should run 6 times"
# - for _ in range(every):
# + for _ in range(every - 1):


# %% id=17-snapshot cause="`step` ran 8 times, and should run 6 times"
# - other.wait_event(stream.record())
# + mark = stream.record()
# + if host is not hosts[-1]:
# +     step().async_on(stream)
# + other.wait_event(mark)


# %% id=17-snapshot cause="snapshot 0 went to the host only behind steps of round 1"
def train(step, weights, spare, hosts, every, stream, other):
    for number, host in enumerate(hosts):
        for k in range(every):
            if number == 0 or k > 0:
                step().async_on(stream)
        stream.wait_event(other.record())
        agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
        if number < len(hosts) - 1:
            step().async_on(stream)
        other.wait_event(stream.record())
        agt.d2h(spare.borrow(), out=host).async_on(other)
    stream.synchronize()
    other.synchronize()


# %% id=17-live cause="`draw` wants a number, and got array([1.9998833], dtype=float32) (Pinned)"
# - draw(float(out[0]))
# + draw(out)
# - draw(float(out[0]))
# + draw(out)


# %% id=17-live cause="the last step of round 1 was put into the queue only after round 0 was drawn: enqueue a"
def watched(step, loss, rounds, every, stream, draw):  # copies without waiting, and waits then
    out = agt.pinned(1)
    for _ in range(rounds):
        for _ in range(every):
            step().async_on(stream)
        agt.d2h(loss.borrow(), out=out).async_on(stream)
        stream.record().synchronize()
        draw(float(out[0]))


# %% id=17-live cause="round 0 was drawn when round 1 was over, too, and so the device waited: wait for an event"
# - mark.synchronize()
# + stream.synchronize()


# %% id=17-live cause="the last step of round 1 was put into the queue only after round 0 was drawn: enqueue a"
def watched(step, loss, rounds, every, stream, draw):  # with one step of the next round in the queue
    waiting = []
    for _ in range(rounds):
        for _ in range(every):
            step().async_on(stream)
            if waiting:
                out, mark = waiting.pop()
                mark.synchronize()
                draw(float(out[0]))
        out = agt.pinned(1)
        agt.d2h(loss.borrow(), out=out).async_on(stream)
        waiting.append((out, stream.record()))
    out, mark = waiting.pop()
    mark.synchronize()
    draw(float(out[0]))


# %% id=17-loss cause="element 0 is -inf, and should be"
# - float most = mine[0], sum = 0.0f;
# + float most = 0.0f, sum = 0.0f;


# %% id=17-ahead cause="a batch went to a new array: the two in `here` do for any number of batches"
# - agt.memcpy(here[i].borrow(), batch).async_on(other)
# + x = agt.h2d(batch).async_on(other)
# - step(here[i]).async_on(stream)
# + step(x).async_on(stream)


# %% id=17-rate cause="`falling` returned before the device was done"
# - stream.synchronize()


# %% id=17-snapshot cause="the steps of round 1 waited for the copy of a snapshot to the host: let them wait for a copy"
# - step().async_on(stream)
# - stream.wait_event(other.record())
# + step().async_on(stream)
# + stream.wait_event(other.record())


# %% id=17-loss cause="thread 0 of the grid makes 6120 of all 6120 accesses to memory"
# - if (i >= examples) return;
# + if (i) return; else for (; i < examples; i++) {
# - mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples; }


# %% id=17-snapshot cause="the host waited 5 times, and should wait 2 times: have streams wait for events"
# - stream.wait_event(other.record())
# + other.synchronize()


# %% id=17-snapshot cause="a snapshot went to a new array on the device: `spare` does"
# - stream.wait_event(other.record())
# - agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
# + spare = agt.dup(weights.borrow()).last().async_on(stream)


# %% id=17-loss cause="accesses to memory: give each thread one example"
# - if (i >= examples) return;
# - float* mine = logits + i * tokens;
# + __shared__ float told[64];
# + for (; threadIdx.x == 0 && i < examples && i - blockIdx.x * 64 < 64; i++) {
# + float* mine = logits + i * tokens;
# - out[i] = logf(sum) + most - mine[right[i]];
# + told[i % 64] = logf(sum) + most - mine[right[i]];
# - mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;
# + mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples; }
# + __syncthreads();
# + i = blockIdx.x * 64 + threadIdx.x;
# + if (i < examples) out[i] = told[threadIdx.x];


# %% id=17-ahead cause="`step` ran on stream 2 of the picture, which isn't `stream`, where it belongs"
# - def train(step, batches, here, stream, other):
# + def train(step, batches, here, other, stream):


# %% id=17-ahead cause="`h2d` ran on stream 1 of the picture, which isn't `other`, where it belongs"
# - used = [stream.record(), stream.record()]
# + other, used = agt.create_stream(), [stream.record(), stream.record()]


# %% id=17-rate cause="`step` ran on stream 1 of the picture, which isn't `stream`, where it belongs"
# - given = agt.pin(np.array(rates, np.float32))
# + stream, given = agt.create_stream(), agt.pin(np.array(rates, np.float32))


# %% id=17-live cause="`step` ran on stream 1 of the picture, which isn't `stream`, where it belongs"
# - places, waiting = agt.pinned((2, 1)), []
# + stream, places, waiting = agt.create_stream(), agt.pinned((2, 1)), []


# %% id=17-snapshot cause="`step` ran on stream 1 of the picture, which isn't `stream`, where it belongs"
# - def train(step, weights, spare, hosts, every, stream, other):
# + def train(step, weights, spare, hosts, every, other, stream):
