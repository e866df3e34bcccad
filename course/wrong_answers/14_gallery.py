"""Plausible wrong answers to the exercises of course/14_gallery.py; see tools/build_notebooks.py."""


# %% id=14-grep cause="2 atomics for 1 warp with a match"
# - if (votes == 0) return;
# - int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
# - if (lane == first) slot = atomicAdd(count, __popc(votes));
# - slot = __shfl_sync(0xffffffffu, slot, first);
# + int lane = threadIdx.x % 32, slot = 0;
# + if (lane == 0) slot = atomicAdd(count, __popc(votes));   // also where nobody said yes
# + slot = __shfl_sync(0xffffffffu, slot, 0);


# %% id=14-grep cause="element 0 is"
# - if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
# + if (yes) places[slot + __popc(votes & ((2u << lane) - 1))] = i;   // counts its own vote


# %% id=14-grep cause="the counter is at 1, and 3 is right"
# - if (lane == first) slot = atomicAdd(count, __popc(votes));
# + if (lane == first) slot = atomicAdd(count, 1);                    // one, for however many


# %% id=14-grep cause="a lane's rank is the number of votes *below* it"
# - if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
# + if (yes) places[slot + __popc(votes & ~((2u << lane) - 1))] = i;  // the votes above it


# %% id=14-grep cause="in the same instruction"
# - slot = __shfl_sync(0xffffffffu, slot, first);
# - if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
# + if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;   // who has told them the slot?


