// A step of something that is trained, in one warp, so that it takes long: it halves what is there, and adds. What it calls
// its loss is the first number.
extern "C" __global__ void step(unsigned int n, unsigned int given, const float* x, float* w, float* loss)
{
    unsigned int part = n / blockDim.x;
    for (unsigned int i = threadIdx.x * part; i < (threadIdx.x + 1) * part; i++) w[i] = 0.5f * w[i] + x[i % given];
    if (threadIdx.x == 0) *loss = w[0];
}
