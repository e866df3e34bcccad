extern "C" __global__ void settle(unsigned int n, float rate, const float* x, float* next, float* moved)
{
    float most = 0.0f;
    for (unsigned int i = 0; i < n; i++) {
        float move = rate * (2.0f - x[i]);
        most = fmaxf(most, fabsf(move));
        next[i] = x[i] + move;
    }
    moved[0] = most;
}
