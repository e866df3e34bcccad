"""Source of notebooks/13b_await_the_host.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # A kernel that awaits
#
# In chapter 12 a thread of the GPU learned to wait for several things at once. In chapter 13 it learned to call Python. You've probably asked already: **why doesn't it do both?** When it calls, it just stands there holding the phone, as if it had never heard of futures.
#
# After this page you can turn a call to the host into a future, have several of them under way at once, cope with a refusal inside a kernel, and read the next piece of a file while you're still busy with this one. In the second sitting you give up on a call without losing its packet.
#
# | | |
# |---|---|
# | Time | an hour, and 25 minutes for the second sitting, on another day. The encores take 15 more |
# | You need | [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) and [13_hostcalls](13_hostcalls.ipynb). You don't need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import tempfile
from pathlib import Path

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Two phone calls
#
# A kernel has to work out a bill. It needs a price, which one colleague knows, and an exchange rate, which another one knows. Looking up the price takes about 30 µs, and the rate about 70. On the host, both are coroutines.
#
# Here's the kernel as you'd write it after chapter 13. It makes one call, waits for the answer, and makes the other.

# %% id=one-by-one
bill_in_turn = agt.Kernel(r"""
#include "hostcall.cuh"
__global__ void bill_in_turn(unsigned long long* mail, unsigned long long* stack,
                             unsigned long long* cost)
{
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long price = 0, rate = 0;
    bool ok = hostcall(host, 16, 7, 0, 0, price);
    if (!ok) return;
    ok = hostcall(host, 17, 7, 0, 0, rate);
    if (!ok) return;
    *cost = price * rate;
}
""")


async def price(call):
    await agt.sleep(30)
    return 6


async def rate(call):
    await agt.sleep(70)
    return 7


async def ask_for(kernel, price=price):
    """What the kernel works out, and the trace."""
    cost = agt.pin(np.zeros(1, np.uint64))
    async with agt.hostcalls({16: price, 17: rate}) as office:
        with agt.record() as trace:
            await office.run(kernel(*office.arrays, agt.mapped(cost), grid=1, block=1))
    return int(cost[0]), trace


def kernel_us(trace):
    (span,) = trace.device_spans
    return span.duration


await ask_for(bill_in_turn)  # warm-up
cost, in_turn = await ask_for(bill_in_turn)
print(f"it costs {cost}, and the kernel took {kernel_us(in_turn):.0f} µs")

# %% id=one-by-one-check tags=asserts
assert cost == 42
if device.simulated:
    assert 110 < kernel_us(in_turn) < 140


# %% id=waiting tags=helpers
def waiting_for(trace, *words):
    """The trace with a lane that says what its kernel waits for, where the device knows when it waits."""
    (kernel,) = trace.device_spans
    if not kernel.waits:
        return trace
    first, *between, last = kernel.waits
    stretches = [first, last]
    if between:  # many short ones: they are of one kind
        stretches.insert(1, (between[0][0], between[-1][1]))
    return trace.with_lane("waits for", [(*when, word) for when, word in zip(stretches, words)])


# %% [markdown] id=states-text
# ## A call is two waits
#
# What does `hostcall` wait for, exactly? First for a free packet, which is nearly always there. Then for the answer, which is not. In between it sends the question, and there it waits for nobody. So a call is a cup of tea from chapter 12: two waits (boil, then steep) with a step in between. Here's the life of its packet once more, with the steps below it:
#
# ```text
#                    take           ask            answer         give back
#   the pile       ━━━━┓                                             ┏━━━━━▶
#   the block          ┗━ fills it ━━┓               ┏━━ reads it ━━━┛
#   the host                         ┗━ works on it ━┛
#
#   step          0         1                2                              3
#           may be PENDING            may be PENDING
# ```
#
# The host notes which packets it's working on, so that it doesn't begin twice. It looks at a packet's flag again only when it has answered.
#
# The header of chapter 13 has a function for each thing that a block does here. None of them waits: where there may be nothing yet, it looks once and returns.
#
# | | |
# |---|---|
# | `hostcall_try_begin(host)` | takes a packet, or returns -1 if none is free at the moment |
# | `hostcall_ask(host, p, service, a, b, c)` | sends the packet: it writes the question, fences, and raises the flag |
# | `hostcall_done(host, p)` | tells whether the answer is there |
# | `hostcall_answer(host, p)` | reads the word that the host has written into the packet |
# | `hostcall_end(host, p)` | gives the packet back |
#
# Two fences matter here. The one in `hostcall_ask` publishes all that you've written into the packet by then, bytes included. The other one is up to you: `hostcall_done` is a bare look at the flag, so you need a `__threadfence_system()` before you read what the host has published, or hand the packet on.

# %% [markdown] id=exercise-ask
# ### Exercise: a call that does not wait
#
# Write `poll`. The struct asks service 16 about `a`. It starts with `step` at 0 and `packet` at -1, and puts the host's answer into `answer`. The version below is right, but it waits. (`Poll`, the executors and `hostcall.cuh` are there already. You needn't look for a host that has gone; the header's version does that.)

# %% id=13b-ask starter
ASK = r"""
struct Ask {
    Hostcalls host;
    unsigned long long a;
    int step, packet;
    unsigned long long answer;
    __device__ Poll poll()
    {
        hostcall(host, 16, a, 0, 0, answer);   // waits
        return READY;
    }
};
"""

# %% id=13b-ask solution
# - hostcall(host, 16, a, 0, 0, answer);   // waits
# + if (step == 0) {
# +     packet = hostcall_try_begin(host);
# +     if (packet < 0) return PENDING;
# +     step = 1;
# + }
# + if (step == 1) {
# +     hostcall_ask(host, packet, 16, a, 0, 0);
# +     step = 2;
# + }
# + if (step == 2) {
# +     if (!hostcall_done(host, packet)) return PENDING;
# +     __threadfence_system();
# +     answer = hostcall_answer(host, packet);
# +     hostcall_end(host, packet);
# +     step = 3;
# + }

# %% id=13b-ask hints
# Follow the picture from left to right, with an `if` for each step, as in the cup of tea. Where it may wait, `return PENDING`.
#
# In step 0, take a packet, and come back later if there is none. In step 1, send it, and remember that by `step = 2`. Otherwise you'd ask again at the next poll.
#
# In step 2: not done? `return PENDING`. Done? Fence, answer, end, and on to step 3. In step 3 there's nothing left to do but to say `READY`.

# %% id=13b-ask explanation
# A dozen lines, and the kernel has an `await` for the outside world. `packet` has to be a member, because it's needed after a wait. In the header, `Ask` has the same four steps, and does some more: it notices a host that has gone, loses its patience after a few seconds, and says so in `error`.

# %% id=13b-ask-check
check("13b-ask", ASK)

# %% [markdown] id=join-text
# The header `hostcall_async.cuh` has this struct with all the trimmings, and a function `ask(host, service, a, b, c)` that makes one. Since it's a future like any other, everything from chapter 12 works with it: `block_on`, `run_all`, `join` and `select`. Here are both questions, joined. (`both.a` is the first of the two, and `both.b` the second.)

# %% id=joined
bill_joined = agt.Kernel(r"""
#include "hostcall_async.cuh"
__global__ void bill_joined(unsigned long long* mail, unsigned long long* stack,
                            unsigned long long* cost)
{
    Hostcalls host = hostcalls(mail, stack);
    auto both = join(ask(host, 16, 7, 0, 0), ask(host, 17, 7, 0, 0));
    block_on(both);
    if (both.a.error == 0 && both.b.error == 0) *cost = both.a.answer * both.b.answer;
}
""")

# %% id=joined-before
print(f"In turn, the two calls took the kernel {kernel_us(in_turn):.0f} µs.")

# %% id=13b-joined guess within=0.05
# How many µs does it take with both joined?

# %% id=13b-joined reveal
await ask_for(bill_joined)  # warm-up
cost, at_once = await ask_for(bill_joined)
picture = agt.compare_timelines(
    [waiting_for(in_turn, "the price", "the rate"), waiting_for(at_once, "price and rate", "the rate")],
    ["one call after the other", "both calls joined"],
    lanes=("host", "streams"),
)
besides = (kernel_us(in_turn) - 100) / 2
reveal("13b-joined", round(kernel_us(at_once), 1), picture, besides=besides, cost=cost)

# %% id=13b-joined lesson
# Each coroutine has a bar while it searches, with the number of the item. Above, the rate is asked for only when the price is there. Below, both searches are under way together. Nearly all of the kernel's bar is dotted: it only waits. (A GPU doesn't tell when a kernel waits, so there the bar is solid.)

# %% id=13b-joined told truth=81.3
# It costs {cost}, as before. Both colleagues search at the same time, so the slower one decides, with 70 µs. A call costs some {besides:.0f} µs besides, for the way there and back and one of Python's rounds, and here both calls share that. So you save more than the 30 µs of the price.

# %% id=joined-check tags=asserts
assert cost == 42
if device.simulated:
    one, other = (span for span in at_once if span.name in ("price 7", "rate 7"))
    assert one.start < other.end
    assert other.start < one.end
    assert 70 < kernel_us(at_once) < 0.75 * kernel_us(in_turn)

# %% [markdown] id=error-text
# ## When the answer is no
#
# So far the host has known everything. But a price list may lack an item, and then what? If a handler raises an exception, all calls end, and for a bug that's right. A missing item isn't a bug. So a handler can raise `agt.errors.CallRefusedError(number)` instead, and then only this one call fails. Its `error` becomes that number, which travels in the packet's only word for what the host says, and the kernel goes on. (Where there's an answer, `error` is 0. If the host has gone, it's `HOSTCALL_GONE`, which is -1, and asking again is in vain.)

# %% id=refused
async def sold_out(call):
    raise agt.errors.CallRefusedError(2)


cost, _ = await ask_for(bill_joined, sold_out)
print(f"it costs {cost}")

# %% id=refused-check tags=asserts
assert cost == 0

# %% [markdown] id=refused-read
# `bill_joined` looked at both errors before it multiplied, so it wrote nothing, and the 0 is what was there before. Now we take the looking out of both kernels:
#
# ```c
# block_on(both);                          // joined
# *cost = both.a.answer * both.b.answer;
#
# hostcall(host, 16, 7, 0, 0, price);      // in turn. Both variables begin with 0
# hostcall(host, 17, 7, 0, 0, rate);
# *cost = price * rate;
# ```

# %% id=13b-careless guess
# The price is refused with 2, and the rate is 7. What does it cost joined, and what in turn? (Type two numbers, such as 30 40.)

# %% id=13b-careless reveal
costs = []
for kernel, look in (
    (bill_joined, "if (both.a.error == 0 && both.b.error == 0) "),
    (bill_in_turn, "if (!ok) return;"),
):
    cost, _ = await ask_for(agt.Kernel(kernel.source.replace(look, "")), sold_out)
    costs.append(cost)

reveal("13b-careless", costs)

# %% id=13b-careless told truth="14 0"
# An `Ask` stores the packet's word, whatever it means: it's the 2 of the refusal, and 2 times 7 looks just like a price. `hostcall` leaves your variable alone when it returns false, so there the price is still 0. An answer and a refusal are told apart by `error` and `ok`, and by nothing else.

# %% id=careless-check tags=asserts
assert costs == [14, 0]
assert "if (both" in bill_joined.source
assert "if (!ok)" in bill_in_turn.source

# %% [markdown] id=exercise-both
# ### Exercise: two answers, or an error
#
# `both` asks service 16 about `a` and about `b`, at the same time. If both are answered, it stores the product in `*out`. If one is refused, it stores minus its error, and if both are, either error will do. The version below asks in turn, and hopes for the best.

# %% id=13b-both starter
BOTH = r"""
#include "hostcall_async.cuh"
__global__ void both(unsigned long long* mail, unsigned long long* stack,
                     int a, int b, long long* out)
{
    Hostcalls host = hostcalls(mail, stack);
    Ask one = ask(host, 16, a, 0, 0);
    block_on(one);
    Ask two = ask(host, 16, b, 0, 0);
    block_on(two);
    *out = one.answer * two.answer;
}
"""

# %% id=13b-both solution
BOTH = r"""
#include "hostcall_async.cuh"
__global__ void both(unsigned long long* mail, unsigned long long* stack,
                     int a, int b, long long* out)
{
    Hostcalls host = hostcalls(mail, stack);
    auto pair = join(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0));
    block_on(pair);
    if (pair.a.error != 0) *out = -pair.a.error;
    else if (pair.b.error != 0) *out = -pair.b.error;
    else *out = pair.a.answer * pair.b.answer;
}
"""

# %% id=13b-both hints
# `bill_joined` above has the join. What's new is what you do with the two errors.
#
# `pair.a.error` is 0 when the first was answered. Look at both before you multiply.

# %% id=13b-both explanation
# In Python, `gather` would have raised the first exception. There are no exceptions in a kernel, so an error is a number that you have to look at. Rust calls this a `Result`, and there the compiler complains when you forget.

# %% id=13b-both-check
check("13b-both", BOTH)

# %% [markdown] id=ahead-text
# ## Asking before you need it
#
# There's one more thing that a future can do and a call can't. You may ask now, and wait later. A file that is read piece by piece is the classic case: while you work on one piece, the next could already be on its way.
#
# ```text
#   in turn     read 0 | work 0 | read 1 | work 1 | read 2 | work 2
#
#   ahead       read 0 | work 0 | work 1 | work 2
#                      | read 1 | read 2 |
# ```
#
# It takes two packets: one that you're working on, and one with the host. `ask_keeping` makes a call whose packet stays yours after `READY`, because you want its bytes:
#
# ```c
# Ask one = ask_keeping(host, 16, 3, 0, 0);  // about piece 3; nothing is sent yet
# block_on(one);                             // sends it, and waits for the answer
# float first = one.bytes()[0];
# one.end();                       // the packet goes back, even if the call was refused
# ```
#
# `end()` is for a call that was `READY`. If you don't want to wait for that any more, `drop()` the call instead (that's the second sitting). You may copy an `Ask` (`two = one`), but then use only the copy, or the packet is given back twice. `join` and `select` copy, too: read `both.a`, and not what you made it of.

# %% [markdown] id=exercise-challenge
# ### Challenge: read ahead
#
# `ahead` works through a file of at least one piece, piece by piece. For each, it asks service 16 by the piece's number, and works on the first byte that comes back. If a piece is refused, nothing is stored. The host needs 50 µs for a piece, and the work takes about 55. Leave `work` as it is. The version below reads and works in turn. For 12 pieces it takes 1353 µs: get below 1000.

# %% id=13b-challenge starter
AHEAD = r"""
#include "hostcall_async.cuh"
__device__ float work(float x)
{
    float root = 1.0f + x;
    for (int k = 0; k < 1500; k++) root = 0.5f * (root + 3.0f / root);
    return root + x;
}

