__global__ void trial(unsigned long long* mail, unsigned long long* answers, int calls)
{
    volatile unsigned long long* flag = mail;
    for (int k = 1; k <= calls; ++k) {
        if (blockIdx.x == 1) {
            while (*flag != 1) { }
            __threadfence_system();
            mail[2] = 10 * mail[1];
            __threadfence_system();
            *flag = 2;
        } else {
            Ask call = {{mail}, (unsigned long long)k, 0, -1, 0};
            while (call.poll() == PENDING) { }
            answers[k - 1] = call.answer;
        }
    }
}
