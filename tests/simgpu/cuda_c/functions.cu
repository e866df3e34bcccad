// What `functions.py` puts in front of each kernel, and below the line of equals signs, a statement or a call in each line.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_awbarrier_primitives.h>
template <typename T> __device__ void keep(double* to, T v) { *to = v; }
__device__ void keep(double* to, half v) { *to = __half2float(v); }
__device__ void keep(double* to, half2 v) { *to = __low2float(v) + 64 * __high2float(v); }
__device__ void keep(double* to, float2 v) { *to = v.x + 64 * v.y; }
#define NEAR __shared__ __align__(32) float near[32]; near[i] = i; __syncthreads();
#define COPIED __pipeline_commit(); __pipeline_wait_prior(0); __syncwarp(); keep(to + i, near[i])
#define BAR(count) NEAR __shared__ unsigned long long bar; if (i == 0) __mbarrier_init(&bar, count); __syncthreads();
#define WORDS unsigned words[5] = {1, 2, 3, 4, 5};
#define STORED(read) NEAR __proxy_fence(); __syncthreads(); \
    if (i == 0) { __bulk_store(w, near, 128); __bulk_commit(); __bulk_wait(0, read); } __syncthreads(); keep(to + i, near[i])
#define MATRIX(turned) __shared__ __align__(32) half of[256]; __shared__ __align__(32) float sums[256]; \
    half part[16]; float acc[8]; for (int at = i; at < 256; at += 32) of[at] = at % 23; \
    for (int at = 0; at < 8; at++) acc[at] = i + at; __syncwarp(); __wmma_load(of, part, 16, 16, 16, 16, turned);
