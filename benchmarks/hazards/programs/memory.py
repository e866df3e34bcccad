"""Memory: right uses that look wrong; out of bounds, not initialised, freed, misaligned, or raced for."""

from benchmarks.hazards.case import ZERO, Empty, Freed, Table, floats, ints, kernel, launch, raw

CARVED = kernel(
    "carve",
    1,
    32,
    x=floats(32).astype("float64"),
    y=Empty(32, "float64"),
    flags=3,
    shared=32 * 8 + 16,
).sound(r"""
// dynamic shared memory carved with its alignment
// 12 bytes are rounded up to 16
    extern __shared__ unsigned char room[];
    int* flag = (int*)room;
    double* values = (double*)(room + (flags * sizeof(int) + 7) / 8 * 8);
    int t = threadIdx.x;
    if (t < flags) flag[t] = t;
    values[t] = x[t];  // <- in bugs
    __syncthreads();
    y[t] = values[31 - t] + flag[t % flags];
""")

COPY = kernel("copy", 4, 32, x=floats(100), y=Empty(100), n=100).sound(r"""
// guard by an early return
// no thread beyond n gets to the copy
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];  // <- in bugs
""")

CASES = [
    COPY,
    kernel("smooth", 2, 64, x=floats(100), y=Empty(100), n=100).sound(r"""
// neighbours clamped at the edges
// max and min keep the index inside
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)];
"""),
    kernel("around", 1, 64, x=floats(64), y=Empty(64), half=32).sound(r"""
// negative index from the middle
// the pointer is to the middle, so -32 is the first element
    const float* middle = x + half;
    int k = (int)threadIdx.x - half;
    y[threadIdx.x] = middle[k];
"""),
    kernel("rotate", 1, 64, x=floats(64), y=Empty(64), n=64).sound(r"""
// circular neighbour
// n is added before the remainder is taken
    int i = threadIdx.x;
    y[i] = x[(i + n - 1) % n];
"""),
    kernel("relu", 2, 64, x=floats(100), n=100).sound(r"""
// in place, each its own
// nobody else touches x[i]
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
"""),
    kernel("reverse", 2, 32, x=floats(101), n=101).sound(r"""
// reversal in place by half of the threads
// each pair has one thread
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        float a = x[i], b = x[n - 1 - i];
        x[i] = b;
        x[n - 1 - i] = a;
    }
"""),
    kernel("saxpy", 2, 32, x=floats(1001), y=floats(1001), a=2.0, n=1001).sound(r"""
// grid-stride loop over more than the grid
// strides keep threads apart, and the bound is n
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
"""),
    kernel("histogram", 2, 64, x=ints(100), bins=ints(16, 0), n=100).sound(r"""
// private histogram that is cleared and merged
// cleared, added to and read between barriers
    __shared__ int local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[x[i] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
"""),
    kernel("scale4", 1, 32, x=floats(103), y=Empty(103), n=103).sound(r"""
// vector loads and a tail
// 25 vectors and three floats; 103 is no multiple of four, and nobody says that it is
    int i = threadIdx.x;
    if (4 * i + 3 < n) {
        float4 v = ((const float4*)x)[i];
        ((float4*)y)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
    int tail = n / 4 * 4 + i;
    if (tail < n) y[tail] = 2 * x[tail];
"""),
    CARVED,
    kernel("select", 1, 32, which=ints(32), y=Empty(32)).sound(r"""
// local array that is indexed by data
// all four are set, and & 3 keeps the index in
    float table[4];
    for (int k = 0; k < 4; k++) table[k] = 10.0f * k;
    y[threadIdx.x] = table[which[threadIdx.x] & 3];
"""),
    kernel("classify", 1, 32, x=ints(32), y=Empty(32, "int32")).sound(r"""
// variable that each path sets
// `default` takes the rest
    int kind;
    switch (x[threadIdx.x] % 3) {
        case 0: kind = 10; break;
        case 1: kind = 20; break;
        default: kind = 30;
    }
    y[threadIdx.x] = kind;
"""),
    kernel("two_ifs", 2, 32, x=floats(50), y=Empty(50), n=50).sound(r"""
// set and used under one condition
// who uses v has set it
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v;
    if (i < n) v = x[i];
    __syncthreads();
    if (i < n) y[i] = v + 1.0f;
"""),
    kernel("twice", 1, 32, work=Empty(20), y=Empty(20), n=20).sound(r"""
// fresh array, written before it is read
// a thread sees its own writes
    int i = threadIdx.x;
    if (i < n) {
        work[i] = i;
        work[i] += 1.0f;
        y[i] = work[i];
    }
"""),
    kernel("exponent", 1, 32, x=floats(32), e=Empty(32, "int32")).sound(r"""
// bits of a float
// an unsigned int has a float's size and alignment
    const unsigned int* bits = (const unsigned int*)x;
    e[threadIdx.x] = (int)(bits[threadIdx.x] >> 23 & 255) - 127;
"""),
    kernel("read_records", 1, 8, bytes=raw(40), out=Empty(8, "int32"), size=5).sound(r"""
// number behind an odd header, byte by byte
// memcpy takes bytes, at any address
    const unsigned char* record = bytes + threadIdx.x * size;
    int value;
    memcpy(&value, record + 1, sizeof(value));
    out[threadIdx.x] = record[0] + value;
"""),
    kernel("row_sums", 1, 3, rows=Table((floats(8), None, floats(8))), sums=Empty(3), width=8).sound(r"""
// missing rows are skipped
// the null pointer is tested
    const float* row = rows[threadIdx.x];
    float sum = 0.0f;
    if (row != nullptr)
        for (int k = 0; k < width; k++) sum += row[k];
    sums[threadIdx.x] = sum;
"""),
    launch(1, 32, floats(32), Empty(32), None).sound(r"""
// optional output
// the null pointer is tested
__global__ void sum_or_not(const float* x, float* y, float* square) {
    int i = threadIdx.x;
    y[i] = 2.0f * x[i];
    if (square) square[i] = x[i] * x[i];
}
"""),
    kernel("flags", 2, 32, x=floats(60), positive=Empty(60, "uint8"), n=60).sound(r"""
// neighbouring bytes by neighbouring threads
// bytes are memory locations of their own
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) positive[i] = x[i] > 3.0f;
"""),
    kernel("bitmap", 2, 48, x=floats(96), bits=ints(3, 0).astype("uint32"), n=96).sound(r"""
// bits of one word by atomicOr
// 32 threads share a word, and each takes it atomically
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) atomicOr(&bits[i / 32], 1u << (i % 32));
"""),
    kernel("scatter", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// scatter by a permutation
// 5 and 64 have no common divisor, so no two threads meet
    int i = threadIdx.x;
    y[i * 5 % 64] = x[i];
"""),
    launch(2, 32, Empty(64), Empty(64), 64).sound(r"""
// one kernel writes, the next one reads the neighbour
// kernels of one stream are in order
__global__ void write(float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = i;
}
__global__ void read(float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[n - 1 - i];
}
"""),
    kernel("keep_large", 2, 32, x=floats(64), out=Empty(64), used=ZERO, n=64).sound(r"""
// compaction by a counter
// each slot is given out once
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 10.0f) {
        int slot = atomicAdd(used, 1);
        out[slot] = x[i];
    }
"""),
    kernel("sum_pointers", 1, 32, x=floats(100), sums=Empty(32), n=100).sound(r"""
// pointers that walk to one past the end
// `end` is compared with, and never read
    const float* end = x + n;
    float sum = 0.0f;
    for (const float* p = x + threadIdx.x; p < end; p += blockDim.x) sum += *p;
    sums[threadIdx.x] = sum;
"""),
    launch(1, 64, Empty(64, "int32")).sound(r"""
// two threads, two fields
// fields of a struct are memory locations of their own
struct Pair { int even, odd; };
__global__ void fields(Pair* pairs) {
    int i = threadIdx.x;
    if (i % 2 == 0) pairs[i / 2].even = i;
    else pairs[i / 2].odd = i;
}
"""),
    kernel("first_hit", 4, 32, x=ints(128, 7), wanted=7, taken=ZERO, where=ints(1, -1)).sound(r"""
// one of many is elected
// one thread finds 0 in `taken`, and it alone writes
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] == wanted && atomicExch(taken, 1) == 0) *where = i;
"""),
    kernel("rises", 1, 64, x=floats(50), y=Empty(50, "int32"), n=50).sound(r"""
