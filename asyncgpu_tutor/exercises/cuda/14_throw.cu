extern "C" __global__ void throw_darts(unsigned int rounds, unsigned int worth, unsigned int* hits)
{
    float x = 1.0f;
    for (unsigned int i = 0; i < rounds; i++) x = 0.5f * x + 1.0f;
    hits[threadIdx.x] = x > 0.0f && threadIdx.x % 4 != 1 ? worth : 0;
}
