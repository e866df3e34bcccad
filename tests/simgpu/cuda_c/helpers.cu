// What random kernels call.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuComplex.h>
struct Pair { int a; float b; };
__device__ int mix(int a, int b) { if (a > b) return a - b; a ^= b << 3; return a + 7; }
__device__ float bend(float v, int k) { for (int j = 0; j < (k & 3); j++) { if (v > 50.0f) return v - 1.5f; v = v * 0.5f + 1.0f; } return v; }
__device__ void both(int& a, float& b) { int t = a; a = (int)fmaxf(-1e6f, fminf(1e6f, b)); b = (float)(t & 1023); }
__device__ Pair pair(int a, float b) { Pair p; p.a = a; p.b = b; return p; }
enum Mode { LOW = 3, HIGH };
enum class Side : unsigned char { Left = 1, Right };
namespace geo { const int STEP = 5; __device__ int turn(int a, int b) { return a > b ? a - STEP : b + STEP; } }
struct Vec {
    float x, y;
    static constexpr int SIZE = 2;
    __device__ Vec() : x(0.5f), y(0) {}
    __device__ Vec(float v) : x(v), y(v * 0.5f) {}
    __device__ Vec(float x, float y) : x(x), y(y) { if (this->x > 1e5f) this->x = 1.0f; }
    __device__ float sum() const { return x + y; }
    __device__ Vec operator+(const Vec& o) const { return Vec(x + o.x, y + o.y); }
    __device__ Vec operator-() const { return Vec(-x, -y); }
    __device__ bool operator<(const Vec& o) const { return sum() < o.sum(); }
    __device__ Vec& operator+=(const Vec& o) { x += o.x; if (o.y > x) return *this; y += o.y * 0.5f; return *this; }
    __device__ float& operator[](int k) { return k ? y : x; }
    __device__ float operator()(float a) const { return a * 0.25f + x; }
};
__device__ Vec operator*(const Vec& v, float a) { return Vec(v.x * a * 0.125f, v.y); }
template <typename T, int N> struct Box {
    T data[N] = {};
    int used = 1;
    __device__ void put(T v) { data[used & (N - 1)] = v; used++; }
    __device__ T& at(int k) { return data[k & (N - 1)]; }
    __device__ T total() const { T s = 0; for (T v : data) s += v; return s; }
};
template <typename T> struct Kind { static constexpr int id = 1; using wide = double; };
template <> struct Kind<int> { static constexpr int id = 2; using wide = long long; };
template <typename T> struct Kind<T*> { static constexpr int id = 10 + Kind<T>::id; using wide = T; };
template <typename T> struct Smaller { __device__ bool operator()(T a, T b) const { return a < b; } };
template <typename T, typename Op> __device__ T pick(T a, T b, Op op) { return op(a, b) ? a : b; }
template <int N> __device__ auto power(int a) { if constexpr (N == 0) return 1; else return (a & 15) * power<N - 1>(a); }
struct Shape {
    int n = 3; float k;
    static constexpr int DIM = 2;
    __device__ Shape() : k(0.5f) {}
    __device__ Shape(float k) : n(5), k(k) {}
    __device__ int sides() const { return n; }
    __device__ float area() const { return k * sides() + DIM; }
    __device__ void grow(int by) { n ^= by; }
};
struct Square : public Shape {
    float side;
    __device__ Square() : side(2.5f) {}
    __device__ Square(float s, int n) : Shape(s * 0.5f), side(s) { this->n += n; }
    __device__ int sides() const { return Shape::sides() ^ 40; }
};
template <typename T> struct Named : Square { T id; int tail = 4; };
struct Pack { Shape parts[2]; Named<short> named; int rest; };
__device__ float area_of(const Shape& s) { return s.area() - s.n; }
__device__ int sum_of(Pack p) { return p.parts[1].n + p.named.sides() * 3 + p.named.tail + p.rest; }
template <typename F> __device__ auto twice(F f, int a) { return f(f(a)); }
template <typename F> __device__ void each(int n, F f) { for (int j = 0; j < n; j++) f(j); }
// Which NaN an operation gives is each machine's own affair: a GPU's is 0x7fffffff, and x86 has others.
__device__ unsigned bits(float v) { union { float f; unsigned u; } both; both.f = v; return v != v ? 9u : both.u; }
__device__ int as_int(float v) { return v != v ? 9 : __float_as_int(v); }
__device__ int as_int(half v) { return __hisnan(v) ? 9 : __half_as_ushort(v); }
__device__ int as_int(__nv_bfloat16 v) { return __hisnan(v) ? 9 : __bfloat16_as_ushort(v); }
template <template <typename> class Op, typename T> __device__ T fold(T a, T b) { return Op<T>()(a, b) ? a * 3 : b; }
template <typename T> __device__ T unit(T a);
template <> __device__ int unit(int a) { return a ^ 21; }
template <> __device__ float unit<float>(float a) { return a * 0.75f; }
__device__ Pair kept(int a, float b) { Pair p[2] = {{a, b}, {3, 0.5f}}; memcpy(&p[1], &p[0], sizeof(int)); memcpy(p, p + 1, sizeof(Pair)); p[0].a ^= 5; Pair q = p[0]; p[0].b = 9; return q; }
__device__ int bytes(int a, unsigned b) { unsigned char c[8]; memset(c, a, 5); memcpy(c + 4, &b, 4); unsigned short s; memcpy(&s, c + (b & 6u), 2); return s; }
__device__ int in_union(float v) { union { float f; unsigned char b[4]; }; f = v != v ? 1.0f : v; return b[3] * 2 + b[1]; }
struct Picked { int n; __device__ Picked(int n) : n(n) {} __device__ operator int() const { return n & 1023; } };
