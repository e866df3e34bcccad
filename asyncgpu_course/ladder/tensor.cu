// Halves in, floats out, on the tensor cores: a warp multiplies pieces of 16 x 16.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TALL = 128, BROAD = 256, DEEP = 32, THREADS = 256, STAGES = 3;
constexpr int OWN = 64, PIECE = 16, COUNT = OWN / PIECE;  // a warp: 64 x 64 elements, four times four pieces
constexpr int PAD = 8;                                    // so that the rows of a piece lie in different banks

using PieceOfA = wmma::fragment<wmma::matrix_a, PIECE, PIECE, PIECE, half, wmma::row_major>;
using PieceOfB = wmma::fragment<wmma::matrix_b, PIECE, PIECE, PIECE, half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, PIECE, PIECE, PIECE, float>;

struct Stage {
    half a[TALL][DEEP + PAD], b[DEEP][BROAD + PAD];
};

template <int ROWS, int PITCH>
__device__ void fetch(half (&to)[ROWS][PITCH], const half* from, int n)
{
    constexpr int LANES = (PITCH - PAD) / 8;  // each copy takes eight halves
    int row = threadIdx.x / LANES, col = threadIdx.x % LANES * 8;
    from += row * n + col;
#pragma unroll
    for (int i = 0; i < ROWS; i += THREADS / LANES, from += THREADS / LANES * n)
        __pipeline_memcpy_async(&to[row + i][col], from, 16);
}

__device__ void read(PieceOfA* of_a, PieceOfB* of_b, Stage& stage, int k, int row, int col)
{
    for (int i = 0; i < COUNT; i++) {
        wmma::load_matrix_sync(of_a[i], &stage.a[row + PIECE * i][k], DEEP + PAD);
        wmma::load_matrix_sync(of_b[i], &stage.b[k][col + PIECE * i], BROAD + PAD);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
tensor(int n, const half* a, const half* b, float* c)
{
    extern __shared__ __align__(128) unsigned char room[];
    Stage* stages = reinterpret_cast<Stage*>(room);
    int warp = threadIdx.x / 32, row = warp / 4 * OWN, col = warp % 4 * OWN;
    a += blockIdx.y * TALL * n;
    b += blockIdx.x * BROAD;
    c += (blockIdx.y * TALL + row) * n + blockIdx.x * BROAD + col;
    Sums sums[COUNT][COUNT];
    PieceOfA of_a[2][COUNT];
    PieceOfB of_b[2][COUNT];
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) wmma::fill_fragment(sums[i][j], 0.0f);
    for (int stage = 0; stage < STAGES - 1; stage++) {
        fetch(stages[stage].a, a + stage * DEEP, n);
        fetch(stages[stage].b, b + stage * DEEP * n, n);
        __pipeline_commit();
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    read(of_a[0], of_b[0], stages[0], 0, row, col);
    for (int t = 0; t < n / DEEP; t++) {
        int next = t + STAGES - 1;
        if (next < n / DEEP) {
            fetch(stages[next % STAGES].a, a + next * DEEP, n);
            fetch(stages[next % STAGES].b, b + next * DEEP * n, n);
        }
        __pipeline_commit();
#pragma unroll
        for (int k = 0; k < DEEP / PIECE; k++) {
            bool last = k == DEEP / PIECE - 1;
            if (last) {
                __pipeline_wait_prior(STAGES - 2);
                __syncthreads();
            }
            read(of_a[(k + 1) % 2], of_b[(k + 1) % 2], stages[(t + last) % STAGES], (k + 1) * PIECE % DEEP, row, col);
            for (int i = 0; i < COUNT; i++)
                for (int j = 0; j < COUNT; j++)
                    wmma::mma_sync(sums[i][j], of_a[k % 2][i], of_b[k % 2][j], sums[i][j]);
        }
    }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            wmma::store_matrix_sync(&c[PIECE * (i * n + j)], sums[i][j], n, wmma::mem_row_major);
}
