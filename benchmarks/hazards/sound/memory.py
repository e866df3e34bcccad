"""Correct uses of memory that look as if they were not."""

from benchmarks.hazards.case import Empty, Table, floats, ints, launch, raw, sound

CARVED = sound(
    launch(1, 32, floats(32).astype("float64"), Empty(32, "float64"), 3, shared=32 * 8 + 16)
)(r"""
// dynamic shared memory carved with its alignment
// 12 bytes are rounded up to 16
__global__ void carve(const double* x, double* y, int flags) {
    extern __shared__ unsigned char room[];
    int* flag = (int*)room;
    double* values = (double*)(room + (flags * sizeof(int) + 7) / 8 * 8);
    int t = threadIdx.x;
    if (t < flags) flag[t] = t;
    values[t] = x[t];
    __syncthreads();
    y[t] = values[31 - t] + flag[t % flags];
}
""")

COPY = sound(launch(4, 32, floats(100), Empty(100), 100))(r"""
// guard by an early return
// no thread beyond n gets to the copy
__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
}
""")

CASES = [
    COPY,
    sound(launch(2, 64, floats(100), Empty(100), 100))(r"""
// neighbours clamped at the edges
// max and min keep the index inside
__global__ void smooth(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)];
}
"""),
    sound(launch(1, 64, floats(64), Empty(64), 32))(r"""
// negative index from the middle
// the pointer is to the middle, so -32 is the first element
__global__ void around(const float* x, float* y, int half) {
    const float* middle = x + half;
    int k = (int)threadIdx.x - half;
    y[threadIdx.x] = middle[k];
}
"""),
    sound(launch(1, 64, floats(64), Empty(64), 64))(r"""
// circular neighbour
// n is added before the remainder is taken
__global__ void rotate(const float* x, float* y, int n) {
    int i = threadIdx.x;
    y[i] = x[(i + n - 1) % n];
}
"""),
    sound(launch(2, 64, floats(100), 100))(r"""
// in place, each its own
// nobody else touches x[i]
__global__ void relu(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
"""),
    sound(launch(2, 32, floats(101), 101))(r"""
// reversal in place by half of the threads
// each pair has one thread
__global__ void reverse(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        float a = x[i], b = x[n - 1 - i];
        x[i] = b;
        x[n - 1 - i] = a;
    }
}
"""),
    sound(launch(2, 32, floats(1001), floats(1001), 2.0, 1001))(r"""
// grid-stride loop over more than the grid
// strides keep threads apart, and the bound is n
__global__ void saxpy(const float* x, float* y, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
"""),
    sound(launch(2, 64, ints(100), ints(16, 0), 100))(r"""
// private histogram that is cleared and merged
// cleared, added to and read between barriers
__global__ void histogram(const int* x, int* bins, int n) {
    __shared__ int local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[x[i] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
"""),
    sound(launch(1, 32, floats(103), Empty(103), 103))(r"""
// vector loads and a tail
// 25 vectors and three floats; 103 is no multiple of four, and nobody says that it is
__global__ void scale4(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (4 * i + 3 < n) {
        float4 v = ((const float4*)x)[i];
        ((float4*)y)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
    int tail = n / 4 * 4 + i;
    if (tail < n) y[tail] = 2 * x[tail];
}
"""),
    CARVED,
    sound(launch(1, 32, ints(32), Empty(32)))(r"""
// local array that is indexed by data
// all four are set, and & 3 keeps the index in
__global__ void select(const int* which, float* y) {
    float table[4];
    for (int k = 0; k < 4; k++) table[k] = 10.0f * k;
    y[threadIdx.x] = table[which[threadIdx.x] & 3];
}
"""),
    sound(launch(1, 32, ints(32), Empty(32, "int32")))(r"""
// variable that each path sets
// `default` takes the rest
__global__ void classify(const int* x, int* y) {
    int kind;
    switch (x[threadIdx.x] % 3) {
        case 0: kind = 10; break;
        case 1: kind = 20; break;
        default: kind = 30;
    }
    y[threadIdx.x] = kind;
}
"""),
    sound(launch(2, 32, floats(50), Empty(50), 50))(r"""
// set and used under one condition
// who uses v has set it
__global__ void two_ifs(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v;
    if (i < n) v = x[i];
    __syncthreads();
    if (i < n) y[i] = v + 1.0f;
}
"""),
    sound(launch(1, 32, Empty(20), Empty(20), 20))(r"""
// fresh array, written before it is read
// a thread sees its own writes
__global__ void twice(float* work, float* y, int n) {
    int i = threadIdx.x;
    if (i < n) {
        work[i] = i;
        work[i] += 1.0f;
        y[i] = work[i];
    }
}
"""),
    sound(launch(1, 32, floats(32), Empty(32, "int32")))(r"""
// bits of a float
// an unsigned int has a float's size and alignment
__global__ void exponent(const float* x, int* e) {
    const unsigned int* bits = (const unsigned int*)x;
    e[threadIdx.x] = (int)(bits[threadIdx.x] >> 23 & 255) - 127;
}
"""),
    sound(launch(1, 8, raw(40), Empty(8, "int32"), 5))(r"""
// number behind an odd header, byte by byte
// memcpy takes bytes, at any address
__global__ void read_records(const unsigned char* bytes, int* out, int size) {
    const unsigned char* record = bytes + threadIdx.x * size;
    int value;
    memcpy(&value, record + 1, sizeof(value));
    out[threadIdx.x] = record[0] + value;
}
"""),
    sound(launch(1, 3, Table((floats(8), None, floats(8))), Empty(3), 8))(r"""
// missing rows are skipped
// the null pointer is tested
__global__ void row_sums(float** rows, float* sums, int width) {
    const float* row = rows[threadIdx.x];
    float sum = 0.0f;
    if (row != nullptr)
        for (int k = 0; k < width; k++) sum += row[k];
    sums[threadIdx.x] = sum;
}
"""),
    sound(launch(1, 32, floats(32), Empty(32), None))(r"""
// optional output
// the null pointer is tested
__global__ void sum_or_not(const float* x, float* y, float* square) {
    int i = threadIdx.x;
    y[i] = 2.0f * x[i];
    if (square) square[i] = x[i] * x[i];
}
"""),
    sound(launch(2, 32, floats(60), Empty(60, "uint8"), 60))(r"""
// neighbouring bytes by neighbouring threads
// bytes are memory locations of their own
__global__ void flags(const float* x, unsigned char* positive, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) positive[i] = x[i] > 3.0f;
}
"""),
    sound(launch(2, 48, floats(96), ints(3, 0), 96))(r"""
// bits of one word by atomicOr
// 32 threads share a word, and each takes it atomically
__global__ void bitmap(const float* x, unsigned int* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) atomicOr(&bits[i / 32], 1u << (i % 32));
}
"""),
    sound(launch(1, 64, floats(64), Empty(64)))(r"""
// scatter by a permutation
// 5 and 64 have no common divisor, so no two threads meet
__global__ void scatter(const float* x, float* y) {
    int i = threadIdx.x;
    y[i * 5 % 64] = x[i];
}
"""),
    sound(launch(2, 32, Empty(64), Empty(64), 64))(r"""
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
    sound(launch(2, 32, floats(64), Empty(64), ints(1, 0), 64))(r"""
// compaction by a counter
// each slot is given out once
__global__ void keep_large(const float* x, float* out, int* used, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 10.0f) {
        int slot = atomicAdd(used, 1);
        out[slot] = x[i];
    }
}
"""),
    sound(launch(1, 32, floats(100), Empty(32), 100))(r"""
// pointers that walk to one past the end
// `end` is compared with, and never read
__global__ void sum_pointers(const float* x, float* sums, int n) {
    const float* end = x + n;
    float sum = 0.0f;
    for (const float* p = x + threadIdx.x; p < end; p += blockDim.x) sum += *p;
    sums[threadIdx.x] = sum;
}
"""),
    sound(launch(1, 64, Empty(64, "int32")))(r"""
// two threads, two fields
// fields of a struct are memory locations of their own
struct Pair { int even, odd; };
__global__ void fields(Pair* pairs) {
    int i = threadIdx.x;
    if (i % 2 == 0) pairs[i / 2].even = i;
    else pairs[i / 2].odd = i;
}
"""),
    sound(launch(4, 32, ints(128, 7), 7, ints(1, 0), ints(1, -1)))(r"""
// one of many is elected
// one thread finds 0 in `taken`, and it alone writes
__global__ void first_hit(const int* x, int wanted, int* taken, int* where) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] == wanted && atomicExch(taken, 1) == 0) *where = i;
}
"""),
    sound(launch(1, 64, floats(50), Empty(50, "int32"), 50))(r"""
