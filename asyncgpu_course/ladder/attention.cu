// softmax(q @ k.T / sqrt(HEAD)) @ v of each head, without ever writing the square matrix between: of each row only
// its largest number so far and its sum so far are kept, and what's been added up is shrunk when a larger one comes.
#include <cuda_pipeline.h>

#ifndef HEAD
#define HEAD 64  // or 128
#endif

// A block's queries, and the keys of a step. A thread has OWN queries, every eighth key, and an eighth of each result.
constexpr int QUERIES = 2 * HEAD, KEYS = 4096 / HEAD, THREADS = QUERIES;
constexpr int OWN = 8, MINE = KEYS / 8, DIMS = HEAD / 8;
constexpr float MUCH = 16;  // weights may reach two to the power of this before anything is shrunk

// Queries and weights are turned, so that a thread's eight come as two float4s. That saves reads of weights. Of the
// queries it saves none, and yet makes an H200 1 to 3 % quicker: registers have banks, too, and a float4 along a row of
// q and one along a row of k have the factors of each product at the same place, so in registers of the same bank.
struct Room {
    float q[HEAD][QUERIES], k[KEYS][HEAD + 4], v[KEYS][HEAD], weights[KEYS][QUERIES + 4];
};

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }

template <int LENGTH>
__device__ void fetch(float (&to)[KEYS][LENGTH], const float* from)
{
    int key = threadIdx.x / (HEAD / 4), at = threadIdx.x % (HEAD / 4) * 4;
    from += key * HEAD + at;
#pragma unroll
    for (int i = 0; i < KEYS; i += THREADS * 4 / HEAD)
        __pipeline_memcpy_async(&to[key + i][at], &from[i * HEAD], sizeof(float4));
    __pipeline_commit();
}

// What was fetched has come, for everybody. And everybody is done with the tile before, whose place is free now.
__device__ void arrived()
{
    __pipeline_wait_prior(0);
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)
attention(int length, float scale, const float* q, const float* k, const float* v, float* out)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Room& room = *reinterpret_cast<Room*>(memory);
    int x = threadIdx.x % 8, y = threadIdx.x / 8 % 4;  // eight lanes have their rows in common
    int row = threadIdx.x / 32 * 32 + 4 * y;           // of eight: four from here, and four from 16 further on
    size_t head = static_cast<size_t>(blockIdx.y) * length * HEAD;
    q += head + blockIdx.x * QUERIES * HEAD, out += head + blockIdx.x * QUERIES * HEAD;
    k += head, v += head;
    fetch(room.k, k);
    for (int i = threadIdx.x; i < QUERIES * HEAD / 4; i += THREADS) {
        int at = i % QUERIES, d = i / QUERIES * 4;
        float4 some = *reinterpret_cast<const float4*>(&q[at * HEAD + d]);
        room.q[d][at] = some.x * scale, room.q[d + 1][at] = some.y * scale;
        room.q[d + 2][at] = some.z * scale, room.q[d + 3][at] = some.w * scale;
    }
    float sums[OWN][DIMS] = {}, top[OWN], total[OWN] = {};
    for (int i = 0; i < OWN; i++) top[i] = -1e30f;
    for (int t = 0; t < length; t += KEYS) {
        arrived();
        fetch(room.v, v + t * HEAD);  // on its way while the scores are computed
        float scores[OWN][MINE] = {};
#pragma unroll 8
        for (int d = 0; d < HEAD; d += 4) {
            __align__(16) float of_q[4][OWN], of_k[MINE][4];
#pragma unroll
            for (int c = 0; c < 4; c++)
#pragma unroll
                for (int i = 0; i < OWN; i += 4) four(of_q[c][i]) = four(room.q[d + c][row + 4 * i]);
#pragma unroll
            for (int j = 0; j < MINE; j++) four(of_k[j][0]) = four(room.k[x + 8 * j][d]);
#pragma unroll
            for (int c = 0; c < 4; c++)
#pragma unroll
                for (int j = 0; j < MINE; j++)
#pragma unroll
                    for (int i = 0; i < OWN; i++) scores[i][j] += of_q[c][i] * of_k[j][c];
        }
        arrived();
        if (t + KEYS < length) fetch(room.k, k + (t + KEYS) * HEAD);
        bool much = false;
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < MINE; j++) much = much || scores[i][j] > top[i] + MUCH;
        if (__any_sync(0xffffffff, much)) {
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                float high = top[i];
                for (int j = 0; j < MINE; j++) high = fmaxf(high, scores[i][j]);
                for (int far = 1; far < 8; far *= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, far));
                float shrink = exp2f(top[i] - high);
                top[i] = high, total[i] *= shrink;
                for (int j = 0; j < DIMS; j++) sums[i][j] *= shrink;
            }
        }
#pragma unroll
        for (int j = 0; j < MINE; j++) {
            __align__(16) float weights[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++) total[i] += weights[i] = exp2f(scores[i][j] - top[i]);
#pragma unroll
            for (int i = 0; i < OWN; i += 4) four(room.weights[x + 8 * j][row + 4 * i]) = four(weights[i]);
        }
        __syncwarp();  // a row's weights stay within its warp
#pragma unroll 16
        for (int key = 0; key < KEYS; key++) {
            __align__(16) float weights[OWN], of_v[DIMS];
#pragma unroll
            for (int i = 0; i < OWN; i += 4) four(weights[i]) = four(room.weights[key][row + 4 * i]);
#pragma unroll
            for (int j = 0; j < DIMS; j += 4) four(of_v[j]) = four(room.v[key][4 * x + 8 * j]);
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int j = 0; j < DIMS; j++) sums[i][j] += weights[i] * of_v[j];
        }
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        for (int far = 1; far < 8; far *= 2) total[i] += __shfl_xor_sync(0xffffffff, total[i], far);
        for (int j = 0; j < DIMS; j++) sums[i][j] /= total[i];
        for (int j = 0; j < DIMS; j += 4)
            four(out[(row + i / 4 * 16 + i % 4) * HEAD + 4 * x + 8 * j]) =
                make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
}
