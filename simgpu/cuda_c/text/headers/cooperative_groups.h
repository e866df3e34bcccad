// The header cooperative_groups.h, as CUDA C++ that the interpreter reads.
//
// Each group is a struct whose functions call the barriers and warp functions that are there anyway. A tile and
// a coalesced group know the lanes of their warp by a mask. (CUDA C++ Programming Guide, "Cooperative Groups".)
// `reduce` adds up by shuffles across the halves; NVIDIA does not say in what order it does.

// What a tile and a coalesced group have in common.
#define WITHIN_A_WARP \
    __device__ void sync() const { __syncwarp(_lanes()); } \
    template <typename T> __device__ T shfl(T value, int rank) const { \
        return _shfl_sync(_lanes(), value, _lane(rank)); } \
    __device__ int any(int test) const { return __any_sync(_lanes(), test); } \
    __device__ int all(int test) const { return __all_sync(_lanes(), test); } \
    __device__ thread_group _group() const { \
        thread_group g; g._size = size(); g._rank = thread_rank(); g._mask = _lanes(); return g; } \
    __device__ operator thread_group() const { return _group(); }

namespace cooperative_groups {
__device__ inline unsigned _number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
struct thread_group {
    unsigned _size, _rank, _mask;
    __device__ unsigned size() const { return _size; }
    __device__ unsigned num_threads() const { return _size; }
    __device__ unsigned thread_rank() const { return _rank; }
    __device__ void sync() const { if (_mask) { __syncwarp(_mask); } else { __syncthreads(); } }
};
struct thread_block {
    __device__ unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned num_threads() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned thread_rank() const { return _number(); }
    __device__ unsigned _tile() const { return 0; }
    __device__ dim3 group_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ dim3 thread_index() const { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __device__ dim3 group_dim() const { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __device__ dim3 dim_threads() const { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __device__ void sync() const { __syncthreads(); }
    __device__ operator thread_group() const {
        thread_group g; g._size = size(); g._rank = thread_rank(); g._mask = 0; return g; }
};
struct grid_group {
    __device__ unsigned long long num_blocks() const {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    __device__ unsigned long long block_rank() const {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
    __device__ unsigned long long size() const { return num_blocks() * blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned long long num_threads() const { return size(); }
    __device__ unsigned long long thread_rank() const {
        return block_rank() * (blockDim.x * blockDim.y * blockDim.z)
            + threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    __device__ dim3 group_dim() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    __device__ dim3 dim_blocks() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    __device__ bool is_valid() const { return true; }
    __device__ void sync() const { __grid_sync(); }
};
template <unsigned N, typename P = thread_block> struct thread_block_tile {
    unsigned _of;  // the size of the tile that it is a part of, 0 if it is one of the block
    __device__ unsigned size() const { return N; }
    __device__ unsigned _tile() const { return N; }
    __device__ unsigned num_threads() const { return N; }
    __device__ unsigned thread_rank() const { return _number() % N; }
    __device__ unsigned meta_group_rank() const { return (_of ? _number() % _of : _number()) / N; }
    __device__ unsigned meta_group_size() const {
        return ((_of ? _of : blockDim.x * blockDim.y * blockDim.z) + N - 1) / N; }
    __device__ unsigned _first() const { return _number() % 32 / N * N; }
    __device__ unsigned _lanes() const { return (0xffffffffu >> (32 - N)) << _first(); }
    __device__ int _lane(int rank) const { return _first() + rank % (int)N; }
    WITHIN_A_WARP

    template <typename T> __device__ T shfl_down(T value, unsigned by) const {
        return _shfl_down_sync(_lanes(), value, by, N); }
    template <typename T> __device__ T shfl_up(T value, unsigned by) const {
        return _shfl_up_sync(_lanes(), value, by, N); }
    template <typename T> __device__ T shfl_xor(T value, unsigned by) const {
        return _shfl_xor_sync(_lanes(), value, by, N); }
    __device__ unsigned ballot(int test) const { return __ballot_sync(_lanes(), test) >> _first(); }
    template <typename T> __device__ unsigned match_any(T value) const {
        return __match_any_sync(_lanes(), value) >> _first(); }
};
struct coalesced_group {
    unsigned _mask, _which, _several;  // the last two: which one it is, of how many that were parted
    __device__ unsigned size() const { return __popc(_mask); }
    __device__ unsigned num_threads() const { return __popc(_mask); }
    __device__ unsigned _own() const { return _number() % 32; }
    __device__ unsigned thread_rank() const { return __popc(_mask & ((1u << _own()) - 1)); }
    __device__ unsigned meta_group_rank() const { return _which; }
    __device__ unsigned meta_group_size() const { return _several; }
    __device__ unsigned _lanes() const { return _mask; }
    __device__ int _lane(int rank) const {
        unsigned left = _mask;
        for (int k = 0; k < rank; k++) { left &= left - 1; }
        return __ffs(left) - 1; }
    WITHIN_A_WARP

    template <typename T> __device__ T shfl_down(T value, unsigned by) const {
        int to = thread_rank() + by;
        return _shfl_sync(_mask, value, to < size() ? _lane(to) : (int)_own()); }
    template <typename T> __device__ T shfl_up(T value, unsigned by) const {
        int to = (int)thread_rank() - (int)by;
        return _shfl_sync(_mask, value, to >= 0 ? _lane(to) : (int)_own()); }
    __device__ unsigned ballot(int test) const {
        unsigned found = __ballot_sync(_mask, test), out = 0;
        for (int k = 0; k < 32; k++) {
            if (_mask >> k & 1) { out |= (found >> k & 1) << __popc(_mask & ((1u << k) - 1)); } }
        return out; }
};
__device__ inline thread_block this_thread_block() { thread_block g; return g; }
template <unsigned N> struct block_tile_memory { char _room[N / 32 * 16]; };
template <unsigned N> __device__ inline thread_block this_thread_block(block_tile_memory<N>& room) {
    thread_block g; return g; }
__device__ inline grid_group this_grid() { grid_group g; return g; }
__device__ inline coalesced_group coalesced_threads() {
    coalesced_group g; g._mask = __activemask(); g._which = 0; g._several = 1; return g; }
template <unsigned N, typename G> __device__ inline thread_block_tile<N> tiled_partition(const G& g) {
    thread_block_tile<N> t; t._of = g._tile(); return t; }
template <typename G> __device__ inline thread_group tiled_partition(const G& g, unsigned size) {
    thread_group t; t._size = size; t._rank = g.thread_rank() % size;
    t._mask = (0xffffffffu >> (32 - size)) << (_number() % 32 / size * size); return t; }
__device__ inline coalesced_group tiled_partition(const coalesced_group& g, unsigned size) {
    coalesced_group t; t._mask = 0; t._which = g.thread_rank() / size; t._several = (g.size() + size - 1) / size;
    for (unsigned k = 0; k < 32; k++) {
        unsigned rank = __popc(g._mask & ((1u << k) - 1));
        if ((g._mask >> k & 1) && rank / size == t._which) { t._mask |= 1u << k; } }
    return t; }
template <typename G> __device__ inline void sync(const G& g) { g.sync(); }
template <typename G> __device__ inline unsigned thread_rank(const G& g) { return g.thread_rank(); }
template <typename G> __device__ inline unsigned group_size(const G& g) { return g.size(); }
template <typename T> struct plus { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { __device__ T operator()(T a, T b) const { return a < b ? a : b; } };
template <typename T> struct greater { __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
template <typename T> struct bit_and { __device__ T operator()(T a, T b) const { return a & b; } };
template <typename T> struct bit_or { __device__ T operator()(T a, T b) const { return a | b; } };
template <typename T> struct bit_xor { __device__ T operator()(T a, T b) const { return a ^ b; } };
template <unsigned N, typename T, typename F>
__device__ inline T reduce(const thread_block_tile<N>& g, T value, const F& op) {
    for (unsigned k = N / 2; k > 0; k /= 2) { value = op(value, g.shfl_xor(value, k)); } return value; }
template <typename T, typename F>
__device__ inline T reduce(const coalesced_group& g, T value, const F& op) {
    T out = g.shfl(value, 0);
    for (unsigned k = 1; k < g.size(); k++) { out = op(out, g.shfl(value, k)); } return out; }
}

#undef WITHIN_A_WARP
