// A call to the host as a future: chapter 13b of the course, where futures and hostcalls meet.
//
//     #include "hostcall_async.cuh"
//
//     auto both = join(ask(host, 16, 1, 0, 0), ask(host, 16, 2, 0, 0));   // two calls under way at once
//     block_on(both);
//     if (both.a.error == 0) use(both.a.answer);
//
//     auto quick = within(ask(host, 16, 3, 0, 0), 100000);                // or nobody waits any longer
//     block_on(quick);
//     if (quick.winner == 1) ...                                          // the answer will come, and nobody reads it
//
// Bytes that go with a call lie in its packet. With `ask_keeping` the packet stays yours after READY, until end().

#ifndef ASYNCGPU_TUTOR_HOSTCALL_ASYNC
#define ASYNCGPU_TUTOR_HOSTCALL_ASYNC

#include "device_async.cuh"
#include "hostcall.cuh"

#define HOSTCALL_GONE -1  // as an error: the host has stopped, or has not answered for some seconds

struct Ask {
    Hostcalls host;
    int service;
    unsigned long long a, b, c;
    bool keeps;         // whether the packet stays with the caller after READY
    int step;           // 0: wants a packet, 1: has one, 2: has asked, 3: READY
    int packet;
    long long since;    // the SM's clock when it began to wait
    int error;          // 0, HOSTCALL_GONE, or what the service says
    unsigned long long answer;

    // READY with a packet, to put bytes into before it is sent. `poll` does this by itself where there are none.
    __device__ Poll begin() {
        if (step > 0) return READY;
        packet = hostcall_try_begin(host);
        if (packet >= 0) {
            step = 1;
            return READY;
        }
        if (*(volatile unsigned long long*)host.stopped != 0) return gone();
        if (waited()) return given_up();
        __nanosleep(500);
        return PENDING;
    }

    __device__ Poll poll() {
        if (step == 0 && begin() == PENDING) return PENDING;
        if (step == 1) {
            hostcall_ask(host, packet, service, a, b, c);
            since = 0;
            step = 2;
            return PENDING;
        }
        if (step == 2) {
            volatile unsigned long long* state = hostcall_state(host, packet);
            unsigned long long found = state[0];
            if (found == HOSTCALL_ASKED) {
                if (state[1] != 0) return gone();
                if (waited()) return given_up();
                __nanosleep(20);
                return PENDING;
            }
            __threadfence_system();  // the answer is read after the state
            if (found == HOSTCALL_REFUSED) return gone();
            answer = hostcall_answer(host, packet);
            error = found == HOSTCALL_FAILED ? (int)answer : 0;
            step = 3;
            if (!keeps) end();
        }
        return READY;
    }

    __device__ char* bytes() { return hostcall_bytes(host, packet); }

    // The packet may be somebody else's from here on.
    __device__ void end() {
        if (step > 0 && packet >= 0) hostcall_end(host, packet);  // a zeroed one has no packet
        packet = -1;
    }

    // Nobody will poll it again. What was asked may still be done, and its packet is not lost.
    __device__ void drop() {
        if (step == 2) hostcall_leave(host, packet);
        else end();  // also of a call that was to keep its packet
        packet = -1;
        step = 3;
    }

    __device__ bool waited() {
        if (since == 0) since = clock64();
        return hostcall_late(host, since);
    }

    __device__ Poll gone() {
        hostcall_refused(host);
        error = HOSTCALL_GONE;
        packet = -1;  // the host may still have it
        step = 3;
        return READY;
    }

    __device__ Poll given_up() {
        hostcall_give_up(host);
        return gone();
    }
};

__device__ inline Ask ask(const Hostcalls& host, int service, unsigned long long a, unsigned long long b,
                          unsigned long long c) {
    Ask made = {host, service, a, b, c, false, 0, -1, 0, 0, 0};
    return made;
}

__device__ inline Ask ask_keeping(const Hostcalls& host, int service, unsigned long long a, unsigned long long b,
                                  unsigned long long c) {
    Ask made = ask(host, service, a, b, c);
    made.keeps = true;
    return made;
}

#endif
