"""Source of notebooks/14_gallery.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # A gallery
#
# Six programs that people write again and again, from the Mandelbrot set to the attention of a language model. They seem to have nothing in common, and yet one question settles the speed of each: **who waits for whom?**
#
# After this page you can say how long a kernel takes whose threads have unequal work, tell what a single wait saves and what a graph saves, let a warp agree on who writes where, choose the right piece of a simulation for a graph, and recognise the ideas of this course when you meet them outside of it.
#
# | | |
# |---|---|
# | Time | 85 minutes |
# | You need | [04_combinators](04_combinators.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb); for room 4 [13b_await_the_host](13b_await_the_host.ipynb). You do not need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import inspect

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution, solved

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=welcome
# Each room of this gallery has a question at the door, a picture on the wall, and one idea of the course behind it. The rooms do not need each other: begin where you like.
#
# | room | question | idea |
# |---|---|---|
# | 1 | What does a black pixel of the Mandelbrot set cost? | threads with unequal work |
# | 2 | Can one find π by throwing darts? | many streams, one wait |
# | 3 | Where in a text does a word stand? | a warp votes |
# | 4 | Can you watch a launch learn, and tell it to stop? | a kernel that awaits the host |
# | 5 | What happens when two galaxies meet? | tiles in shared memory, a graph for the steps |
# | 6 | What does a word look at? | heads side by side |

# %% [markdown] id=recorded-text
# One helper for all rooms. On a real GPU, Python's first calls after a pause take several times as long as those that follow. So what is recorded runs twice in a row, and the second run counts.

# %% id=recorded
def recorded(run, *args):
    """What a run returns, and its trace."""
    with agt.record():
        run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def on_an_h200(*names):
    """Recordings, which come with the course; prints what they show, and how long it took."""
    traces = [agt.Trace.load_recording(name) for name in names]
    for h200 in traces:
        print(f"{h200.metrics().makespan:5.0f} µs on an H200: {h200.about['shows']}")
    return traces


# %% [markdown] id=mandelbrot-door
# ## Room 1: The price of a pixel
#
# *What does a black pixel of the Mandelbrot set cost?*
#
# Take a point $c$ of the plane, start at $z = 0$, and repeat $z \to z^2 + c$. From most points you fly off to infinity within a few rounds. From some you never do. Those are the set, and here they are black. Each
# pixel is a thread, which counts rounds until its $z$ is farther than 2 from the origin, or until it loses patience after 600.

# %% id=mandelbrot-kernel
mandelbrot = agt.Kernel(r"""
extern "C" __global__ void mandelbrot(int first, int width, int height, int most, int* rounds)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float a = -2.4f + 3.52f * x / width, b = -1.32f + 2.64f * (first + y) / height;
    float re = 0.0f, im = 0.0f;
    int n = 0;
    while (n < most && re * re + im * im < 4.0f) {
        float next = re * re - im * im + a;
        im = 2.0f * re * im + b;
        re = next;
        n++;
    }
    rounds[y * width + x] = n;
}
""")
WIDTH, HEIGHT, BANDS, MOST = 192, 144, 6, 600
ROWS = HEIGHT // BANDS

outs = [agt.zeros((ROWS, WIDTH), np.int32).sync() for _ in range(BANDS)]
bands = [
    mandelbrot(
        k * ROWS, WIDTH, HEIGHT, MOST, outs[k].borrow(), grid=(WIDTH // 8, ROWS // 4), block=(8, 4)
    )
    for k in range(BANDS)
]
graph = agt.overlap(*bands).named("six bands").graph_on(stream)

# %% id=mandelbrot-picture
graph.launch().sync_on(stream)
rounds = np.vstack([agt.d2h(out.borrow()).sync() for out in outs])
black = [int((part == MOST).sum()) for part in np.split(rounds, BANDS)]

plt.figure(figsize=(6.4, 4.8))
black_where_never = plt.get_cmap("magma").with_extremes(bad="k")
plt.imshow(np.log(np.ma.masked_equal(rounds, MOST)), cmap=black_where_never, vmin=-1)
plt.hlines(ROWS * np.arange(1, BANDS) - 0.5, -0.5, WIDTH - 0.5, colors="w", linewidth=0.5)
plt.title("Bright: many rounds. Black: never done")
plt.axis("off")
plt.show()
print("The Mandelbrot set, cut into six bands. Black pixels in each, from the top:", *black)


# %% id=mandelbrot-check tags=asserts
def mandelbrot_in_numpy():
    x, y = np.meshgrid(np.arange(WIDTH, dtype=np.float32), np.arange(HEIGHT, dtype=np.float32))
    f = np.float32
    a, b = f(-2.4) + f(3.52) * x / f(WIDTH), f(-1.32) + f(2.64) * y / f(HEIGHT)
    re, im, n = np.zeros_like(a), np.zeros_like(a), np.zeros(a.shape, np.int32)
    for _ in range(MOST):
        inside = re * re + im * im < 4
        n += inside
        re, im = (
            np.where(inside, re * re - im * im + a, re),
            np.where(inside, f(2) * re * im + b, im),
        )
    return n


assert (rounds == mandelbrot_in_numpy()).all()
assert (black[0], black[-1]) == (0, 1)
assert min(black[1:-1]) > 400
assert max(black) > 1700

# %% [markdown] id=mandelbrot-question
# The white lines cut the picture into six bands of 4,608 pixels each. Every band is a kernel of its own, and all six are branches of one graph. An H200 has room for 270,336 threads, and there are 27,648, so nobody has to wait for a place.
#
# Have a look at the black pixels. The first band has none, and the last has a single one.

# %% id=predict-bands
six = Prediction(
    "Six bars on the timeline, one for each band. How long are they?",
    same="all about the same: equally many threads, and a place for each",
    black="the more black, the longer: the two in the middle stand out, the first and the last are short",
    one="one is short, and the other five are about the same",
)
six

# %% id=commit-bands
six.commit(...)

# %% id=mandelbrot-timeline
_, trace = recorded(graph.launch().sync_on, stream)
took = sorted(span.duration for span in trace.find("mandelbrot"))

trace.plot(
    title="Six bands at once",
    lanes=("streams",),
    lesson="The first band is soon done. The other five take equally long, though one of them has 1,700 "
    "times as much black as another.",
)

# %% id=reveal-bands
alike = took[-1] < 1.5 * took[1]
six.reveal(
    "one" if alike and took[0] < 0.7 * took[1] else "same" if alike else "black",
    "A kernel ends with its slowest thread. One pixel that is never done costs as much as 1,700 of them, as "
    "long as the SMs are far from busy.",
)

# %% id=mandelbrot-h200
bars = sorted(span.duration for span in agt.Trace.load_recording("14_mandelbrot").device_spans)
print("the six bars on an H200:", ", ".join(f"{us:.1f}" for us in bars), "µs")
agt.compare_timelines(
    on_an_h200("14_mandelbrot"),
    ["Six bands in one graph"],
    lanes=("host", "streams"),
    lesson="From one call, six bars of an H200: a short one, and five that take as long as each other.",
)

# %% id=mandelbrot-h200-check tags=asserts
assert bars[0] < 0.5 * bars[1]
assert bars[-1] < 1.1 * bars[1]

# %% [markdown] id=mandelbrot-how
# Warps of one launch have unequal work here. Within a warp the same is called **divergence**: its 32 threads go through the loop together, as a rule, and those that are done wait for the last. How long do lanes wait for slower lanes in their
# warp? Let us add up the rounds that they sit through, for two shapes of a warp.


# %% id=mandelbrot-warps
def idle(width, height):
    """The share of its rounds in which a lane only waits, if warps have this shape."""
    warps = rounds.reshape(HEIGHT // height, height, WIDTH // width, width).swapaxes(1, 2)
    longest = warps.max(axis=(2, 3))
    return 1 - rounds.sum() / (longest.sum() * width * height)


for width, height in ((32, 1), (8, 4)):
    print(
        f"warps of {width:2} x {height}: lanes are idle for {idle(width, height):.0%} of their rounds"
    )

# %% id=mandelbrot-warps-check tags=asserts
assert idle(8, 4) < idle(32, 1)

# %% [markdown] id=mandelbrot-read
# Pixels that are near each other need similar numbers of rounds, and in a compact tile they are nearer than in a row. That is why the kernel above has blocks of 8 x 4.

# %% [markdown] id=darts-door
# ## Room 2: Darts
#
# *Can one find π by throwing darts?*
#
# Throw darts at a square, blindly. The part that lands in the quarter circle is $\pi / 4$ of all. You only need very many darts, and a way to count the hits that does not slow the throwing down.
#
# Where does a GPU get random numbers? From a function that scrambles a number beyond recognition. The dart's own number goes in, and out come 32 bits: 16 of them for $x$, and 16 for $y$.

# %% id=darts-kernel
darts = agt.Kernel(r"""
__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}

