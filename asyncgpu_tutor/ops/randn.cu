// Random numbers from a counter, so that a seed gives the same ones on every device.
// Philox-4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11; the
// multipliers and Weyl constants are those of its section 4.3. Pairs of uniform numbers become normal
// ones by Box and Muller (1958). Each thread makes four.
extern "C" __global__
void randn(unsigned long long n, unsigned long long seed, float mean, float std, float* out)
{
    unsigned long long thread = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread * 4 >= n) return;
    unsigned int c0 = (unsigned int)thread, c1 = (unsigned int)(thread >> 32), c2 = 0u, c3 = 0u;
    unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned long long p0 = (unsigned long long)0xD2511F53u * c0;
        unsigned long long p1 = (unsigned long long)0xCD9E8D57u * c2;
        unsigned int next0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
        unsigned int next2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned int)p1;
        c3 = (unsigned int)p0;
        c0 = next0;
        c2 = next2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    // (c + 0.5) / 2^32 lies strictly between 0 and 1 before rounding; fminf keeps it below 1 after.
    const float scale = 2.3283064365386963e-10f;
    float u0 = fminf(((float)c0 + 0.5f) * scale, 0.99999994f);
    float u1 = ((float)c1 + 0.5f) * scale;
    float u2 = fminf(((float)c2 + 0.5f) * scale, 0.99999994f);
    float u3 = ((float)c3 + 0.5f) * scale;
    float r0 = std * sqrtf(-2.0f * logf(u0)), r1 = std * sqrtf(-2.0f * logf(u2));
    const float turn = 6.2831853071795865f;
    unsigned long long i = thread * 4;
    out[i] = mean + r0 * cosf(turn * u1);
    if (i + 1 < n) out[i + 1] = mean + r0 * sinf(turn * u1);
    if (i + 2 < n) out[i + 2] = mean + r1 * cosf(turn * u3);
    if (i + 3 < n) out[i + 3] = mean + r1 * sinf(turn * u3);
}
