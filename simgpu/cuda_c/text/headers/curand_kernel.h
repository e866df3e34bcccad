// The header curand_kernel.h, as CUDA C++ that the interpreter reads: generators XORWOW and Philox 4x32-10.
//
// Sequences are those of NVIDIA's cuRAND, number for number. XORWOW is Marsaglia's (Xorshift RNGs, 2003); its
// sequences are 2**67 numbers apart. Philox is that of Salmon and others (Parallel random numbers: as easy as
// 1, 2, 3; 2011), with a counter for each sequence. How many numbers a function draws, and what it makes of
// them, is as the outputs of NVIDIA's show it. Integers and uniform numbers have the same bits; normal ones
// differ in their last digits, since a GPU takes sine and cosine from its special function units.

struct curandStateXORWOW {
    unsigned int d, v[5]; int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra; double boxmuller_extra_double; };
struct curandStatePhilox4_32_10 {
    uint4 ctr, output; uint2 key; unsigned int STATE; int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra; double boxmuller_extra_double; };
typedef curandStateXORWOW curandStateXORWOW_t; typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t; typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
template <typename S> __device__ inline void _curand_without_extra(S* s) {
    s->boxmuller_flag = 0; s->boxmuller_flag_double = 0;
    s->boxmuller_extra = 0.0f; s->boxmuller_extra_double = 0.0; }

// Uniform numbers leave out 0: 2.3283064e-10f is 2**-32. The second number of a normal pair is an angle.
__device__ inline float _curand_float(unsigned int n) {
    return n * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
__device__ inline double _curand_53_bits(unsigned int x, unsigned int y) {
    unsigned long long bits = (unsigned long long)x ^ ((unsigned long long)y << 21);
    return bits * 1.1102230246251565e-16 + (1.1102230246251565e-16 / 2.0); }
__device__ inline float2 _curand_pair(unsigned int x, unsigned int y) {
    float turn = y * (2.3283064e-10f * 6.2831855f) + ((2.3283064e-10f * 6.2831855f) / 2.0f);
    float far = sqrtf(-2.0f * logf(_curand_float(x))), sine, cosine;
    __sincosf(turn, &sine, &cosine);
    return make_float2(sine * far, cosine * far); }
__device__ inline double2 _curand_double_pair(unsigned int a, unsigned int b, unsigned int c,
                                              unsigned int d) {
    unsigned long long bits = (unsigned long long)c ^ ((unsigned long long)d << 21);
    double turn = bits * 2.220446049250313e-16 + 1.1102230246251565e-16;
    double far = sqrt(-2.0 * log(_curand_53_bits(a, b)));
    return make_double2(sinpi(turn) * far, cospi(turn) * far); }

__device__ inline unsigned int curand(curandStateXORWOW* s) {
    unsigned int t = s->v[0] ^ (s->v[0] >> 2);
    s->v[0] = s->v[1]; s->v[1] = s->v[2]; s->v[2] = s->v[3]; s->v[3] = s->v[4];
    s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
    s->d += 362437u;
    return s->v[4] + s->d; }
__device__ inline void skipahead(unsigned long long n, curandStateXORWOW* s) {
    __xorwow_jump(n, 0, s->v); s->d += 362437u * (unsigned int)n; }
__device__ inline void skipahead_sequence(unsigned long long n, curandStateXORWOW* s) {
    __xorwow_jump(n, 67, s->v); }
__device__ inline void curand_init(unsigned long long seed, unsigned long long sequence,
                                   unsigned long long offset, curandStateXORWOW* s) {
    unsigned int low = 1099087573u * ((unsigned int)seed ^ 0xaad26b49u);
    unsigned int high = 2591861531u * ((unsigned int)(seed >> 32) ^ 0xf7dcefddu);
    s->d = 6615241u + low + high;
    s->v[0] = 123456789u + low; s->v[1] = 362436069u ^ low; s->v[2] = 521288629u + high;
    s->v[3] = 88675123u ^ high; s->v[4] = 5783321u + low;
    skipahead_sequence(sequence, s); skipahead(offset, s);
    _curand_without_extra(s); }
__device__ inline double curand_uniform_double(curandStateXORWOW* s) {
    unsigned int x = curand(s), y = curand(s);
    return _curand_53_bits(x, y); }

__device__ inline uint4 _philox_round(uint4 c, uint2 k) {
    return make_uint4(__umulhi(0xcd9e8d57u, c.z) ^ c.y ^ k.x, 0xcd9e8d57u * c.z,
                      __umulhi(0xd2511f53u, c.x) ^ c.w ^ k.y, 0xd2511f53u * c.x); }
__device__ inline uint4 _philox(uint4 c, uint2 k) {
    for (int round = 0; round < 10; round++) {
        c = _philox_round(c, k); k.x += 0x9e3779b9u; k.y += 0xbb67ae85u; }
    return c; }
__device__ inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* s) {
    unsigned int at = s->STATE + (unsigned int)(n & 3);
    s->STATE = at & 3;
    unsigned long long blocks = (n >> 2) + (at >> 2);
    unsigned long long low = (((unsigned long long)s->ctr.y << 32) | s->ctr.x) + blocks;
    s->ctr.x = (unsigned int)low; s->ctr.y = (unsigned int)(low >> 32);
    if (low < blocks && ++s->ctr.z == 0) ++s->ctr.w;
    s->output = _philox(s->ctr, s->key); }
