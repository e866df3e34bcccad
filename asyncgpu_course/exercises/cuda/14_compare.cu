#include "hostcall_async.cuh"
#define SIZE 64     // numbers of a picture
#define PIECE 192   // pictures of a piece, and threads of the block

// How far apart are the pictures of a piece and each of those that somebody has asked for?
__device__ void compare(const char* bytes, int asked, const unsigned char* pictures, int* apart)
{
    __shared__ unsigned char wanted[64 * SIZE];
    int mine[SIZE];
    for (int c = threadIdx.x; c < asked * SIZE; c += PIECE) wanted[c] = pictures[c];
    __syncthreads();
    LATE
    for (int c = 0; c < SIZE; c++) mine[c] = bytes[c * PIECE + threadIdx.x];
    for (int q = 0; q < asked; q++) {
        int sum = 0;
        for (int c = 0; c < SIZE; c++) {
            int d = mine[c] - wanted[q * SIZE + c];
            sum += d * d;
        }
        apart[q * PIECE + threadIdx.x] = sum;
    }
}