extern "C" __global__ void darts(unsigned int first, unsigned int each, unsigned int* hits)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, begin = first + i * each, mine = 0;
    for (unsigned int k = 0; k < each; k++) {
        unsigned int dart = scrambled(begin + k);
        unsigned long long x = dart & 0xffff, y = dart >> 16;
        if (x * x + y * y < 1ull << 32) mine++;
    }
    for (int step = 16; step > 0; step /= 2) {          // add what the lane `step` above has ...
        mine += __shfl_down_sync(0xffffffffu, mine, step);
    }
    if (i % 32 == 0) hits[i / 32] = mine;               // ... and write once for each warp
}
""")
PLAYERS, THREADS, EACH = 8, 256, 400
PER_PLAYER = THREADS * EACH


def player(k):
    """An operation that throws, and yields an array with the hits of each warp."""
    return agt.zeros(THREADS // 32, np.uint32).and_then(
        lambda hits: darts(k * PER_PLAYER, EACH, hits, grid=2, block=THREADS // 2).output()
    )


# %% [markdown] id=exercise-darts
# ### Exercise: ask for all, wait once
#
# `players` is a list of operations like the one above: each yields an array of numbers. Return the sum of all numbers of all players, as a Python `int`. They should be free to play side by side, and Python should wait only once.


# %% id=14-darts starter
def total(players):
    hits = 0
    for player in players:
        hits += int(player.to_host().sync().sum())  # one player after the other
    return hits


# %% id=14-darts solution
def total(players):
    counts = agt.overlap(*[player.to_host() for player in players]).sync()
    return sum(int(count.sum()) for count in counts)


# %% id=14-darts hints
# A `sync` for each player keeps the next one from starting. Make one operation of all of them first.
#
# `agt.zip` would play one after the other on one stream. Which combinator deals them out to several streams?
#
# `agt.overlap(*[player.to_host() for player in players]).sync()` is a tuple of NumPy arrays.

# %% id=14-darts explanation
# The warps add up in their registers, the launches meet in one `overlap`, and only then does Python look and add up the rest. Nobody waits for a sum that is not needed yet.

# %% id=14-darts-check
check("14-darts", total)


# %% id=darts-picture
def throw(numbers):
    x = numbers + np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x & np.uint32(0xFFFF)) / 2**16, (x >> np.uint32(16)) / 2**16


x, y = throw(np.arange(PLAYERS * PER_PLAYER, dtype=np.uint32))
inside = (x * x + y * y < 1).reshape(PLAYERS, PER_PLAYER)

fig, (board, curves) = plt.subplots(1, 2, figsize=(9.6, 4.2))
for color, shown in (("tab:orange", inside[0, :3000]), ("tab:blue", ~inside[0, :3000])):
    board.scatter(x[:3000][shown], y[:3000][shown], s=3, color=color)
board.set(title="the first 3,000 darts", aspect="equal", xlim=(0, 1), ylim=(0, 1))
thrown = np.arange(1, PER_PLAYER + 1)
plt.sca(curves)
for k in range(PLAYERS):
    plt.plot(thrown[99::50], 4 * (np.cumsum(inside[k]) / thrown)[99::50], linewidth=0.8)
curves.fill_between(
    thrown[99:], np.pi - 3.3 / thrown[99:] ** 0.5, np.pi + 3.3 / thrown[99:] ** 0.5, color="0.9"
)
curves.axhline(np.pi, color="k", linewidth=0.8)
curves.set(xscale="log", ylim=(2.7, 3.6), xlabel="darts", title="eight players, and π")
plt.show()

counts = agt.overlap(*[player(k).to_host() for k in range(PLAYERS)]).sync()
hits = sum(int(count.sum()) for count in counts)
print(f"Eight wiggly curves close in on π. Together: {4 * hits / inside.size:.4f}")

# %% id=darts-check tags=asserts
assert [int(count.sum()) for count in counts] == inside.sum(axis=1).tolist()
assert abs(4 * hits / inside.size - np.pi) < 0.01

# %% [markdown] id=darts-read
# At any number of darts, chance keeps some 19 of 20 such curves inside the grey funnel. It becomes half as wide when you throw four times as many darts. That is slow, so this method wants a machine that throws thousands at once.
#
# And on the clock? First with a wait for each player:

# %% id=darts-clock
boards = [agt.zeros(THREADS // 32, np.uint32).sync() for _ in range(PLAYERS)]
throws = [
    darts(k * PER_PLAYER, EACH, boards[k].borrow(), grid=2, block=THREADS // 2)
    for k in range(PLAYERS)
]
side_by_side = agt.overlap(*throws).named("all players")


def with_a_wait_each():
    for throw_darts in throws:
        throw_darts.sync_on(stream)


_, one_by_one = recorded(with_a_wait_each)
print(f"a wait for each player: {one_by_one.metrics().makespan:.0f} µs")

# %% id=predict-darts
one_wait = Prediction(
    "And all eight in one `overlap`, with a single wait?",
    eighth="less than a quarter of that: they play side by side",
    half="about half of it",
    most="more than two thirds of it",
)
one_wait

# %% id=commit-darts
one_wait.commit(...)

# %% id=darts-timeline
_, overlapped = recorded(side_by_side.sync_on, stream)
_, as_graph = recorded(side_by_side.graph_on(stream).launch().sync_on, stream)

agt.compare_timelines(
    [one_by_one, overlapped, as_graph],
    ["a wait for each player", "overlap, one wait", "overlap as a graph, one wait"],
    lanes=("host", "streams"),
    lesson="With one wait, calls still come one by one, to four streams. As a graph all throw at once.",
)

# %% id=reveal-darts
left = overlapped.metrics().makespan / one_by_one.metrics().makespan
one_wait.reveal(
    "most" if left > 2 / 3 else "half" if left > 1 / 4 else "eighth",
    f"It takes {overlapped.metrics().makespan:.0f} µs, and {as_graph.metrics().makespan:.0f} as a graph.",
)

# %% [markdown] id=darts-answer
# That saves seven waits, and no more. They are on four streams now, and still take turns: on the simulated device, each kernel is over before Python has launched the next. When one call starts all, they throw at the same time. `overlap` says that they *may*.

# %% id=darts-h200
agt.compare_timelines(
    on_an_h200("14_darts_one_by_one", "14_darts"),
    ["a wait for each player", "one graph, one wait"],
    lanes=("host", "streams"),
    lesson="Above, a call and a wait for each of eight players. Below, one call for all of them.",
)

# %% id=darts-timeline-check tags=asserts
assert sum(span.kind == "wait" for span in one_by_one) == PLAYERS
assert sum(span.kind == "wait" for span in overlapped) == 1
assert sum(span.kind == "wait" for span in as_graph) == 1
if device.simulated:
    assert left > 2 / 3
    assert overlapped.metrics().max_concurrency == 1
    assert len(overlapped.streams) == 4
    assert as_graph.metrics().max_concurrency == PLAYERS
    assert as_graph.metrics().makespan < 0.2 * overlapped.metrics().makespan

# %% [markdown] id=grep-door
# ## Room 3: A page from far away
#
# *Where in a text does a word stand?*
#
# Our text is a file of this course, the one with the kinds of error that it knows. Every letter gets a thread, and the thread checks whether the word begins here. Then it has to write its place into a list, and thousands of others
# want to do the same. Who writes where?
#
# A counter that everybody adds one to would do: `slot = atomicAdd(count, 1)`. Here is that at work, for one letter in a short text. Go through the three steps, and look at the second.

# %% id=grep-crowd
CROWD = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    if (yes) {
        int slot = atomicAdd(count, 1);
        places[slot] = i;
    }
}
"""
SHORT = b"the warp votes, and the first lane writes down where the rest may write"


