// A transformer (GPT-2's, without biases) that says one token for each of its slots in every step.
//
// A slot is a seat for one conversation. `length[slot]` is the place of the token that it reads now, so a slot has as
// many keys and values as that, and slots of any lengths share a step. A free seat has length -1, and its blocks
// return at once. Weights, keys and values of all layers lie one behind the other. The sizes are macros, which `Slots`
// defines.

#define HEAD (SIZE / HEADS)
#define ALL_LANES 0xffffffffu
#define TINY (-1e30f)

__device__ float warp_sum(float v) {
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(ALL_LANES, v, k);
    return v;
}

__device__ float warp_most(float v) {
    for (int k = 16; k > 0; k /= 2) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, k));
    return v;
}

// Over all threads of the block, for all of them. The barrier in front lets everybody finish with `part`.
__device__ float block_sum(float v) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0) part[warp] = v;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? part[lane] : 0.0f);
}

__device__ float block_most(float v) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_most(v);
    __syncthreads();
    if (lane == 0) part[warp] = v;
    __syncthreads();
    return warp_most(lane < blockDim.x / 32 ? part[lane] : TINY);
}

// Hendrycks and Gimpel (2016), https://arxiv.org/abs/1606.08415, by its approximation with tanh.
__device__ float gelu(float v) {
    return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}

#define SET 0
#define SET_GELU 1
#define ADD 2

__device__ void put(int how, float v, float* y) {
    *y = how == ADD ? *y + v : how == SET_GELU ? gelu(v) : v;
}

// x = what is known of the token and of its place. Grid: slots. Block: SIZE.
extern "C" __global__ void embed(
    const int* length, const int* token, const float* tokens, const float* places, float* x) {
    int slot = blockIdx.x, i = threadIdx.x, place = length[slot];
    if (place >= 0) x[slot * SIZE + i] = tokens[token[slot] * SIZE + i] + places[place * SIZE + i];
}

// y = x with mean 0 and variance 1, times gain. Grid: slots. Block: SIZE.
extern "C" __global__ void layer_norm(
    int layer, const int* length, const float* gain, const float* x, float* y) {
    int slot = blockIdx.x, i = threadIdx.x;
    if (length[slot] < 0) return;
    float v = x[slot * SIZE + i];
    v -= block_sum(v) / SIZE;
    y[slot * SIZE + i] = gain[layer * SIZE + i] * v * rsqrtf(block_sum(v * v) / SIZE + 1e-5f);
}

// y = w x, gelu(w x) or y + w x, as `how` says: a warp for each row. Grid: (rows / 8, slots). Block: 256.
extern "C" __global__ void linear(
    int rows, int columns, int how, int layer, const int* length, const float* w, const float* x, float* y) {
    int slot = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (length[slot] < 0 || row >= rows) return;
    w += (layer * rows + row) * columns;
    float sum = 0.0f;
    for (int j = lane; j < columns; j += 32) sum += w[j] * x[slot * columns + j];
    sum = warp_sum(sum);
    if (lane == 0) put(how, sum, &y[slot * rows + row]);
}

// `layer_norm` and `linear` in one launch: each warp finds mean and variance itself. Grid and block as for linear.
extern "C" __global__ void norm_linear(
    int rows, int columns, int how, int layer, const int* length, const float* gain, const float* w,
    const float* x, float* y) {
    int slot = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (length[slot] < 0 || row >= rows) return;
    w += (layer * rows + row) * columns;
    gain += layer * columns;
    float mean = 0.0f, squares = 0.0f, sum = 0.0f;
    for (int j = lane; j < columns; j += 32) mean += x[slot * columns + j];
    mean = warp_sum(mean) / columns;
    for (int j = lane; j < columns; j += 32) {
        float v = x[slot * columns + j] - mean;
        squares += v * v;
        sum += w[j] * gain[j] * v;
    }
    sum = warp_sum(sum) * rsqrtf(warp_sum(squares) / columns + 1e-5f);
    if (lane == 0) put(how, sum, &y[slot * rows + row]);
}

// Keeps key and value of this token, and mixes the values of all tokens so far. Grid: (HEADS, slots). Block: 128.
extern "C" __global__ void attention(
    int layer, const int* length, const float* qkv, float* keys, float* values, float* y) {
    __shared__ float query[HEAD], weight[CONTEXT], mixed[128];
    int head = blockIdx.x, slot = blockIdx.y, t = threadIdx.x, now = length[slot], c = t % HEAD;
    if (now < 0) return;
    const float* mine = qkv + slot * 3 * SIZE + head * HEAD;
    int seat = ((layer * gridDim.y + slot) * HEADS + head) * CONTEXT * HEAD;
    float *key = keys + seat, *value = values + seat;
    if (t < HEAD) {
        query[c] = mine[c] * rsqrtf(HEAD);
        key[now * HEAD + c] = mine[SIZE + c];
        value[now * HEAD + c] = mine[2 * SIZE + c];
    }
    __syncthreads();
    float most = TINY, sum = 0.0f, mix = 0.0f;
    for (int j = t; j <= now; j += 128) {
        float score = 0.0f;
        for (int i = 0; i < HEAD; i++) score += query[i] * key[j * HEAD + i];
        weight[j] = score;
        most = fmaxf(most, score);
    }
    most = block_most(most);
    for (int j = t; j <= now; j += 128) {
        weight[j] = expf(weight[j] - most);
        sum += weight[j];
    }
    sum = block_sum(sum);
    for (int j = t / HEAD; j <= now; j += 128 / HEAD) mix += weight[j] * value[j * HEAD + c];
    mixed[t] = mix;
    __syncthreads();
    if (t >= HEAD) return;
    for (int j = t + HEAD; j < 128; j += HEAD) mix += mixed[j];
    y[slot * SIZE + head * HEAD + c] = mix / sum;
}

