// A round that halves a number, and says whether it is still above one.
extern "C" __global__ void halve(float* x, int* moved)
{
    x[0] = 0.5f * x[0];
    if (x[0] > 1.0f) moved[0] = 1;
}