__device__ inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* s) {
    unsigned long long high = (((unsigned long long)s->ctr.w << 32) | s->ctr.z) + n;
    s->ctr.z = (unsigned int)high; s->ctr.w = (unsigned int)(high >> 32);
    s->output = _philox(s->ctr, s->key); }
__device__ inline void curand_init(unsigned long long seed, unsigned long long sequence,
                                   unsigned long long offset, curandStatePhilox4_32_10* s) {
    s->ctr = make_uint4(0, 0, (unsigned int)sequence, (unsigned int)(sequence >> 32));
    s->key = make_uint2((unsigned int)seed, (unsigned int)(seed >> 32));
    s->STATE = 0;
    skipahead(offset, s);
    _curand_without_extra(s); }
__device__ inline unsigned int curand(curandStatePhilox4_32_10* s) {
    unsigned int at = s->STATE, out;
    if (at == 0) out = s->output.x; else if (at == 1) out = s->output.y;
    else if (at == 2) out = s->output.z; else out = s->output.w;
    if (at == 3) skipahead(1, s); else s->STATE = at + 1;
    return out; }
__device__ inline uint4 curand4(curandStatePhilox4_32_10* s) {
    unsigned int at = s->STATE;
    uint4 a = s->output;
    skipahead(4, s);
    uint4 b = s->output;
    if (at == 0) return a;
    if (at == 1) return make_uint4(a.y, a.z, a.w, b.x);
    if (at == 2) return make_uint4(a.z, a.w, b.x, b.y);
    return make_uint4(a.w, b.x, b.y, b.z); }
__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* s) {
    uint4 n = curand4(s);
    return make_float4(_curand_float(n.x), _curand_float(n.y), _curand_float(n.z), _curand_float(n.w)); }
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10* s) {
    uint4 n = curand4(s);
    float2 a = _curand_pair(n.x, n.y), b = _curand_pair(n.z, n.w);
    return make_float4(a.x, a.y, b.x, b.y); }
__device__ inline float4 curand_log_normal4(curandStatePhilox4_32_10* s, float mean, float stddev) {
    float4 n = curand_normal4(s);
    return make_float4(expf(mean + stddev * n.x), expf(mean + stddev * n.y), expf(mean + stddev * n.z),
                       expf(mean + stddev * n.w)); }
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10* s) {
    return curand(s) * 2.3283064365386963e-10 + 2.3283064365386963e-10; }
__device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10* s) {
    uint4 n = curand4(s);
    return make_double2(_curand_53_bits(n.x, n.y), _curand_53_bits(n.z, n.w)); }

template <typename S> __device__ inline float curand_uniform(S* s) { return _curand_float(curand(s)); }
template <typename S> __device__ inline float2 curand_normal2(S* s) {
    unsigned int x = curand(s), y = curand(s);
    return _curand_pair(x, y); }
template <typename S> __device__ inline double2 curand_normal2_double(S* s) {
    unsigned int a = curand(s), b = curand(s), c = curand(s), d = curand(s);
    return _curand_double_pair(a, b, c, d); }
template <typename S> __device__ inline float2 curand_log_normal2(S* s, float mean, float stddev) {
    float2 n = curand_normal2(s);
    return make_float2(expf(mean + stddev * n.x), expf(mean + stddev * n.y)); }
template <typename S> __device__ inline double2 curand_log_normal2_double(S* s, double mean, double stddev) {
    double2 n = curand_normal2_double(s);
    return make_double2(exp(mean + stddev * n.x), exp(mean + stddev * n.y)); }

// The second of a pair is kept for the next call of the same kind: normal is 1, log-normal 2.
template <typename S> __device__ inline float curand_normal(S* s) {
    if (s->boxmuller_flag == 1) { s->boxmuller_flag = 0; return s->boxmuller_extra; }
    float2 pair = curand_normal2(s);
    s->boxmuller_flag = 1; s->boxmuller_extra = pair.y;
    return pair.x; }
template <typename S> __device__ inline double curand_normal_double(S* s) {
    if (s->boxmuller_flag_double == 1) { s->boxmuller_flag_double = 0; return s->boxmuller_extra_double; }
    double2 pair = curand_normal2_double(s);
    s->boxmuller_flag_double = 1; s->boxmuller_extra_double = pair.y;
    return pair.x; }
template <typename S> __device__ inline float curand_log_normal(S* s, float mean, float stddev) {
    if (s->boxmuller_flag == 2) { s->boxmuller_flag = 0; return s->boxmuller_extra; }
    float2 pair = curand_log_normal2(s, mean, stddev);
    s->boxmuller_flag = 2; s->boxmuller_extra = pair.y;
    return pair.x; }
template <typename S> __device__ inline double curand_log_normal_double(S* s, double mean, double stddev) {
    if (s->boxmuller_flag_double == 2) { s->boxmuller_flag_double = 0; return s->boxmuller_extra_double; }
    double2 pair = curand_log_normal2_double(s, mean, stddev);
    s->boxmuller_flag_double = 2; s->boxmuller_extra_double = pair.y;
    return pair.x; }
