"""Correct uses of memory that look as if they were not."""

from benchmarks.hazards.case import Empty, Table, floats, ints, kernel, launch, raw

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
    values[t] = x[t];
    __syncthreads();
    y[t] = values[31 - t] + flag[t % flags];
""")

COPY = kernel("copy", 4, 32, x=floats(100), y=Empty(100), n=100).sound(r"""
// guard by an early return
// no thread beyond n gets to the copy
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
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
    kernel(
        "row_sums", 1, 3, rows=Table((floats(8), None, floats(8))), sums=Empty(3), width=8
    ).sound(r"""
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
    launch(2, 48, floats(96), ints(3, 0), 96).sound(r"""
// bits of one word by atomicOr
// 32 threads share a word, and each takes it atomically
__global__ void bitmap(const float* x, unsigned int* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) atomicOr(&bits[i / 32], 1u << (i % 32));
}
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
    kernel("keep_large", 2, 32, x=floats(64), out=Empty(64), used=ints(1, 0), n=64).sound(r"""
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
    kernel(
        "first_hit", 4, 32, x=ints(128, 7), wanted=7, taken=ints(1, 0), where=ints(1, -1)
    ).sound(r"""
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
    kernel("largest", 2, 32, x=floats(64), best=ints(1, 0)).sound(r"""
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
]