__global__ void ahead(unsigned long long* mail, unsigned long long* stack,
                      int pieces, float* out)
{
    Hostcalls host = hostcalls(mail, stack);
    float sum = 0.0f;
    for (int k = 0; k < pieces; k++) {
        Ask mine = ask_keeping(host, 16, k, 0, 0);
        block_on(mine);
        if (mine.error != 0) {
            mine.end();
            return;
        }
        sum += work(mine.bytes()[0]);
        mine.end();
    }
    *out = sum;
}
"""

# %% id=13b-challenge solution
#   float sum = 0.0f;
# + Ask next = ask_keeping(host, 16, 0, 0, 0);
# - Ask mine = ask_keeping(host, 16, k, 0, 0);
# + Ask mine = next;
#   if (mine.error != 0) {
#   return;
# + }
# + if (k + 1 < pieces) {
# +     next = ask_keeping(host, 16, k + 1, 0, 0);
# +     next.poll();

# %% id=13b-challenge hints
# When is the earliest moment at which you can ask for piece 1? It's before you work on piece 0.
#
# Keep two futures, `mine` and `next`. As soon as `mine` is there, make a new `next`, and poll it once so that the question is sent. Then work.
#
# Mind both ends: the first piece has to be asked for before the loop, and there is no piece behind the last one.

# %% id=13b-challenge explanation
# All reads but the first one hide behind the work, or nearly: each takes the trip there and back as well. It's the two buffers of chapter 2b, with Python as the copy engine. Where the host takes longer than the work, some waiting is left. More packets help then, if the host can look for several pieces at once, as coroutines that sleep can. A disk that reads one piece after the other is no quicker for being asked more.

# %% id=13b-challenge-check
check("13b-challenge", AHEAD)

# %% [markdown] id=ahead-picture-text
# Here are six pieces from a host that needs 55 µs for each, just as long as the work takes. (In the challenge it was a little quicker. Both kernels are the course's. The next cell gives the trick away, so try the challenge first.)

# %% id=ahead-in-turn
async def read(call):
    await agt.sleep(55)
    call.data[:8] = call.a


async def six_pieces(source):
    result = agt.pin(np.zeros(1, np.float32))
    kernel = agt.Kernel(source)
    for _ in range(1 if device.simulated else 2):  # a GPU compiles it in the first run
        async with agt.hostcalls({16: read}) as office:
            op = kernel(*office.arrays, 6, agt.mapped(result), grid=1, block=1)
            with agt.record() as trace:
                await office.run(op)
    return trace


# Without its early `poll`, the course's own answer asks only when it needs the piece.
late = await six_pieces(solved("13b-challenge").replace("next.poll();", ""))
print(f"in turn, the kernel took {kernel_us(late):.0f} µs")

# %% id=working tags=helpers
def working(trace):
    """The trace with a lane that says which piece its kernel works on, where the device knows."""
    (kernel,) = trace.device_spans
    answered = [end for _, end in kernel.waits]
    asked = [*(start for start, _ in kernel.waits[1:]), kernel.end]
    return trace.with_lane("works on", [(*when, f"{k}") for k, when in enumerate(zip(answered, asked))])


# %% id=13b-ahead guess within=0.05
# Of those µs, each of the six pieces took 55 for reading and 55 for work, and what a call costs besides. How many µs does the kernel take if it reads ahead?

# %% id=13b-ahead reveal
early = await six_pieces(solved("13b-challenge"))
picture = agt.compare_timelines(
    [working(late), working(early)],
    ["read and work in turn", "read ahead"],
    lanes=("host", "streams"),
)
piece = kernel_us(late) / 6
facts = {"piece": piece, "reading": piece - 55, "all_": kernel_us(late) - 5 * 55}
reveal("13b-ahead", round(kernel_us(early)), picture, **facts)

# %% id=13b-ahead lesson
# Where the kernel's bar is solid, it works, and where it's dotted, it waits. Above, nobody reads while it works. Below, the host reads piece 1 while the kernel works on piece 0, and so on.

# %% id=13b-ahead told truth=435
# Six times the work makes 330, and the first read comes before it. But a piece takes the trips there and back besides the host's 55 µs, so it's always a little later than the work. The kernel waits for each, and the host sets the pace. In turn, a piece took {piece:.1f} µs, so reading one takes {reading:.1f}. Six of these, and then the work on the last piece, make {all_:.0f}.

# %% id=ahead-picture-check tags=asserts
if device.simulated:
    assert kernel_us(early) < 0.75 * kernel_us(late)

# %% [markdown] id=costs
# ## What it costs
#
# A future is no faster than a call. What it saves is the time that you'd have spent standing there. If there's nothing else to do, or if every block asks a single question, `hostcall` is shorter and as quick. And each look at a packet reads two words over the bus, which took an H200 2.4 µs. So a thread that polls thirty futures is back at the first one after some 70 µs.
#
# The other limit is Python. While the kernel waits for two answers, somebody has to work on both, and that works here because the handlers sleep. When we measured it on an H200, with handlers that slept for 200 µs two joined calls took 1.1 times as long as one call, and with 50 µs 1.2 times, because Python begins the coroutines one after the other. Handlers that compute never overlap, join or no join. And with a host that took 100 µs for a piece, reading ahead hid 89 % of that time behind work of 115 µs, but only 53 % behind 65.

# %% [markdown] id=key-points
# ## Key points
#
# - A call to the host is a state machine with two waits, one for a packet and one for the answer. As a future, it can be joined like any other.
# - A refusal is a number in `error`, and the kernel has to look at it. An exception that isn't a refusal ends all calls.
# - Ask early and wait late: then the host's time hides behind your own.
#
# What if you don't want to wait any more? That's the second sitting. Behind it are two encores, for the day when a kernel has to open a file, and for the day when a colleague is in a bad mood. **Next:** [14_gallery](14_gallery.ipynb), where the ideas of this course hang on a wall.

# %% id=score
score("13b")

# %% id=progress
progress("13b")

# %% [markdown] id=limit-text
# ## Second sitting: hanging up
#
# *This one takes 25 minutes. It uses what the page has defined above.*
#
# Suppose that one colleague is asleep. You don't want to wait all day, so you set a limit. `within(future, clocks)` is a `select` between a future and a `Deadline`, which is ready when the SM's clock has got that far. The header's `select` drops its loser for you, by calling its `drop()`. (The one on chapter 12's page just left it standing.) Every future in our headers has a `drop`, and you can also call it yourself.
#
# ```c
# auto quick = within(ask(host, 16, 7, 0, 0), 100000);  // about 50 µs
# block_on(quick);
# if (quick.winner == 1) ...                            // too late
# else if (quick.a.error == 0) use(quick.a.answer);     // `a`: the call, `b`: the limit
# ```
#
# For the cup of tea of chapter 12, `void drop() { }` would do, because it holds nothing. But a call holds a packet. Here's a kernel that gets tired of waiting, gives the packet back, and asks something else. The office has four packets.

# %% id=impatient
IMPATIENT = r"""
#include "hostcall_async.cuh"
__global__ void impatient(unsigned long long* mail, unsigned long long* stack,
                          unsigned long long* answer)
{
    Hostcalls host = hostcalls(mail, stack);
    Ask one = ask(host, 16, 1, 0, 0);
    one.poll();                                // sends question 1
    Deadline limit = {clock64() + 40000};      // about 20 µs
    block_on(limit);
    hostcall_end(host, one.packet);            // puts its packet on top of the pile
    Ask two = ask(host, 16, 2, 0, 0);
    block_on(two);                             // takes the packet on top
    *answer = two.answer;
}
"""


async def slowly(call):
    await agt.sleep(100 if call.a == 1 else 20)
    return 7 * call.a

# %% id=run-packet
heard = agt.pin(np.zeros(1, np.uint64))


async def two_questions(source, packets):
    kernel = agt.Kernel(source)
    for _ in range(1 if device.simulated else 2):  # a GPU compiles it in the first run
        async with agt.hostcalls({16: slowly}, packets=packets) as office:
            op = kernel(*office.arrays, agt.mapped(heard), grid=1, block=1)
            with agt.record() as trace:
                await office.run(op)
                await agt.sleep(60)  # the kernel is done, and the host may not be
    return trace



# %% id=13b-packet guess within=0.15
# What does the kernel read as its answer to question 2, and how many µs after its start does it end? (Type two numbers, such as `3 30`.)

# %% id=13b-packet reveal
# The `#define` switches a check off. You'll see which.
given_back = await two_questions("#define HOSTCALL_UNCHECKED\n" + IMPATIENT, 4)
(ran,) = given_back.device_spans
at_work = next(span for span in given_back if span.kind == "work")
asked, hung_up = ran.waits[0] if ran.waits else (ran.start, ran.start + 20)
belongs = [
    (asked, hung_up, "the host's"),
    (hung_up, at_work.end, "the host's, and the kernel's, with question 2"),
]
shown = waiting_for(given_back, "the limit", "answer 2").with_lane("the packet", belongs)
picture = shown.plot(title="A packet with two owners", lanes=("host", "streams"))
reveal("13b-packet", [int(heard[0]), round(ran.duration)], picture)

# %% id=13b-packet lesson
# Some 20 µs after asking, the kernel hangs up, gives the packet back, takes it again and writes question 2 into it. But the host is still at work on what it read there before.

# %% id=13b-packet told truth="7 112"
# On the simulated device it's 7, the answer to question 1, and the kernel waits for it as long as that question takes, and not 20 µs and 20 more. Three packets were free, but the one that had just been given back lay on the pile where this block looks first, so it got the same packet again. Nobody read question 2 there: the host was still at work on the packet, so it didn't look at the flag, which was up anyway. When it was done with question 1, it put that answer into the packet, and the kernel took it for the answer to question 2. (A GPU's host may look first when question 2 already lies over question 1. Then question 1 was never read, and the answer is 14.)

# %% id=packet-check tags=asserts
if device.simulated:
    assert heard[0] == 7
    assert len(given_back.find("slowly 1")) == 1
    assert not given_back.find("slowly 2")

# %% [markdown] id=owner-text
# ### Who holds it?
#
# The host did nothing wrong. The packet was its own, and the kernel gave it away. This is the bug behind the words **cancellation safety**, and Python has it, too: if you give up on `asyncio.to_thread(file.readinto, buffer)` and put something else into the buffer, the thread may still write over it. So before you stop waiting, ask *who else still holds a piece of this*. From the question to the answer, that's the host.
#
# On a GPU nothing tells you. The simulated device does, because it keeps track of who owns which packet. For the run above a `#define` in the folded cell had switched that check off. Here it is again, switched on:

# %% id=run-checked
if device.simulated:
    try:
        await two_questions(IMPATIENT, 4)
    except agt.errors.RaceError as stopped:
        print(stopped)
    else:
        raise AssertionError("a packet that the host has should not be given back")

# %% [markdown] id=left-text
# So the packet of a dropped call is **left**. `hostcall_leave(host, p)` puts it aside, and when no other packet is to be had, `hostcall_try_begin` looks there for one that the host has finished with. Nothing is lost, and nobody reads another caller's answer. Here's the kernel with `hostcall_leave` where it had `hostcall_end`, in an office with a single packet, and in one with two:

# %% id=left-picture
LEAVING = IMPATIENT.replace("hostcall_end(", "hostcall_leave(")
one_packet = await two_questions(LEAVING, 1)
print("question 2 was answered with", heard[0])
two_packets = await two_questions(LEAVING, 2)
print("question 2 was answered with", heard[0])

agt.compare_timelines(
    [
        waiting_for(one_packet, "the limit", "a packet", "answer 2"),
        waiting_for(two_packets, "the limit", "answer 2"),
    ],
    ["one packet", "two packets"],
    lanes=("host", "streams"),
    lesson="Each bar named slowly is the host at work on a packet. In both runs the "
    "kernel hangs up after 20 µs. Above, question 2 then waits for the only packet, "
    "which is the host's until question 1 is done. Each stripe is a look for it. "
    "Below, it takes the other one, and the kernel is done after "
    f"{kernel_us(two_packets):.0f} µs instead of {kernel_us(one_packet):.0f}, while "
    "the host still works on question 1.",
)

# %% id=left-picture-check tags=asserts
assert heard[0] == 14
if device.simulated:
    assert kernel_us(one_packet) > 100
    (first,), (second,) = two_packets.find("slowly 1"), two_packets.find("slowly 2")
    (ran,) = two_packets.device_spans
    assert first.start < second.start < second.end < ran.end < first.end
    (first,), (second,) = one_packet.find("slowly 1"), one_packet.find("slowly 2")
    assert first.end < second.start

# %% [markdown] id=left-read
# Dropping stops your waiting, not the work. If you asked for something to be written, hanging up doesn't unwrite it.

# %% [markdown] id=exercise-drop
# ### Exercise: what becomes of the packet?
#
# Write `dropped`, which is called when an `Ask` from the header is dropped. `step` says how far it got. (A call can rest at step 1, too: its `begin()` takes a packet and doesn't send it yet, so that you can put bytes into it first.)
#
# | step | |
# |---|---|
# | 0 | it has no packet yet |
# | 1 | it has a packet, and hasn't asked |
# | 2 | the host has the packet, or has answered and nobody has looked |
# | 3 | the answer was read, and the packet given back (with `ask_keeping` it's still yours) |

# %% id=13b-drop starter
DROPPED = r"""
__device__ void dropped(const Hostcalls& host, int step, int packet)
{
    // nobody polls it any more, so there is nothing to do. Or is there?
}
"""

# %% id=13b-drop solution
# - // nobody polls it any more, so there is nothing to do. Or is there?
# + if (step == 1) hostcall_end(host, packet);
# + if (step == 2) hostcall_leave(host, packet);

# %% id=13b-drop hints
# For each of the four steps, ask who owns the packet.
#
# At step 0 there is none, and at step 3 it may belong to somebody else by now. Leave those alone.
#
# At step 1 it's yours, so give it back with `hostcall_end`. At step 2 it may be the host's, so `hostcall_leave`.

# %% id=13b-drop explanation
# Two lines, and each of the four cases has its own reason. (At step 1, leaving it works as well. But then it lies under all the others, and is taken only when they are gone.) A join that is dropped passes it on to its parts, and a select drops its loser: that's all the cancelling there is.

# %% id=13b-drop-check
check("13b-drop", DROPPED)

# %% [markdown] id=exercise-first
# ### Exercise: the quicker of two
#
# Two colleagues know the answer. `first` asks service 16 about `a` and about `b`, and stores the answer that comes first. Neither of them ever refuses. If no answer has come within 200,000 clocks (about 100 µs), it stores -1. Futures are made of futures, so the race and its limit are one expression, and the parts of a part have names like `race.a.b`.

# %% id=13b-first starter
FIRST = r"""
#include "hostcall_async.cuh"
__global__ void first(unsigned long long* mail, unsigned long long* stack,
                      int a, int b, long long* out)
{
    Hostcalls host = hostcalls(mail, stack);
    Ask one = ask(host, 16, a, 0, 0);
    block_on(one);
    *out = one.answer;
}
"""

# %% id=13b-first solution
# - Ask one = ask(host, 16, a, 0, 0);
# - block_on(one);
# - *out = one.answer;
# + auto race = within(select(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0)), 200000);
# + block_on(race);
# + if (race.winner == 1) *out = -1;
# + else *out = race.a.winner == 0 ? race.a.a.answer : race.a.b.answer;

# %% id=13b-first hints
# The race is `select(ask(...), ask(...))`. The limit goes around it: `within(..., 200000)`.
#
# In `auto race = within(select(...), 200000)`, the select is `race.a`, and its two calls are `race.a.a` and `race.a.b`. `race.winner` is 1 if the limit won.

# %% id=13b-first explanation
# When the limit wins, `within` drops the select, the select drops both calls, and each of them leaves its packet. You wrote none of that here, because `drop` belongs to the future and not to its user.

# %% id=13b-first-check
check("13b-first", FIRST)

# %% [markdown] id=key-points-second
# ### Key points of the second sitting
#
# - A call can be raced and limited, too, and then the loser is dropped.
# - While the host has a dropped call's packet, you must not give it back. Leave it, and it is used again when the host is done.
# - A dropped call may still be carried out, so hanging up undoes nothing.

# %% id=score-second
score("13b")

# %% [markdown] id=open-text
# ## Encore: files by name
#
# *For the day when a kernel has to open a file on its own. It needs the second sitting.*
#
# The services for files and connections can refuse, too, with the numbers that C calls `errno`. You say what is allowed when you open the office, and the kernel opens by name:

# %% id=open-by-name
opening = agt.Kernel(r"""
#include "hostcall_async.cuh"
__global__ void opening(unsigned long long* mail, unsigned long long* stack,
                        const char* names, int size, long long* found)
{
    Hostcalls host = hostcalls(mail, stack);
    Ask open = ask_keeping(host, HOSTCALL_OPEN, size, 0, 0);  // 0: to read
    while (open.begin() == PENDING) { }                       // it gives up in the end
    if (open.packet < 0) return;                              // it has; no packet
    for (int i = 0; i < size; i++) open.bytes()[i] = names[blockIdx.x * size + i];
    block_on(open);                                           // sends it: fence, flag
    open.end();
    found[blockIdx.x] = open.error == 0 ? (long long)open.answer : -open.error;
}
""")

folder = Path(tempfile.mkdtemp())
(folder / "public").mkdir()
(folder / "public" / "menu.txt").write_text("soup, bread, and an apple")
(folder / "notes").write_text("the cook's own recipe, which is a secret")
names = ["menu.txt", "wine.txt", "../notes", "../wines"]

found = agt.pin(np.zeros(4, np.int64))
letters = agt.h2d(agt.pin(np.frombuffer("".join(names).encode(), np.int8)))
async with agt.hostcalls(folder=folder / "public") as office:
    op = opening(*office.arrays, await letters, 8, agt.mapped(found), grid=4, block=1)
    await office.run(op)
for name, number in zip(names, found.tolist()):
    print(f"{name}: file {number}" if number >= 0 else f"{name}: error {-number}")

# %% id=open-by-name-check tags=asserts
assert found.tolist() == [0, -2, -13, -13]

# %% [markdown] id=error-read
# The menu is open, and with `HOSTCALL_READ` and its number the kernel could read it. Error 2 is a file that isn't there, and 13 is one that you're not allowed to open. The kernel tried to leave the folder with `..`, and the office said no, whether there is such a file (`notes`) or not (`wines`). That's worth a thought before you open an office for code you did not write: a kernel gets whatever you allow, and nothing else. (But don't let a service of yours call `input()`: a kernel waits for about four seconds, and people type more slowly.)

# %% [markdown] id=again-text
# ## Encore: ask again
#
# *For the day when your colleagues are busy, grumpy or asleep. It needs the second sitting, too.*
#
# Somebody says no, or says nothing at all. You ask again, and after the third time you let it be. In Python this is a `for` loop with an `await` and a `try` in it. In a kernel, such a loop stands there holding the phone again. If asking again is a *future*, you can join two of them, or race one against a clock.

# %% [markdown] id=exercise-retry
# ### Exercise: up to three times
#
# Write `Retry`, a future that asks service 16 about `a`.
#
# - If it's refused, or if the answer isn't there within `clocks`, it asks again, but no more than three times in all.
# - In the end `error` is 0 and `answer` is the host's answer, or `error` says why the last try failed: the host's number, which is positive, or `TOO_LATE`, which isn't. (Whether the host has gone doesn't matter here.)
# - It never waits for two tries at once, so one that's late is given up before the next begins.
# - Whoever uses a `Retry` may give up on it, so it needs a `drop`.
#
# A `Retry` starts with `host`, `a` and `clocks` filled in, and with 0 in everything behind them. (A zeroed `once` may be dropped: its call is at step 0, and has no packet.) The version below asks once, and takes whatever it gets.

# %% id=13b-retry starter
RETRY = r"""
#define TOO_LATE -2