// index tested before it is used
// && doesn't read x[-1]
    int i = threadIdx.x;
    if (i < n) y[i] = i > 0 && x[i - 1] < x[i];
"""),
    launch(1, 32, floats(32), Empty(32), 32).sound(r"""
// unsigned wrap that the guard catches
// 0 - 1 is larger than n
__global__ void left(const float* x, float* y, unsigned int n) {
    unsigned int i = threadIdx.x;
    unsigned int from = i - 1;
    y[i] = from < n ? x[from] : 0.0f;
}
"""),
    launch(1, 16, floats(128), Empty(16), 8).sound(r"""
// helper that writes through a pointer to a local variable
// the variables live until the kernel ends
__device__ void minmax(const float* x, int n, float* low, float* high) {
    *low = *high = x[0];
    for (int k = 1; k < n; k++) {
        *low = fminf(*low, x[k]);
        *high = fmaxf(*high, x[k]);
    }
}
__global__ void ranges(const float* x, float* y, int n) {
    float low, high;
    minmax(x + threadIdx.x * n, n, &low, &high);
    y[threadIdx.x] = high - low;
}
"""),
    kernel("gram", 1, (8, 8), a=floats(64), b=floats(64), c=Empty(64), n=8).sound(r"""
// rows that many threads read
// readers don't race
    int i = threadIdx.x, j = threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[j * n + k];
    c[i * blockDim.y + j] = sum;
