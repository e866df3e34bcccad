// softmax(q @ k.T / sqrt(HEAD)) @ v of each head, without ever writing the square matrix between: of each row only
// its largest number so far and its sum so far are kept, and what's been added up is shrunk when a larger one comes.
#include <cuda_pipeline.h>

#ifndef HEAD
#define HEAD 64  // or 128
#endif

// A block's queries, and the keys of a step; a thread has ROWS queries, every fourth one, every eighth key, and HEAD / 8
// places of the result. With twice as long heads it has half as many queries, or their sums wouldn't fit into registers.
constexpr int QUERIES = HEAD, KEYS = HEAD / 2, ROWS = 512 / HEAD;
constexpr int THREADS = QUERIES / (4 * ROWS) * 32;
constexpr int MINE = KEYS / 8, DIMS = HEAD / 8;
constexpr int PITCH = HEAD + 4;  // so that eight rows lie in different banks

struct Room {
    float q[QUERIES][PITCH], k[KEYS][PITCH], v[KEYS][HEAD], weights[QUERIES][KEYS + 4];
};

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }

template <int LINES, int LENGTH>
__device__ void fetch(float (&to)[LINES][LENGTH], const float* from)
{
#pragma unroll
    for (int i = 0; i < LINES * HEAD; i += THREADS * 4) {
        int at = i + threadIdx.x * 4;
        __pipeline_memcpy_async(&to[at / HEAD][at % HEAD], &from[at], sizeof(float4));
    }
    __pipeline_commit();
}

__device__ void add_product(float& sum, float4 a, float4 b)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
}

__device__ void add_times(float* sums, float factor, float4 v)
{
    sums[0] += factor * v.x, sums[1] += factor * v.y, sums[2] += factor * v.z, sums[3] += factor * v.w;
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention(int length, float scale, const float* q, const float* k, const float* v, float* out)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Room& room = *reinterpret_cast<Room*>(memory);
    int lane = threadIdx.x % 32, x = lane % 8;          // eight lanes have their rows in common
    int row = threadIdx.x / 32 * 4 * ROWS + lane / 8;
    size_t head = static_cast<size_t>(blockIdx.y) * length * HEAD;
    q += head + blockIdx.x * QUERIES * HEAD, out += head + blockIdx.x * QUERIES * HEAD;
    k += head, v += head;
    float sums[ROWS][DIMS] = {}, top[ROWS], total[ROWS] = {};
    for (int i = 0; i < ROWS; i++) top[i] = -1e30f;
    fetch(room.q, q);
    fetch(room.k, k);
    for (int t = 0; t < length; t += KEYS) {
        fetch(room.v, v + t * HEAD);
        __pipeline_wait_prior(1);  // the keys have come, and the values are on their way
        __syncthreads();
        float scores[ROWS][MINE] = {};
#pragma unroll 8
        for (int d = 0; d < HEAD; d += 4) {
            float4 of_q[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) of_q[i] = four(room.q[row + 4 * i][d]);
#pragma unroll
            for (int j = 0; j < MINE; j++) {
                float4 of_k = four(room.k[x + 8 * j][d]);
#pragma unroll
                for (int i = 0; i < ROWS; i++) add_product(scores[i][j], of_q[i], of_k);
            }
        }
        __syncthreads();  // everybody has read the keys
        if (t + KEYS < length)
            fetch(room.k, k + (t + KEYS) * HEAD);
        else
            __pipeline_commit();  // an empty one, so that the next wait counts alike
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float high = top[i];
            for (int j = 0; j < MINE; j++) high = fmaxf(high, scores[i][j]);
            for (int far = 1; far < 8; far *= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, far));
            float shrink = exp2f((top[i] - high) * scale);
            top[i] = high, total[i] *= shrink;
            for (int j = 0; j < DIMS; j++) sums[i][j] *= shrink;
            for (int j = 0; j < MINE; j++) {
                float weight = exp2f((scores[i][j] - high) * scale);
                total[i] += weight;
                room.weights[row + 4 * i][x + 8 * j] = weight;
            }
        }
        __pipeline_wait_prior(1);  // the values have come, and the next keys are on their way
        __syncthreads();
#pragma unroll 2
        for (int key = 0; key < KEYS; key += 4) {
            float4 weights[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) weights[i] = four(room.weights[row + 4 * i][key]);
#pragma unroll
            for (int j = 0; j < DIMS; j += 4) {
                int at = 4 * x + 8 * j;
                float4 v0 = four(room.v[key][at]), v1 = four(room.v[key + 1][at]);
                float4 v2 = four(room.v[key + 2][at]), v3 = four(room.v[key + 3][at]);
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    add_times(&sums[i][j], weights[i].x, v0);
                    add_times(&sums[i][j], weights[i].y, v1);
                    add_times(&sums[i][j], weights[i].z, v2);
                    add_times(&sums[i][j], weights[i].w, v3);
                }
            }
        }
        __syncthreads();  // everybody has read the values
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        for (int far = 1; far < 8; far *= 2) total[i] += __shfl_xor_sync(0xffffffff, total[i], far);
        for (int j = 0; j < DIMS; j += 4)
            four(out[(row + 4 * i) * HEAD + 4 * x + 8 * j]) =
                make_float4(sums[i][j] / total[i], sums[i][j + 1] / total[i], sums[i][j + 2] / total[i],
                            sums[i][j + 3] / total[i]);
    }
}