// ====
max(n, k)
max((unsigned)n, 3u)
max(1ll * n, 2ll)
min(n, k)
min(d, e)
abs(n)
abs(d)
abs(1ll * n)
isnan(d)
signbit(n)
ldexp(d, k)
__dp4a(u1, 7u, 5u)
__dp4a(c1, c2, j)
__dp4a(u2, u2, 5u)
atomicAdd((float*)w, a)
atomicAdd((double*)w + i / 2, d)
atomicAdd((half*)w + i, h)
atomicAdd((unsigned long long*)w, 3ull)
atomicMin((unsigned*)w, 3u)
atomicExch((float*)w + i, a)
atomicCAS(w, 1, 2)
atomicCAS((unsigned short*)w, 1, 2)
atomicAdd(w, 2);
atomicAdd((half*)w + i, h);
atomicExch(w + i, n);
__shfl_sync(all, d, 3)
__shfl_up_sync(all, n, 3, 16)
__shfl_down_sync(all, a, 5, 8)
__shfl_xor_sync(all, h, 1)
__shfl_sync(all, p, 2)
__match_any_sync(all, a)
__reduce_min_sync(all, n)
__syncthreads();
__syncthreads_count(n > 0)
__syncthreads_and(n > 0)
__syncthreads_or(n > 0)
__syncwarp();
__syncwarp(all);
__grid_sync();
__threadfence();
__threadfence_system();
__threadfence_block();
__fence_acquire_block();
__fence_acquire_device();
__fence_acquire_system();
__fence_acquired_block();
__fence_acquired_device();
__fence_acquired_system();
__fence_release_block();
__fence_release_device();
__fence_release_system();
__fence_acq_rel_block();
__fence_acq_rel_device();
__fence_acq_rel_system();
__fence_seq_cst_block();
__fence_seq_cst_device();
__fence_seq_cst_system();
__ldg(x + i)
__ldcg(x + i)
__ldca(x + i)
__ldcs(x + i)
__ldlu(x + i)
__ldcv(x + i)
printf("%d", n)
assert(true);
static_assert(true);
__builtin_expect(n, 1)
nan("")
nanf("")
clock()
clock64()
if (n == 99) __trap();
if (n == 99) __builtin_unreachable();
__builtin_assume(n < 9);
__nanosleep(100);
__prof_trigger(1);
cudaGridDependencySynchronize();
cudaTriggerProgrammaticLaunchCompletion();
make_char1(5).x + make_uchar1(5).x + make_short1(5).x + make_ushort1(5).x + make_int1(5).x + make_uint1(5).x
make_long1(5).x + make_ulong1(5).x + make_longlong1(5).x + make_ulonglong1(5).x + make_float1(5).x + make_double1(5).x
make_char2(5, 6).y + make_uchar2(5, 6).y + make_short2(5, 6).y + make_ushort2(5, 6).y + make_int2(5, 6).y + make_uint2(5, 6).y
make_long2(5, 6).y + make_ulong2(5, 6).y + make_longlong2(5, 6).y + make_ulonglong2(5, 6).y + make_float2(5, 6).y + make_double2(5, 6).y
make_char3(5, 6, 7).z + make_uchar3(5, 6, 7).z + make_short3(5, 6, 7).z + make_ushort3(5, 6, 7).z + make_int3(5, 6, 7).z + make_uint3(5, 6, 7).z
make_long3(5, 6, 7).z + make_ulong3(5, 6, 7).z + make_longlong3(5, 6, 7).z + make_ulonglong3(5, 6, 7).z + make_float3(5, 6, 7).z + make_double3(5, 6, 7).z
make_char4(5, 6, 7, 8).w + make_uchar4(5, 6, 7, 8).w + make_short4(5, 6, 7, 8).w + make_ushort4(5, 6, 7, 8).w + make_int4(5, 6, 7, 8).w + make_uint4(5, 6, 7, 8).w
make_long4(5, 6, 7, 8).w + make_ulong4(5, 6, 7, 8).w + make_longlong4(5, 6, 7, 8).w + make_ulonglong4(5, 6, 7, 8).w + make_float4(5, 6, 7, 8).w + make_double4(5, 6, 7, 8).w
WORDS __xorwow_jump(7ull, 67, words); keep(to + i, words[0] ^ words[4]);
WORDS __xorwow_jump(i, 0, words); keep(to + i, words[0] ^ words[4]);
WORDS __xorwow_jump(0, 0, words); keep(to + i, words[0] ^ words[4]);
NEAR __pipeline_memcpy_async(near + i, x + i, 4); COPIED;
NEAR if (i < 16) __pipeline_memcpy_async(near + 2 * i, x + 2 * i, 8); COPIED;
NEAR if (i < 8) __pipeline_memcpy_async(near + 4 * i, x + 4 * i, 16); COPIED;
NEAR if (i < 8) __pipeline_memcpy_async(near + 4 * i, x + 4 * i, 16, 8); COPIED;
NEAR __memcpy_async_share(near, x, 128, i, 32, nullptr); COPIED;
NEAR __memcpy_async_share(near, x, 72, i, 32, nullptr); COPIED;
NEAR __memcpy_async_share(near, x, 20, i, 32, nullptr); COPIED;
NEAR __memcpy_async_share(near, x, 7, i, 32, nullptr); COPIED;
BAR(32) unsigned long long token = __mbarrier_arrive(&bar); while (!__mbarrier_test_wait(&bar, token)); keep(to + i, token);
BAR(32) unsigned long long token = __mbarrier_arrive(&bar, 1); while (!__mbarrier_over(&bar, token)); keep(to + i, token);
BAR(64) __mbarrier_arrive(&bar, 2, 0); while (!__mbarrier_over_parity(&bar, 0)); keep(to + i, 1);
BAR(32) __mbarrier_arrive_and_drop(&bar); keep(to + i, __mbarrier_test_wait_parity(&bar, 0));
BAR(1) if (i == 0) { __mbarrier_expect_tx(&bar, 128); __bulk_copy(near, x, 128, &bar); __mbarrier_arrive(&bar); } while (!__mbarrier_over_parity(&bar, 0)); keep(to + i, near[i]);
STORED(0);
STORED(1);
NEAR unsigned place = __cvta_generic_to_shared(near + i); keep(to + i, place + *__shared_byte_at(place + 3));
BAR(32) unsigned place = __cvta_generic_to_shared(&bar); keep(to + i, __mbarrier_arrive(__shared_word_at(place)));
MATRIX(true) __wmma_multiply(acc, part, part, acc, 16, 16); keep(to + i, acc[1] + 64 * acc[7]);
MATRIX(false) __wmma_multiply(acc, part, part, acc, 16, 16); keep(to + i, acc[1] + 64 * acc[7]);
MATRIX(false) __wmma_store(sums, acc, 16, 16, 8, 16, true); __syncwarp(); keep(to + i, sums[i]);
