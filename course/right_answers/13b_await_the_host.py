"""Right answers to exercises of course/13b_await_the_host.py in other forms than the solution's."""


# %% id=13b-retry
RETRY = r"""
#define TOO_LATE -2

struct Retry {
    Hostcalls host;
    unsigned long long a;
    long long clocks;
    Ask once;
    long long until;
    int tries;
    int error;
    unsigned long long answer;
    __device__ Poll poll()
    {
        if (tries == 0) again();
        bool done = once.poll() == READY;
        if (!done && clock64() < until) return PENDING;
        error = done ? once.error : TOO_LATE;
        answer = once.answer;
        if (!done) once.drop();
        if (error == 0 || tries == 3) return READY;
        again();
        return PENDING;
    }
    __device__ void again()
    {
        once = ask(host, 16, a, 0, 0);
        until = clock64() + clocks;
        tries++;
    }
    __device__ void drop() { once.drop(); }
};
"""


# %% id=13b-retry
RETRY = r"""
struct Retry {
    Hostcalls host;
    unsigned long long a;
    long long clocks;
    int left, error;                // tries that may still come: 3 to 1, once there is a call
    unsigned long long answer;
    Select<Ask, Deadline> call;
    __device__ Poll poll()
    {
        while (true) {              // a new try is sent in the same turn
            if (left == 0) {
                left = 3;
                call = within(ask(host, 16, a, 0, 0), clocks);
            }
            if (call.poll() == PENDING) return PENDING;
            error = call.winner == 0 ? call.a.error : -2;
            answer = call.a.answer;
            if (error == 0 || --left == 0) return READY;
            call = within(ask(host, 16, a, 0, 0), clocks);
        }
    }
    __device__ void drop()
    {
        if (left > 0) call.drop();
    }
};
"""
