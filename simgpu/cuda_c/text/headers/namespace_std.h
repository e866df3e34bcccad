// What kernels use of namespace std. NVRTC gets it with a source that names the namespace.
#define ASYNCGPU_LIMITS(T, WHOLE, SMALLEST, LARGEST, LOWEST, INFINITE, STEP) \
template <> struct numeric_limits<T> { \
    static __host__ __device__ constexpr T min() { return SMALLEST; } \
    static __host__ __device__ constexpr T max() { return LARGEST; } \
    static __host__ __device__ constexpr T lowest() { return LOWEST; } \
    static __host__ __device__ constexpr T infinity() { return INFINITE; } \
    static __host__ __device__ constexpr T epsilon() { return STEP; } \
    static constexpr bool is_integer = WHOLE; \
};
#define ASYNCGPU_INTEGER(T, LEAST, MOST) ASYNCGPU_LIMITS(T, true, LEAST, MOST, LEAST, 0, 0)
namespace std {
template <typename T> struct numeric_limits;
ASYNCGPU_LIMITS(float, false, FLT_MIN, FLT_MAX, -FLT_MAX, INFINITY, FLT_EPSILON)
ASYNCGPU_LIMITS(double, false, DBL_MIN, DBL_MAX, -DBL_MAX, HUGE_VAL, DBL_EPSILON)
ASYNCGPU_INTEGER(char, CHAR_MIN, CHAR_MAX)
ASYNCGPU_INTEGER(signed char, SCHAR_MIN, SCHAR_MAX)
ASYNCGPU_INTEGER(unsigned char, 0, UCHAR_MAX)
ASYNCGPU_INTEGER(short, SHRT_MIN, SHRT_MAX)
ASYNCGPU_INTEGER(unsigned short, 0, USHRT_MAX)
ASYNCGPU_INTEGER(int, INT_MIN, INT_MAX)
ASYNCGPU_INTEGER(unsigned int, 0, UINT_MAX)
ASYNCGPU_INTEGER(long, LONG_MIN, LONG_MAX)
ASYNCGPU_INTEGER(unsigned long, 0, ULONG_MAX)
ASYNCGPU_INTEGER(long long, LLONG_MIN, LLONG_MAX)
ASYNCGPU_INTEGER(unsigned long long, 0, ULLONG_MAX)
template <typename T, T V> struct integral_constant { static constexpr T value = V; };
template <bool B> struct bool_constant : integral_constant<bool, B> {};  // no alias, so that B can be deduced
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <typename A, typename B> struct is_same { static constexpr bool value = false; };
template <typename A> struct is_same<A, A> { static constexpr bool value = true; };
template <typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
#ifndef ASYNCGPU_NO_CHOICE_OF_TYPES
template <bool B, typename T = void> struct enable_if { using type = T; };
template <typename T> struct enable_if<false, T> {};
template <bool B, typename T, typename U> struct conditional { using type = T; };
template <typename T, typename U> struct conditional<false, T, U> { using type = U; };
template <size_t N, size_t A> struct aligned_storage { struct alignas(A) type { unsigned char data[N]; }; };
template <typename T> struct remove_reference { using type = T; };
template <typename T> struct remove_reference<T&> { using type = T; };
template <typename T> struct remove_const { using type = T; };
template <typename T> struct remove_const<const T> { using type = T; };
template <typename T> using decay_t = typename remove_const<typename remove_reference<T>::type>::type;
template <typename T> struct make_unsigned;
template <typename T> struct make_signed;
#define ASYNCGPU_SIGNS(S, U) \
template <> struct make_unsigned<S> { using type = U; }; template <> struct make_unsigned<U> { using type = U; }; \
template <> struct make_signed<S> { using type = S; }; template <> struct make_signed<U> { using type = S; };
ASYNCGPU_SIGNS(signed char, unsigned char)
ASYNCGPU_SIGNS(short, unsigned short)
ASYNCGPU_SIGNS(int, unsigned int)
ASYNCGPU_SIGNS(long, unsigned long)
ASYNCGPU_SIGNS(long long, unsigned long long)
#undef ASYNCGPU_SIGNS
template <typename T> using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T> using make_signed_t = typename make_signed<T>::type;
template <bool B, typename T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, typename T, typename U> using conditional_t = typename conditional<B, T, U>::type;
#endif
template <typename T> __device__ inline void swap(T& a, T& b) { T c = a; a = b; b = c; }
#ifndef __CUDACC__
template <typename T> __device__ inline T& move(T& a) { return a; }
#else
template <typename T> __device__ constexpr T&& move(T& a) { return static_cast<T&&>(a); }
template <typename T> __device__ constexpr T&& move(T&& a) { return static_cast<T&&>(a); }
#endif
using ::abs; using ::fabs; using ::sqrt; using ::pow; using ::exp; using ::log; using ::sin; using ::cos;
using ::tan; using ::tanh; using ::floor; using ::ceil; using ::round; using ::fmin; using ::fmax;
using ::fmod; using ::isnan; using ::isinf; using ::isfinite; using ::min; using ::max;
}
#undef ASYNCGPU_LIMITS
#undef ASYNCGPU_INTEGER
