"""Source of notebooks/13_hostcalls.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The GPU asks, the host answers
#
# Some things only the host can do: open a file, ask a database. So far, a kernel had to end first. **Does it have to?**
#
# After this page you can let Python and a running kernel talk, call Python from a kernel with `agt.hostcalls`, and say what a call costs and when it pays.
#
# | | |
# |---|---|
# | Time | 70 minutes. On other days, an hour for the challenge, and 45 minutes for the encores behind it |
# | You need | [06_await](06_await.ipynb) and, from [11_the_gpu_decides](11_the_gpu_decides.ipynb), what CUDA promises. You don't need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## Who opens the file?
#
# Here's a silly job for a GPU: shouting. We take a log file, turn lower case into capitals, and write a new file.

# %% id=shout
shout = agt.Kernel(r"""
extern "C" __global__ void shout(unsigned int n, unsigned char* text)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && text[i] >= 'a' && text[i] <= 'z') text[i] -= 32;
}
""")

folder = Path(tempfile.mkdtemp())
log, PIECE = folder / "log.txt", 256
lines = [f"entry {i:4d}: all is well, and the coffee is cold\n" for i in range(32)]
log.write_text("".join(lines))
size = log.stat().st_size
print(f"{lines[0]}{lines[1]}... {size} bytes, or {size // PIECE} pieces")

# %% [markdown] id=question-2
# But a kernel can't open a file. So Python reads a piece, launches, waits, writes, and reads the next one. (Imagine that the whole file is too large to read.)

# %% id=relaunch
def six_launches(source, target):
    with source.open("rb") as read, target.open("wb") as write:
        while piece := read.read(PIECE):
            op = agt.h2d(agt.pin(np.frombuffer(piece, np.uint8)))
            op = op.and_then(lambda x: shout(x.size, x.partition(64)).output())
            write.write(op.to_host().sync_on(stream).tobytes())


six_launches(log, folder / "loud.txt")  # warm-up
with agt.record() as to_and_fro:
    six_launches(log, folder / "loud.txt")

# %% id=relaunch-check tags=asserts
assert (folder / "loud.txt").read_text() == log.read_text().upper()
assert len(to_and_fro.find("shout")) == 6

# %% id=rounds tags=helpers
def rounds(trace):
    """When each piece's round begins, by asking for memory, and when its copy is back."""
    begun = [span.start for span in trace if span.name == "malloc h2d"]
    return list(zip(begun, [span.end for span in trace if span.kind == "wait"]))


def with_rounds(trace):
    """The trace with a lane for the six pieces."""
    return trace.with_lane("piece", [(*when, f"{i}") for i, when in enumerate(rounds(trace), 1)])


# %% id=relaunch-picture
kernels = sum(span.duration for span in to_and_fro.find("shout"))
took = to_and_fro.metrics().makespan
with_rounds(to_and_fro).plot(
    title="Six pieces, six launches",
    lanes=("host", "streams"),
    lesson="The same round six times: room in memory, a copy, a sliver of a kernel, a "
    f"copy back. The slivers are {kernels / took:.0%} of the time. The rest is Python, "
    "copies and waiting.",
)

# %% [markdown] id=turn-around
# You'd pick up the phone. **Can a kernel call Python, get an answer, and go on?**

# %% [markdown] id=mailbox
# ## A mailbox
#
# To talk, the two need a place that both can reach, and you've had one since [02b](02b_copies_and_chunks.ipynb): pinned host memory. A kernel can read and write single words there while it runs. CUDA calls this **mapped memory**:

# %% id=mapped
host = agt.pin(np.frombuffer(b"quiet please, this is a library. ", np.uint8))
with agt.record() as no_copies:
    shout(host.size, agt.mapped(host), grid=1, block=64).sync_on(stream)

print(host.tobytes().decode())
print("copies in the timeline:", len(no_copies.find("h2d") + no_copies.find("d2h")))

# %% id=mapped-check tags=asserts
assert host.tobytes() == b"QUIET PLEASE, THIS IS A LIBRARY. "
assert not [span for span in no_copies if span.kind in ("h2d", "d2h")]

# %% [markdown] id=mapped-read
# `agt.mapped(host)` is a device array that *is* the host's array, so there is nothing to copy. But a read that you wait for crosses the bus and comes back, which takes about a microsecond on an H200. That's fine for a mailbox. (Our model charges such a read as one of the GPU's own memory, so a long loop over mapped memory looks too cheap here.)
#
# Now the kernel writes a letter and **waits for the answer**, while it runs. American mailboxes have a small red flag on the side, and when it's up, there's a letter inside. So has ours:
#
# ```text
#   word        0            1             2
#            ┌────────┬──────────────┬────────────┐
#            │  flag  │   question   │   answer   │
#            └────────┴──────────────┴────────────┘
#   flag:    1 = the kernel has asked       2 = the host has answered
# ```

# %% id=letters
LETTERS = r"""
__global__ void letters(volatile unsigned* mail, int n, unsigned* answers)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 10 + k * k;           // the letter goes in ...
        __threadfence_system();         // ... so that the host sees it ...
        mail[0] = 1;                    // ... before it sees the flag
        int turns = 0;
        while (mail[0] != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();         // the answer is read after the flag
        answers[k] = mail[2];
    }
}
"""
letters = agt.Kernel(LETTERS)

# %% [markdown] id=letters-read
# What's new:
#
# - **`__threadfence_system()`** is a fence that reaches the host; `__threadfence()` ends at the GPU, and `__threadfence_block()` at the block. The one before the flag keeps it from overtaking the letter, and the one after the loop keeps us from reading the answer before the flag.
# - **`volatile`** makes the kernel look at memory each time, and, as PTX has it, at a whole word at once. Without it, a compiler may read the flag once and then stare at its own register forever. We need no `atomicAdd` or `atomicCAS`, because only one side at a time may write a word.
# - **`__nanosleep(100)`** dozes for at most two tenths of a microsecond. It leaves the bus to others, and tells the simulated device that this loop is waiting.
# - **The counter** is there because nobody can stop a waiting kernel, short of ending the process. If the host has gone home, the kernel gives up after a million looks, a second or more.
#
# The host's side is yours. Python has no fences, and an x86 needs none here, because it keeps its reads in order, and its writes. (An Arm processor gives no such promise. With a GPU the mailbox isn't safe there, so `agt.hostcalls` refuses to open.)

