// The fall of a small galaxy: one step of all stars, from one pair of arrays to another.
extern "C" __global__ void fall(
    unsigned int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = at[2 * i], y = at[2 * i + 1], fx = 0.0f, fy = 0.0f;
    for (unsigned int j = 0; j < n; j++) {
        float dx = at[2 * j] - x, dy = at[2 * j + 1] - y;
        float r2 = dx * dx + dy * dy + 0.01f;
        float pull = 1.0f / (n * r2 * sqrtf(r2));
        fx += pull * dx;
        fy += pull * dy;
    }
    float u = speed[2 * i] + 0.01f * fx, v = speed[2 * i + 1] + 0.01f * fy;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.01f * u;
    at_next[2 * i + 1] = y + 0.01f * v;
}
