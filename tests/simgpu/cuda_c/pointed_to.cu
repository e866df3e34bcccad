// What the statements of test_pointers.py refer to.

// Functions.
typedef float (*op_t)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float mul(float a, float b) { return a * b; }
__device__ float square(float a) { return a * a; }
template <typename T> __device__ T triple(T a) { return 3 * a; }
__device__ op_t table[] = {add, mul};
__device__ float (*other[2])(float, float) = {&mul, add};
__constant__ op_t fixed_table[2] = {add, mul};
__device__ op_t nothing;
__device__ float apply(float (*f)(float), float v) { return f(v); }
__device__ float apply_two(op_t f, float a, float b) { return (*f)(a, b); }
template <typename F> __device__ float again(F f, float v) { return f(f(v)); }
template <float (*F)(float)> __device__ float known(float v) { return F(v); }
template <typename R, typename A> __device__ R deduced(R (*f)(A), A v) { return f(v); }
__device__ void grow(int* p) { *p += 2; }
__device__ void refer(float& p) { p += 2; }
template <typename F> __device__ void on(F f, float& p) { f(p); }
__device__ float several(float a) { return 100 * a; }
__device__ int several(int a) { return 1000 * a; }
__device__ float several(float a, float b) { return a + b; }
template <typename T> __device__ T given(T (*f)(T), T v) { return f(v); }
__device__ int takes(int (*f)(float)) { return 0; }
__device__ int takes(int (*f)(int)) { return 1; }
struct Step { op_t f; float by; };

// Data.
struct Matrix { int w, h; float* e; };
struct Node { int v; Node* next; };
template <typename T> struct Link { T v; Link<T>* next; Link* back; };
struct Inner; struct Outer { Inner* in; int v; };
struct Inner { Outer* out; __device__ int up() { return out->v; } };
__device__ float at(const Matrix* m, int r, int c) { return m->e[r * m->w + c]; }
__device__ void advance(float** p) { (*p)++; }
__device__ void pick(float* a, float* b, float** out) { *out = a[0] > b[0] ? a : b; }
__device__ float sum(float** rows, int n, int m) {
    float s = 0; for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) s += rows[r][c]; return s; }
__device__ float* kept = nullptr;

// Kernels that get addresses from the host, and leave them for each other.
__global__ void call(op_t f, const int* which, float* x) {
    int i = threadIdx.x; x[i] = f(i, 5) + 100 * table[which[i]](i, 2) + apply(square, i); }
__global__ void total(float** rows, int n, float* out) {
    int i = threadIdx.x; float s = 0; for (int r = 0; r < n; r++) s += rows[r][i]; out[i] = s; }
__global__ void scale(Matrix m, float by) { m.e[threadIdx.x] *= by; }
__global__ void keep(float** kept, float* a, float* b) { kept[0] = a; kept[1] = b + 1; }
__global__ void use(float* const* kept, float* out) { int i = threadIdx.x; out[i] = kept[i & 1][i / 2]; }
__global__ void link(Node* pool, int n) {
    int i = threadIdx.x; pool[i].v = i; pool[i].next = i + 1 < n ? &pool[i + 1] : nullptr; }
__global__ void walk(const Node* head, int* out) {
    int s = 0; for (const Node* p = head; p; p = p->next) s += p->v; *out = s; }