// index tested before it is used
// && doesn't read x[-1]
__global__ void rises(const float* x, int* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = i > 0 && x[i - 1] < x[i];
}
"""),
    sound(launch(1, 32, floats(32), Empty(32), 32))(r"""
// unsigned wrap that the guard catches
// 0 - 1 is larger than n
__global__ void left(const float* x, float* y, unsigned int n) {
    unsigned int i = threadIdx.x;
    unsigned int from = i - 1;
    y[i] = from < n ? x[from] : 0.0f;
}
"""),
    sound(launch(1, 16, floats(128), Empty(16), 8))(r"""
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
    sound(launch(1, (8, 8), floats(64), floats(64), Empty(64), 8))(r"""
// rows that many threads read
// readers don't race
__global__ void gram(const float* a, const float* b, float* c, int n) {
    int i = threadIdx.x, j = threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[j * n + k];
    c[i * blockDim.y + j] = sum;
}
"""),
    sound(launch(2, 32, floats(64), ints(1, 0)))(r"""
// maximum of floats by compare-and-swap
// the first look is atomic, too
__global__ void largest(const float* x, int* best) {
    float mine = x[blockIdx.x * blockDim.x + threadIdx.x];
    int seen = atomicAdd(best, 0);
    while (__int_as_float(seen) < mine) {
        int before = atomicCAS(best, seen, __float_as_int(mine));
        if (before == seen) break;
        seen = before;
    }
}
"""),
]