"""),
    kernel("largest", 2, 32, x=floats(64), best=ZERO).sound(r"""
// maximum of floats by compare-and-swap
// the first look is atomic, too
    float mine = x[blockIdx.x * blockDim.x + threadIdx.x];
    int seen = atomicAdd(best, 0);
    while (__int_as_float(seen) < mine) {
        int before = atomicCAS(best, seen, __float_as_int(mine));
        if (before == seen) break;
        seen = before;
    }
"""),
    COPY.changed(finds="OutOfBounds: x|y 100")(r"""
// copy without a guard
// the last block has threads beyond n, and nothing stops them
-    if (i >= n) return;
"""),
    kernel("scale", 2, 64, x=floats(100), a=2.0, n=100).bug("OutOfBounds: x 100")(r"""
// guard that lets n in
// <= where < is meant
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        x[i] *= a;  // <- bug
    }
"""),
    kernel("difference", 1, 64, x=floats(64), d=Empty(64), n=64).bug("OutOfBounds: x -1")(r"""
// left neighbour of the first element
// thread 0 reads x[-1]
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        d[i] = x[i] - x[i - 1];  // <- bug
    }
"""),
    kernel("smooth", 2, 32, given=floats(64), out=Empty(64), n=64).bug("OutOfBounds: given 64")(r"""
// stencil over the right edge
// the guard keeps the first element out, and not the last
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) {
        float left = given[i - 1];
        float right = given[i + 1];  // <- bug
        out[i] = 0.5f * given[i] + 0.25f * (left + right);
    }
"""),
    kernel(
        "transpose",
        (3, 2),
        (16, 16),
        given=floats(40 * 20),
        out=Empty(40 * 20),
        width=40,
        height=20,
    ).bug("OutOfBounds: out")(r"""
// transpose with the input's stride
// a row of the result has `height` elements, not `width`
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        out[x * width + y] = given[y * width + x];  // <- bug
    }
"""),
    launch(1, 64, Empty(128), 512).bug("OutOfBounds: x 128")(r"""
// bytes taken for elements
// the loop counts bytes, the index counts floats
__global__ void clear(float* x, unsigned int bytes) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += stride) {
        x[i] = 0.0f;  // <- bug
    }
}
"""),
    kernel("histogram", 4, 64, values=ints(256), bins=ints(64, 0), n=256).bug("OutOfBounds: bins")(r"""
// histogram of values that have no bin
// values reach 255, and there are 64 bins
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[values[i]], 1);  // <- bug
    }
"""),
    kernel("average3", 2, 64, x=floats(128), y=Empty(128), n=128).bug("OutOfBounds: tile 64")(r"""
