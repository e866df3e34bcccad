// Calls from a kernel to the host, by packets in memory that both can see. The host's side is agt.hostcalls.
//
//     __global__ void ask(unsigned long long* mail, unsigned long long* stack, ...) {
//         Hostcalls host = hostcalls(mail, stack);
//         unsigned long long answer = 0;
//         bool ok = hostcall(host, HOSTCALL_TIME, 0, 0, 0, answer);
//         if (!ok) return;                       // the host has stopped, or does not answer
//
// A call goes through five steps, which a kernel may also take one by one, to do something in between or to
// send bytes along:
//
//     int p = hostcall_begin(host);              // a free packet; waits for one; -1 if the host has stopped
//     char* bytes = hostcall_bytes(host, p);     // room for data that goes with it
//     hostcall_ask(host, p, service, a, b, c);   // from here on the packet is the host's
//     bool ok = hostcall_wait(host, p);          // waits for the answer, and fences; hostcall_done has no fence
//     answer = hostcall_answer(host, p);
//     hostcall_end(host, p);                     // somebody else may have it now
//
// Packets that nobody uses lie on stacks in the memory of the device, several of them, so that not all blocks
// meet at one word. The host never touches those. What it does touch, a packet and its state, has one owner at
// a time: the kernel until it says ASKED, then the host until it says ANSWERED. So the host needs no atomics, and on
// x86, which keeps the order of its reads and that of its writes, no fences either.
//
// Blocks that read the same 32 bytes of the host's memory take turns at it, and a turn is a trip over the bus.
// So what a kernel looks at while it waits, the state and whether the host has stopped, each packet has for
// itself, side by side; and what all blocks read, the sizes, is in the memory of the device.
//
// A kernel that stops waiting before the answer is there leaves its packet (hostcall_leave). The host may still
// write to it, so it goes to other stacks, and is taken from there when the host is done with it.
//
// No wait is forever: each counts its looks, or goes by the clock, and gives up after some seconds. `hostcall_async.cuh` has calls
// that do not wait at all.

#ifndef ASYNCGPU_TUTOR_HOSTCALL
#define ASYNCGPU_TUTOR_HOSTCALL

// Services of agt.hostcalls. Numbers from 16 on are yours.
#define HOSTCALL_TIME 1    // nanoseconds of the host's clock
#define HOSTCALL_RANDOM 2  // 64 random bits
#define HOSTCALL_PRINT 3   // prints the first a of the packet's bytes, as text
#define HOSTCALL_READ 4    // from file a, at byte b, c bytes into the packet's; answers how many there were
#define HOSTCALL_WRITE 5   // to file a, at byte b, the first c of the packet's bytes; answers c
// From READ on a call may fail, see hostcall_error. These name things within what the office allows.
#define HOSTCALL_OPEN 6     // the file that the first a bytes name, b: 0 to read, 1 to write; answers its number
#define HOSTCALL_CLOSE 7    // file or connection a
#define HOSTCALL_CONNECT 8  // to the address in the first a bytes, as in 127.0.0.1:80; answers a number
#define HOSTCALL_SEND 9     // to connection a, the first c bytes; answers c
#define HOSTCALL_RECEIVE 10 // from connection a, at most c bytes; answers how many, and 0 at the end

// The mail: words that a packet's state takes, for all packets; then those of the packets; then their bytes;
// and last, how many calls have given up waiting.
#define HOSTCALL_STATE 4   // the state, whether the host has stopped, and two spare ones
#define HOSTCALL_PACKET 8  // service, a, b, c, answer, and three spare ones

// States of a packet.
#define HOSTCALL_ASKED 1
#define HOSTCALL_ANSWERED 2
#define HOSTCALL_REFUSED 3
#define HOSTCALL_FAILED 5  // the answer is the number of an error, as in C's errno

// Words at the beginning of the device's own memory; then a top for each stack, and two for packets that were
// left; then a link for each packet.
#define HOSTCALL_PACKETS 0
#define HOSTCALL_STACKS 1
#define HOSTCALL_BYTES 2     // that go with a packet
#define HOSTCALL_PATIENCE 3  // after how many looks a call gives up waiting
#define HOSTCALL_STOPPED 4   // whether a block has learnt that the host has stopped: so that others know
#define HOSTCALL_HEAD 5      // words in all

