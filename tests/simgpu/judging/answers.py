"""Answers to the tasks of contest_spec.py: wrong ones, each with the kind that has to be found, and right ones."""

HEADS = {
    "saxpy": "int n, float a, const float* x, float* y", "total": "int n, const float* x, float* out",
    "relu": "int n, const float* x, float* y", "twin": "int n, const float* x, float* y", "look": "int n, float* y", "squares": "int n, float* y", "transpose": "int n, const float* a, float* b",
    "histogram": "int n, const int* x, int* bins", "scan": "int n, const int* x, int* y",
    "blur": "int n, const float* x, float* y", "grand": "int n, const int* x, int* part, int* count, int* out",
}  # fmt: skip
HEADS["met"] = HEADS["grand"]
CG = "#include <cooperative_groups.h>"
BOUND = f'extern "C" __global__ void __launch_bounds__(%s) saxpy({HEADS["saxpy"]}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }}'
I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
T = "int t = threadIdx.x;"
IJ = f"{I} int j = blockIdx.y * blockDim.y + threadIdx.y;"
Y = "y[i] = a * x[i] + y[i];"
SUMS = f"__shared__ float s[256]; {T} float v = 0; for (int k = t; k < n; k += 256) v += x[k]; s[t] = v;"
STEP = "__shared__ int s[256]; int t = threadIdx.x; s[t] = t < n ? x[t] : 0; __syncthreads();"
# The block that comes last adds up what the others have left.
PART = f"{I} {T} __shared__ int last, s; if (t == 0) s = 0; __syncthreads(); if (i < n) atomicAdd(&s, x[i]); __syncthreads();"
LAST = "last = atomicAdd(count, 1) == gridDim.x - 1;"
ADDS = "__syncthreads(); if (last && t == 0) { int v = 0; for (int k = 0; k < gridDim.x; k++) v += part[k]; *out = v;"

MET = f"{PART} if (t == 0) part[blockIdx.x] = s; cooperative_groups::this_grid().sync(); last = blockIdx.x == 0; {ADDS} }}"
COUNTED = (
    "__syncthreads(); int sum = 0; for (int k = 0; k <= t; k++) sum += s[k]; if (t < n) y[t] = sum;"
)


def kernel(task: str, body: str, before: str = "", *without: str) -> str:
    """A whole answer, `without` words of its head; `body` may be one."""
    if "__global__" in body or not body:
        return body
    head = HEADS[task]
    for word in without:
        head = head.replace(word, "")
    return f'{before}\nextern "C" __global__ void {task}({head}) {{\n{body}\n}}\n'


