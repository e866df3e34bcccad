"""Bugs of memory: out of bounds, not initialised, freed, misaligned, and threads that race for an element."""

from benchmarks.hazards.case import Empty, Freed, Table, bug, floats, ints, raw

CASES = [
    bug(
        "copy without a guard",
        r"""
__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];  // <- bug
}
""",
        grid=4,
        block=32,
        args=(floats(100), Empty(100), 100),
        finds="OutOfBounds",
        about="x|y 100",
        why="the last block has threads beyond n, and nothing stops them",
    ),
    bug(
        "guard that lets n in",
        r"""
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        x[i] *= a;  // <- bug
    }
}
""",
        grid=2,
        block=64,
        args=(floats(100), 2.0, 100),
        finds="OutOfBounds",
        about="x 100",
        why="<= where < is meant",
    ),
    bug(
        "left neighbour of the first element",
        r"""
__global__ void difference(const float* x, float* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        d[i] = x[i] - x[i - 1];  // <- bug
    }
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(64), 64),
        finds="OutOfBounds",
        about="x -1",
        why="thread 0 reads x[-1]",
    ),
    bug(
        "stencil over the right edge",
        r"""
__global__ void smooth(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) {
        float left = in[i - 1];
        float right = in[i + 1];  // <- bug
        out[i] = 0.5f * in[i] + 0.25f * (left + right);
    }
}
""",
        grid=2,
        block=32,
        args=(floats(64), Empty(64), 64),
        finds="OutOfBounds",
        about="in 64",
        why="the guard keeps the first element out, and not the last",
    ),
    bug(
        "transpose with the input's stride",
        r"""
__global__ void transpose(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        out[x * width + y] = in[y * width + x];  // <- bug
    }
}
""",
        grid=(3, 2),
        block=(16, 16),
        args=(floats(40 * 20), Empty(40 * 20), 40, 20),
        finds="OutOfBounds",
        about="out",
        why="a row of the result has `height` elements, not `width`",
    ),
    bug(
        "bytes taken for elements",
        r"""
__global__ void clear(float* x, unsigned int bytes) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += stride) {
        x[i] = 0.0f;  // <- bug
    }
}
""",
        grid=1,
        block=64,
        args=(Empty(128), 512),
        finds="OutOfBounds",
        about="x 128",
        why="the loop counts bytes, the index counts floats",
    ),
    bug(
        "histogram of values that have no bin",
        r"""
__global__ void histogram(const int* values, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[values[i]], 1);  // <- bug
    }
}
""",
        grid=4,
        block=64,
        args=(ints(256), ints(64, 0), 256),
        finds="OutOfBounds",
        about="bins",
        why="values reach 255, and there are 64 bins",
    ),
    bug(
        "tile without room for its halo",
        r"""
__global__ void average3(const float* x, float* y, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x + 1;
    tile[t] = x[i];  // <- bug
    if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
    __syncthreads();
    y[i] = 0.5f * (tile[t] + tile[t - 1]);
}
""",
        grid=2,
        block=64,
        args=(floats(128), Empty(128), 128),
        finds="OutOfBounds",
        about="tile 64",
        why="64 elements and one of halo need 65 places",
    ),
    bug(
        "launched with a larger block than the shared array",
        r"""
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
""",
        grid=2,
        block=128,
        args=(floats(256), Empty(2)),
        finds="OutOfBounds",
        about="part 64",
        why="BLOCK says 64, the launch 128",
    ),
    bug(
        "one step too far in a local array",
        r"""