# %% [markdown] id=exercise-answer
# ### Exercise: the host's side
#
# Write `answer(mail, rounds)`. In each round, wait until the flag is 1, answer with **twice** the number that was asked, and set the flag to 2. Meanwhile let others have a turn: `await agt.sleep(1)` waits for a microsecond.

# %% id=13-answer starter
async def answer(mail, rounds):
    mail[2] = 2 * mail[1]
    mail[0] = 2

# %% id=13-answer solution
async def answer(mail, rounds):
    for _ in range(rounds):
        while mail[0] != 1:
            await agt.sleep(1)
        mail[2] = 2 * mail[1]
        mail[0] = 2

# %% id=13-answer hints
# One loop over the rounds, and in it a loop that waits: `while mail[0] != 1: await agt.sleep(1)`.
#
# Then two lines, and their order matters: the answer goes into `mail[2]`, and after it the flag, `mail[0] = 2`.

# %% id=13-answer explanation
# The flag comes last, on both sides. If the host sees it up, it may trust the rest of the box.

# %% id=13-answer-check
check("13-answer", answer)

# %% [markdown] id=first-talk
# Try it. (Until the check has taken your `answer`, ours runs.)

# %% id=talk
async def talk(rounds, host_side):
    mail = agt.pin(np.zeros(3, np.uint32))
    answers = agt.pin(np.zeros(rounds, np.uint32))
    op = letters(agt.mapped(mail), rounds, agt.mapped(answers), grid=1, block=1)
    answering = asyncio.create_task(host_side(mail, rounds))
    await asyncio.wait_for(op, 20)
    answering.cancel()
    return answers.tolist()


from asyncgpu_course import solved

mine = solved("13-answer", answer)
with agt.record() as talking:
    heard = await talk(6, mine)
print(heard, "by your `answer`" if mine is answer else "by the course's `answer`")

# %% id=talk-picture
(speaker,) = talking.find("letters")
letter = [(*when, f"{10 + k * k} → {heard[k]}") for k, when in enumerate(speaker.waits)]
talking = talking.between(speaker.start, speaker.end).with_lane("letter", letter)
talking.from_first().plot(
    title="Letters to and fro",
    lanes=("streams",),
    lesson="Where the kernel's bar is dotted, it waits for the answer to the letter "
    "below: six times. Where it's solid, it reads the answer and writes the next "
    "letter. (Believe the order, and not the times. A GPU doesn't tell when a "
    "kernel waits, so there the bar is solid.)",
)

# %% [markdown] id=talk-read
# Six even numbers, and a single launch: they talk. A GPU's kernel really spins. The simulated device pauses it until Python has had a chance to write, so your side has to `await` something while it waits.
#
# What if somebody raises the flag first, and writes the answer after a nap?

# %% id=flag-first
async def flag_first(mail, rounds):
    for _ in range(rounds):
        while mail[0] != 1:
            await agt.sleep(1)
        twice = 2 * mail[1]
        mail[0] = 2
        await agt.sleep(5)
        mail[2] = twice

# %% id=13-late guess
# The kernel is the same, and asks for 10, 11, 14, 19, 26 and 35. Which number does it store as the answer to 26? (Type a number.)

# %% id=13-late reveal
too_early = await talk(6, flag_first)
reveal("13-late", too_early[4], lambda: print(too_early))

# %% id=13-late told truth=38
# The kernel goes on as soon as it sees the flag, and the box still has the answer to 19. So each answer comes one letter late. All of them look right, and nothing fails.

# %% id=late-check tags=asserts
assert heard == [20, 22, 28, 38, 52, 70]
assert too_early == [0, *heard[:-1]]

# %% [markdown] id=exercise-ask
# ### Exercise: the kernel's side
#
# Somebody wrote `ask` from memory. One thread has `n` questions: 100, 101, and so on. It puts each into `mail[1]`, waits for its answer, and stores that in `out[k]`. After a million turns without an answer, the kernel returns. It passed all tests so far, and yet it has **three mistakes**. Find them.

# %% id=13-ask starter
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    int turns = 0;
    for (int k = 0; k < n; ++k) {
        __threadfence_system();
        mail[1] = 100 + k;
        mail[0] = 1;
        while (mail[0] != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        out[k] = mail[2];
    }
}
"""

# %% id=13-ask solution
ASK = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        int turns = 0;
        while (mail[0] != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        out[k] = mail[2];
    }
}
"""

# %% id=13-ask hints
# Two of the mistakes are about fences, and the third is about patience.
#
# A fence keeps what stands above it from being overtaken by what stands below it. Which two words of `mail` must not change places when you ask? And which two when you read the answer?
#
# How many turns are left for the second question, if the first one has used up most of the million?

# %% id=13-ask explanation
# This is called *publishing*: write, fence, flag. And the other way round: flag, fence, read. The fence at the top of the loop came too early. You will find the pair wherever two processors talk without a lock. (The check puts another block in the host's place, in memory that is as late as CUDA allows. Without one of your fences, a wrong number arrives there.)

# %% id=13-ask-check
check("13-ask", ASK)

# %% [markdown] id=many
# ## One mailbox for a hundred thousand
#
# A grid may have a hundred thousand blocks, and any of them may want to ask. Nobody wants to look into so many mailboxes.
#
# The post office has a better idea: a small pile of blank **packets**. Here's the life of one. Only its owner may read it, or write on it:
#
# ```text
#                    take           ask            answer         give back
#   the pile       ━━━━┓                                             ┏━━━━━▶
#   a thread           ┗━ fills it ━━┓               ┏━━ reads it ━━━┛
#   the host                         ┗━ works on it ━┛
# ```
#
# The packet itself stays where it is, and its number goes round. Many threads take packets and give them back at once, without a lock. (That's harder than it looks: the encore "a pile without locks" shows how one packet gets two owners, and you put it right.)

# %% [markdown] id=hostcall
# A header has all these parts: flags, packets and the pile. On the host, `agt.hostcalls` opens the office for as long as a block lasts. A kernel takes the office's two arrays: `mail` has the packets, in the host's memory, and `stack` the pile, in the GPU's, so taking a packet doesn't cross the bus. The kernel asks for a service by its number, with three numbers of its own. Numbers from 16 on are yours:

# %% id=first-call
dice = agt.Kernel(r"""
#include "hostcall.cuh"
__global__ void roll(unsigned long long* mail, unsigned long long* stack,
                     unsigned long long* rolled)
{
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long answer = 0;
    bool ok = hostcall(host, 16, blockIdx.x, 0, 0, answer);
    if (!ok) return;
    rolled[blockIdx.x] = answer;
}
""")