struct Retry {
    Hostcalls host;
    unsigned long long a;
    long long clocks;
    Select<Ask, Deadline> once;     // what `within` returns
    int tries;
    int error;
    unsigned long long answer;
    __device__ Poll poll()
    {
        if (tries == 0) {
            once = within(ask(host, 16, a, 0, 0), clocks);
            tries = 1;
        }
        if (once.poll() == PENDING) return PENDING;
        error = once.a.error;
        answer = once.a.answer;
        return READY;
    }
    __device__ void drop() { }
};
"""

# %% id=13b-retry solution
RETRY = r"""
#define TOO_LATE -2

struct Retry {
    Hostcalls host;
    unsigned long long a;
    long long clocks;
    Select<Ask, Deadline> once;     // what `within` returns
    int tries;
    int error;
    unsigned long long answer;
    __device__ Poll poll()
    {
        if (tries == 0) {
            once = within(ask(host, 16, a, 0, 0), clocks);
            tries = 1;
        }
        if (once.poll() == PENDING) return PENDING;
        error = once.winner == 1 ? TOO_LATE : once.a.error;
        answer = once.a.answer;
        if (error == 0 || tries == 3) return READY;
        once = within(ask(host, 16, a, 0, 0), clocks);
        tries++;
        return PENDING;
    }
    __device__ void drop() { once.drop(); }
};
"""

# %% id=13b-retry hints
# When `once` is `READY`, there are three ways it may have ended, and `once.winner` and `once.a.error` tell them apart. What does each of them mean for `error`?
#
# If there's an answer, or this was the third try, say `READY`. Otherwise put a new `within(...)` into `once`, count it, and say `PENDING`. Somebody will poll you again.
#
# A late try is dropped already, because `within` drops its loser. What's left for your `drop` is the try that's under way: `once.drop()`.

# %% id=13b-retry explanation
# Not one line of this touches a packet. `within` leaves the late one, `Ask` returns the refused one, and your `drop` passes the order on. But mind what you ask three times: a colleague whose answer was late has done the work all the same. Asking for a price again is harmless, and ordering the apples again gets you more apples. (Calls that are harmless to repeat are called *idempotent*.)

# %% id=13b-retry-check
check("13b-retry", RETRY)
