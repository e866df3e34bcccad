#include "hostcall_async.cuh"

__global__ void ways(unsigned long long* mail, unsigned long long* stack, int way, int times, int* failed)
{
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < times; k++) {
        if (way == 1) {
            Ask one = ask(host, 16, 1, 0, 0);
            block_on(one);
            if (one.error != 0) { *failed = 1; return; }
        } else if (way == 2) {
            Ask one = ask(host, 16, 1, 0, 0);
            block_on(one);
            Ask two = ask(host, 16, 2, 0, 0);
            block_on(two);
            if (one.error + two.error != 0) { *failed = 1; return; }
        } else {
            auto both = join(ask(host, 16, 1, 0, 0), ask(host, 16, 2, 0, 0));
            block_on(both);
            if (both.a.error + both.b.error != 0) { *failed = 1; return; }
        }
    }
}

// Each block has `each` requests, four under way at a time. 1000 + error, or the answer, is left for each.
__global__ void storm(unsigned long long* mail, unsigned long long* stack, int each, unsigned long long* out)
{
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < each; k += 4) {
        Ask four[4];
        for (int i = 0; i < 4; i++) four[i] = ask(host, 16, blockIdx.x, k + i, 0);
        run_all(four, 4);
        for (int i = 0; i < 4; i++) {
            unsigned long long left = four[i].answer;
            if (four[i].error > 0) left = 1000 + four[i].error;
            if (four[i].error < 0) left = 2000;
            out[blockIdx.x * each + k + i] = left;
        }
        if (four[3].error < 0) return;
    }
}

// Each call loses against a limit, or wins. In the end all packets are taken, to see that none is lost.
__global__ void hasty(unsigned long long* mail, unsigned long long* stack, int times, long long clocks,
                      int* won, int* found, unsigned long long* wrong)
{
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < times; k++) {
        auto quick = within(ask(host, 16, k, 0, 0), clocks);
        block_on(quick);
        if (quick.winner == 0) {
            (*won)++;
            if (quick.a.answer != 3ULL * k) (*wrong)++;
        }
    }
    for (unsigned k = 0; k < host.packets; k++) {
        int p = hostcall_begin(host);
        if (p >= 0) (*found)++;
    }
}

__device__ float chew(float x, int work)
{
    for (int k = 0; k < work; k++) x = 0.5f * (x + 3.0f / x);
    return x;
}

__global__ void pieces(unsigned long long* mail, unsigned long long* stack, int number, int work, int ahead,
                       float* out)
{
    Hostcalls host = hostcalls(mail, stack);
    float sum = 0.0f;
    Ask next = ask_keeping(host, 16, 0, 0, 0);
    if (ahead) next.poll();
    for (int k = 0; k < number; k++) {
        Ask mine = next;
        block_on(mine);
        if (mine.error != 0) return;
        next = ask_keeping(host, 16, k + 1, 0, 0);
        if (ahead && k + 1 < number) next.poll();
        sum += chew(1.0f + (float)mine.bytes()[0], work);
        mine.end();
    }
    out[0] = sum;
}

__global__ void service(unsigned long long* mail, unsigned long long* stack, int which, int times,
                        unsigned long long a, unsigned long long b, unsigned long long c,
                        const unsigned char* text, int length, long long* last)
{
    Hostcalls host = hostcalls(mail, stack);
    int p = hostcall_begin(host);
    if (p < 0) return;
    for (int i = 0; i < length; i++) hostcall_bytes(host, p)[i] = text[i];
    for (int k = 0; k < times; k++) {
        hostcall_ask(host, p, which, a, b, c);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int error = hostcall_error(host, p);
        last[k] = error != 0 ? -error : (long long)hostcall_answer(host, p);
    }
    hostcall_end(host, p);
}