def watched(grep):
    """What the threads do that look for every e in a short text, in blocks of one warp."""
    grep = agt.Kernel(grep) if isinstance(grep, str) else grep
    text, places = np.frombuffer(SHORT, np.uint8), np.zeros(16, np.int32)
    count = np.zeros(1, np.int32)
    return agt.show_threads(grep, text.size, text, ord("e"), places, count, grid=3, block=32)


watched(CROWD)

# %% [markdown] id=grep-vote
# Ten threads crowd around one counter, and each has to wait until it is served. Three would be enough, one for each warp. The lanes of a warp **vote**:
#
# | | what every lane gets |
# |---|---|
# | `votes = __ballot_sync(mask, yes)` | 32 bits, one for each lane: bit 5 is set if lane 5 said yes |
# | `__popc(votes)` | how many bits are set |
# | `__ffs(votes) - 1` | the first lane that said yes |
# | `__shfl_sync(mask, x, lane)` | the `x` of that lane |
# | `(1u << lane) - 1` | a bit for each lane below `lane` |
#
# (As a `mask`, `0xffffffffu` is all 32.) So a warp can ask the counter for all its places at once, and share them out.

# %% id=grep-crowd-check tags=asserts
assert "10 threads write count" in watched(CROWD).step(1)

# %% [markdown] id=exercise-grep
# ### Exercise: one atomic for a warp
#
# The version below asks the counter once for each match. Change it: the first lane of a warp with a match asks for all of the warp, and each match takes the slot that is its own. The matches of a warp
# should stay in order.