# Task, kind, body, and what stands before the kernel.
WRONG: list[tuple[str, ...]] = [
    # Sizes.
    ("saxpy", "OutOfBoundsError", f"{I} {Y}"),
    ("saxpy", "OutOfBoundsError", f"{I} if (i <= n) {Y}"),
    ("saxpy", "OutOfBoundsError", f"{I} if (i < 1000) {Y}"),
    ("saxpy", "ValuesError", f"{I} if (i < n - 1) {Y}"),
    ("saxpy", "ValuesError", f"{I} if (i > 0 && i < n) {Y}"),
    ("saxpy", "ValuesError", f"{I} if (i < n / 4 * 4) {Y}"),
    ("saxpy", "ValuesError", f"{I} if (i < n && n % 13) {Y}"),
    ("saxpy", "OutOfBoundsError", f"{I} if (i < (n + 3) / 4) for (int k = 0; k < 4; k++) y[4 * i + k] += a * x[4 * i + k];"),
    ("saxpy", "ValuesError", f"{I} float4* v = (float4*)y; if (i < n / 4) v[i].x += a * x[4 * i];"),
    ("total", "ValuesError", f"{SUMS} s[t] = t < n ? x[t] : 0; __syncthreads(); if (t == 0) {{ v = 0; for (int k = 0; k < 256; k++) v += s[k]; *out = v; }}"),
    ("total", "OutOfBoundsError", f"{T} if (t == 0) {{ float v = x[0]; for (int k = 1; k < n; k++) v += x[k]; *out = v; }}"),
    ("transpose", "OutOfBoundsError", f"{IJ} if (i < n) b[i * n + j] = a[j * n + i];"),
    ("transpose", "UnwrittenError", f"{IJ} if (i < n / 16 * 16 && j < n) b[i * n + j] = a[j * n + i];"),
    ("blur", "OutOfBoundsError", f"{I} if (i < n) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;"),
    ("blur", "UnwrittenError", f"{I} if (i > 0 && i < n - 1) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;"),
    ("scan", "UnwrittenError", f"{T} if (t == 0) {{ int v = 0; for (int k = 0; k < n - 1; k++) y[k] = v += x[k]; }}"),
    # Values.
    ("saxpy", "ValuesError", f"{I} if (i < n) y[i] = a * x[i];"),
    ("saxpy", "ValuesError", f"{I} if (i < n) y[i] = 0.0f / (n - n);"),
    ("saxpy", "ValuesError", f"{I} if (i < n) y[i] = __half2float(__float2half(a * x[i] + y[i]));", "#include <cuda_fp16.h>"),
    ("saxpy", "ValuesError", f"{I} if (i < n) y[i] += a * x[i] + 1e-4f;"),
    ("relu", "ValuesError", f"{I} if (i < n) y[i] = fmaxf(x[i], 0);"),
    ("relu", "ValuesError", f"{I} if (i < n) y[i] = x[i] < 0 ? 0 : x[i] * 1.0001f;"),
    ("scan", "ValuesError", f"{T} if (t == 0) {{ int v = 0; for (int k = 0; k < n; k++) {{ y[k] = v; v += x[k]; }} }}"),
    ("histogram", "ValuesError", f"{I} if (i < n) atomicAdd(&bins[x[i] & 7], 1);"),
    ("histogram", "RaceError", f"{I} if (i < n) atomicAdd(&bins[x[i]], 1); if (i < 16) atomicExch(&bins[i], bins[i]);"),
    ("transpose", "ValuesError", f"{IJ} if (i < n && j < n) b[i * n + j] = a[i * n + j];"),
    ("total", "ValuesError", f"{T} if (t == 0) *out = 0.7f * n;"),
    # Memory that nobody wrote.
    ("total", "UninitialisedReadError", f"{I} if (i < n) atomicAdd(out, x[i]);"),
    ("total", "UninitialisedReadError", f"{T} if (t == 0) for (int k = 0; k < n; k++) *out += x[k];"),
    ("total", "UnwrittenError", "float v = 0; for (int k = 0; k < n; k++) v += x[k];"),
    ("total", "UnwrittenError", f"{T} if (t == 0 && n > 500) {{ float v = 0; for (int k = 0; k < n; k++) v += x[k]; *out = v; }}"),
    ("histogram", "UninitialisedReadError", f"{I} __shared__ int s[16]; {T} if (i < n) atomicAdd(&s[x[i]], 1); __syncthreads(); if (t < 16) atomicAdd(&bins[t], s[t]);"),
    ("saxpy", "UninitialisedReadError", f"{I} float v; if (i & 1) v = a; if (i < n) y[i] += v * x[i];"),
    # Races that pass by luck, and barriers.
    ("total", "RaceError", f"{SUMS} if (t == 0) {{ v = 0; for (int k = 0; k < 256; k++) v += s[k]; *out = v; }}"),
    ("total", "RaceError", f"{SUMS} for (int h = 128; h; h /= 2) {{ __syncthreads(); if (t < h) s[t] += s[t + h]; if (h == 2) break; }} if (t == 0) *out = s[0] + s[1];"),
    ("total", "RaceError", f"{SUMS} __syncthreads(); for (int h = 128; h > 32; h /= 2) {{ if (t < h) s[t] += s[t + h]; __syncthreads(); }} if (t < 32) for (int h = 32; h; h /= 2) s[t] += s[t + h]; if (t == 0) *out = s[0];"),
    ("total", "RaceError", f"{T} float v = 0; for (int k = t; k < n; k += 256) v += x[k]; *out = v;"),
    ("histogram", "RaceError", f"{I} if (i < n) bins[x[i]]++;"),
    ("histogram", "RaceError", f"{I} __shared__ int s[16]; {T} if (t < 16) s[t] = 0; if (i < n) atomicAdd(&s[x[i]], 1); __syncthreads(); if (t < 16) atomicAdd(&bins[t], s[t]);"),
    ("histogram", "RaceError", f"{I} __shared__ int s[16]; {T} if (t < 16) s[t] = 0; __syncthreads(); if (i < n) atomicAdd(&s[x[i]], 1); __syncthreads(); if (t < 16) bins[t] += s[t];"),
    ("transpose", "RaceError", f"__shared__ float s[16][17]; {IJ} int p = threadIdx.x, q = threadIdx.y; if (i < n && j < n) s[q][p] = a[j * n + i]; int u = blockIdx.y * 16 + p, v = blockIdx.x * 16 + q; if (u < n && v < n) b[v * n + u] = s[p][q];"),
    ("scan", "RaceError", f"{STEP} for (int d = 1; d < 256; d *= 2) {{ if (t >= d) s[t] += s[t - d]; __syncthreads(); }} if (t < n) y[t] = s[t];"),
    ("scan", "BarrierError", f"__shared__ int s[256]; {T} if (t < n) {{ s[t] = x[t]; __syncthreads(); int v = 0; for (int k = 0; k <= t; k++) v += s[k]; y[t] = v; }}"),
    ("scan", "WarpError", f"{T} int v = t < n ? x[t] : 0; for (int d = 1; d < 32; d *= 2) if (t % 32 >= d) v += __shfl_up_sync(~0u, v, d); if (t < n) y[t] = v;"),
    ("scan", "OutOfBoundsError", f"__shared__ int s[255]; {T} s[t] = t < n ? x[t] : 0; __syncthreads(); int v = 0; for (int k = 0; k <= t; k++) v += s[k]; if (t < n) y[t] = v;"),
    ("blur", "RaceError", f"__shared__ float s[258]; {I} {T} if (i < n) s[t + 1] = x[i]; if (t == 0 && n) s[0] = x[max(i - 1, 0)]; if (t == 255 || i == n - 1) s[t + 2] = x[min(i + 1, n - 1)]; if (i < n) y[i] = (s[t] + s[t + 1] + s[t + 2]) / 3;"),
    ("grand", "RaceError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; {LAST} }} {ADDS} *count = 0; }}"),
    ("grand", "RaceError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence_block(); {LAST} __threadfence(); }} {ADDS} *count = 0; }}"),
    ("grand", "RaceError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence(); last = (*count)++ == gridDim.x - 1; __threadfence(); }} {ADDS} *count = 0; }}"),
    ("grand", "ValuesError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence(); {LAST} __threadfence(); }} {ADDS} }}"),
    ("grand", "UnwrittenError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence(); last = atomicAdd(&mine, 1) == gridDim.x - 1; __threadfence(); }} {ADDS} }}", "__device__ int mine;"),
    ("grand", "DeadlockError", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence(); atomicAdd(count, 1); while (atomicAdd(count, 0) <= gridDim.x) {{}} last = blockIdx.x == 0; }} {ADDS} *count = 0; }}"),
    ("grand", "RaceError", f"{PART} if (t == 0) {{ atomicExch(&part[blockIdx.x], s); {LAST} __threadfence(); }} {ADDS} *count = 0; }}"),
    ("grand", "RaceError", f"{PART} if (t == 0) {{ atomicExch(&part[blockIdx.x], s); __threadfence(); last = atomicInc((unsigned*)count, gridDim.x - 1) == gridDim.x - 1; }} {ADDS} }}"),
    # What pointers and lanes promise.
    ("twin", "RestrictError", 'extern "C" __global__ void twin(int n, const float* __restrict__ x, float* y) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) { y[i] = x[i] + 1; y[i] = (x[i] - 1) * 2; } }'),
    ("twin", "RestrictError", 'typedef const float* __restrict__ alone; extern "C" __global__ void twin(int n, alone x, float* y) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) { y[i] = x[i] + 1; y[i] = (x[i] - 1) * 2; } }'),
    ("twin", "RestrictError", f"{I} const float* __restrict__ p = x; if (i < n) {{ y[i] = p[i] + 1; y[i] = (p[i] - 1) * 2; }}"),
    ("twin", "RaceError", f"{I} if (i < n - 1) y[i] = x[i + 1] - x[i + 1] + 2 * x[i]; else if (i < n) y[i] = 2 * x[i];"),
    ("saxpy", "ValuesError", f"{I} if (i < n) y[i] = (__popc(__activemask()) == min(32, n - i / 32 * 32) ? a : 0) * x[i] + y[i];"),
    # The order in which threads come to an atomic.
    ("scan", "ValuesError", f"__shared__ int s[256], c; {T} if (t == 0) c = 0; __syncthreads(); s[atomicAdd(&c, 1)] = t < n ? x[t] : 0; {COUNTED}"),
    ("scan", "ValuesError", f"__shared__ int s[256], c; {T} int v = t < n ? x[t] : 0, at; if (t == 0) c = 0; __syncthreads(); if (t % 32 == 0) at = atomicAdd(&c, 32); at = __shfl_sync(~0u, at, 0); s[at + t % 32] = v; {COUNTED}"),
    ("scan", "ValuesError", f"__shared__ int s[256]; {T} __shared__ unsigned c; if (t == 0) c = 0; __syncthreads(); unsigned k = c; __syncthreads(); while (true) {{ unsigned was = atomicCAS(&c, k, k + 1); if (was == k) break; k = was; }} s[k] = t < n ? x[t] : 0; {COUNTED}"),
    # What it must leave alone, and what other launches have left.
    ("blur", "InputChangedError", f"{I} float* z = y; if (i < n) z[i] = (x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)]) / 3; if (n == 1 && i == 0) x[0] = 2;", "", "const"),
    ("saxpy", "UnsupportedFeatureError", f"{I} if (i < n) {{ {Y} ((float*)x)[i] = 2; }}"),
    ("look", "InputChangedError", f"{I} if (i < n) y[i] = table[i % 16]; __syncthreads(); if (i == 0 && gridDim.x == 1) table[3] = 0;", "__device__ float table[16];"),
    ("saxpy", "ValuesError", f"{I} if (i < n) {{ int k = seen[i]; seen[i] = 1; if (!k) {Y} }}", "__device__ int seen[4096];"),
    ("saxpy", "ValuesError", f"{I} if (i < n) {{ if (!kept[i]) kept[i] = a * x[i] + y[i]; y[i] = kept[i]; }}", "__device__ float kept[4096];"),
    ("total", "ValuesError", f"{T} float v = 0; for (int k = t; k < n; k += 256) v += x[k]; atomicAdd(&sum, v); __syncthreads(); if (t == 0) *out = sum;", "__device__ float sum;"),
    ("saxpy", "OutOfBoundsError", f"{I} if (i < n) y[i] = a * x[i] + y[i] + 0 * x[i - 70];"),
    ("saxpy", "OutOfBoundsError", f"{I} float* p = (float*)0x7f0000000100ull; if (i < n) y[i] = p[i + 4096];"),
    # What CUDA refuses to launch.
    ("saxpy", "LaunchConfigError", BOUND % 64),
    ("saxpy", "LaunchConfigError", "constexpr int most(int w) { return 4 * w; }\n" + BOUND % "most(31), 2"),
    ("grand", "LaunchConfigError", MET, CG),
    # What a compiler refuses.
    ("saxpy", "KernelCompileError", (BOUND % 128 + "\n") * 2),
    ("saxpy", "KernelCompileError", f"{I} Line l; if (i < n) y[i] += l.a * x[i];", "class Line { float a = 1.5f; };"),
    ("saxpy", "MissingHeader", f"{I} if (i < n) {Y}", '#include "mine.h"'),
    # Tricks, and what never ends.
    ("saxpy", "KernelCompileError", "#include \"contest_spec.py\"\n__global__ void other() {}"),
    ("saxpy", "KernelCompileError", 'extern "C" __global__ void saxpy(int n) { #include "/etc/passwd"\n }'),
    ("saxpy", "UsageError", 'extern "C" __global__ void saxpy(int n, float a, const float* x) {}'),
    ("saxpy", "ArrayDTypeError", 'extern "C" __global__ void saxpy(const float* x, float a, int n, float* y) {}'),
    ("saxpy", "KernelCompileError", ""),
    ("saxpy", "ValuesError", f'{I} printf("{{\\"verdict\\": \\"accepted\\"}}\\n");'),
    ("saxpy", "RunawayKernelError", "while (true) y[0] = 1;"),
    ("saxpy", "RunawayKernelError", "int k = 1; while (k) k = k * 3 | 1; y[0] = k;"),
    ("saxpy", "DeviceAssertError", f"{I} assert(n > 1); if (i < n) {Y}", "#include <cassert>"),
    ("saxpy", "DivisionByZeroError", f"{I} if (i < n) y[i % (n / 13 * 13)] += a * x[i % (n / 13 * 13)];"),
    ("saxpy", "UnsupportedFeatureError", f"{I} asm(\"nop;\"); if (i < n) {Y}"),
    ("saxpy", "UnsupportedFeatureError", f"{I} if (i < n) y[i] = " + "(" * 5000 + "a" + ")" * 5000 + " * x[i] + y[i];"),
    ("saxpy", "KernelCompileError", "int main() { return 0; }\n__global__ void saxpy2() {}"),
]  # fmt: skip

