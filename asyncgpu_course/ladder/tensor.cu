// Halves in, floats out, on the tensor cores: a warp multiplies fragments of 16 x 16.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

constexpr unsigned int TALL = 128, BROAD = 256, DEEP = 32, THREADS = 256, STAGES = 3;
constexpr unsigned int OWN = 64, PIECE = 16;  // a warp: 64 x 64 elements, in pieces of 16 x 16
constexpr unsigned int PAD = 8;               // so that the rows of a piece lie in different banks

struct Stage {
    half a[TALL][DEEP + PAD], b[DEEP][BROAD + PAD];
};

template <unsigned int ROWS, unsigned int COLS>
__device__ void fetch(half (&to)[ROWS][COLS], const half* from, unsigned int n)
{
    constexpr unsigned int LANES = (COLS - PAD) / 8;  // each copy takes eight halves
    unsigned int row = threadIdx.x / LANES, col = threadIdx.x % LANES * 8;
    from += row * n + col;
#pragma unroll
    for (unsigned int i = 0; i < ROWS; i += THREADS / LANES, from += THREADS / LANES * n)
        __pipeline_memcpy_async(&to[row + i][col], from, 16);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
tensor(unsigned int n, const half* a, const half* b, float* c)
{
    using namespace nvcuda::wmma;
    constexpr unsigned int COUNT = OWN / PIECE;
    extern __shared__ __align__(128) unsigned char room[];
    Stage* stages = reinterpret_cast<Stage*>(room);
    unsigned int warp = threadIdx.x / 32, row = warp / 4 * OWN, col = warp % 4 * OWN;
    a += blockIdx.y * TALL * n;
    b += blockIdx.x * BROAD;
    c += (blockIdx.y * TALL + row) * n + blockIdx.x * BROAD + col;
    fragment<accumulator, 16, 16, 16, float> sums[COUNT][COUNT];
    for (unsigned int i = 0; i < COUNT; i++)
        for (unsigned int j = 0; j < COUNT; j++) fill_fragment(sums[i][j], 0.0f);
    for (unsigned int stage = 0; stage < STAGES - 1; stage++) {
        fetch(stages[stage].a, a + stage * DEEP, n);
        fetch(stages[stage].b, b + stage * DEEP * n, n);
        __pipeline_commit();
    }
    for (unsigned int t = 0; t < n / DEEP; t++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        unsigned int next = t + STAGES - 1;
        if (next < n / DEEP) {
            fetch(stages[next % STAGES].a, a + next * DEEP, n);
            fetch(stages[next % STAGES].b, b + next * DEEP * n, n);
        }
        __pipeline_commit();
        Stage& stage = stages[t % STAGES];
#pragma unroll
        for (unsigned int k = 0; k < DEEP; k += PIECE) {
            fragment<matrix_a, 16, 16, 16, half, row_major> of_a[COUNT];
            fragment<matrix_b, 16, 16, 16, half, row_major> of_b[COUNT];
            for (unsigned int i = 0; i < COUNT; i++) {
                load_matrix_sync(of_a[i], &stage.a[row + PIECE * i][k], DEEP + PAD);
                load_matrix_sync(of_b[i], &stage.b[k][col + PIECE * i], BROAD + PAD);
            }
            for (unsigned int i = 0; i < COUNT; i++)
                for (unsigned int j = 0; j < COUNT; j++) mma_sync(sums[i][j], of_a[i], of_b[j], sums[i][j]);
        }
    }
    for (unsigned int i = 0; i < COUNT; i++)
        for (unsigned int j = 0; j < COUNT; j++)
            store_matrix_sync(&c[PIECE * (i * n + j)], sums[i][j], n, mem_row_major);
}