# %% id=14-grep starter
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    if (yes) {
        int slot = atomicAdd(count, 1);            // every match for itself
        places[slot] = i;
    }
}
"""

# %% id=14-grep solution
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""

# %% id=14-grep hints
# Every lane has to vote, even one that is past the end of the text. So the ballot comes before any `if`.
#
# The lane `__ffs(votes) - 1` adds `__popc(votes)` to the counter. What it gets is the first slot of the warp, and the others learn it by `__shfl_sync`.
#
# How many votes are there below my lane? `(1u << lane) - 1` has a bit for each lane below. So my slot is `slot + __popc(votes & ((1u << lane) - 1))`.

# %% id=14-grep explanation
# Up to 32 atomics have become one, and no other warp had to be waited for. The trick is called *warp-aggregated atomics*, and compilers apply it by themselves where they can see it. They cannot always see it.

# %% id=14-grep-check
check("14-grep", GREP)

# %% [markdown] id=grep-yours-text
# Watch your own at the same work. How many are at the counter now?

# %% id=grep-yours
watched(GREP)

# %% id=grep-yours-check tags=asserts
assert "3 threads write count" in watched(solved("14-grep")).step(1)

# %% [markdown] id=grep-words-text
# Now for three whole words at once. The text goes up once. Three searches read it, each on a stream of its own.

# %% id=grep-kernel
find_word = agt.Kernel(r"""
extern "C" __global__ void find_word(
    int n, const unsigned char* text, int length, const unsigned char* word, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i + length <= n;
    for (int k = 0; yes && k < length; k++) yes = text[i + k] == word[k];

    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
""")
LETTERS = inspect.getsource(agt.errors).encode()
text = agt.pin(np.frombuffer(LETTERS, np.uint8))
WORDS = ("the", "kernel", "device")


def search(source, word):
    """Yields an array with room for many places, and the number of places."""
    letters = agt.h2d(agt.pin(np.frombuffer(word.encode(), np.uint8)), word)
    op = agt.zip(source, letters, agt.zeros(4096, np.int32), agt.zeros(1, np.int32)).and_then(
        lambda given: find_word(
            text.size, given[0], len(word), *given[1:], grid=-(-text.size // 256), block=256
        )
    )
    return op.and_then(lambda given: agt.zip(agt.d2h(given[2]), agt.d2h(given[3]))).named(word)


def searches():
    source = agt.h2d(text, "text").map(lambda array: array.share()).shared()
    return agt.overlap(*[search(source, word) for word in WORDS])


# %% id=grep-picture
results, trace = recorded(lambda: searches().sync())
found = [np.sort(places[: count[0]]) for places, count in results]

# Where each letter is on the picture: lines of text from top to bottom, in three columns.
line = np.cumsum(text == 10) - (text == 10)
begins = np.append(0, np.flatnonzero(text == 10) + 1)
tall = line.max() // 3 + 1
row, column = line % tall, np.arange(text.size) - begins[line] + line // tall * 120

page = np.zeros((tall, 360), int)
page[row, column] = text > 32
for color, (word, places) in enumerate(zip(WORDS, found), start=2):
    for k in range(len(word)):
        page[row[places + k], column[places + k]] = color
plt.figure(figsize=(9.6, 5.4))
colors = ["white", "0.85", "tab:blue", "tab:orange", "tab:red"]
plt.imshow(page, cmap=plt.matplotlib.colors.ListedColormap(colors), aspect="auto")
plt.title("   ".join(f"{color[4:]}: {word}" for color, word in zip(colors[2:], WORDS)))
plt.axis("off")
plt.show()
print("Three grey columns of code, seen from afar, with words in colour.")
for word, places in [*zip(WORDS, found), ("e", np.flatnonzero(text == ord("e")))]:
    print(f"{word!r} stands at {len(places):4} places, in {len(set(places // 32))} warps")


# %% id=grep-check tags=asserts
def in_python(word):
    word = word.encode()
    return [i for i in range(len(LETTERS)) if LETTERS.startswith(word, i)]


e_places = np.flatnonzero(text == ord("e"))
assert len(set(e_places // 32)) < len(e_places) / 2
assert [places.tolist() for places in found] == [in_python(word) for word in WORDS]
assert sum(span.detail["bytes"] == text.size for span in trace.find("h2d")) == 1

# %% id=grep-timeline
trace.plot(
    title="One copy of the text, three searches",
    lanes=("host", "streams"),
    lesson="The text is copied once. The three searches wait for that copy by an event, and then run on "
    "three streams.",
)

# %% id=grep-h200
agt.compare_timelines(
    on_an_h200("14_grep"),
    ["A longer text, three searches"],
    lanes=("host", "streams"),
    lesson="The same shape: one copy of the text, then three streams, and mostly calls of the host.",
)

# %% [markdown] id=grep-read
# With a letter such as *e*, the vote saves more than half of the atomics. Rare words hardly ever meet in one warp, so there it saves next to nothing.
#
# On the timeline, the searches themselves are slivers. The rest is the way there and back: copies of the text, the words and the places, and Python, which has to ask for each of them. A text of this size is not worth a trip to the GPU, unless it is there already.

# %% [markdown] id=training-door
# ## Room 4: A kernel that reports
#
# *Can you watch a launch learn, and tell it to stop?*
#
# Training is a loop, and by now you know where a loop wants to be: in the kernel. But somebody should watch it. When do you stop, if you don't see the loss before the launch is over?
#
# Here a block of 64 threads learns where the border runs between two clouds of 256 points. It has three weights, so it's the smallest network there is. Every 25 steps, thread 0 tells Python the loss, by an `Ask` of [chapter 13b](13b_await_the_host.ipynb). And it doesn't wait for the answer: it goes on training, and looks at it when the next report is due. If Python said 1, the block stops.

# %% id=training-kernel
train = agt.Kernel(r"""
#include "hostcall_async.cuh"
extern "C" __global__ void train(
    unsigned long long* mail, unsigned long long* stack, int n,
    const float* x, const float* y, const float* blue,
    int most, int every, float* weights, int* steps)
{
    __shared__ float w[3], part[3][64], losses[64];
    __shared__ int stop;
    Hostcalls host = hostcalls(mail, stack);
    Ask report = ask(host, 16, 0, 0, 0);
    int i = threadIdx.x, step = 0;
    bool asked = false;
    if (i < 3) w[i] = 0.0f;
    if (i == 0) stop = 0;
    __syncthreads();
    for (; step < most; step++) {
        float g[3] = {0.0f, 0.0f, 0.0f}, loss = 0.0f;
        for (int k = i; k < n; k += 64) {
            float guess = 1.0f / (1.0f + expf(-(w[0] + w[1] * x[k] + w[2] * y[k])));
            float off = guess - blue[k];
            g[0] += off; g[1] += off * x[k]; g[2] += off * y[k];
            loss -= logf(blue[k] > 0.5f ? guess : 1.0f - guess);
        }
        for (int c = 0; c < 3; c++) part[c][i] = g[c];
        losses[i] = loss;
        __syncthreads();
        if (i < 3) {                                        // a thread for each weight
            float sum = 0.0f;
            for (int k = 0; k < 64; k++) sum += part[i][k];
            w[i] -= 0.5f * sum / n;
        }
        if (i == 0 && step % every == 0) {
            float sum = 0.0f;
            for (int k = 0; k < 64; k++) sum += losses[k];
            if (asked) {                                    // what did Python say last time?
                block_on(report);
                stop = report.error != 0 || report.answer == 1;
            }
            report = ask(host, 16, step, __float_as_uint(sum / n), 0);
            report.poll();                                  // sent; the answer can wait
            asked = true;
        }
        __syncthreads();
        if (stop) break;                                    // all read the same, so all leave
    }
    if (i == 0 && asked) report.drop();                     // nobody wants that answer any more
    if (i < 3) weights[i] = w[i];
    if (i == 0) *steps = step;
}
""")
rng = np.random.default_rng(3)
blue = (np.arange(256) % 2).astype(np.float32)
points = rng.normal(0, 1, (2, 256)).astype(np.float32) + np.array([[1.2], [0.8]], np.float32) * (2 * blue - 1)
clouds = [agt.h2d(agt.pin(np.ascontiguousarray(part))).sync().share() for part in (*points, blue)]


async def trained(every, most=2000):
    """The losses that Python heard of, the weights, the number of steps, and the kernel's time."""
    heard = []

    def listen(call):
        heard.append((call.a, float(np.uint32(call.b).view(np.float32))))
        settled = len(heard) > 1 and heard[-2][1] - heard[-1][1] < 1e-3
        return int(settled)  # 1: that will do

    weights, steps = agt.pin(np.zeros(3, np.float32)), agt.pin(np.zeros(1, np.int32))
    async with agt.hostcalls({16: listen}) as office:
        with agt.record() as trace:
            args = (256, *clouds, most, every, agt.mapped(weights), agt.mapped(steps))
            await office.run(train(*office.arrays, *args, grid=1, block=64))
    return heard, weights, int(steps[0]), trace


# %% id=training-picture
await trained(25)  # warm-up
heard, weights, steps, reporting = await trained(25)

figure, (curve, border) = plt.subplots(1, 2, figsize=(9.6, 4))
plt.sca(curve)
plt.plot(*zip(*heard), "o-")
curve.set(xlabel="step", ylabel="loss", title="what Python heard while the kernel ran")
for colour, which in (("tab:blue", blue > 0.5), ("tab:orange", blue < 0.5)):
    border.scatter(*points[:, which], s=8, color=colour)
across = np.array([-3.5, 3.5])
plt.sca(border)
plt.plot(across, -(weights[0] + weights[1] * across) / weights[2], "k")
border.set(title="where it drew the border", xlim=(-4, 4), ylim=(-4, 4))
plt.show()
print(
    f"A falling curve of {len(heard)} dots, and a line between two clouds. "
    f"Stopped after {steps} of 2,000 steps."
)

# %% id=training-check tags=asserts
guess = 1 / (1 + np.exp(-(weights[0] + weights[1] * points[0] + weights[2] * points[1])))
assert ((guess > 0.5) == (blue > 0.5)).mean() > 0.9
assert 25 < steps < 500
assert [step for step, _ in heard] == list(range(0, steps + 1, 25))[: len(heard)]

# %% [markdown] id=training-question
# The kernel stopped one report *after* Python had said so, which is the price of not waiting. What about the other price, the time that the reports take?

# %% id=predict-reports
longer = Prediction(
    "How much longer does a step take, on average, with a report every 25 steps than with a single one at "
    "the beginning?",
    little="less than a tenth",
    some="between a tenth and a half",
    much="more than a half: each report is a trip to the host and back",
)
longer

# %% id=commit-reports
longer.commit(...)

# %% id=reveal-reports
took = {}
for every in (25, 1000):
    _, _, done, trace = await trained(every, most=200 if every == 1000 else steps)
    took[every] = trace.device_spans[-1].duration / done
    print(f"a report every {every:4}: {took[every]:.2f} µs a step")
more = took[25] / took[1000] - 1
longer.reveal(
    "little" if more < 0.1 else "some" if more < 0.5 else "much",
    "The question travels, Python thinks, and the answer travels back, all while the block is busy with the "
    "next steps. Thread 0 pays for sending it, and for a look.",
)

# %% [markdown] id=training-read
# That's the whole course in one kernel: the GPU decides, it talks to the host while it runs, and nobody waits for an answer before it's needed. A real network is larger, and the pattern is the same.

# %% [markdown] id=galaxies-door
# ## Room 5: Two galaxies
#
# *What happens when two galaxies meet?*
#
# Each star pulls at every other. With $n$ stars that is $n^2$ pulls for each small step in time, and a few hundred steps make a film. That is a lot of reading: each of $n$ threads needs all $n$ places.
#
# So they read together. A block loads a **tile** of 64 stars into its shared memory, one star a thread. There, all 64 threads find all 64 stars close at hand. Then comes the next tile. (You cut matrices in the same way in [chapter 7](07_async_mlp.ipynb).)

# %% id=galaxies-kernel
step_kernel = agt.Kernel(r"""
#define TILE 64
extern "C" __global__ void galaxy_step(
    int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    __shared__ float tile_x[TILE], tile_y[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float x = at[2 * i], y = at[2 * i + 1], pull_x = 0.0f, pull_y = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        int j = first + threadIdx.x;
        tile_x[threadIdx.x] = at[2 * j];
        tile_y[threadIdx.x] = at[2 * j + 1];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            float dx = tile_x[k] - x, dy = tile_y[k] - y;
            float near = rsqrtf(dx * dx + dy * dy + 0.02f);
            float pull = near * near * near;
            pull_x += pull * dx;
            pull_y += pull * dy;
        }
        __syncthreads();
    }
    float u = speed[2 * i] + 0.06f * pull_x / n, v = speed[2 * i + 1] + 0.06f * pull_y / n;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.06f * u;
    at_next[2 * i + 1] = y + 0.06f * v;
}
""")


def two_galaxies(n):
    """Two discs of stars which turn, and drift towards each other."""
    rng = np.random.default_rng(3)
    radius, angle = 0.05 + 0.95 * rng.random(n) ** 0.8, 2 * np.pi * rng.random(n)
    at = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    speed = 0.62 * at[:, ::-1] * [-1, 1] / radius[:, None] ** 0.85
    side = np.where(np.arange(n) < n // 2, -1, 1)[:, None]
    at, speed = at + side * [1.2, 0.35], speed - side * [0.35, 0.0]
    return at.astype(np.float32), speed.astype(np.float32)


STARS, STEPS = 256, 100

# %% [markdown] id=galaxies-graph-text
# A step reads one pair of arrays and writes another. So two steps, there and back, end where they began, and *that* is what we capture as a graph. A launch of it is two steps, and Python makes half as many calls, each of which costs less.


# %% id=galaxies-graph
def fresh():
    """Positions and speeds at the beginning, and room for the next ones."""
    at, speed = (agt.h2d(agt.pin(part.ravel())).sync() for part in two_galaxies(STARS))
    return [at, speed, agt.zeros(2 * STARS).sync(), agt.zeros(2 * STARS).sync()]


def steps(arrays):
    """Two operations: from the first pair to the second, and back."""
    for order in ((0, 1, 2, 3), (2, 3, 0, 1)):
        given = [arrays[i].borrow() for i in order]
        yield step_kernel(STARS, *given, grid=STARS // 64, block=64)


arrays = fresh()
two_steps = agt.zip(*steps(arrays)).named("two steps").graph_on(stream)

film = [two_galaxies(STARS)[0]]
for _ in range(STEPS // 2):
    two_steps.launch().async_on(stream)
    film.append(agt.d2h(arrays[0].borrow()).sync_on(stream).reshape(STARS, 2))

# %% id=galaxies-picture
film = np.array(film)
fig, shown = plt.subplots(1, 4, figsize=(13, 3.6))
for axes, frame in zip(shown, (0, 15, 30, 50)):
    plt.sca(axes)
    recent = film[max(frame - 4, 0) : frame + 1]
    for half, color in zip(np.split(np.arange(STARS), 2), ("tab:blue", "tab:orange")):
        x, y = recent[:, half].transpose(2, 0, 1)
        plt.plot(x, y, color=color, alpha=0.35, linewidth=0.8)
        axes.scatter(x[-1], y[-1], s=3, color=color)
    axes.set(xlim=(-2.5, 2.5), ylim=(-2.2, 2.2), aspect="equal", title=f"after {2 * frame} steps")
    axes.axis("off")
plt.show()
print(
    "A blue and an orange disc meet, whirl through each other, and part again with long, torn arms."
)


# %% id=galaxies-check tags=asserts
def galaxies_in_numpy(at, speed, steps):
    at, speed = at.astype(float), speed.astype(float)
    for _ in range(steps):
        d = at[None] - at[:, None]
        pull = ((d * d).sum(-1) + 0.02) ** -1.5
        speed = speed + 0.06 * (pull[..., None] * d).sum(1) / len(at)
        at = at + 0.06 * speed
    return at


assert np.allclose(film[10], galaxies_in_numpy(*two_galaxies(STARS), 20), atol=1e-3)
# After that, the last bits of the numbers decide who passes whom; but the centre of all goes straight on.
at, speed = two_galaxies(STARS)
assert np.allclose(film[-1].mean(0), (at + 0.06 * STEPS * speed).mean(0), atol=1e-3)

# %% [markdown] id=galaxies-time
# What does the graph bring? We fly twenty steps, first by calls, and then by ten launches of the graph. No film this time, so Python looks only at the end.

# %% id=galaxies-timeline
by_call, by_graph = fresh(), fresh()
two = list(steps(by_call))
launch = agt.zip(*steps(by_graph)).named("two steps").graph_on(stream).launch()

with agt.record() as called:
    for k in range(20):
        two[k % 2].async_on(stream)
    stream.synchronize()
with agt.record() as launched:
    for _ in range(10):
        launch.async_on(stream)
    stream.synchronize()
ends = [agt.d2h(arrays[0]).sync() for arrays in (by_call, by_graph)]

agt.compare_timelines(
    [called, launched],
    ["twenty calls", "ten launches of a graph of two steps"],
    lanes=("host", "streams"),
    lesson="Above, the device waits for the host between two steps. Below, the steps follow each other.",
)

# %% id=galaxies-h200
agt.compare_timelines(
    on_an_h200("14_galaxies_by_calls", "14_galaxies"),
    ["twenty calls", "ten launches of a graph of two steps"],
    lanes=("host", "streams"),
    lesson="Twenty steps on an H200, by calls and by a graph: the host's calls are what differs.",
)

# %% [markdown] id=galaxies-longer-text
# Ten launches are still ten calls. So put all twenty steps into the graph, and launch it once?

# %% id=predict-longer
whole = Prediction(
    f"Ten launches took {launched.metrics().makespan:.0f} µs. One launch of a graph of all twenty steps?",
    half="about half of that, or less",
    some="ten to forty percent less",
    same="about the same: less than ten percent off",
)
whole

# %% id=commit-longer
whole.commit(...)

# %% id=run-longer
by_one = fresh()
twenty = agt.zip(*list(steps(by_one)) * 10).named("twenty steps").graph_on(stream)
with agt.record() as in_one:
    twenty.launch().sync_on(stream)

fewer = 1 - in_one.metrics().makespan / launched.metrics().makespan
whole.reveal(
    "half" if fewer > 0.4 else "some" if fewer > 0.1 else "same",
    f"It takes {in_one.metrics().makespan:.0f} µs.",
)

# %% [markdown] id=galaxies-longer-read
# With ten launches the simulated device is busy throughout, so fewer calls have nothing left to save. And the longer list costs more to write: twenty calls of Python's, where two will do. On the H200 above a step takes 6 µs, and there are gaps before the launches, so a graph of four or ten steps would still gain. Capture enough that the device has work for as long as the next launch takes, and no more.

# %% id=galaxies-timeline-check tags=asserts
assert twenty.nodes == 20
assert np.allclose(agt.d2h(by_one[0]).sync(), ends[1])
if device.simulated:
    assert abs(fewer) < 0.05
    assert launched.metrics().device_active > 0.9 * launched.metrics().makespan
assert (ends[0] == ends[1]).all()
assert np.allclose(ends[0].reshape(STARS, 2), film[10], atol=1e-6)
assert len(called.find("galaxy_step")) == len(launched.find("galaxy_step")) == 20
if device.simulated:
    assert launched.metrics().makespan < 0.8 * called.metrics().makespan

# %% [markdown] id=attention-door
# ## Room 6: What a word looks at
#
# *What does a word look at?*
#
# In a language model, each word of a text looks back at those before it, and at itself. How much it looks at each is called its **attention**. A word asks with a vector $q$, the others offer a vector $k$, and where the two agree the
# product $q \cdot k$ is large. A *softmax* turns these numbers into shares that add up to one. What the word takes home is the mix of the vectors $v$, in these shares.
#
# A **head** is one way of looking. Models learn hundreds of them. We make four by hand, so that we know what they should look at.

# %% id=attention-kernel
attention = agt.Kernel(r"""
#define SIZE 24
// One thread for each word. It looks at words 0 to i, and no further.
extern "C" __global__ void attention(
    int words, const float* q, const float* k, const float* v, float* share, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    float most = -1e30f, sum = 0.0f;
    for (int j = 0; j <= i; j++) {
        float score = 0.0f;
        for (int c = 0; c < SIZE; c++) score += q[i * SIZE + c] * k[j * SIZE + c];
        share[i * words + j] = score;
        most = fmaxf(most, score);
    }
    for (int j = 0; j <= i; j++) {
        float e = expf(share[i * words + j] - most);   // at most 1, so nothing overflows
        share[i * words + j] = e;
        sum += e;
    }
    for (int j = 0; j <= i; j++) share[i * words + j] /= sum;
    for (int c = 0; c < SIZE; c++) {
        float mix = 0.0f;
        for (int j = 0; j <= i; j++) mix += share[i * words + j] * v[j * SIZE + c];
        out[i * SIZE + c] = mix;
    }
}
""")
SENTENCE = (
    "this is the block that ran the warp that read the tile that lay in the house that jack built"
)
TEXT = SENTENCE.split()
NOUNS = {"block", "warp", "tile", "house", "jack"}

rng = np.random.default_rng(0)
n = len(TEXT)
vocabulary = sorted(set(TEXT))
meaning = np.eye(24)[[vocabulary.index(word) for word in TEXT]]
place = np.eye(24)[:n]
noun = np.array([word in NOUNS for word in TEXT])[:, None] * np.eye(24)[0]
heads = {
    "the word before": (5 * np.roll(place, 1, axis=0), place),
    "the same word": (5 * meaning, meaning),
    "the nouns": (np.tile(5 * np.eye(24)[0], (n, 1)), noun),
    "everybody alike": (0 * place, place),
}
vectors = rng.standard_normal((n, 24))


# %% id=attention-heads
def head(q, k):
    """The arrays of a head on the device, and the operation that fills the last two."""
    given = [agt.h2d(agt.pin(part.astype(np.float32).ravel())).sync() for part in (q, k, vectors)]
    share, out = agt.zeros(n * n).sync(), agt.zeros(n * 24).sync()
    lent = [array.borrow() for array in (*given, share, out)]
    return share, out, attention(n, *lent, grid=1, block=32)


made = [head(*qk) for qk in heads.values()]
in_turn = agt.zip(*[op for _, _, op in made]).named("in turn").graph_on(stream)
at_once = agt.overlap(*[op for _, _, op in made]).named("at once").graph_on(stream)
in_turn.launch().sync_on(stream)
at_once.launch().sync_on(stream)
shares = [agt.d2h(share.borrow()).sync().reshape(n, n) for share, _, _ in made]

# %% id=attention-picture
fig, shown = plt.subplots(1, 4, figsize=(13, 4.2), sharey=True)
for axes, name, share in zip(shown, heads, shares):
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set_xticks(range(n), TEXT, rotation=90, fontsize=7)
    axes.set_yticks(range(n), TEXT, fontsize=7)
plt.tight_layout()
plt.show()
print("Four triangles. A row is a word, and its dark cells are the words that it looks at:")
print(
    "a line below the diagonal; dots where a word comes again; columns at the nouns; an even haze."
)


# %% id=attention-check tags=asserts
def head_in_numpy(q, k):
    scores = np.where(np.tri(n, dtype=bool), q @ k.T, -np.inf)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return share, share @ vectors


for qk, share, (_, out, _) in zip(heads.values(), shares, made):
    right, mix = head_in_numpy(*qk)
    assert np.allclose(share, right, atol=1e-5)
    assert np.allclose(agt.d2h(out.borrow()).sync().reshape(n, 24), mix, atol=1e-4)

# %% [markdown] id=attention-question
# No head needs to know what another one finds. We have captured them twice: as a graph in which they take turns (`zip`), and as a graph in which they are branches (`overlap`). Each head is a single block of 32 threads.

# %% id=predict-heads
quicker = Prediction(
    "How many times as quick are the four heads as branches, from the call to the end of the wait?",
    four="about four times: 3.5 or more",
    three="between 2 and 3.5 times",
    two="less than twice",
)
quicker

# %% id=commit-heads
quicker.commit(...)

# %% id=attention-timeline
_, turns = recorded(in_turn.launch().sync_on, stream)
_, branches = recorded(at_once.launch().sync_on, stream)

agt.compare_timelines(
    [turns, branches],
    ["four heads in turn", "four heads at once"],
    lanes=("host", "streams"),
    lesson="Above, four bars in a row. Below, four bars side by side, and the wait is little longer than one "
    "of them.",
)

# %% id=reveal-heads
gain = turns.metrics().makespan / branches.metrics().makespan
for name, trace in (("in turn", turns), ("at once", branches)):
    print(f"{name}: {trace.metrics().makespan:.0f} µs")
print(f"{gain:.1f} times as quick")
quicker.reveal(
    "four" if gain >= 3.5 else "three" if gain >= 2 else "two",
    "The heads may overlap. The launch before them and the end of the wait are as long as before.",
)

# %% id=attention-h200
agt.compare_timelines(
    on_an_h200("14_attention_in_turn", "14_attention"),
    ["four heads in turn", "four heads at once"],
    lanes=("host", "streams"),
    lesson="Above, four bars of an H200 in a row. Below, the same four side by side.",
)

# %% id=attention-timeline-check tags=asserts
h200_heads = map(agt.Trace.load_recording, ("14_attention_in_turn", "14_attention"))
assert [trace.metrics().max_concurrency for trace in h200_heads] == [1, 4]
if device.simulated:
    assert branches.metrics().overlap > 0
    assert turns.metrics().overlap == 0
    assert 2 <= gain < 3.5

# %% [markdown] id=attention-read
# A whole model has many layers of this, and each waits for the one before. Within a layer, the heads may overlap, by the `overlap` that you know from [chapter 4](04_combinators.ipynb).

# %% [markdown] id=challenge
# ## The challenge: forty steps
#
# One more sky, with a score this time. The kernel below moves all stars of a small galaxy by one step, from one pair of arrays to another. Each thread moves a star.

# %% id=challenge-kernel
fall = agt.Kernel(r"""
extern "C" __global__ void fall(
    unsigned int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = at[2 * i], y = at[2 * i + 1], fx = 0.0f, fy = 0.0f;
    for (unsigned int j = 0; j < n; j++) {
        float dx = at[2 * j] - x, dy = at[2 * j + 1] - y;
        float r2 = dx * dx + dy * dy + 0.01f;
        float pull = 1.0f / (n * r2 * sqrtf(r2));
        fx += pull * dx;
        fy += pull * dy;
    }
    float u = speed[2 * i] + 0.01f * fx, v = speed[2 * i + 1] + 0.01f * fy;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.01f * u;
    at_next[2 * i + 1] = y + 0.01f * v;
}
""")

# %% [markdown] id=exercise-challenge
# ### Exercise: forty steps
#
# `fly` gets this kernel as `step`, and the arrays `at` and `speed`, with two numbers for each star. Return, as a NumPy array of `2 * n` numbers, where the stars are after this many steps. There are 64 stars at most, and the number of steps may be odd. You may overwrite `at` and `speed`, and you may write a kernel of your own.
#
# The version below gets it right, and for 64 stars and 40 steps it takes 1273 µs: get below 300. Copies and allocations in `fly` count, compiling your kernel does not. Before you change anything, ask the question of this course: who waits for whom?


# %% id=14-challenge starter
def fly(step, at, speed, steps):
    n = at.size // 2
    at_next, speed_next = agt.zeros(2 * n).sync(), agt.zeros(2 * n).sync()
    for _ in range(steps):
        step(
            n,
            at.borrow(),
            speed.borrow(),
            at_next.borrow(),
            speed_next.borrow(),
            grid=-(-n // 64),
            block=64,
        ).sync()
        at, speed, at_next, speed_next = at_next, speed_next, at, speed
    return agt.d2h(at.borrow()).sync()


# %% id=14-challenge solution
WHOLE = r"""
// One block, and 16 threads for each star.
extern "C" __global__ void whole(int n, int steps, float* at, const float* speed)
{
    __shared__ float x[64], y[64];
    int i = threadIdx.x / 16, lane = threadIdx.x % 16;
    unsigned int mask = i % 2 ? 0xffff0000u : 0xffffu;     // this star's half of the warp
    float u = speed[2 * i], v = speed[2 * i + 1];
    if (lane == 0) {
        x[i] = at[2 * i];
        y[i] = at[2 * i + 1];
    }
    __syncthreads();
    for (int step = 0; step < steps; step++) {
        float fx = 0.0f, fy = 0.0f;
        for (int j = lane; j < n; j += 16) {
            float dx = x[j] - x[i], dy = y[j] - y[i];
            float r2 = dx * dx + dy * dy + 0.01f;
            float pull = 1.0f / (n * r2 * sqrtf(r2));
            fx += pull * dx;
            fy += pull * dy;
        }
        for (int far = 8; far > 0; far /= 2) {
            fx += __shfl_down_sync(mask, fx, far, 16);
            fy += __shfl_down_sync(mask, fy, far, 16);
        }
        __syncthreads();                           // everybody has read
        if (lane == 0) {
            u += 0.01f * fx;
            v += 0.01f * fy;
            x[i] += 0.01f * u;
            y[i] += 0.01f * v;
        }
        __syncthreads();                           // everybody has written
    }
    if (lane == 0) {
        at[2 * i] = x[i];
        at[2 * i + 1] = y[i];
    }
}
"""


def fly(step, at, speed, steps):
    n, whole = at.size // 2, agt.Kernel(WHOLE)
    op = whole(n, steps, at.borrow(), speed.borrow(), grid=1, block=16 * n)
    return op.and_then(lambda given: agt.d2h(given[0])).sync()


# %% id=14-challenge hints
# Run the last picture of this page with the starter, and look at the gaps between the bars. They are Python's: it describes forty launches, and waits after each.
#
# `async_on` takes the waits away, but the descriptions remain. A graph of all forty steps has to be described as well, and is used only once. A graph of two steps, launched twenty times, is far better. It is not enough yet.
#
# There are 64 stars at most, so they fit into one block. Put the loop over steps into a kernel of your own, keep the places of the stars in shared memory, and have a `__syncthreads()` after the reading and another one after the writing.
#
# For more: each thread adds up 64 pulls, one after the other. Give each star 16 threads, let each of them add up 4 pulls, and add the 16 sums by `__shfl_down_sync(mask, fx, far, 16)` with `far` 8, 4, 2 and 1. The mask is the star's half of the warp, as with an odd `n` the last warp has no other.

# %% id=14-challenge explanation
# Most of the time was Python's, so the loop had to leave Python. When it had, the rest was a kernel with too few threads at work. Each timeline shows what to do next, and only that.

# %% id=14-challenge-check
check("14-challenge", fly)

# %% [markdown] id=challenge-timeline-text
# And here is how your `fly` spends its time:

# %% id=challenge-timeline
with agt.record() as flight:
    given = [agt.h2d(agt.pin(part[:64].ravel())).sync() for part in two_galaxies(STARS)]
    landed = fly(fall, *given, 40)

flight.plot(
    title="Forty steps",
    lanes=("host", "streams"),
    lesson="How much of the time belongs to the bars of the stream, and how much to the gaps between them?",
)

# %% [markdown] id=key-points
# ## Key points
#
# - A kernel ends with its slowest thread, and a warp waits for its slowest lane. Put similar work side by side.
# - Add up in steps: in registers, in a warp, over streams. Python looks once, at the end.
# - `__ballot_sync` tells a whole warp how its lanes have voted, and one lane can ask for all.
# - A kernel that stays can report while it works. Send the question early and read the answer late, and hardly any time is lost.
# - Let a block load once what all of its threads read. Put launches that repeat into a graph.
# - Pieces of work that do not need each other *may* overlap. For that there must be places for them, and somebody who starts them fast enough.
#
# That's all that one GPU can teach you, and now you can draw the timeline of a problem of your own and ask who waits for whom. **Next:** in [15_several_gpus](15_several_gpus.ipynb) it gets company.

# %% id=score
score(six, one_wait, longer, whole, quicker)

# %% id=progress
progress("14")