players = ["Ada", "Grace", "Katherine", "Dorothy"]
pips = np.random.default_rng(31)


def roll(call):
    number = int(pips.integers(1, 7))
    print(f"{players[call.a]} rolls a {number}")
    return number


rolled = agt.pin(np.zeros(4, np.uint64))
async with agt.hostcalls({16: roll}) as office:
    await office.run(dice(*office.arrays, agt.mapped(rolled), grid=4, block=1))

print(rolled)

# %% id=first-call-check tags=asserts
assert office.answered == 4
assert all(1 <= number <= 6 for number in rolled)

# %% [markdown] id=first-call-read
# - The function gets the three numbers as `call.a`, `call.b` and `call.c`, and the packet's bytes, `call.data`.
# - `hostcall` puts what it returns into `answer`, or is false if there's no answer. The function may also be a coroutine function.
# - `office.run` awaits the kernel, and raises what your function raised. It's the event loop that looks at the flags, between your other coroutines. So while Python blocks in a `sync`, nobody answers, and while the office is open, a core of the CPU does little else.
#
# The header lists services that are built in, such as `HOSTCALL_TIME` and `HOSTCALL_READ`.

# %% [markdown] id=exercise-bill
# ### Exercise: a kernel that calls
#
# In `bill`, each of the `n` blocks has one item and an amount. It asks the host for the item's price, by service 16 with the item as its first number, and stores price times amount in `costs[blockIdx.x]`. If no answer comes, it leaves the cost alone.

# %% id=13-bill starter
BILL = r"""
#include "hostcall.cuh"
__global__ void bill(unsigned long long* mail, unsigned long long* stack, int n,
                     const int* items, const int* amounts, unsigned long long* costs)
{
    Hostcalls host = hostcalls(mail, stack);
    // Your code
}
"""

# %% id=13-bill solution
# - // Your code
# + unsigned long long price = 0;
# + bool ok = hostcall(host, 16, items[blockIdx.x], 0, 0, price);
# + if (!ok) return;
# + costs[blockIdx.x] = price * amounts[blockIdx.x];

# %% id=13-bill hints
# The call is the one of `roll`, with `items[blockIdx.x]` as the first number.
#
# `hostcall` returns whether there was an answer. Look at it before you write anything.

# %% id=13-bill explanation
# A call can fail, and then `answer` is whatever it was before. So put an `if` behind every call of the host, as you would behind a system call in C.

# %% id=13-bill-check
check("13-bill", BILL)

# %% [markdown] id=challenge
# ## One launch for a file
#
# Now a single kernel reads the file, shouts, and writes it. Because there are bytes to send, it takes a packet through its life step by step:

# %% id=pipeline
pipeline = agt.Kernel(r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack,
                         int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    if (threadIdx.x > 0) return;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        int p = hostcall_begin(host);           // a packet; -1 if the host has stopped
        if (p < 0) return;
        char* bytes = hostcall_bytes(host, p);
        // From file 0, at this byte, so many:
        hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;                        // the host may have p: leave it alone
        int n = (int)hostcall_answer(host, p);  // how many bytes there were
        for (int i = 0; i < n; ++i)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        // To file 1. A packet may ask again:
        hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
        ok = hostcall_wait(host, p);
        if (!ok) return;
        hostcall_end(host, p);                  // back to the pile
    }
}
""")

# %% [markdown] id=final-text
# Four blocks share the six pieces of our log file:

# %% id=office tags=helpers
def with_office(trace, recorded=True):
    """The trace with lanes for what Python does, and for which calls it answers."""
    (kernel,) = trace.find("pipeline")
    begun = min(span.start for span in trace)
    (copied,) = (span.end for span in trace if span.kind == "h2d")
    (asked,) = (span.start for span in trace.find("launch pipeline"))
    looks = "looks, answers" if recorded else "looks, reads and writes (not recorded)"
    moments = ((begun, "opens"), (copied, "wakes up"), (asked, "launch"), (kernel.start, looks))
    ends = [moment for moment, _ in moments[1:]] + [kernel.end]
    trace = trace.with_lane("Python", [(start, end, what) for (start, what), end in zip(moments, ends)])
    return trace.with_lane("calls", calls_of(trace, kernel))


def with_calls(trace):
    """The trace of its kernel alone, with a lane for the calls that it waits for."""
    (kernel,) = trace.find("pipeline")
    trace, calls = trace.between(kernel.start, kernel.end), calls_of(trace, kernel)
    return trace.with_lane("calls", calls).from_first()


def calls_of(trace, kernel):
    """When which calls were answered together, as a lane."""
    count, lane = 0, []
    for span in trace:
        if span.kind == "work":
            more = int(span.name.split()[1].replace("a", "1"))
            since = max([start for start, _ in kernel.waits if start < span.end], default=span.start)
            calls = [str(count + 1 + i) for i in range(more)]
            lane.append((since, span.end, " to ".join(calls[:: more - 1]) if more > 2 else ", ".join(calls)))
            count += more
    return lane


# %% id=final
async def one_launch(blocks, kernel=pipeline):
    """Shout the log by one launch, twice, and return the second one's trace."""
    files = [log, folder / "LOUD.TXT"]
    for _ in range(2):
        with agt.record() as trace:
            async with agt.hostcalls(files=files, nbytes=PIECE) as office:
                op = kernel(*office.arrays, 6, PIECE, grid=blocks, block=32)
                await office.run(op)
    assert files[1].read_text() == log.read_text().upper()
    return trace


in_one_go = await one_launch(blocks=4)
with_office(in_one_go).plot(
    title=f"Four blocks, launched once (six launches took {took:.0f} µs)",
    lanes=("host", "streams"),
    lesson="First Python opens an office: it copies the pile to the GPU, and the event "
    "loop takes its time to wake up. Then one kernel stays until the file is "
    "done. Where its bar is dotted, all its blocks wait, and the last lane says "
    "for which of the twelve calls. At each striped mark in the lane 'host', "
    "Python answers them.",
)

# %% id=final-check tags=asserts
(kernel,) = in_one_go.find("pipeline")
if device.simulated:
    solid = [after[0] - before[1] for before, after in zip(kernel.waits, kernel.waits[1:])]
    assert [round(us) for us in solid] == [16, 1, 14]

# %% id=inside
def inside(trace):
    """The time of its kernel."""
    (kernel,) = trace.find("pipeline")
    return kernel.duration