__global__ void best_of_four(const float* x, float* y, int n) {
    int i = threadIdx.x;
    float best[4];
    for (int k = 0; k <= 4; k++) {
        best[k] = x[(i + k) % n];  // <- bug
    }
    float most = best[0];
    for (int k = 1; k < 4; k++) most = fmaxf(most, best[k]);
    y[i] = most;
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), 32),
        finds="OutOfBounds",
        about="best 4",
        why="<= 4 for an array of four",
    ),
    bug(
        "reversal that begins at n",
        r"""
__global__ void reverse(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[n - i] = x[i];  // <- bug
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(64), 64),
        finds="OutOfBounds",
        about="y 64",
        why="the mirror of 0 is n - 1",
    ),
    bug(
        "unsigned index below zero",
        r"""
__global__ void shift(const float* x, float* y, unsigned int n, unsigned int by) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int from = i - by;
    y[i] = from >= 0 ? x[from] : 0.0f;  // <- bug
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(64), 64, 3),
        finds="OutOfBounds",
        about="x",
        why="an unsigned number is never below zero: it wraps round",
    ),
    bug(
        "block higher than the tile",
        r"""
__global__ void tile_copy(const float* in, float* out, int width) {
    __shared__ float tile[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * width + x];  // <- bug
    __syncthreads();
    out[y * width + x] = tile[y][x];
}
""",
        grid=1,
        block=(16, 32),
        args=(floats(512), Empty(512), 16),
        finds="OutOfBounds",
        about="tile",
        why="32 rows of threads, 16 rows of tile",
    ),
    bug(
        "third phase of a double buffer",
        r"""
__global__ void pipeline(const float* x, float* y, int steps) {
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
}
""",
        grid=1,
        block=32,
        args=(floats(96), Empty(32), 3),
        finds="OutOfBounds",
        about="buffer",
        why="the phase is step % 2",
    ),
    bug(
        "optional output that was left out",
        r"""
__global__ void count_positive(const float* x, int n, int* count) {
    int i = threadIdx.x;
    bool positive = i < n && x[i] > 0.0f;
    int all = __syncthreads_count(positive);
    if (i == 0) *count = all;  // <- bug
}
""",
        grid=1,
        block=64,
        args=(floats(64), 64, None),
        finds="OutOfBounds",
        about="null|none|0x0|address",
        why="the caller passed a null pointer",
    ),
    bug(
        "missing row in a table of rows",
        r"""
__global__ void row_sums(float** rows, float* sums, int width) {
    int r = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) sum += rows[r][k];  // <- bug
    sums[r] = sum;
}
""",
        grid=1,
        block=3,
        args=(Table((floats(8), None, floats(8))), Empty(3), 8),
        finds="OutOfBounds",
        about="null|none|address",
        why="the second row is a null pointer",
    ),
    bug(
        "row that was freed",
        r"""
__global__ void add_rows(float** rows, float* sum, int n) {
    int i = threadIdx.x;
    if (i < n) {
        sum[i] = rows[0][i] + rows[1][i];  // <- bug
    }
}
""",
        grid=1,
        block=32,
        args=(Table((floats(32), Freed(32))), Empty(32), 32),
        finds="OutOfBounds",
        about="free|nothing",
        why="the second row was freed while the table kept its address",
    ),
    bug(
        "pointer to a variable that is gone",
        r"""
__device__ float* scratch(float value) {
    float local[2] = {value, 2.0f * value};
    return local;
}
__global__ void use_scratch(const float* x, float* y) {
    int i = threadIdx.x;
    float* p = scratch(x[i]);
    y[i] = p[1];  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32)),
        finds="OutOfBounds UninitialisedRead",
        about="local|p",
        why="`local` ends with the function that it is in",
    ),
    bug(
        "address of shared memory kept for the next kernel",
        r"""
__global__ void prepare(const float* x, float* y, float** where) {
    __shared__ float table[32];
    table[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) where[0] = table;
}
__global__ void apply(const float* x, float* y, float** where) {
    y[threadIdx.x] = where[0][threadIdx.x];  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), Table((None,))),
        finds="OutOfBounds UninitialisedRead",
        about="shared|where|address",
        why="shared memory lives as long as its block",
    ),
    bug(
        "shared counter that starts anywhere",
        r"""
__global__ void count_even(const int* x, int* counts) {
    __shared__ int even;
    if (x[blockIdx.x * blockDim.x + threadIdx.x] % 2 == 0) {
        atomicAdd(&even, 1);  // <- bug
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = even;
}
""",
        grid=2,
        block=64,
        args=(ints(128), Empty(2, "int32")),
        finds="UninitialisedRead",
        about="even",
        why="nobody sets the counter to zero",
    ),
    bug(
        "sum that starts anywhere",
        r"""
__global__ void dot_rows(const float* a, const float* b, float* y, int k) {
    int row = threadIdx.x;
    float sum;
    for (int j = 0; j < k; j++) {
        sum += a[row * k + j] * b[j];  // <- bug
    }
    y[row] = sum;
}
""",
        grid=1,
        block=16,
        args=(floats(128), floats(8), Empty(16), 8),
        finds="UninitialisedRead",
        about="sum",
        why="`sum` is not set to zero",
    ),
    bug(
        "accumulate into a fresh allocation",
        r"""
__global__ void accumulate(const float* x, float* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        total[i] += x[i];  // <- bug
    }
}
""",
        grid=1,
        block=64,
        args=(floats(50), Empty(50), 50),
        finds="UninitialisedRead",
        about="total",
        why="the array was allocated and never cleared",
    ),
    bug(
        "half of the array is never written",
        r"""
__global__ void produce(float* a, float* b, int n) {
    int i = threadIdx.x;
    if (2 * i < n) a[2 * i] = i;
}
__global__ void consume(float* a, float* b, int n) {
    int i = threadIdx.x;
    if (i < n) b[i] = a[i] + 1.0f;  // <- bug
}
""",
        grid=1,
        block=64,
        args=(Empty(64), Empty(64), 64),
        finds="UninitialisedRead",
        about="a",
        why="the first kernel writes the even elements only",
    ),
    bug(
        "last coefficient is never set",
        r"""
__global__ void polynomial(const float* x, float* y, float c) {
    int i = threadIdx.x;
    float coefficients[4];
    for (int k = 0; k < 3; k++) coefficients[k] = c + k;
    float sum = 0.0f;
    for (int k = 3; k >= 0; k--) {
        sum = sum * x[i] + coefficients[k];  // <- bug
    }
    y[i] = sum;
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), 1.0),
        finds="UninitialisedRead",
        about="coefficients",
        why="three of four are set",
    ),
    bug(
        "warps that are not there left no sums",
        r"""
__global__ void sum_of_warps(const float* x, float* y) {
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
}
""",
        grid=1,
        block=64,
        args=(floats(64), Empty(1)),
        finds="UninitialisedRead",
        about="sums",
        why="64 threads are two warps, and eight sums are added",
    ),
    bug(
        "field that the constructor forgot",
        r"""
struct Particle { float x, v, mass; };
__global__ void momentum(const float* x, const float* v, float* p) {
    int i = threadIdx.x;
    Particle one;
    one.x = x[i];
    one.v = v[i];
    p[i] = one.v * one.mass;  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), floats(32), Empty(32)),
        finds="UninitialisedRead",
        about="mass|one",
        why="`mass` is never set",
    ),
    bug(
        "value that is set on one path",
        r"""
__global__ void safe_log(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    float v;
    if (x[i] > 0.0f) {
        v = logf(x[i]);
    }
    y[i] = v;  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(32), 32),
        finds="UninitialisedRead",
        about="v",
        why="where x is 0, nobody sets v",
    ),
    bug(
        "vector load off by one float",
        r"""
__global__ void sum4(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (4 * i + 4 < n) {
        float4 v = *(const float4*)(x + 1 + 4 * i);  // <- bug
        y[i] = v.x + v.y + v.z + v.w;
    }
}
""",
        grid=1,
        block=16,
        args=(floats(65), Empty(16), 65),
        finds="Misaligned",
        about="16",
        why="a float4 lies at a multiple of 16 bytes",
    ),
    bug(
        "number behind an odd header",
        r"""
__global__ void read_records(const unsigned char* bytes, int* out, int size) {
    int i = threadIdx.x;
    const unsigned char* record = bytes + i * size;
    unsigned char tag = record[0];
    int value = *(const int*)(record + 1);  // <- bug
    out[i] = tag + value;
}
""",
        grid=1,
        block=8,
        args=(raw(40), Empty(8, "int32"), 5),
        finds="Misaligned",
        about="4",
        why="an int lies at a multiple of 4 bytes; take it byte by byte",
    ),
    bug(
        "doubles after three ints of dynamic shared memory",
        r"""
__global__ void carve(const double* x, double* y, int flags) {
    extern __shared__ unsigned char room[];
    int* flag = (int*)room;
    double* values = (double*)(room + flags * sizeof(int));
    int t = threadIdx.x;
    if (t < flags) flag[t] = t;
    values[t] = x[t];  // <- bug
    __syncthreads();
    y[t] = values[31 - t] + flag[t % flags];
}
""",
        grid=1,
        block=32,
        args=(floats(32).astype("float64"), Empty(32, "float64"), 3),
        shared=32 * 8 + 16,
        finds="Misaligned",
        about="8",
        why="three ints are 12 bytes, and a double needs a multiple of 8",
    ),
    bug(
        "shift in place",
        r"""
__global__ void shift_left(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) {
        x[i] = x[i + 1];  // <- bug
    }
}
""",
        grid=2,
        block=64,
        args=(floats(128), 128),
        finds="Race",
        about="x",
        why="a thread reads what its neighbour overwrites",
    ),
    bug(
        "histogram without atomics",
        r"""
