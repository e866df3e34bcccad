// The header mma.h, as CUDA C++ that the interpreter reads: halves and bfloat16 in, floats out, on tensor cores.
//
// Which lane holds which element of a fragment is nobody's business (CUDA C++ Programming Guide, "Warp Matrix
// Functions"); here element e of a matrix, row by row, is x[e / 32] of a lane of its own. A GPU holds the elements of
// a matrix of halves more than once, so they are here as often.

namespace nvcuda { namespace wmma {
struct matrix_a {}; struct matrix_b {}; struct accumulator {}; struct row_major {}; struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32 {}; struct u4 {}; struct s4 {}; struct b1 {}; }
template <typename U, int M, int N, int K, typename T, typename L = void> struct fragment {
    static_assert(M < 0, "the simulated device has matrices of half and __nv_bfloat16, and accumulators of float");
    T x[1];
};
#define ASYNCGPU_FRAGMENT(use, T, rows, cols, elements) \
template <int M, int N, int K, typename L> struct fragment<use, M, N, K, T, L> { \
    static_assert(M * N * K == 4096 && K == 16, "the simulated device has fragments of 16x16x16, 32x8x16 and 8x32x16"); \
    T x[elements]; \
    static constexpr int num_elements = elements, _rows = rows, _columns = cols; \
    __device__ bool _turned() const { return std::is_same_v<L, col_major>; } \
};
ASYNCGPU_FRAGMENT(matrix_a, half, M, K, 16)
ASYNCGPU_FRAGMENT(matrix_b, half, K, N, 16)
ASYNCGPU_FRAGMENT(matrix_a, __nv_bfloat16, M, K, M / 2)
ASYNCGPU_FRAGMENT(matrix_b, __nv_bfloat16, K, N, N / 2)
ASYNCGPU_FRAGMENT(accumulator, float, M, N, 8)
#undef ASYNCGPU_FRAGMENT
template <typename F, typename T> __device__ inline void load_matrix_sync(F& f, const T* from, unsigned pitch) {
    __wmma_load(from, f.x, F::_rows, F::_columns, F::num_elements, pitch, f._turned()); }
template <typename F, typename T> __device__ inline void load_matrix_sync(F& f, const T* from, unsigned pitch, layout_t layout) {
    __wmma_load(from, f.x, F::_rows, F::_columns, F::num_elements, pitch, layout == mem_col_major); }
template <typename F, typename T> __device__ inline void store_matrix_sync(T* to, const F& f, unsigned pitch, layout_t layout) {
    __wmma_store(to, f.x, F::_rows, F::_columns, F::num_elements, pitch, layout == mem_col_major); }
template <typename F, typename T> __device__ inline void fill_fragment(F& f, T value) {
    for (int k = 0; k < F::num_elements; k++) f.x[k] = value; }
template <typename D, typename A, typename B, typename C>
__device__ inline void mma_sync(D& d, const A& a, const B& b, const C& c) {
    __wmma_multiply(d.x, a.x, b.x, c.x, A::_rows, B::_columns); }
} }