// The simulated device checks who may do what with a packet: 0 takes it, 1 asks, 2 reads the answer, 3 gives it back,
// 4 leaves it.
// With HOSTCALL_UNCHECKED defined it does not, and a mistake has the consequences that it has on a GPU.
#if defined(__SIMGPU__) && !defined(HOSTCALL_UNCHECKED)
#define HOSTCALL_STEP(h, p, step) __simgpu_packet((h).mail + (p) * HOSTCALL_STATE, HOSTCALL_ASKED, step)
#else
#define HOSTCALL_STEP(h, p, step)
#endif

struct Hostcalls {
    volatile unsigned long long* mail;  // mapped: the host sees it
    unsigned long long* stopped;
    unsigned long long* tops;  // of the stacks
    unsigned long long* links;
    unsigned packets, stacks, bytes, patience;
};

__device__ inline Hostcalls hostcalls(unsigned long long* mail, unsigned long long* stack) {
    Hostcalls h;
    h.mail = mail;
    h.packets = (unsigned)stack[HOSTCALL_PACKETS];
    h.stacks = (unsigned)stack[HOSTCALL_STACKS];
    h.bytes = (unsigned)stack[HOSTCALL_BYTES];
    h.patience = (unsigned)stack[HOSTCALL_PATIENCE];
    h.stopped = stack + HOSTCALL_STOPPED;
    h.tops = stack + HOSTCALL_HEAD;
    h.links = h.tops + h.stacks + 2;
    return h;
}

__device__ inline volatile unsigned long long* hostcall_state(const Hostcalls& h, int p) {
    return h.mail + p * HOSTCALL_STATE;
}

__device__ inline volatile unsigned long long* hostcall_packet(const Hostcalls& h, int p) {
    return h.mail + h.packets * HOSTCALL_STATE + p * HOSTCALL_PACKET;
}

__device__ inline char* hostcall_bytes(const Hostcalls& h, int p) {
    return (char*)(h.mail + h.packets * (HOSTCALL_STATE + HOSTCALL_PACKET)) + p * h.bytes;
}

// The top of a stack is a packet's number plus one in the lower half, 0 for none, and a tag in the upper half.
// Each change counts the tag up. Without it, a thread that was held up between its look at the top and its swap
// could take a packet off that had been away and come back, with a link that is no longer true (ABA).
__device__ inline int hostcall_pop(const Hostcalls& h, unsigned which) {
    unsigned long long* top = h.tops + which;
    unsigned long long seen = atomicAdd(top, 0ULL);
    while ((unsigned)seen != 0) {
        __threadfence();  // the link, and all that the packet's last owner did, came before this top
        int p = (int)(unsigned)seen - 1;
        unsigned long long link = *(volatile unsigned long long*)(h.links + p);
        unsigned long long next = (((seen >> 32) + 1) << 32) | link;
        unsigned long long before = atomicCAS(top, seen, next);
        if (before == seen) return p;
        seen = before;
    }
    return -1;
}

__device__ inline void hostcall_push(const Hostcalls& h, unsigned which, int p) {
    unsigned long long* top = h.tops + which;
    unsigned long long seen = atomicAdd(top, 0ULL);
    while (true) {
        *(volatile unsigned long long*)(h.links + p) = seen & 0xffffffffULL;
        __threadfence();  // the link, and all that this owner did, comes before the packet is to be had
        unsigned long long next = (((seen >> 32) + 1) << 32) | (unsigned long long)(p + 1);
        unsigned long long before = atomicCAS(top, seen, next);
        if (before == seen) return;
        seen = before;
    }
}

__device__ inline bool hostcall_refused(const Hostcalls& h) {
    atomicExch(h.stopped, 1ULL);
    return false;
}

__device__ inline bool hostcall_give_up(const Hostcalls& h) {
    atomicAdd((unsigned long long*)hostcall_bytes(h, h.packets), 1ULL);
    return hostcall_refused(h);  // so that others need not find out for themselves
}

// A packet that was left, and that the host is done with by now; -1 if there is none. One that it still has goes
// over to the other of the two stacks, so that it does not hide those below it: first all of one side, then all of
// the other.
__device__ inline int hostcall_found(const Hostcalls& h) {
    unsigned side = 0;
    for (unsigned k = 0; side < 2 && k < 2 * h.packets; ++k) {
        int p = hostcall_pop(h, h.stacks + side);
        if (p < 0) {
            ++side;
            continue;
        }
        if (hostcall_state(h, p)[0] != HOSTCALL_ASKED) {
            __threadfence_system();  // what the host wrote comes before what the new owner writes
            HOSTCALL_STEP(h, p, 0);
            return p;
        }
        hostcall_push(h, h.stacks + 1 - side, p);
    }
    return -1;
}

