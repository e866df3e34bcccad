__global__ void letters(volatile unsigned* mail, int n, unsigned* answers) {
    for (int k = 0; k < n; ++k) {
        mail[1] = 10 + k * k;
        __threadfence_system();
        mail[0] = 1;
        int turns = 0;
        while (mail[0] != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        answers[k] = mail[2];
    }
}