// tile without room for its halo
// 64 elements and one of halo need 65 places
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x + 1;
    tile[t] = x[i];  // <- bug
    if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
    __syncthreads();
    y[i] = 0.5f * (tile[t] + tile[t - 1]);
"""),
    launch(2, 128, floats(256), Empty(2)).bug("OutOfBounds: part 64")(r"""
// launched with a larger block than the shared array
// BLOCK says 64, the launch 128
#define BLOCK 64
__global__ void block_sum(const float* x, float* sums) {
    __shared__ float part[BLOCK];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * blockDim.x + t];  // <- bug
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
"""),
    kernel("best_of_four", 1, 32, x=floats(32), y=Empty(32), n=32).bug("OutOfBounds: best 4")(r"""
// one step too far in a local array
// <= 4 for an array of four
    int i = threadIdx.x;
    float best[4];
    for (int k = 0; k <= 4; k++) {
        best[k] = x[(i + k) % n];  // <- bug
    }
    float most = best[0];
    for (int k = 1; k < 4; k++) most = fmaxf(most, best[k]);
    y[i] = most;
"""),
    kernel("reverse", 1, 64, x=floats(64), y=Empty(64), n=64).bug("OutOfBounds: y 64")(r"""
// reversal that begins at n
// the mirror of 0 is n - 1
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[n - i] = x[i];  // <- bug
"""),
    launch(1, 64, floats(64), Empty(64), 64, 3).bug("OutOfBounds: x")(r"""
// unsigned index below zero
// an unsigned number is never below zero: it wraps round
__global__ void shift(const float* x, float* y, unsigned int n, unsigned int by) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int from = i - by;
    y[i] = from >= 0 ? x[from] : 0.0f;  // <- bug
}
"""),
    kernel("tile_copy", 1, (16, 32), given=floats(512), out=Empty(512), width=16).bug("OutOfBounds: tile")(r"""
// block higher than the tile
// 32 rows of threads, 16 rows of tile
    __shared__ float tile[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = given[y * width + x];  // <- bug
    __syncthreads();
    out[y * width + x] = tile[y][x];
"""),
    kernel("pipeline", 1, 32, x=floats(96), y=Empty(32), steps=3).bug("OutOfBounds: buffer")(r"""
// third phase of a double buffer
// the phase is step % 2
    __shared__ float buffer[2][32];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int step = 0; step < steps; step++) {
        buffer[step][t] = x[step * 32 + t];  // <- bug
        __syncthreads();
        sum += buffer[step][31 - t];
        __syncthreads();
    }
    y[t] = sum;
"""),
    launch(1, 64, floats(64), 64, None).bug("OutOfBounds: null|none|0x0|address")(r"""
// optional output that was left out
// the caller passed a null pointer
__global__ void count_positive(const float* x, int n, int* count) {
    int i = threadIdx.x;
    bool positive = i < n && x[i] > 0.0f;
    int all = __syncthreads_count(positive);
    if (i == 0) *count = all;  // <- bug
}
"""),
    kernel("row_sums", 1, 3, rows=Table((floats(8), None, floats(8))), sums=Empty(3), width=8).bug(
        "OutOfBounds: null|none|address"
    )(r"""
// missing row in a table of rows
// the second row is a null pointer
    int r = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) sum += rows[r][k];  // <- bug
    sums[r] = sum;
"""),
    kernel("add_rows", 1, 32, rows=Table((floats(32), Freed(32))), sum=Empty(32), n=32).bug(
        "OutOfBounds: free|nothing"
    )(r"""
// row that was freed
// the second row was freed while the table kept its address
    int i = threadIdx.x;
    if (i < n) {
        sum[i] = rows[0][i] + rows[1][i];  // <- bug
    }
"""),
    launch(1, 32, floats(32), Empty(32)).bug("OutOfBounds UninitialisedRead: local|p")(r"""
// pointer to a variable that is gone
// `local` ends with the function that it is in
__device__ float* scratch(float value) {
    float local[2] = {value, 2.0f * value};
    return local;
}
__global__ void use_scratch(const float* x, float* y) {
    int i = threadIdx.x;
    float* p = scratch(x[i]);
    y[i] = p[1];  // <- bug
}
"""),
    launch(1, 32, floats(32), Empty(32), Table((None,))).bug("OutOfBounds UninitialisedRead: shared|where|address")(r"""
