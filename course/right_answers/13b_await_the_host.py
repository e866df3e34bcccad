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


# %% id=13b-ask
#   if (packet < 0) return PENDING;
# + hostcall_ask(host, packet, 16, a, 0, 0);
#   step = 1;
# + return PENDING;
# - hostcall_ask(host, packet, 16, a, 0, 0);
# - step = 2;
# - }
# - if (step == 2) {
# - step = 3;
# + step = 2;


# %% id=13b-ask
# - if (step == 0) {
# + if (packet < 0) {
# - if (packet < 0) return PENDING;
# + if (packet < 0) return PENDING;
# + hostcall_ask(host, packet, 16, a, 0, 0);
# - if (step == 1) {
# - hostcall_ask(host, packet, 16, a, 0, 0);
# - step = 2;
# - }
# - if (step == 2) {
# + if (packet >= 0 && step < 2) {
# - step = 3;
# + step = 2;


# %% id=13b-ask
#   if (packet < 0) return PENDING;
# + hostcall_ask(host, packet, 16, a, 0, 0);
# - hostcall_ask(host, packet, 16, a, 0, 0);
# - step = 2;
# - }
# - if (step == 2) {
# - hostcall_end(host, packet);
# - step = 3;
# + hostcall_leave(host, packet);
# + step = 2;


# %% id=13b-both
# - if (pair.a.error != 0) *out = -pair.a.error;
# - else if (pair.b.error != 0) *out = -pair.b.error;
# + if (pair.b.error != 0) *out = -pair.b.error;
# + else if (pair.a.error != 0) *out = -pair.a.error;


# %% id=13b-both
# - auto pair = join(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0));
# - block_on(pair);
# + struct { Ask a, b; } pair = {ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0)};
# + Poll x = pair.a.poll(), y = pair.b.poll();
# + while (x == PENDING || y == PENDING) {
# +     if (x == PENDING) x = pair.a.poll();
# +     if (y == PENDING) y = pair.b.poll();
# + }


# %% id=13b-drop
# - if (step == 2) hostcall_leave(host, packet);
# + if (step == 2) {
# +     if (hostcall_done(host, packet)) { __threadfence_system(); hostcall_end(host, packet); }
# +     else hostcall_leave(host, packet);
# + }


# %% id=13b-drop
# - if (step == 1) hostcall_end(host, packet);
# + if (step == 1) hostcall_leave(host, packet);


# %% id=13b-first
# - auto race = within(select(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0)), 200000);
# - block_on(race);
# - if (race.winner == 1) *out = -1;
# - else *out = race.a.winner == 0 ? race.a.a.answer : race.a.b.answer;
# + Ask one = ask(host, 16, a, 0, 0), two = ask(host, 16, b, 0, 0);
# + long long until = clock64() + 200000;
# + long long said = -1;
# + while (clock64() < until) {
# +     if (one.poll() == READY) { said = one.answer; break; }
# +     if (two.poll() == READY) { said = two.answer; break; }
# + }
# + if (one.step != 3) one.drop();
# + if (two.step != 3) two.drop();
# + *out = said;


# %% id=13b-first
# - auto race = within(select(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0)), 200000);
# - block_on(race);
# - if (race.winner == 1) *out = -1;
# - else *out = race.a.winner == 0 ? race.a.a.answer : race.a.b.answer;
# + auto quick = select(select(ask(host, 16, a, 0, 0), ask(host, 16, b, 0, 0)), Deadline{clock64() + 200000});
# + block_on(quick);
# + if (quick.winner == 1) *out = -1;
# + else if (quick.a.winner == 0) *out = quick.a.a.answer;
# + else *out = quick.a.b.answer;


# %% id=13b-challenge of=starter
# - __global__ void ahead(unsigned long long* mail, unsigned long long* stack,
# - int pieces, float* out)
# + // Asks for the next one before it waits.
# + __global__ void ahead(unsigned long long* mail, unsigned long long* stack, int pieces, float* out)
#   float sum = 0.0f;
# + Ask mine = ask_keeping(host, 16, 0, 0, 0);
# - Ask mine = ask_keeping(host, 16, k, 0, 0);
# + Ask next = ask_keeping(host, 16, k + 1, 0, 0);
# + if (k + 1 < pieces) next.poll();
#   mine.end();
# + next.drop();
#   mine.end();
# + mine = next;


# %% id=13b-challenge
# - Ask next = ask_keeping(host, 16, 0, 0, 0);
# + Ask two[2] = {ask_keeping(host, 16, 0, 0, 0), ask_keeping(host, 16, 1, 0, 0)};
# + if (pieces > 0) two[0].poll();
# - Ask mine = next;
# + Ask& mine = two[k % 2];
# + Ask& next = two[(k + 1) % 2];
# - if (mine.error != 0) {
# - mine.end();
# - return;
# - }
# + if (mine.error != 0) { mine.end(); return; }
# - sum += work(mine.bytes()[0]);
# + float x = mine.bytes()[0];
# - mine.end();
# + mine.end();
# + sum += work(x);


# %% id=13b-challenge of=starter
# - __global__ void ahead(unsigned long long* mail, unsigned long long* stack,
# - int pieces, float* out)
# + __global__ void ahead(unsigned long long* mail, unsigned long long* stack, int pieces, float* out)
#   float sum = 0.0f;
# + Ask mine = ask_keeping(host, 16, 0, 0, 0);
# - Ask mine = ask_keeping(host, 16, k, 0, 0);
# - if (mine.error != 0) {
# - mine.end();
# - return;
# - }
# + if (mine.error != 0) { mine.end(); return; }
# + Ask next = ask_keeping(host, 16, k + 1, 0, 0);
# + if (k + 1 < pieces) next.poll();
#   mine.end();
# + mine = next;