print(f"With four blocks, the kernel takes {inside(in_one_go):.0f} µs for six pieces.")

# %% id=blocks tags=helpers
def with_blocks(trace, blocks):
    """Its kernel alone, with a lane for each block's pieces, where the device knows when they wait."""
    (kernel,) = trace.find("pipeline")
    trace = trace.between(kernel.start, kernel.end)
    ends = [span.end for span in trace if span.kind == "work"][1::2] if kernel.waits else []
    turns = list(zip([kernel.start, *ends], ends))
    for block in range(blocks):
        pieces = zip(turns, range(block + 1, 7, blocks))
        trace = trace.with_lane(f"block {block}", [(*when, f"piece {piece}") for when, piece in pieces])
    return trace.from_first()


# %% id=13-fired guess within=0.1
# Now we send one of the four blocks home. How many µs does the kernel take for the six pieces with the other three? (Type a number.)

# %% id=13-fired reveal
by_three, by_six = await one_launch(blocks=3), await one_launch(blocks=6)
picture = agt.compare_timelines(
    [with_blocks(in_one_go, 4), with_blocks(by_three, 3)],
    ["Four blocks", "Three blocks"],
    lanes=("streams",),
)
reveal("13-fired", round(inside(by_three), 1), picture, six=inside(by_six))

# %% id=13-fired lesson
# Only the kernels, and which pieces their blocks have. Above, blocks 2 and 3 have nothing to do in the second turn. Below, all three have a piece in both turns, and both kernels end at the same time. A turn takes as long either way: a round for reading, a shout, and a round for writing.

# %% id=13-fired told truth=62.7
# Not 4/3 as long: just as long. Six pieces are two turns for three blocks, and for four or five as well, so nobody misses the fourth. Six blocks need only one turn: they took {six:.0f} µs.

# %% id=fired-check tags=asserts
if device.simulated:
    assert 0.99 < inside(by_three) / inside(in_one_go) < 1
    assert 0.5 < inside(by_six) / inside(in_one_go) < 0.55
    assert [len(trace.find("pipeline")[0].waits) for trace in (in_one_go, by_three, by_six)] == [4, 4, 2]

# %% [markdown] id=final-read
# ## What does a call cost?
#
# Look at a dotted stretch of four blocks. It takes 7 to 8 µs: the question crosses the bus, Python looks, which is the mark at its end, and the answer comes back. Four calls at once take hardly longer than two, because one look finds all that wait. So in our model, **count the rounds, and not the calls**. The twelve calls were four rounds, or 30 µs. The two solid stretches of 16 and 14 µs are the shouting: there one thread of each block changes 256 characters, one after another.
#
# (The 7 to 8 µs are those of the barest call that we could write for an H200. A file, and what your Python functions do, cost nothing here. On a GPU they do, as you'll see below.)

# %% [markdown] id=h200-text
# ## And on a GPU?
#
# There Python and its files aren't free. We recorded both programs on an H200, with four blocks again:

# %% id=h200-picture
h200 = [agt.Trace.load_recording(name) for name in ("13_six_launches", "13_hostcalls")]
calling = with_office(h200[1], recorded=False)
agt.compare_timelines(
    [with_rounds(h200[0]).from_first(), calling.from_first()],
    ["Six launches, on an H200", "One launch that calls, on an H200"],
    lesson="Above, six rounds of memory, copy, launch, copy back and wait. In the gaps "
    "between them Python writes a piece and reads the next. Below, over a third "
    "is gone before the kernel begins, most of it until the event loop wakes up "
    "after the copy. While the kernel runs, Python reads, writes and answers, "
    "but this recording has no bars for that, and a GPU doesn't tell when a "
    "kernel waits.",
)

# %% id=h200-check tags=asserts
made = [trace.metrics().makespan for trace in h200]
assert [round(us) for us in made] == [494, 449]
(stayed,) = h200[1].find("pipeline")
assert (round(stayed.duration), round(made[1] - stayed.duration, -1)) == (289, 160)
assert [len(h200[0].find("shout")), len(h200[1].find("pipeline"))] == [6, 1]
opening, piece = made[1] - stayed.duration, (made[0] / 6, stayed.duration / 6)
assert [round(us) for us in piece] == [82, 48]
assert next(n for n in range(1, 9) if opening + n * piece[1] < n * piece[0]) == 5
waited = [span.duration for span in h200[0] if span.kind == "wait"]
both = [span.duration + us for span, us in zip(h200[0].find("launch shout"), waited)]
assert round(float(np.median(both))) == 14
assert round(h200[1].find("launch pipeline")[0].start - min(s.start for s in h200[1]), -1) == 130

# %% [markdown] id=h200-read
# That's nearly a draw: 449 µs with calls, and 494 without. But most of it is paid for each piece, and some only once:
#
# | on the H200 | with calls | with launches |
# |---|---|---|
# | once, to open the office and launch | 160 µs | |
# | for each piece of the file | 48 µs | 82 µs |
#
# So calls win from the fifth piece on (160 / 34 is 4.7), and a long file takes less than 60 % of the time.
#
# The kernel stayed for 289 µs, and not for the model's 63. We know two causes. Each block changes its characters in the host's memory, over the bus. And Python looks once for all, but then it serves one call after another: with a small function and no files, a single caller waits for 9 µs, and eight wait for 34. So on a GPU, count the rounds and the calls. (The encore "a crowd" has more of this.)

# %% [markdown] id=when-it-pays
# So when does a call pay? **Ending a kernel stops all its blocks, and a call stops only its caller.** Say four blocks work for 60 µs, and each needs a price, at a moment of its own: after 12, 24, 36 and 48 µs. Here it is both ways, with blocks that watch the clock instead of working:

# %% id=pays-picture tags=helpers
from asyncgpu_course import LaneBar, draw_lanes

WORK = r"""
#include "hostcall.cuh"
__device__ void work(int us)
{
    long long begun = clock64();
    while (clock64() - begun < us * 1980LL) __nanosleep(20);  // an H200 at full speed has 1980 clocks a µs
}
"""
calls = agt.Kernel(WORK + r"""
__global__ void calls(unsigned long long* mail, unsigned long long* stack, long long* clocks)
{
    long long begun = clock64(), *mine = clocks + 3 * blockIdx.x;
    Hostcalls host = hostcalls(mail, stack);
    int moment = 12 * (blockIdx.x + 1);
    unsigned long long price = 0;
    work(moment);
    mine[0] = clock64() - begun;
    bool ok = hostcall(host, 16, blockIdx.x, 0, 0, price);
    if (!ok) return;
    mine[1] = clock64() - begun;
    work(60 - moment);
    mine[2] = clock64() - begun;
}
""")
part = agt.Kernel(WORK + "__global__ void part(int us, int price) { work(us); }")