// address of shared memory kept for the next kernel
// shared memory lives as long as its block
__global__ void prepare(const float* x, float* y, float** where) {
    __shared__ float table[32];
    table[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) where[0] = table;
}
__global__ void apply(const float* x, float* y, float** where) {
    y[threadIdx.x] = where[0][threadIdx.x];  // <- bug
}
"""),
    kernel("count_even", 2, 64, x=ints(128), counts=Empty(2, "int32")).bug("UninitialisedRead: even")(r"""
// shared counter that starts anywhere
// nobody sets the counter to zero
    __shared__ int even;
    if (x[blockIdx.x * blockDim.x + threadIdx.x] % 2 == 0) {
        atomicAdd(&even, 1);  // <- bug
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = even;
"""),
    kernel("dot_rows", 1, 16, a=floats(128), b=floats(8), y=Empty(16), k=8).bug("UninitialisedRead: sum")(r"""
// sum that starts anywhere
// `sum` is not set to zero
    int row = threadIdx.x;
    float sum;
    for (int j = 0; j < k; j++) {
        sum += a[row * k + j] * b[j];  // <- bug
    }
    y[row] = sum;
"""),
    kernel("accumulate", 1, 64, x=floats(50), total=Empty(50), n=50).bug("UninitialisedRead: total")(r"""
// accumulate into a fresh allocation
// the array was allocated and never cleared
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        total[i] += x[i];  // <- bug
    }
"""),
    launch(1, 64, Empty(64), Empty(64), 64).bug("UninitialisedRead: a")(r"""
// half of the array is never written
// the first kernel writes the even elements only
__global__ void produce(float* a, float* b, int n) {
    int i = threadIdx.x;
    if (2 * i < n) a[2 * i] = i;
}
__global__ void consume(float* a, float* b, int n) {
    int i = threadIdx.x;
    if (i < n) b[i] = a[i] + 1.0f;  // <- bug
}
"""),
    kernel("polynomial", 1, 32, x=floats(32), y=Empty(32), c=1.0).bug("UninitialisedRead: coefficients")(r"""
// last coefficient is never set
// three of four are set
    int i = threadIdx.x;
    float coefficients[4];
    for (int k = 0; k < 3; k++) coefficients[k] = c + k;
    float sum = 0.0f;
    for (int k = 3; k >= 0; k--) {
        sum = sum * x[i] + coefficients[k];  // <- bug
    }
    y[i] = sum;
"""),
    kernel("sum_of_warps", 1, 64, x=floats(64), y=Empty(1)).bug("UninitialisedRead: sums")(r"""
// warps that are not there left no sums
// 64 threads are two warps, and eight sums are added
    __shared__ float sums[8];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    float v = x[t];
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffff, v, by);
    if (lane == 0) sums[warp] = v;
    __syncthreads();
    if (t == 0) {
        float all = 0.0f;
        for (int k = 0; k < 8; k++) all += sums[k];  // <- bug
        *y = all;
    }
"""),
    launch(1, 32, floats(32), floats(32), Empty(32)).bug("UninitialisedRead: mass|one")(r"""
// field that the constructor forgot
// `mass` is never set
struct Particle { float x, v, mass; };
__global__ void momentum(const float* x, const float* v, float* p) {
    int i = threadIdx.x;
    Particle one;
    one.x = x[i];
    one.v = v[i];
    p[i] = one.v * one.mass;  // <- bug
}
"""),
    kernel("safe_log", 1, 32, x=floats(32), y=Empty(32), n=32).bug("UninitialisedRead: v")(r"""
// value that is set on one path
// where x is 0, nobody sets v
    int i = threadIdx.x;
    if (i >= n) return;
    float v;
    if (x[i] > 0.0f) {
        v = logf(x[i]);
    }
    y[i] = v;  // <- bug
"""),
    kernel("sum4", 1, 16, x=floats(65), y=Empty(16), n=65).bug("Misaligned: 16")(r"""
