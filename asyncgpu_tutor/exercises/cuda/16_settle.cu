extern "C" __global__ void settle(unsigned int n, float* x, float* moved)
{
    float most = 0.0f;
    for (unsigned int i = 0; i < n; i++) {
        float next = 0.5f * x[i] + 1.0f;
        most = fmaxf(most, fabsf(next - x[i]));
        x[i] = next;
    }
    moved[0] = most;
}
