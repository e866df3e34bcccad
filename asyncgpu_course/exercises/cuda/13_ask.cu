#undef __global__
__global__ void trial(unsigned* mail, int n, unsigned* out, unsigned* asked)
{
    if (blockIdx.x == 0) {
        NAME(mail, n, out);
        return;
    }
    volatile unsigned* flag = mail;
    for (int k = 0; k < n; ++k) {
        while (*flag != 1) { }
        __threadfence_system();
        asked[k] = mail[1];
        mail[2] = 300 - k;
        __threadfence_system();
        *flag = 2;
    }
}