def price_of(item):
    return 7 * item


async def by_calls():
    clocks = await agt.zeros(12, np.int64)
    async with agt.hostcalls({16: lambda call: price_of(call.a)}) as office:
        await office.run(calls(*office.arrays, clocks.borrow(), grid=4, block=1))
    return (await agt.d2h(clocks)).reshape(4, 3) / 1980


def by_launches():
    for price in (0, *map(price_of, range(4))):
        part(12, price, grid=4, block=1).sync_on(stream)


await by_calls()  # warm-up
with agt.record() as calling:
    moments = await by_calls()
(called,) = calling.find("calls")

by_launches()  # warm-up
with agt.record() as launching:
    by_launches()
parts = launching.find("part")
gap = parts[1].start - parts[0].end
launched = [(span.start - parts[0].start, span.duration) for span in parts]
whole = launched[-1][0] + launched[-1][1]


figure, axes = plt.subplots(2, figsize=(8, 3.6), sharex=True)
by_call, by_launch = [], []
# The clock begins when the kernel has started.
for block, (asked, got, done) in enumerate(moments + called.duration - moments.max()):
    name, orange = f"block {block}", "#e69f00"
    price = LaneBar(asked, got, "white", "price")
    by_call.append((name, [LaneBar(0, asked, orange), price, LaneBar(got, done, orange)]))
    stretches = [LaneBar(begun, begun + us, orange) for begun, us in launched]
    price = LaneBar(sum(launched[block]), launched[block + 1][0], "white", "price")
    by_launch.append((name, [*stretches, price]))
for axis, lanes in zip(axes, (by_call, by_launch)):
    draw_lanes(axis, lanes)
ends = {"Each block calls": called.duration, "The kernel ends for each": whole}
for axis, (title, end) in zip(axes, ends.items()):
    axis.set_title(f"{title}: {end:.0f} µs", loc="left", fontsize=9)
axes[1].set_xlabel("µs, simulated clock" if device.simulated else "µs, measured")
figure.tight_layout()
told = "; ".join(f"{title}: {end:.0f} µs" for title, end in ends.items())
shown(figure, f"{told}. Above, each block's bar has one gap for its price, a little later in each block, "
      "while the others' bars go on. Below, five columns of short bars: four times all four blocks have a "
      "gap, and each gap is for the price of one of them.")  # fmt: skip

# %% id=pays-check tags=asserts
if device.simulated:
    assert [round(us) for us in (called.duration, gap, whole)] == [72, 22, 155]
    assert round(whole - 4 * (gap - 14)) == 122

# %% [markdown] id=pays-read
# With calls, each block stands still once, for its own price: 72 µs. With launches, four times all four blocks stand still, and each of them needed only one of the prices: 155 µs. Here, the gap between two kernels is 22 µs. An H200 needs 14, so there the launches would take about 122. But opening the office took that H200 130 µs, so there the calls win only if it's open already.

# %% [markdown] id=when-it-pays-2
# If all need an answer at the same moment, one launch is enough for all, while calls keep each other waiting. Then end the kernel, and launch the next. (Our file is in between. Four ask at once, but each launch came with copies and the like, so calling won.)
#
# So call if few need an answer at a time and the others work on, or if your kernel has much in its registers and shared memory that would be lost. But a block that waits keeps its place on the GPU.

# %% [markdown] id=key-points
# ## Key points
#
# - A running kernel can read and write mapped memory of the host. Each look is a trip over the bus.
# - To publish, write, fence, and raise the flag. To read, look at the flag, fence, and then read. Of the three `__threadfence`s, only `__threadfence_system()` reaches the host.
# - Every wait in a kernel needs a counter or a clock, because from outside only the end of the process stops it.
# - A packet has one owner at a time: whoever took it, or the host.
# - Python answers in rounds, so have many calls under way. All that wait share its look, but a function answers them one after another.
# - Ending a kernel stops all its blocks, and a call only its caller. Call when few blocks need an answer and the others have work.
#
# **Next:** in [13b_await_the_host](13b_await_the_host.ipynb) a call becomes a future, so that a single thread has several under way and works meanwhile. Five encores follow.

# %% id=score
score("13")

# %% id=progress
progress("13")

# %% [markdown] id=exercise-pipeline
# ## Encore: fewer rounds
#
# *The challenge of this page, in two halves.*
#
# ### Exercise: fewer rounds
#
# The check's file has 24 pieces of 256 bytes, and its office 16 packets. It launches the kernel with 4 blocks of 32 threads. How many rounds are these? And how few would do, if a packet keeps its piece until it's written? Work both out first; several threads of a block may have a packet each. The kernel from above is right, and there it takes 214 µs: get below 130. (That includes the launch, and the way to it.) The course's own has 117, and the second half goes below 105.

