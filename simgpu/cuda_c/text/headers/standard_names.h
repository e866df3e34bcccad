// The names of C's and C++'s standard headers that kernels use, as a piece of CUDA C for both devices.
//
// NVRTC and the simulated device have no such headers, while published kernels are compiled where they are at
// hand: nvcc brings <climits>, <cmath> and <cstdint> along by itself. Values: C17, clauses 5.2.4.2 and 7.12, for
// a 64-bit Linux host; `int64_t` and `intptr_t` are `long long`, as in NVIDIA's own headers for NVRTC, which may
// be included behind these.
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef unsigned char uchar; typedef unsigned short ushort;
typedef unsigned int uint; typedef unsigned long ulong; typedef long ssize_t;
typedef float cufftReal; typedef float2 cufftComplex;
typedef double cufftDoubleReal; typedef double2 cufftDoubleComplex;
#ifndef CUDART_VERSION
#define CUDART_VERSION 12000
#endif
// The host's compiler, which nvcc calls, predefines these; a text for NVRTC must not depend on it.
#ifndef __INT_MAX__
#define __SCHAR_MAX__ 127
#define __SHRT_MAX__ 32767
#define __INT_MAX__ 2147483647
#define __LONG_MAX__ 9223372036854775807L
#define __LONG_LONG_MAX__ 9223372036854775807LL
#define __INT8_MAX__ 127
#define __INT16_MAX__ 32767
#define __INT32_MAX__ 2147483647
#define __INT64_MAX__ 9223372036854775807L
#define __UINT8_MAX__ 255
#define __UINT16_MAX__ 65535
#define __UINT32_MAX__ 4294967295U
#define __UINT64_MAX__ 18446744073709551615UL
#define __SIZE_MAX__ 18446744073709551615UL
#define __CHAR_BIT__ 8
#endif
#ifndef __FLT_MAX__
#define __FLT_MAX__ 3.402823466e+38F
#define __FLT_MIN__ 1.175494351e-38F
#define __FLT_EPSILON__ 1.192092896e-07F
#define __DBL_MAX__ 1.7976931348623157e+308
#define __DBL_MIN__ 2.2250738585072014e-308
#define __DBL_EPSILON__ 2.2204460492503131e-16
#endif
#ifndef __FLT_MANT_DIG__
#define __FLT_RADIX__ 2
#define __FLT_DIG__ 6
#define __FLT_MANT_DIG__ 24
#define __FLT_MIN_EXP__ (-125)
#define __FLT_MAX_EXP__ 128
#define __FLT_MIN_10_EXP__ (-37)
#define __FLT_MAX_10_EXP__ 38
#define __FLT_DENORM_MIN__ 1.40129846e-45F
#define __DBL_DIG__ 15
#define __DBL_MANT_DIG__ 53
#define __DBL_MIN_EXP__ (-1021)
#define __DBL_MAX_EXP__ 1024
#define __DBL_MIN_10_EXP__ (-307)
#define __DBL_MAX_10_EXP__ 308
#define __DBL_DENORM_MIN__ 4.9406564584124654e-324
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t)&((type*)0)->member)  // NVRTC has no __builtin_offsetof
#endif
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1L)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-9223372036854775807LL - 1LL)
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX 18446744073709551615UL
#define UINT32_C(n) n##U
#define INT64_C(n) n##L
#define UINT64_C(n) n##UL
#define RAND_MAX 2147483647
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_TRUE_MIN 1.40129846e-45F
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_TRUE_MIN 4.9406564584124654e-324
// Quotients, since NVRTC refuses __builtin_huge_valf (five versions from 12.1 to 13.5 were tried) and __builtin_nanf (three).
#define INFINITY (1.0f / 0.0f)
#define NAN (0.0f / 0.0f)
#define HUGE_VALF (1.0f / 0.0f)
#define HUGE_VAL (1.0 / 0.0)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
