extern "C" __global__
void relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = input[i];
        output[i] = x > 0.0f ? x : 0.0f;
    }
}