# %% id=13-pipeline starter
PIPELINE = r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack,
                         int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    if (threadIdx.x > 0) return;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        int p = hostcall_begin(host);
        if (p < 0) return;
        char* bytes = hostcall_bytes(host, p);
        hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int n = (int)hostcall_answer(host, p);
        for (int i = 0; i < n; ++i)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
        ok = hostcall_wait(host, p);
        if (!ok) return;
        hostcall_end(host, p);
    }
}
"""

# %% id=13-pipeline solution
# - if (threadIdx.x > 0) return;
# - for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
# + if (threadIdx.x >= 4) return;
# + int first = blockIdx.x * 4 + threadIdx.x;
# + for (int piece = first; piece < pieces; piece += gridDim.x * 4) {

# %% id=13-pipeline hints
# With one packet for each block, 24 pieces are six turns of two rounds each. How many turns would it be if all 16 packets were under way? And would fewer packets do?
#
# Let four threads of each block stay. Thread 0 of block 0 begins with piece 0, thread 1 with piece 1, and block 1 goes on with 4. Then all of them go on in steps of 16.
#
# (Below 105.) Some threads ask, and the others learn each `p` and `n` from shared memory, behind a `__syncthreads()`. All change every 32nd byte. `hostcall_ask` publishes its own thread's bytes, and those of others only if they've met, so there's another barrier before the writing. Behind a third one all learn whether the write had an answer, from a variable of its own. If an answer is missing, all return together.

# %% id=13-pipeline explanation
# There are four rounds instead of twelve (on a GPU each call costs something, too, so fewer rounds save less there): 16 pieces in the first turn, and 8 in the second. (If the pieces move to shared memory, three are enough.) Three threads of each block take two turns as well, and 112 µs. Two take three turns, and 139. With all 32 threads, block 0 has all pieces, and it takes 133. And if yours is below 105, you've done the second half as well, bravo: our best is 91.

# %% id=13-pipeline-check
check("13-pipeline", PIPELINE)

# %% [markdown] id=faster
# ### Below 105
#
# Now that there are few rounds, the solid stretches must shrink: **all threads shout**. (With three packets for each block it's 91 µs. The last hint says what needs a barrier.)
#
# Here's your kernel on the log file, beside the page's.

# %% id=faster-picture
yours = solved("13-pipeline", PIPELINE)
own = await one_launch(4, agt.Kernel(yours))
compared = [with_calls(in_one_go), with_calls(own)]
longest = []
for kernel in (trace.find("pipeline")[0] for trace in compared):
    solid = [b[0] - a[1] for a, b in zip(kernel.waits, kernel.waits[1:])]
    longest.append(f"{max(solid, default=0):.0f} µs")
whose = "Yours" if yours is PIPELINE else "The course's, until yours is right"
agt.compare_timelines(
    compared,
    ["The page's", whose],
    lanes=("streams",),
    lesson="Both shout six pieces with four blocks. A dotted stretch is a round, in "
    f"which all of them wait. The longest solid stretch is {longest[0]} above and "
    f"{longest[1]} below: to get under 105, that's the one to shrink.",
)

# %% id=faster-check tags=asserts
if device.simulated:
    assert yours is PIPELINE or longest == ["16 µs", "17 µs"]

# %% [markdown] id=stack-text
# ## Encore: a pile without locks
#
# *For those who wonder how a hundred thousand threads share one pile.*
#
# They use a *compare and swap*: `atomicCAS(top, old, new)` writes `new`, but only if `top` still is `old`. Beside the packets is a list of which packet lies below which.
#
# ```text
#   take:   look at the top packet        p
#           see which one lies below it   q
#           CAS: if the top is still p, make it q.   Else: start again
# ```
#
# If somebody else was quicker, the swap fails and we try again. Here it is in Python. Each `yield` is one access to memory that others can see, and between two of them anything may happen.

# %% id=naive-stack
class Pile:
    start = 0  # the top, at first: packet 0. Below it lies 1, and then 2

    @staticmethod
    def pop():
        while True:
            top = yield "load", "top"
            if top is None:
                return None
            below = yield "load", ("next", top)
            if (yield "cas", "top", top, below):
                return top

    @staticmethod
    def push(packet):
        while True:
            top = yield "load", "top"
            yield "store", ("next", packet), top
            if (yield "cas", "top", top, packet):
                return

# %% id=piles tags=helpers
def draw_piles(*rows):
    """Draw rows of moments: each is (title, pile, Bert's), and after Anna's swap also hers."""
    figure, axes = plt.subplots(figsize=(2.5 * len(rows[0]), 2.4 * len(rows)))
    note = {"boxstyle": "round", "fc": "#ffffcc", "ec": "0.4", "ls": "--"}
    words = []
    for x, y, (title, pile, held, *got) in (
        (3.8 * x, -4.2 * y, moment) for y, row in enumerate(rows) for x, moment in enumerate(row)
    ):
        anna = got[0] if got else []
        columns = (("pile", pile, "#56b4e9"), ("Bert", held, "#e69f00"), ("Anna", anna, "#009e73"))
        for place, (name, packets, colour) in enumerate(columns):
            left = x + place
            axes.text(left + 0.4, y + 0.2, name, ha="center", fontsize=8, color="0.4")
            for top, packet in enumerate(packets):
                both = [*pile, *held, *anna].count(packet) > 1
                colours = {"fc": "#d55e00" if both else colour, "ec": "k", "lw": 3 if both else 1}
                axes.add_patch(plt.Rectangle((left, y - top), 0.8, -0.8, **colours))
                axes.text(left + 0.4, y - top - 0.4, packet, ha="center", va="center", fontsize=12)
        if not got:
            axes.text(x + 2.5, y - 0.5, "top 0,\nthen 1", ha="center", va="center", fontsize=8, bbox=note)
        axes.text(x, y + 0.8, title, fontsize=9, va="bottom")
        twice = [packet for packet in pile if packet in held]
        words.append(f"{title}: pile {pile}, Bert {held}, Anna {anna if got else 'remembers 0, then 1'}."
                     f"{f' Packet {twice[0]} is in two places, and red.' if twice else ''}")  # fmt: skip
    axes.set(xlim=(-0.2, 3.8 * len(rows[0]) - 0.6), ylim=(-4.2 * len(rows) + 1.2, 1.4))
    axes.set_aspect("equal")
    axes.axis("off")
    shown(figure, "\n".join(words))


def from_top(memory):
    """The packets of a pile, from the top down."""
    found, packet = [], memory["top"]
    while packet is not None:
        found.append(packet)
        packet = memory["next", packet]
    return found


# %% [markdown] id=predict-aba-text
# Anna wants one packet, and Bert wants two. Anna begins: she looks at the top, packet 0, and at what lies below it, packet 1. Then somebody taps her on the shoulder, and while she turns around, Bert is busy:

# %% id=bert
taken = ("Bert takes 0", [1, 2], [0]), ("and takes 1", [2], [0, 1])
draw_piles([("Anna looks", [0, 1, 2], []), *taken])

# %% id=search tags=helpers
from asyncgpu_course import interleavings


def anna(stack):
    def thread():
        return [(yield from stack.pop())]

    return thread


def bert(stack, back):
    def thread():
        held = [(yield from stack.pop())]
        held += [(yield from stack.pop())]
        for i in back:
            yield from stack.push(held[i])
        return [packet for i, packet in enumerate(held) if i not in back]

    return thread


def search(stack, back=(0,), **limit):
    memory = {"top": stack.start, ("next", 0): 1, ("next", 1): 2, ("next", 2): None}
    return list(interleavings([anna(stack), bert(stack, back)], memory, **limit))


def bert_alone(back):
    """The pile and what Bert holds when he is done, and Anna hasn't swapped."""
    memory = {"top": 0, ("next", 0): 1, ("next", 1): 2, ("next", 2): None}
    (run,) = interleavings([bert(Pile, back)], memory)
    return from_top(run.memory), run.results[0]


def after(title, run):
    return title, from_top(run.memory), run.results[1], run.results[0]


def tapped(back):
    """Anna's two looks, all that Bert does, and then the rest of hers."""
    (run,) = [  # of all orders of their steps with at most two interruptions
        run
        for run in search(Pile, back, most=2)
        if run.order[:2] == (0, 0) and set(run.order[2 : 2 + run.order.count(1)]) == {1}
    ]
    return run

# %% id=13-aba guess
# Bert doesn't need them all, and gives back packet 0; or packet 1; or both, 1 first and then 0; or both, 0 first and then 1. After that Anna turns back and swaps: *if the top is still 0, make it 1*. If the swap fails, she starts again. In how many of the four cases does a packet end up in two places? (Type a number.)

# %% id=13-aba reveal
endings = {"0": (0,), "1": (1,), "1, then 0": (1, 0), "0, then 1": (0, 1)}
before = [(f"{name} is back", *bert_alone(back)) for name, back in endings.items()]
swaps = ["Her swap works" if pile[0] == 0 else "It fails, so again" for _, pile, _ in before]
ends = [after(swap, tapped(back)) for swap, back in zip(swaps, endings.values())]
owned = [[*pile, *held, *got] for _, pile, held, got in ends]
twice = [name for name, packets in zip(endings, owned) if len(set(packets)) < len(packets)]
reveal("13-aba", len(twice), lambda: draw_piles(before, ends))

# %% id=13-aba told truth=1
# In two of the cases, the first and the third, the top is 0 again, and Anna's swap works. Where both packets are back, it does no harm, because 1 lies below 0 again. But where only 0 came back, her swap puts packet 1 on top, and Bert has that in his hands. In the other two the top is 1, so she starts again.

# %% id=aba-check tags=asserts
assert twice == ["0"]
assert before[0][1:] == ([0, 2], [1])

# %% [markdown] id=search-text
# How often does that happen? Together the two take twelve steps or more, and `interleavings` runs *every order of them*. (It keeps each thread's steps in order. A GPU may not, so this can't find a missing fence.)

# %% id=search-all
orders = search(Pile)
taken_back = [run for run in orders if run.memory["top"] in run.results[1]]
print(len(orders), "orders;", len(taken_back), "leave Bert's packet on the pile, too")
print("one of them:", "".join("AB"[i] for i in taken_back[0].order))

# %% id=search-check tags=asserts
assert (len(orders), len(taken_back)) == (9355, 21)

# %% [markdown] id=aba-read
# The top was 0, then another packet, then 0 again: value A, then B, then A. That's the **ABA problem**. (The orders aren't equally likely, so don't take 21 in 9355 for a chance.)
#
# A compare-and-swap sees whether a value *is* the same, not whether it *stayed* the same. But Anna needs to know *whether anybody has touched the top*. So let the top count: each change adds one to a **tag**, and then the old 0 and the new 0 look different.

# %% [markdown] id=exercise-stack
# ### Exercise: a stack for many
#
# Make `top` a pair, `(packet, tag)`. `start` is `(0, 0)`, and a swap by anybody, in `pop` or `push`, raises the tag by one. An empty pile is `(None, tag)`. What is stored in `("next", packet)` stays a number, or None.

# %% id=13-stack starter
class FreeStack:
    start = (0, 0)

    @staticmethod
    def pop():
        while True:
            top = yield "load", "top"
            packet, tag = top
            if packet is None:
                return None
            below = yield "load", ("next", packet)
            if (yield "cas", "top", top, (below, tag)):
                return packet

    @staticmethod
    def push(packet):
        while True:
            top = yield "load", "top"
            yield "store", ("next", packet), top[0]
            if (yield "cas", "top", top, (packet, top[1])):
                return

# %% id=13-stack solution
# - if (yield "cas", "top", top, (below, tag)):
# + if (yield "cas", "top", top, (below, tag + 1)):
# - if (yield "cas", "top", top, (packet, top[1])):
# + if (yield "cas", "top", top, (packet, top[1] + 1)):

# %% id=13-stack hints
# The starter carries the tag around already. It never changes it.
#
# There are two swaps. In each, the second value is the new pair.

# %% id=13-stack explanation
# Two `+ 1`, and a bug is gone that could have cost you a week. (Either one alone would do: before an old top comes back, somebody has to take it *and* put it back. With both, the tag simply counts every change. It has 32 bits, so the old 0 looks like the new one again only after 2³² changes.) In CUDA C the pair is one 64-bit word: the packet's number in the lower half, the tag in the upper one.

# %% id=13-stack-check
check("13-stack", FreeStack)

# %% [markdown] id=header-text
# ## Encore: the pile in CUDA C
#
# *How the header takes a packet.*

# %% id=header
from importlib.resources import files

header = (files("asyncgpu_tutor") / "kernels/headers/hostcall.cuh").read_text()
take = header.index("__device__ inline int hostcall_pop")
print(header[take : header.index("__device__ inline void hostcall_push")])

# %% [markdown] id=header-read
# That's the `pop` of the encore above, with the packet's number and the tag in one word. A packet is stored as its number plus one, so that 0 is an empty pile. `which` says which of the piles this is. When a swap fails, `atomicCAS` returns the top that it found, so there's no need to look again. And there's a fence: without it, a GPU may read the link before the top, or not see what the last owner did.
#
# A kernel that waits also looks whether the host has stopped. Each packet has a stop word of its own for that, because blocks that read the same word of host memory take turns, each a trip over the bus.

# %% [markdown] id=pressure
# ## Encore: a crowd
#
# *For those whose kernels have many blocks.*
#
# Here are blocks that call a small function again and again, on two machines with an H200:

# %% id=waits-picture tags=helpers
measured = {  # µs, on the two machines; see benchmarks/README.md
    "1 block calls": (9.2, 12.7),
    "8 blocks call": (8 * 4.3, 8 * 5.6),
    "132 blocks call": (132 * 1.7, 132 * 3.4),
    "the kernel ends, and we launch again": (13.8, 14.2),
}
figure, axes = plt.subplots(figsize=(7, 2.2))
for place, (name, times) in enumerate(measured.items()):
    for shift, time, hatch in zip((-0.18, 0.18), times, ("", "////")):
        look = {"hatch": hatch, "edgecolor": "w", "color": "#999999" if "launch" in name else "#e69f00"}
        axes.barh(place + shift, time, 0.32, **look)
        axes.text(time + 4, place + shift, f"{time:.0f}", va="center", fontsize=8)
axes.set_yticks(range(len(measured)), measured)
axes.set_xlabel("until a block can go on (µs); striped: a machine with a slower CPU")
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
told = [f"{name}: {one:.0f} and {other:.0f} µs" for name, (one, other) in measured.items()]
shown(figure, f"Bars: how long until a block can go on, on two machines with an H200. {'; '.join(told)}. "
      "The bars of 132 blocks dwarf all others. The grey pair at the bottom, a new launch, is little longer "
      "than the pair of a single call at the top.")  # fmt: skip

# %% [markdown] id=batch-text
# If NumPy can compute the answer, a **batch handler** gets the numbers of all waiting calls as three arrays, and returns an array. With one, the 132 blocks waited 37 and 54 µs instead of 224 and 449.

# %% [markdown] id=exercise-batch
# ### Exercise: many answers at once
#
# `price_all(prices)` returns a batch handler. It gets arrays `items`, `amounts` and a third that it doesn't need, and returns the array of costs, without a loop.

# %% id=13-batch starter
def price_all(prices):
    def handler(items, amounts, _):
        return [0 for item in items]

    return handler

# %% id=13-batch solution
# - return [0 for item in items]
# + return prices[items] * amounts

# %% id=13-batch hints
# The function gets whole arrays, one entry for each call. Is there anything in NumPy that looks up many entries at once?
#
# An array can be indexed with an array: `prices[items]` has the price of each item.

# %% id=13-batch explanation
# One line of NumPy, for any number of calls.

# %% id=13-batch-check
check("13-batch", price_all)

# %% [markdown] id=pressure-text
# And what if the pile is empty? A block that finds no packet waits for one. Here 16 blocks call again and again, with a packet for each, and then with two packets for all.

# %% id=ask-often
many = agt.Kernel(r"""
#include "hostcall.cuh"
__global__ void many(unsigned long long* mail, unsigned long long* stack, int calls,
                     unsigned long long* sums)
{
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long sum = 0;
    for (int i = 0; i < calls; ++i) {
        unsigned long long answer = 0;
        bool ok = hostcall(host, 16, blockIdx.x, i, 0, answer);
        if (!ok) return;
        sum += answer;
    }
    sums[blockIdx.x] = sum;
}
""")


async def ask_often(blocks, calls, packets):
    sums = await agt.zeros(blocks, np.uint64)
    together = {16: lambda a, b, _: a + b}
    async with agt.hostcalls(batch_handlers=together, packets=packets) as office:
        start = device.now()
        op = many(*office.arrays, calls, sums.borrow(), grid=blocks, block=1)
        await office.run(op)
        took = device.now() - start
    right = [sum(block + i for i in range(calls)) for block in range(blocks)]
    assert (await agt.d2h(sums)).tolist() == right  # each call was answered, and once
    assert office.answered == blocks * calls
    return took


async def a_call(blocks, packets, calls):
    """How long each call takes, without what a kernel with no calls takes."""
    await ask_often(blocks, 1, packets)  # a warm-up
    none, all_ = [await ask_often(blocks, number, packets) for number in (0, calls)]
    return (all_ - none) / calls


few = 8 if device.simulated else 400
alone, enough = await a_call(1, 16, few), await a_call(16, 16, few)
print(f" 1 block,  16 packets: {alone:6.2f} µs a call")
print(f"16 blocks, 16 packets: {enough:6.2f} µs a call")

# %% id=13-pressure guess within=0.15
# With 2 packets for all 16 blocks, how many times as long does a call take each of them as with 16 packets? (Type a number.)

# %% id=13-pressure reveal
scarce = await a_call(16, 2, few)
table = f"16 blocks,  2 packets: {scarce:6.2f} µs a call"
facts = {"round_": scarce / 8, "enough": enough}
reveal("13-pressure", round(scarce / enough, 1), lambda: print(table), **facts)

# %% id=13-pressure told truth=6.8
# Each of Python's rounds answers 2 calls at most, so it takes 8 rounds until all have an answer. But with only two to answer, a round is quicker: it takes {round_:.1f} µs instead of {enough:.1f}. Nothing overflows, and no call is lost or answered twice: it's the back-pressure of chapter 6.

# %% [markdown] id=wrong
# ## Encore: when the host is in trouble
#
# *For the day when one of your kernels gets no answer.*
#
# **The handler fails.** There's a person on the host who reads error messages, so that is where the exception goes: to the `await` of the operation whose kernel asked. The kernel is told that there are no more answers, and ends.

# %% id=fails
def sold_out(call):
    if call.a == 2:
        raise LookupError(f"{players[call.a]} has lost the dice")
    return 6


try:
    async with agt.hostcalls({16: sold_out}) as office:
        await office.run(dice(*office.arrays, agt.mapped(rolled), grid=4, block=1))
except LookupError as error:
    print("LookupError:", error, "|", error.__notes__[0])
else:
    raise AssertionError("the exception was lost")

# %% [markdown] id=away
# **The host is not there.** Here Python blocks, the worst mistake of this page. `sync` waits for the kernel, the kernel waits for Python, and neither can go first. On a GPU the calls give up after two million looks, which took about four seconds on an H100. The simulated device sees at once that nobody can answer any more:

# %% id=away-code
with agt.using(agt.SimDevice()):
    kernel = agt.Kernel(dice.source)
    try:
        async with agt.hostcalls({16: lambda call: 6}) as office:
            nothing = agt.mapped(agt.pin(np.zeros(4, np.uint64)))
            kernel(*office.arrays, nothing, grid=4, block=1).sync()
    except agt.errors.HostcallError as error:
        print("HostcallError:", error)
    else:
        raise AssertionError("the calls should have been given up")

# %% [markdown] id=away-2
# **The kernel doesn't count.** If a kernel of your own waits without a counter, it hangs on a GPU until somebody ends the process. Here it's an error with a line number:

# %% id=deadlock
patient = LETTERS.replace("if (++turns > 1000000) return;", "")
with agt.using(agt.SimDevice()):
    mail, answers = (agt.mapped(agt.pin(np.zeros(3, np.uint32))) for _ in range(2))
    try:
        agt.Kernel(patient)(mail, 3, answers, grid=1, block=1).sync()
    except agt.errors.DeadlockError as error:
        print("DeadlockError:", error)
    else:
        raise AssertionError("a kernel that waits forever should be reported")
