"""Right answers to exercises of course/14_gallery.py in other forms than the solution's."""


# %% id=14-grep
# - int i = blockIdx.x * blockDim.x + threadIdx.x;
# + int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
# - bool yes = i < n && text[i] == letter;
# + bool yes = i < n && text[i] == letter;
# + if (!yes) return;
# - int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
# + int first = __ffs(votes) - 1, slot = 0;


# %% id=14-challenge
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


# %% id=14-search
# - Ask next = ask_keeping(host, 16, 0, 0, 0);
# + Ask next = ask_keeping(host, 16, 0, 0, 0), later = ask_keeping(host, 16, 1, 0, 0);
# + if (threadIdx.x == 0) {
# +     next.poll();
# +     if (pieces > 1) later.poll();
# + }
# - block_on(mine);
# + block_on(mine);
# + next = later;
# + if (k + 2 < pieces) {
# +     later = ask_keeping(host, 16, k + 2, 0, 0);
# +     later.poll();
# + }
# - mine.end();                          // refused, but has its packet
# - } else if (k + 1 < pieces) {
# - next = ask_keeping(host, 16, k + 1, 0, 0);
# - next.poll();
# + mine.end();
# + if (k + 1 < pieces) next.drop();
# + if (k + 2 < pieces) later.drop();


# %% id=14-search
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    Ask calls[2] = {ask_keeping(host, 16, 0, 0, 0), ask_keeping(host, 16, 1, 0, 0)};
    bool first = threadIdx.x == 0;
    for (int k = 0; k < pieces; k++) {
        int mine = k % 2, other = 1 - mine;
        if (first) {
            if (k > 0) {
                calls[other].end();                  // the piece before this one
                calls[other] = ask_keeping(host, 16, k + 1, 0, 0);
            }
            block_on(calls[mine]);
            if (calls[mine].error != 0) {
                calls[mine].end();
                bytes = 0;
            } else {
                bytes = calls[mine].bytes();
                if (k + 1 < pieces) calls[other].poll();
            }
        }
        __syncthreads();
        char* here = bytes;
        if (here == 0) break;
        compare(here, asked, pictures, &apart[k * PIECE * asked]);
        __syncthreads();
    }
    if (first) calls[(pieces + 1) % 2].end();        // the last piece
}
"""


# %% id=14-grep
# - int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
# + int lane = threadIdx.x % 32, first = 31 - __clz(votes), slot = 0;


# %% id=14-grep
# - if (votes == 0) return;


# %% id=14-search
# - if (bytes == 0) {
# -     mine.end();                          // refused, but has its packet
# - } else if (k + 1 < pieces) {
# + if (k + 1 < pieces) {
# - if (bytes == 0) return;
# + if (bytes == 0 && threadIdx.x == 0) mine.end();
# + if (bytes == 0 && threadIdx.x == 0 && k + 1 < pieces) next.drop();
# + if (bytes == 0) return;


# %% id=14-search
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes[2];
    Hostcalls host = hostcalls(mail, stack);
    Ask calls[2];
    const bool reader = threadIdx.x == 0;
    if (reader) {
        calls[0] = ask_keeping(host, 16, 0, 0, 0);
        calls[0].poll();
    }
    for (int k = 0; k < pieces; ++k) {
        const int now = k & 1, then = now ^ 1;
        if (reader) {
            if (k + 1 < pieces) {
                calls[then] = ask_keeping(host, 16, k + 1, 0, 0);
                calls[then].poll();
            }
            block_on(calls[now]);
            bytes[now] = calls[now].error ? 0 : calls[now].bytes();
            if (calls[now].error) {
                calls[now].end();
                if (k + 1 < pieces) calls[then].drop();
            }
        }
        __syncthreads();
        if (!bytes[now]) return;
        compare(bytes[now], asked, pictures, apart + k * PIECE * asked);
        __syncthreads();
        if (reader) calls[now].end();
    }
}
"""


# %% id=14-grep
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    __shared__ int before[33], base;               // one atomic for a whole block
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool yes = i < n && text[i] == letter;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (lane == 0) before[warp + 1] = __popc(votes);
    __syncthreads();
    if (threadIdx.x == 0) {
        before[0] = 0;
        for (int w = 0; w < blockDim.x / 32; w++) before[w + 1] += before[w];
        int all = before[blockDim.x / 32];
        if (all > 0) base = atomicAdd(count, all);
    }
    __syncthreads();
    if (yes) places[base + before[warp] + __popc(votes & ((1u << lane) - 1))] = i;
}
"""
