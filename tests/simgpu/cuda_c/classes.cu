// What the statements of test_classes.py refer to.

// Members and operators.
struct Vec {
    float x, y;
    __device__ Vec() : x(0), y(0) {}
    __device__ Vec(float v) : x(v), y(v) {}
    __device__ Vec(float x, float y) : x(x), y(y) {}
    __device__ float dot(const Vec& o) const { return x * o.x + y * o.y; }
    __device__ float norm2() const { return dot(*this); }
    __device__ Vec operator+(const Vec& o) const { return Vec(x + o.x, y + o.y); }
    __device__ Vec& operator+=(const Vec& o) { x += o.x; y += o.y; return *this; }
    __device__ float& operator[](int i) { return i == 0 ? x : y; }
    __device__ float operator()(float a) const { return a * x + y; }
    __device__ bool operator==(const Vec& o) const { return x == o.x && y == o.y; }
    __device__ void scale(float by) { this->x *= by; y *= by; }
    __device__ static Vec unit() { return Vec(1, 0); }
    static constexpr int SIZE = 2;
    using value_type = float;
};
__device__ Vec operator*(float a, const Vec& v) { return Vec(a * v.x, a * v.y); }
__device__ Vec operator*(const Vec& v, float a) { return a * v; }

// What is made by a call, and what a constructor leaves out.
struct Three { float e[3]; __device__ Three() {}
    __device__ Three(float a) { e[0] = a; e[1] = a + 1; e[2] = a + 2; }
    __device__ float& operator[](int k) { return e[k]; }
    __device__ float operator[](int k) const { return e[k]; }
    __device__ float sum() const { return e[0] + e[1] + e[2]; } };
struct Trio { float a, b, c; };
struct Both { Three v; Trio p; };
struct Ray { Three from, to; __device__ Ray() {} __device__ Ray(const Three& a, const Three& b) { from = a; to = b; }
    __device__ Three end() const { return to; } };
__device__ Three mk(int* p) { (*p)++; return Three(*p); }
__device__ Trio mp(int* p) { (*p)++; Trio r = {1, 2, 3}; r.a = *p; return r; }
__device__ float total(Three v) { return v.sum(); }
__device__ float first(const Three& v) { return v.e[0]; }

// References to an object, handed on.
struct B { int n; __device__ B& add(int k) { n += k; return *this; } __device__ B& operator++() { n++; return *this; }
    __device__ B& operator+=(int k) { n += k; return *this; } __device__ void twice() { n *= 2; }
    __device__ int get() const { return n; } };
__device__ B& same(B& a) { return a; }
__device__ B& choose(B& a, B& b, bool f) { return f ? a : b; }
__device__ int& low(int& a, int& b) { return a < b ? a : b; }

// Conversions.
template <class T> struct SharedMemory {
    __device__ inline operator T*() { extern __shared__ int raw[]; return (T*)raw; }
    __device__ inline operator const T*() const { extern __shared__ int raw[]; return (T*)raw; } };
struct Count { int n = 0; __device__ Count& operator++() { ++n; return *this; }
    __device__ operator int() const { return n; } };
struct Number { float f; __device__ Number(float f) : f(f) {} __device__ operator float() const { return f; }
    __device__ explicit operator bool() const { return f > 2; } };
__device__ float half_of(float a) { return a / 2; }

// Templates of structs and functions.
template <typename T, int N = 4> struct Box { T v[N]; };
template <typename T> struct Less { __device__ bool operator()(T a, T b) const { return a < b; } };
template <typename T, typename Op> __device__ T pick(T a, T b, Op op) { return op(a, b) ? a : b; }
template <typename T, int N> __device__ T sum(const Box<T, N>& b) { T s = 0; for (int k = 0; k < N; k++) s += b.v[k]; return s; }
template <typename T, int N> __device__ int length(T (&a)[N]) { return N; }
template <typename T> __device__ int kind(T a) { return 0; }
template <> __device__ int kind<float>(float a) { return 1; }
template <> __device__ int kind(double a) { return 2; }

// Namespaces, and names of types.
namespace a { const int N = 3; namespace b { __device__ int f(int v) { return v + N; } struct S { int v; }; } }
namespace c { __device__ int g() { return a::b::f(1); } }
namespace ab = a::b;
using namespace a;
using a::b::f;
enum Color { RED, GREEN = 5, BLUE };
enum class Mode : unsigned char { Off = 2, On };
typedef float Row[4];

// Base classes.
struct Shape {
    int n = 3; float k;
    static constexpr int DIM = 2;
    using real = double;
    __device__ Shape() : k(0.5f) {}
    __device__ Shape(float k) : k(k) {}
    __device__ int sides() const { return n; }
    __device__ float area() const { return k * sides(); }
    __device__ void grow() { n++; }
    __device__ static int two() { return 2; }
};
struct Square : public Shape {
    float side;
    __device__ Square(float s) : Shape(s * 2), side(s) { n = 4; }
    __device__ int sides() const { return 40 + Shape::sides(); }
};
struct Tiny : Square { int n; __device__ Tiny() : Square(1.0f), n(9) {} __device__ int all() { grow(); return n * 10 + Shape::n; } };
struct Plain { int a, b; };
struct More : Plain { int c; };
struct Nothing { __device__ int seven() const { return 7; } };
struct Some : Nothing { int x = 1; };
template <typename T> struct Holder { T v; __device__ Holder(T v) : v(v) {} __device__ T get() const { return v; } };
template <typename T> struct Twice : Holder<T> { __device__ Twice(T v) : Holder<T>(v) {} __device__ T two() { return 2 * this->v; } };
__device__ float area_of(const Shape& s) { return s.area(); }
__device__ float by_value(Shape s) { return s.k + s.n; }
__device__ float by_pointer(const Shape* s) { return s->k * s->n; }

// Members and elements with constructors of their own.
struct Nine { float x; __device__ Nine() : x(9) {} __device__ Nine(float a) : x(a * 2) {} };
struct Five { int n = 5; int m; };
struct Pair { Nine v[2]; int k; };
struct Mixed { Nine v; Five w; int k; __device__ Mixed() : k(1) {} };

// What takes a lambda.
template <typename F> __device__ float apply(F f, float v) { float w = 100.0f; return f(v) + w * 0; }
template <typename F> __device__ void each(int n, F f) { for (int j = 0; j < n; j++) f(j); }
struct Weighted { int a; float b; };

// Structs without members.
struct Empty {};
struct Around { int a; Empty e; int b; };
struct Behind { int v[2]; Empty e; };
__device__ const Around file[2] = {{1, Empty(), 3}, {4, {}, 5}};
__device__ Empty made(int* o) { o[threadIdx.x] += 5; return Empty(); }