ONE_THREAD = (
    "saxpy",
    "if (blockIdx.x || threadIdx.x) return; int i = 0; do { if (i < n) y[i] += x[i] * a; } while (++i < n);",
)  # and slow
RIGHT: list[tuple[str, ...]] = [
    ("saxpy", f"{I} if (i >= n) return; {Y}"),
    ("twin", f"{I} if (i < n) y[i] = 2 * x[i];"),
    ("squares", f"{I} if (i < n) y[i] = i * i;"),
    ("twin", f"{I} if (i < n) {{ float v; {{ const float* __restrict__ p = x; v = p[i]; }} y[i] = 2 * v; }}"),
    ("look", f"{I} if (i < n) y[i] = table[i % 16];", "__constant__ float table[32];"),
    ("histogram", f"{I} unsigned w = __activemask(); for (int b = 0; b < 16; b++) {{ unsigned m = __ballot_sync(w, i < n && x[i] == b); if (m && threadIdx.x % 32 == __ffs(m) - 1) atomicAdd(&bins[b], __popc(m)); }}"),
    ("saxpy", f"for ({I[:-1]}; i < n; i += gridDim.x * blockDim.x) *(y + i) = fmaf(a, x[i], *(y + i));"),
    ONE_THREAD,
    ("saxpy", f"{I} auto f = [=](float v, float w) {{ return a * v + w; }}; if (i < n) y[i] = f(x[i], y[i]);"),
    ("saxpy", f"{I} if (i < n) y[i] = Line<double>{{a, y[i]}}(x[i]);", "template <typename T> struct Line { T a, b; __device__ T operator()(T x) const { return a * x + b; } };"),
    ("saxpy", f"{I} DO_IF(i < n, {Y});", "#define DO_IF(c, ...) do { if (c) { __VA_ARGS__ } } while (0)"),
    ("saxpy", f"{I} switch (i < n) {{ case true: {Y} break; default: break; }}"),
    ("saxpy", f"{I} int k = 4 * i; float w[4]; for (int q = 0; q < 4 && k + q < n; q++) {{ w[q] = a * x[k + q]; y[k + q] += w[q]; }}"),
    ("saxpy", "unsigned long long i = threadIdx.x; i += 1ull * blockIdx.x * blockDim.x; const float* __restrict__ p = x + i; float* const q = &y[i]; if (i < (unsigned)n) q[0] += *p * a;"),
    ("total", f"{SUMS} for (int h = 128; h; h >>= 1) {{ __syncthreads(); if (t < h) s[t] += s[t + h]; }} if (!t) *out = s[0];"),
    ("total", f"{T} double v = 0; if (t) return; while (n --> 0) v += x[n]; *out = v;"),
    ("total", f"__shared__ float w[8]; {T} float v = 0; for (int k = t; k < n; k += 256) v += x[k]; for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d); if (t % 32 == 0) w[t / 32] = v; __syncthreads(); if (t == 0) {{ v = 0; for (float u : w) v += u; *out = v; }}"),
    ("total", f"__shared__ float s; {T} if (t == 0) s = 0; __syncthreads(); for (int k = t; k < n; k += 256) atomicAdd(&s, x[k]); __syncthreads(); if (t == 0) out[0] = s;"),
    ("total", f"auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); __shared__ float s[8]; {T} float v = 0; for (int k = t; k < n; k += 256) v += x[k]; for (int d = 16; d; d /= 2) v += w.shfl_down(v, d); if (w.thread_rank() == 0) s[t / 32] = v; b.sync(); if (t == 0) {{ for (int k = 1; k < 8; k++) v += s[k]; *out = v; }}", "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;"),
    ("relu", f"{I} if (i < n) y[i] = x[i] < 0 ? 0 : x[i];"),
    ("relu", f"{I} if (i < n) {{ int v = __float_as_int(x[i]); y[i] = isnan(x[i]) ? x[i] : __int_as_float(v & ~(v >> 31)); }}"),
    ("transpose", f"{IJ} if (i < n && j < n) b[i * n + j] = a[j * n + i];"),
    ("transpose", f"__shared__ float s[16][17]; {IJ} int p = threadIdx.x, q = threadIdx.y; if (i < n && j < n) s[q][p] = a[j * n + i]; __syncthreads(); int u = blockIdx.y * 16 + p, v = blockIdx.x * 16 + q; if (u < n && v < n) b[v * n + u] = s[p][q];"),
    ("histogram", f"{I} if (i < n) atomicAdd(bins + x[i], 1);"),
    ("histogram", f"{I} __shared__ unsigned s[16]; {T} if (t < 16) s[t] = 0; __syncthreads(); if (i < n) atomicInc(&s[x[i]], ~0u); __syncthreads(); if (t < 16 && s[t]) atomicAdd(&bins[t], (int)s[t]);"),
    ("scan", f"{STEP} for (int d = 1; d < 256; d *= 2) {{ int v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; __syncthreads(); }} if (t < n) y[t] = s[t];"),
    ("scan", f"__shared__ int w[8]; {T} int v = t < n ? x[t] : 0; for (int d = 1; d < 32; d *= 2) {{ int u = __shfl_up_sync(~0u, v, d); if (t % 32 >= d) v += u; }} if (t % 32 == 31) w[t / 32] = v; __syncthreads(); for (int k = 0; k < t / 32; k++) v += w[k]; if (t < n) y[t] = v;"),
    ("scan", f"{T} if (t >= n) return; int v = 0; for (int k = 0; k <= t; ++k) v += x[k]; y[t] = v;"),
    ("grand", f"{PART} if (t == 0) {{ part[blockIdx.x] = s; __threadfence(); {LAST} __threadfence(); }} {ADDS} *count = 0; }}"),
    ("grand", f"{PART} if (t == 0) {{ atomicExch(&part[blockIdx.x], s); __threadfence(); last = atomicInc((unsigned*)count, gridDim.x - 1) == gridDim.x - 1; __threadfence(); }} {ADDS} }}"),
    ("grand", f"{T} if (blockIdx.x || t) return; int v = 0; for (int k = 0; k < n; ++k) v += x[k]; out[0] = v;"),
    ("blur", f"{I} if (i < n) y[i] = (x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)]) * (1.0f / 3);"),
    ("blur", f"__shared__ float s[258]; {I} {T} for (int k = t; k < 258 && n; k += 256) s[k] = x[min(max((int)(blockDim.x * blockIdx.x) + k - 1, 0), n - 1)]; __syncthreads(); if (i < n) y[i] = (s[t] + s[t + 1] + s[t + 2]) / 3;"),
    ("saxpy",f"{I} if (i < n) y[i] = __fmaf_rn(a, __ldg(x + i), __ldg(&y[i]));"),
    ("saxpy",f"{I} union {{ float f; unsigned u; }} v; v.f = i < n ? x[i] : 0; if (i < n) {{ v.u ^= 0x80000000u; y[i] -= a * v.f; }}"),
    ("saxpy","int i = gridDim.x * blockDim.x - 1 - (blockIdx.x * blockDim.x + threadIdx.x); if (i < n) { const float* p = x + n; y[i] = a * p[i - n] + y[i]; }"),
    ("saxpy",f"{I} while (1) {{ if (i >= n) break; y[i] += a * x[i]; i += blockDim.x * gridDim.x; }}"),
    ("saxpy",f"typedef float (*F)(float, float, float); F f = ax; {I} if (i < n) y[i] = f(a, x[i], y[i]);","__device__ float ax(float a, float x, float y) { return a * x + y; }"),
    ("saxpy",f"const unsigned mask = __activemask(); {I} bool in = i < n; unsigned b = __ballot_sync(~0u, in); if (b >> (threadIdx.x & 31) & 1) {Y}"),
    ("saxpy",f"__shared__ float s[2][128]; {I} {T} s[0][t] = i < n ? x[i] : 0; s[1][t] = i < n ? y[i] : 0; __syncthreads(); int r = 127 - t, j = blockIdx.x * 128 + r; if (j < n) y[j] = a * s[0][r] + s[1][r];"),
    ("total",f"__shared__ float s; {T} if (!t) s = 0; __syncthreads(); float v = 0; for (int k = t; k < n; k += 256) v += x[k]; int* p = (int*)&s; int old = *p, seen; __syncthreads(); old = atomicAdd(p, 0); do {{ seen = old; old = atomicCAS(p, seen, __float_as_int(v + __int_as_float(seen))); }} while (old != seen); __syncthreads(); if (!t) *out = s;"),
    ("total",f"{T} if (t == 77) {{ float sum = 0, c = 0; for (int k = 0; k < n; ++k) {{ float q = x[k] - c, u = sum + q; c = (u - sum) - q; sum = u; }} *out = sum; }}"),
    ("total",f"{T} __shared__ double s[256]; s[t] = 0; for (int k = t; k < n; k += 256) s[t] += x[k]; __syncthreads(); for (int h = 1; h < 256; h *= 2) {{ double w = t % (2 * h) == 0 ? s[t + h] : 0; __syncthreads(); s[t] += w; __syncthreads(); }} if (t == 0) *out = (float)s[0];"),
    ("transpose",f"{IJ} if (i == 0 && j == 0) for (int p = 0; p < n; p++) for (int q = 0; q < n; q++) (b + p * n)[q] = q[a + p - p + 0 * n + q * (n - 1) + p];"),
    ("histogram",f"if (blockIdx.x) return; {T} if (t >= 16) return; int c = bins[t]; for (int k = 0; k < n; k++) c += x[k] == t; bins[t] = c;"),
    ("scan",f"__shared__ int s[2][256]; {T} int p = 0; s[0][t] = t < n ? x[t] : 0; __syncthreads(); for (int d = 1; d < 256; d <<= 1) {{ s[1 - p][t] = s[p][t] + (t >= d ? s[p][t - d] : 0); p = 1 - p; __syncthreads(); }} if (t < n) y[t] = s[p][t];"),
    ("scan",f"__shared__ int s[256]; {T} s[t] = t < n ? x[t] : 0; for (int d = 1; d < 256; d *= 2) {{ __syncthreads(); int k = (t + 1) * 2 * d - 1; if (k < 256) s[k] += s[k - d]; }} for (int d = 64; d > 0; d /= 2) {{ __syncthreads(); int k = (t + 1) * 2 * d - 1; if (k + d < 256) s[k + d] += s[k]; }} __syncthreads(); if (t < n) y[t] = s[t];"),
    ("grand",f"{PART} if (t == 0) part[blockIdx.x] = s; __threadfence(); __syncthreads(); if (t == 0) {{ {LAST} __threadfence(); }} {ADDS} *count = 0; }}"),
    ("grand",f"{PART} if (t == 0) {{ volatile int* p = part; p[blockIdx.x] = s; __threadfence(); {LAST} }} __syncthreads(); if (last && t == 0) {{ int v = 0; volatile int* p = part; for (int k = 0; k < gridDim.x; k++) v += p[k]; *out = v; *count = 0; }}"),
    ("blur",f"{I} if (i >= n) return; float l = i ? x[i - 1] : *x, r = i + 1 < n ? x[i + 1] : x[n - 1]; y[i] = (l + x[i] + r) / 3.0;"),
    ("saxpy", BOUND % 128),
    ("saxpy", f"{I} if (i < n) {Y}", '#include <cuda_runtime.h>\n#include "cstdio"\n#if __has_include("mine.h")\n#include "mine.h"\n#endif'),
    ("met", MET, CG),
]  # fmt: skip
