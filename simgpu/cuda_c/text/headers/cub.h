// What kernels use most of CUB: BlockReduce, as it is by default (BLOCK_REDUCE_WARP_REDUCTIONS).
//
// In each warp a lane takes what is 1, 2, 4, 8 and 16 lanes further up, and then thread 0 takes what the warps have, in
// their order (cub/warp/specializations/warp_reduce_shfl.cuh, cub/block/specializations/
// block_reduce_warp_reductions.cuh). So sums of floats are rounded as there, in thread 0, for which alone CUB promises
// a sum.

namespace cub {
enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
template <typename T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class cub_BlockReduce {  // which is cub::BlockReduce
    static_assert(A == BLOCK_REDUCE_WARP_REDUCTIONS, "the simulated device has cub::BlockReduce by warps alone");
    struct Added { __device__ T operator()(T a, T b) const { return a + b; } };
    T* warps;
    static __device__ T of(int lane, T value, unsigned mask) {
        if constexpr (sizeof(T) <= 8 && sizeof(T) == alignof(T)) return __shfl_sync(mask, value, lane);
        else {
            unsigned words[(sizeof(T) + 3) / 4];
            memcpy(words, &value, sizeof(T));
            for (int k = 0; k < (sizeof(T) + 3) / 4; k++) words[k] = __shfl_sync(mask, words[k], lane);
            memcpy(&value, words, sizeof(T));
            return value;
        }
    }
public:
    struct TempStorage { T warps[(X * Y * Z + 31) / 32]; };
    __device__ cub_BlockReduce(TempStorage& storage) : warps(storage.warps) {}
    template <typename F> __device__ T Reduce(T value, F reduce, int valid = X * Y * Z) {
        const int me = threadIdx.x + X * (threadIdx.y + Y * threadIdx.z), lane = me % 32, warp = me / 32;
        const int lanes = min(32, X * Y * Z - 32 * warp), left = min(32, valid - 32 * warp);
        const unsigned mask = lanes < 32 ? (1u << lanes) - 1 : 0xffffffffu;
        for (int step = 1; step < 32; step *= 2) {
            T further = of(min(lane + step, lanes - 1), value, mask);
            if (lane + step < left) value = reduce(value, further);
        }
        if (lane == 0) warps[warp] = value;
        __syncthreads();
        if (me == 0) for (int k = 1; 32 * k < valid; k++) value = reduce(value, warps[k]);
        return value;
    }
    __device__ T Sum(T value, int valid = X * Y * Z) { return Reduce(value, Added(), valid); }
};
}