// The first token at which the weights, added up, exceed `chance` of all. For one warp: a stretch for each lane.
__device__ int draw(const float* weight, float chance) {
    const int each = (VOCABULARY + 31) / 32;
    int lane = threadIdx.x % 32, next = lane * each, end = min(VOCABULARY, next + each);
    float mine = 0.0f;
    for (int i = next; i < end; i++) mine += weight[i];
    float until = mine;
    for (int k = 1; k < 32; k *= 2) {
        float before = __shfl_up_sync(ALL_LANES, until, k);
        if (lane >= k) until += before;
    }
    float aim = chance * __shfl_sync(ALL_LANES, until, 31);
    unsigned int beyond = __ballot_sync(ALL_LANES, until > aim);
    int chosen = beyond ? __ffs(beyond) - 1 : (VOCABULARY - 1) / each;
    float left = aim - (until - mine);
    while (next < end - 1) {
        left -= weight[next];
        if (left < 0.0f) break;
        next++;
    }
    return __shfl_sync(ALL_LANES, next, chosen);
}

// Says a token: that of the prompt, as long as there is one (-1 ends it), or the one that was drawn. Token 0 ends a text,
// and so does place `last`. Then the seat is free: its length is -1, its token -1 - token, and `going` counts one less.
// Returns the new length. For one thread.
__device__ int say(
    int slot, int drawn, int now, const int* prompt, const int* last,
    int* text, int* token, int* length, int* said, int* going) {
    int place = now + 1, given = place < CONTEXT ? prompt[slot * CONTEXT + place] : -1;
    int next = given >= 0 ? given : drawn;
    bool over = place >= min(last[slot], CONTEXT - 1) || (next == 0 && given < 0);
    text[slot * CONTEXT + place] = next;
    token[slot] = over ? -1 - next : next;
    said[slot] = place;
    length[slot] = over ? -1 : place;
    if (over) atomicSub(going, 1);
    return over ? -1 : place;
}

// The next token of each slot, drawn by `chance`, which has a number from 0 to 1 for each place. Grid: slots. Block: 128.
extern "C" __global__ void choose(
    const float* logits, const float* heat, const float* chance, const int* prompt, const int* last,
    int* text, int* token, int* length, int* said, int* going) {
    __shared__ float weight[VOCABULARY];
    int slot = blockIdx.x, t = threadIdx.x, now = length[slot];
    if (now < 0) return;
    const float* mine = logits + slot * VOCABULARY;
    float most = TINY;
    for (int i = t; i < VOCABULARY; i += 128) most = fmaxf(most, mine[i]);
    most = block_most(most);
    for (int i = t; i < VOCABULARY; i += 128) weight[i] = expf((mine[i] - most) / fmaxf(heat[slot], 1e-3f));
    __syncthreads();
    if (t >= 32) return;
    int next = draw(weight, chance[slot * CONTEXT + now]);
    if (t == 0) say(slot, next, now, prompt, last, text, token, length, said, going);
}

// Seats conversations. news has 5 + CONTEXT ints for each slot: whether it is new, the number of tokens of
// its prompt, the place of its last token, a seed, the bits of its heat (-1 for what it was), and the prompt. Whoever
// sat there has to go, and with no tokens nobody comes. Grid: slots. Block: 128.
extern "C" __global__ void admit(
    const int* news, int* prompt, int* last, float* heat, float* chance, int* text, int* token, int* length,
    int* going) {
    int slot = blockIdx.x, t = threadIdx.x;
    const int* mine = news + slot * (5 + CONTEXT);
    if (mine[0] == 0) return;
    for (int i = t; i < CONTEXT; i += 128) {
        prompt[slot * CONTEXT + i] = i < mine[1] ? mine[5 + i] : -1;
        // PCG (O'Neill 2014, https://www.pcg-random.org): a number for each seed and place, whoever asks when.
        unsigned int r = (mine[3] * CONTEXT + i) * 747796405u + 2891336453u;
        r = ((r >> ((r >> 28) + 4)) ^ r) * 277803737u;
        chance[slot * CONTEXT + i] = (((r >> 22) ^ r) >> 8) * 5.9604645e-8f;
    }
    if (t > 0) return;
    int before = length[slot] >= 0, after = mine[1] > 0;
    if (mine[4] >= 0) heat[slot] = __int_as_float(mine[4]);
    text[slot * CONTEXT] = mine[5];
    token[slot] = mine[5];
    last[slot] = mine[2];
    length[slot] = after - 1;
    if (before != after) atomicAdd(going, after - before);
}