__global__ void histogram16(const int* x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        bins[x[i] % 16]++;  // <- bug
    }
}
""",
        grid=2,
        block=64,
        args=(ints(128), ints(16, 0), 128),
        finds="Race",
        about="bins",
        why="two threads add to one bin at once",
    ),
    bug(
        "sum of blocks without atomics",
        r"""
__global__ void total(const float* x, float* sum, int chunk) {
    float mine = 0.0f;
    for (int k = 0; k < chunk; k++) mine += x[blockIdx.x * chunk + k];
    *sum += mine;  // <- bug
}
""",
        grid=4,
        block=1,
        args=(floats(64), floats(1, 0), 16),
        finds="Race",
        about="sum",
        why="four blocks read and write one sum",
    ),
    bug(
        "output index without the block",
        r"""
__global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[threadIdx.x] = x[i] * x[i];  // <- bug
    }
}
""",
        grid=2,
        block=64,
        args=(floats(128), Empty(128), 128),
        finds="Race",
        about="y",
        why="both blocks write the first 64 elements",
    ),
    bug(
        "chunks that overlap by one",
        r"""
__global__ void fill_chunks(int* owner, int n) {
    int threads = gridDim.x * blockDim.x;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int chunk = n / threads;
    for (int k = t * chunk; k <= (t + 1) * chunk && k < n; k++) {
        owner[k] = t;  // <- bug
    }
}
""",
        grid=1,
        block=32,
        args=(Empty(256, "int32"), 256),
        finds="Race",
        about="owner",
        why="a chunk's last element is the next one's first",
    ),
    bug(
        "two halves of shared memory that overlap",
        r"""