// vector load off by one float
// a float4 lies at a multiple of 16 bytes
    int i = threadIdx.x;
    if (4 * i + 4 < n) {
        float4 v = *(const float4*)(x + 1 + 4 * i);  // <- bug
        y[i] = v.x + v.y + v.z + v.w;
    }
"""),
    kernel("read_records", 1, 8, bytes=raw(40), out=Empty(8, "int32"), size=5).bug("Misaligned: 4")(r"""
// number behind an odd header
// an int lies at a multiple of 4 bytes; take it byte by byte
    int i = threadIdx.x;
    const unsigned char* record = bytes + i * size;
    unsigned char tag = record[0];
    int value = *(const int*)(record + 1);  // <- bug
    out[i] = tag + value;
"""),
    CARVED.changed(finds="Misaligned: 8")(r"""
// doubles after three ints of dynamic shared memory
// three ints are 12 bytes, and a double needs a multiple of 8
-    double* values = (double*)(room + (flags * sizeof(int) + 7) / 8 * 8);
+    double* values = (double*)(room + flags * sizeof(int));
"""),
    kernel("shift_left", 2, 64, x=floats(128), n=128).bug("Race: x")(r"""
// shift in place
// a thread reads what its neighbour overwrites
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) {
        x[i] = x[i + 1];  // <- bug
    }
"""),
    kernel("histogram16", 2, 64, x=ints(128), bins=ints(16, 0), n=128).bug("Race: bins")(r"""
// histogram without atomics
// two threads add to one bin at once
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        bins[x[i] % 16]++;  // <- bug
    }
"""),
    kernel("total", 4, 1, x=floats(64), sum=floats(1, 0), chunk=16).bug("Race: sum")(r"""
// sum of blocks without atomics
// four blocks read and write one sum
    float mine = 0.0f;
    for (int k = 0; k < chunk; k++) mine += x[blockIdx.x * chunk + k];
    *sum += mine;  // <- bug
"""),
    kernel("square", 2, 64, x=floats(128), y=Empty(128), n=128).bug("Race: y")(r"""
// output index without the block
// both blocks write the first 64 elements
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[threadIdx.x] = x[i] * x[i];  // <- bug
    }
"""),
    kernel("fill_chunks", 1, 32, owner=Empty(256, "int32"), n=256).bug("Race: owner")(r"""
// chunks that overlap by one
// a chunk's last element is the next one's first
    int threads = gridDim.x * blockDim.x;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int chunk = n / threads;
    for (int k = t * chunk; k <= (t + 1) * chunk && k < n; k++) {
        owner[k] = t;  // <- bug
    }
"""),
    kernel("swap_halves", 1, 64, x=floats(64), w=floats(64), y=Empty(64), shared=64 * 4 * 2).bug("Race: room|a|b")(r"""
// two halves of shared memory that overlap
// `b` begins in the middle of `a`
    extern __shared__ float room[];
    float* a = room;
    float* b = room + blockDim.x / 2;
    int t = threadIdx.x;
    a[t] = x[t];  // <- bug
    b[t] = w[t];  // <- bug
    __syncthreads();
    y[t] = a[t] * b[blockDim.x - 1 - t];
"""),
    kernel("pack", 1, 32, x=floats(32), y=Empty(16), n=32).bug("Race: y")(r"""
// two lanes store into one element
// which of two values stays is not defined
    int i = threadIdx.x;
    if (i < n) y[i / 2] = x[i];  // <- bug
"""),
    kernel("push", 2, 1, head=ints(1, -1), next=Empty(2, "int32"), n=2).bug("Race: head")(r"""
// list with a head that everybody moves
// reading the head and moving it has to be one atomicExch
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        next[i] = *head;  // <- bug
        *head = i;  // <- bug
    }
"""),
    kernel("take", 2, 32, x=floats(32), out=Empty(16), used=ZERO, room=16).bug("Race: used")(r"""
// plain read of a counter that others add to
// the test reads the counter without an atomic while others add to it
    int i = threadIdx.x;
    if (x[i] > 3.0f && *used < room) {  // <- bug
        int slot = atomicAdd(used, 1);  // <- bug
        if (slot < room) out[slot] = x[i];
    }
"""),
]  # fmt: skip