// A free packet, or -1 if there is none now. It does not wait.
__device__ inline int hostcall_try_begin(const Hostcalls& h) {
    unsigned home = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (unsigned k = 0; k < h.stacks; ++k) {
        int p = hostcall_pop(h, (home + k) % h.stacks);
        if (p < 0) continue;
        HOSTCALL_STEP(h, p, 0);
        return p;
    }
    return hostcall_found(h);
}

// Whether somebody who began to wait at this clock has been patient enough. A look takes about two microseconds, so
// the patience is some four seconds.
__device__ inline bool hostcall_late(const Hostcalls& h, long long since) {
    return clock64() - since > 4000LL * h.patience;
}

__device__ inline int hostcall_begin(const Hostcalls& h) {
    long long since = clock64();
    while (true) {
        int p = hostcall_try_begin(h);
        if (p >= 0) return p;
        if (*(volatile unsigned long long*)h.stopped != 0) return -1;
        if (hostcall_late(h, since)) {
            hostcall_give_up(h);
            return -1;
        }
        __nanosleep(500);
    }
}

__device__ inline void hostcall_ask(const Hostcalls& h, int p, int service, unsigned long long a,
                                    unsigned long long b, unsigned long long c) {
    volatile unsigned long long* packet = hostcall_packet(h, p);
    HOSTCALL_STEP(h, p, 1);
    packet[0] = (unsigned long long)service;
    packet[1] = a;
    packet[2] = b;
    packet[3] = c;
    __threadfence_system();  // the host sees all of that before it sees the state
    hostcall_state(h, p)[0] = HOSTCALL_ASKED;
}

__device__ inline bool hostcall_done(const Hostcalls& h, int p) {
    return hostcall_state(h, p)[0] != HOSTCALL_ASKED;
}

__device__ inline bool hostcall_wait(const Hostcalls& h, int p) {
    unsigned turns = 0;
    while (true) {
        unsigned long long state = hostcall_state(h, p)[0];
        unsigned long long stopped = hostcall_state(h, p)[1];
        if (state != HOSTCALL_ASKED) {
            __threadfence_system();  // the answer is read after the state
            return state != HOSTCALL_REFUSED || hostcall_refused(h);
        }
        if (stopped != 0) return hostcall_refused(h);
        if (++turns > h.patience) return hostcall_give_up(h);
        __nanosleep(20);
    }
}

__device__ inline unsigned long long hostcall_answer(const Hostcalls& h, int p) {
    HOSTCALL_STEP(h, p, 2);
    return hostcall_packet(h, p)[4];
}

// 0 if the host answered; otherwise the number of an error, as the service says.
__device__ inline int hostcall_error(const Hostcalls& h, int p) {
    return hostcall_state(h, p)[0] == HOSTCALL_FAILED ? (int)hostcall_answer(h, p) : 0;
}

__device__ inline void hostcall_end(const Hostcalls& h, int p) {
    HOSTCALL_STEP(h, p, 3);
    hostcall_push(h, (unsigned)p % h.stacks, p);
}

// Nobody waits for the answer any more. The host may still do what it was asked for.
__device__ inline void hostcall_leave(const Hostcalls& h, int p) {
    HOSTCALL_STEP(h, p, 4);
    hostcall_push(h, h.stacks + (unsigned)p % 2, p);
}

// All of it at once. False if there is no answer, or an error instead of one. If the host has stopped, the packet
// is not given back, because the host may still have it, and the kernel should return.
__device__ inline bool hostcall(const Hostcalls& h, int service, unsigned long long a, unsigned long long b,
                                unsigned long long c, unsigned long long& answer) {
    int p = hostcall_begin(h);
    if (p < 0) return false;
    hostcall_ask(h, p, service, a, b, c);
    bool ok = hostcall_wait(h, p);
    if (!ok) return false;
    ok = hostcall_error(h, p) == 0;
    if (ok) answer = hostcall_answer(h, p);
    hostcall_end(h, p);
    return ok;
}

#endif