__global__ void swap_halves(const float* x, const float* w, float* y) {
    extern __shared__ float room[];
    float* a = room;
    float* b = room + blockDim.x / 2;
    int t = threadIdx.x;
    a[t] = x[t];  // <- bug
    b[t] = w[t];  // <- bug
    __syncthreads();
    y[t] = a[t] * b[blockDim.x - 1 - t];
}
""",
        grid=1,
        block=64,
        args=(floats(64), floats(64), Empty(64)),
        shared=64 * 4 * 2,
        finds="Race",
        about="room|a|b",
        why="`b` begins in the middle of `a`",
    ),
    bug(
        "two lanes store into one element",
        r"""
__global__ void pack(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i / 2] = x[i];  // <- bug
}
""",
        grid=1,
        block=32,
        args=(floats(32), Empty(16), 32),
        finds="Race",
        about="y",
        why="which of two values stays is not defined",
    ),
    bug(
        "list with a head that everybody moves",
        r"""
__global__ void push(int* head, int* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        next[i] = *head;  // <- bug
        *head = i;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(ints(1, -1), Empty(2, "int32"), 2),
        finds="Race",
        about="head",
        why="reading the head and moving it has to be one atomicExch",
    ),
    bug(
        "plain read of a counter that others add to",
        r"""
__global__ void take(const float* x, float* out, int* used, int room) {
    int i = threadIdx.x;
    if (x[i] > 3.0f && *used < room) {  // <- bug
        int slot = atomicAdd(used, 1);  // <- bug
        if (slot < room) out[slot] = x[i];
    }
}
""",
        grid=2,
        block=32,
        args=(floats(32), Empty(16), ints(1, 0), 16),
        finds="Race",
        about="used",
        why="the test reads the counter without an atomic while others add to it",
    ),
]