# %% id=14-challenge cause="µs: get below 200"
def fly(step, at, speed, steps):
    n, stream = at.size // 2, agt.create_stream()
    at_next, speed_next = agt.zeros(2 * n).sync_on(stream), agt.zeros(2 * n).sync_on(stream)
    for _ in range(steps):
        given = [array.borrow() for array in (at, speed, at_next, speed_next)]
        step(n, *given, grid=-(-n // 64), block=64).async_on(stream)
        at, speed, at_next, speed_next = at_next, speed_next, at, speed
    return agt.d2h(at.borrow()).sync_on(stream)


# %% id=14-challenge cause="element 0 is"
def fly(step, at, speed, steps):
    n, stream = at.size // 2, agt.create_stream()
    at_next, speed_next = agt.zeros(2 * n).sync_on(stream), agt.zeros(2 * n).sync_on(stream)
    ops = []
    for order in ((at, speed, at_next, speed_next), (at_next, speed_next, at, speed)):
        ops.append(step(n, *[array.borrow() for array in order], grid=-(-n // 64), block=64))
    launch = agt.zip(*ops).graph_on(stream).launch()
    for _ in range(steps // 2):
        launch.async_on(stream)
    return agt.d2h(at.borrow()).sync_on(stream)


# %% id=14-challenge cause="nothing orders the two"
def fly(step, at, speed, steps):
    n = at.size // 2
    at_next, speed_next = agt.zeros(2 * n).sync(), agt.zeros(2 * n).sync()
    for _ in range(steps):
        given = [array.borrow() for array in (at, speed, at_next, speed_next)]
        step(n, *given, grid=-(-n // 64), block=64).async_on(agt.create_stream())
        at, speed, at_next, speed_next = at_next, speed_next, at, speed
    agt.synchronize()
    return agt.d2h(at.borrow()).sync()


# %% id=14-challenge cause="is in no copy from memory that a kernel has written"
def fly(step, at, speed, steps):
    at, speed = (agt.d2h(x.borrow()).sync().reshape(-1, 2) for x in (at, speed))
    for _ in range(steps):
        d = at[None] - at[:, None]
        r2 = (d * d).sum(-1) + np.float32(0.01)
        speed = speed + np.float32(0.01) * (d / (len(at) * r2 * np.sqrt(r2))[..., None]).sum(1)
        at = at + np.float32(0.01) * speed
    return at.ravel()


# %% id=14-challenge cause="is in no copy from memory that a kernel has written"
def fly(step, at, speed, steps):
    n = at.size // 2
    dummy = [agt.zeros(2 * n).sync() for _ in range(2)]
    step(n, at.borrow(), speed.borrow(), *dummy, grid=1, block=64).sync()
    at, speed = (agt.d2h(x.borrow()).sync().reshape(-1, 2) for x in (at, speed))
    for _ in range(steps):
        d = at[None] - at[:, None]
        r2 = (d * d).sum(-1) + 0.01
        speed = speed + 0.01 * (d / (n * r2 * np.sqrt(r2))[..., None]).sum(1)
        at = at + 0.01 * speed
    return at.ravel()


# %% id=14-grep cause="names the lanes that happen to be here"
# - unsigned int votes = __ballot_sync(0xffffffffu, yes);
# + unsigned int votes = __ballot_sync(__activemask(), yes);


# %% id=14-challenge cause="were on the host first, and were copied to the device"
def fly(step, at, speed, steps):
    n = at.size // 2
    at, speed = (agt.d2h(x.borrow()).sync().reshape(-1, 2).astype(float) for x in (at, speed))
    for _ in range(steps):
        d = at[None] - at[:, None]
        r2 = (d * d).sum(-1) + 0.01
        speed = speed + 0.01 * (d / (n * r2 * np.sqrt(r2))[..., None]).sum(1)
        at = at + 0.01 * speed
    half = agt.Kernel(r"""
extern "C" __global__ void half(unsigned int n, const float* x, float* y)
{
    if (threadIdx.x < n) y[threadIdx.x] = 0.5f * x[threadIdx.x];
}
""")
    twice = agt.h2d(agt.pin((2 * at).astype(np.float32).ravel()))
    return half(2 * n, twice, agt.zeros(2 * n).partition(2 * n)).output().to_host().sync()


# %% id=14-grep cause="with a text of 32 letters, the counter is at 0"
# - int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
# + int lane = threadIdx.x % 32, first = __ffs(votes), slot = 0;


# %% id=14-grep cause="with a text of 224 letters"
# - bool yes = i < n && text[i] == letter;
# + bool yes = i < n && text[i] == 'a';


# %% id=14-search cause="µs: get below 800"
# - if (bytes == 0) {
# - mine.end();                          // refused, but has its packet
# - } else if (k + 1 < pieces) {
# - next = ask_keeping(host, 16, k + 1, 0, 0);
# - next.poll();
# - }
# + if (bytes == 0) mine.end();
# - if (threadIdx.x == 0) mine.end();
# + if (threadIdx.x == 0) {
# +     mine.end();
# +     if (k + 1 < pieces) {
# +         next = ask_keeping(host, 16, k + 1, 0, 0);
# +         next.poll();
# +     }
# + }


# %% id=14-search cause="µs: get below 800"
# - block_on(mine);
# + block_on(mine);
# + if (k + 1 < pieces) {
# +     next = ask_keeping(host, 16, k + 1, 0, 0);
# + }
# - if (bytes == 0) {
# - mine.end();                          // refused, but has its packet
# - } else if (k + 1 < pieces) {
# - next = ask_keeping(host, 16, k + 1, 0, 0);
# - next.poll();
# - }
# + if (bytes == 0) mine.end();


# %% id=14-search cause="with 3 pieces, of 4 packets 1 can be had in the end"
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    Ask next = ask_keeping(host, 16, 0, 0, 0);
    for (int k = 0; k < pieces; k++) {
        Ask mine = next;
        if (threadIdx.x == 0) {
            block_on(mine);
            if (k + 1 < pieces) {
                next = ask_keeping(host, 16, k + 1, 0, 0);
                next.poll();
            }
            bytes = mine.error == 0 ? mine.bytes() : 0;
        }
        __syncthreads();                             // the piece is there
        if (bytes == 0) return;
        compare(bytes, asked, pictures, apart + k * PIECE * asked);
        __syncthreads();                             // everybody has read it
    }
}
"""


# %% id=14-search of=above cause="µs: get below 800"
# - next.poll();
# + block_on(next);
#   bytes = mine.error == 0 ? mine.bytes() : 0;
# + if (bytes == 0) {
# +     mine.end();
# +     if (k + 1 < pieces) next.end();
# + }
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="0 to 2 are wanted once each"
# - if (k + 1 < pieces) {
# + {
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="a warp that is late to read them, element"
# - __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="which nothing has written"
# - __syncthreads();                             // the piece is there
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="without a __syncthreads() between them"
# - if (threadIdx.x == 0) {
# + {
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="gives back a packet that the host has, and has not answered yet"
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) next.end();


# %% id=14-search of=above cause="with 3 pieces, element 0 is"
# - bytes = mine.error == 0 ? mine.bytes() : 0;
# + bytes = next.error == 0 ? next.bytes() : 0;
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search of=above cause="the host refused a piece, and the kernel worked on it all the same"
# - bytes = mine.error == 0 ? mine.bytes() : 0;
# + bytes = mine.bytes();
# - if (bytes == 0) return;
#   __syncthreads();                             // everybody has read it
# + if (threadIdx.x == 0) mine.end();


# %% id=14-search cause="a warp that is late to read them, element"
# - if (bytes == 0) {
# - mine.end();                          // refused, but has its packet
# - } else if (k + 1 < pieces) {
# + mine.end();
# + if (k + 1 < pieces) {
# - if (threadIdx.x == 0) mine.end();


# %% id=14-search cause="`SEARCH` should be the text of a kernel"
SEARCH = agt.Kernel(r"""
#include "hostcall_async.cuh"
extern "C" __global__ void search(unsigned long long* mail, unsigned long long* stack, int pieces)
{
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < pieces; k++) {
        Ask mine = ask(host, 16, k, 0, 0);
        block_on(mine);
    }
}
""")


# %% id=14-challenge cause="keep nothing from one call to the next"
MOVE = agt.Kernel(r"""
extern "C" __global__ void move(unsigned int n, unsigned int steps, float* at, const float* speed)
{
    __shared__ float xs[64], ys[64];
    unsigned int i = threadIdx.x;
    float x = 0.0f, y = 0.0f, u = 0.0f, v = 0.0f;
    if (i < n) { x = at[2 * i]; y = at[2 * i + 1]; u = speed[2 * i]; v = speed[2 * i + 1]; }
    for (unsigned int s = 0; s < steps; s++) {
        xs[i] = x; ys[i] = y;
        __syncthreads();
        float fx = 0.0f, fy = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            float dx = xs[j] - x, dy = ys[j] - y;
            float r2 = dx * dx + dy * dy + 0.01f;
            float near = rsqrtf(r2), pull = near * near * near;
            fx += pull * dx;
            fy += pull * dy;
        }
        __syncthreads();
        u += 0.01f * fx / n; v += 0.01f * fy / n;
        x += 0.01f * u; y += 0.01f * v;
    }
    if (i < n) { at[2 * i] = x; at[2 * i + 1] = y; }
}
""")

SEEN = {}

def fly(step, at, speed, steps):
    n = at.size // 2
    if (n, steps) in SEEN: return SEEN[n, steps].copy()
    SEEN[n, steps] = MOVE(n, steps, at.borrow(), speed.borrow(), grid=1, block=64).and_then(lambda _: agt.d2h(at.borrow())).sync()
    return SEEN[n, steps]


# %% id=14-challenge of=above cause="keep nothing from one call to the next"
# - if (n, steps) in SEEN: return SEEN[n, steps].copy()
# - SEEN[n, steps] = MOVE(n, steps, at.borrow(), speed.borrow(), grid=1, block=64).and_then(lambda _: agt.d2h(at.borrow())).sync()
# - return SEEN[n, steps]
# + if n in SEEN: return SEEN[n]
# + SEEN[n] = MOVE(n, steps, at.borrow(), speed.borrow(), grid=1, block=64).and_then(lambda _: agt.d2h(at.borrow())).sync()
# + return SEEN[n]


# %% id=14-grep cause="with a text of 336 letters, the counter is at 37, and 24 is right"
# - int i = blockIdx.x * blockDim.x + threadIdx.x;
# + int i = blockIdx.x * 64 + threadIdx.x;
#   unsigned int votes = __ballot_sync(0xffffffffu, yes);
# + int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
# - int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;


# %% id=14-search cause="the first of which the host refuses, the host refused a piece"
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    Ask mine = ask_keeping(host, 16, 0, 0, 0), next = ask_keeping(host, 16, 1, 0, 0);
    if (threadIdx.x == 0 && pieces > 0) mine.poll();
    for (int k = 0; k < pieces; k++) {
        if (threadIdx.x == 0) {
            block_on(mine);
            bytes = mine.error == 0 || k == 0 ? mine.bytes() : 0;
            if (bytes == 0) mine.end();
            else if (k + 1 < pieces) {
                next = ask_keeping(host, 16, k + 1, 0, 0);
                next.poll();
            }
        }
        __syncthreads();
        if (bytes == 0) return;
        compare(bytes, asked, pictures, apart + k * PIECE * asked);
        __syncthreads();
        if (threadIdx.x == 0) {
            mine.end();
            mine = next;
        }
    }
}
"""


# %% id=14-search of=above cause="the last of which the host refuses, the host refused a piece"
# - bytes = mine.error == 0 || k == 0 ? mine.bytes() : 0;
# + bytes = mine.error == 0 || k + 1 == pieces ? mine.bytes() : 0;


# %% id=14-search of=above cause="of 4 packets 3 can be had in the end"
# - Ask mine = ask_keeping(host, 16, 0, 0, 0), next = ask_keeping(host, 16, 1, 0, 0);
# - if (threadIdx.x == 0 && pieces > 0) mine.poll();
# + Ask mine = ask_keeping(host, 16, 0, 0, 0);
# + if (threadIdx.x == 0) mine.poll();
#   for (int k = 0; k < pieces; k++) {
# +     Ask next = ask_keeping(host, 16, k + 1, 0, 0);
#   if (threadIdx.x == 0) {
# +     if (k + 1 < pieces) next.poll();
# - bytes = mine.error == 0 || k == 0 ? mine.bytes() : 0;
# + bytes = mine.error == 0 ? mine.bytes() : 0;
# - else if (k + 1 < pieces) {
# - next = ask_keeping(host, 16, k + 1, 0, 0);
# - next.poll();
# - }


# %% id=14-search of=above cause="of 4 packets 2 can be had in the end"
# - Ask mine = ask_keeping(host, 16, 0, 0, 0), next = ask_keeping(host, 16, 1, 0, 0);
# - if (threadIdx.x == 0 && pieces > 0) mine.poll();
# + Ask mine = ask_keeping(host, 16, 0, 0, 0);
# + if (threadIdx.x == 0) mine.poll();
#   for (int k = 0; k < pieces; k++) {
# +     Ask next = ask_keeping(host, 16, k + 1, 0, 0);
#   if (threadIdx.x == 0) {
# +     if (k + 1 < pieces) next.poll();
# - bytes = mine.error == 0 || k == 0 ? mine.bytes() : 0;
# - if (bytes == 0) mine.end();
# - else if (k + 1 < pieces) {
# - next = ask_keeping(host, 16, k + 1, 0, 0);
# - next.poll();
# - }
# + bytes = mine.error == 0 ? mine.bytes() : 0;


# %% id=14-search cause="and a warp that is late to read them, element"
# - bytes = mine.error == 0 ? mine.bytes() : 0;
# + bytes = mine.error == 0 ? mine.bytes() : 0;
# + mine.end();
# - if (threadIdx.x == 0) mine.end();


# %% id=14-search cause="with an answer that does not come, kernel 'search'"
# - block_on(mine);
# + for (int looks = 0; looks < 300 && mine.poll() == PENDING; looks++) { }


# %% id=14-challenge cause="Is it in Python's calls, or in the kernel"
KERNEL = agt.Kernel(r"""

extern "C" __global__ void fall_all(unsigned int n, int steps, float* at, float* speed)
{
    __shared__ float xs[64], ys[64];
    unsigned int i = threadIdx.x;
    float x = i < n ? at[2 * i] : 0.0f, y = i < n ? at[2 * i + 1] : 0.0f;
    float u = i < n ? speed[2 * i] : 0.0f, v = i < n ? speed[2 * i + 1] : 0.0f;
    for (; steps > 0; --steps) {
        xs[i] = x; ys[i] = y;
        __syncthreads();
        float fx = 0.0f, fy = 0.0f;
        for (unsigned int j = 0; j < n; ++j) { float dx = xs[j] - x, dy = ys[j] - y, r2 = dx * dx + dy * dy + 0.01f; float p = 1.0f / (n * r2 * sqrtf(r2)); fx += p * dx; fy += p * dy; }
        __syncthreads();
        u += 0.01f * fx;
        v += 0.01f * fy;
        x += 0.01f * u;
        y += 0.01f * v;
    }
    if (i < n) { at[2 * i] = x; at[2 * i + 1] = y; }
}
""", "fall_all")
def fly(step, at, speed, steps):
    KERNEL(at.size // 2, steps, at.borrow(), speed.borrow(), grid=1, block=64).sync()
    return agt.d2h(at.borrow()).sync()


# %% id=14-challenge cause="with 9 stars and 130 steps, element 0 is"
# - for (int step = 0; step < steps; step++) {
# + for (int step = 0; step < min(steps, 100); step++) {


# %% id=14-grep cause="thread 0 of the grid makes 81 of all 81 accesses to memory: let each lane look"
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    if (blockIdx.x + threadIdx.x > 0) return;
    int found = 0;
    for (int i = 0; i < n; i++) if (text[i] == letter) places[found++] = i;
    *count = found;
}
"""


# %% id=14-grep cause="accesses to memory: let each lane look at one letter, and a warp vote"
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x, here = 0, slot = 0;
    if (first % 32) return;
    for (int i = first; i < min(n, first + 32); i++) here += text[i] == letter;
    if (here) slot = atomicAdd(count, here);
    for (int i = first; i < min(n, first + 32); i++) if (text[i] == letter) places[slot++] = i;
}
"""


# %% id=14-grep cause="of the grid makes 81 of all 5184 accesses to memory: let each lane look at one letter"
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int found = 0;
    for (int i = 0; i < n; i++) if (text[i] == letter) places[found++] = i;
    *count = found;
}
"""
