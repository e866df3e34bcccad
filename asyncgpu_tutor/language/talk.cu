// All of a conversation in one launch: a block for it, which says token after token until its text is over.
//
// Between two tokens nobody is asked, and what is known of a token stays in shared memory. But a block has one SM, so
// the weights come through one door. Keys and values lie where `attention` has them, so that a conversation may go on by
// steps, or by this. It needs kernels.cu before it.

// y = w x, gelu(w x) or y + w x, as `how` says: a warp of the block for each row.
__device__ void block_linear(int rows, int columns, int how, const float* w, const float* x, float* y) {
    int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < rows; row += blockDim.x / 32) {
        float sum = 0.0f;
        for (int j = lane; j < columns; j += 32) sum += w[row * columns + j] * x[j];
        sum = warp_sum(sum);
        if (lane == 0) put(how, sum, &y[row]);
    }
    __syncthreads();
}

__device__ void block_norm(const float* gain, const float* x, float* y) {
    int i = threadIdx.x;
    float v = i < SIZE ? x[i] : 0.0f;
    float mean = block_sum(v) / SIZE;
    v = i < SIZE ? v - mean : 0.0f;
    float squares = block_sum(v * v);
    if (i < SIZE) y[i] = gain[i] * v * rsqrtf(squares / SIZE + 1e-5f);
    __syncthreads();
}

// Blocks take slots from a queue, so there may be fewer of them than slots. The last block to find nothing there sets it
// back. Grid: any. Block: 4 * SIZE.
extern "C" __global__ void talk(
    int layers, int slots, const float* tokens, const float* places, const float* gain_1, const float* qkv,
    const float* out, const float* gain_2, const float* wide, const float* narrow, const float* gain,
    const float* logits, float* keys, float* values, const float* heat, const float* chance, const int* prompt, const int* last,
    int* text, int* token, int* length, int* said, int* going, int* queue) {
    __shared__ float x[SIZE], y[SIZE], asked[3 * SIZE], weight[HEADS * CONTEXT];
    __shared__ float broad[4 * SIZE > VOCABULARY ? 4 * SIZE : VOCABULARY];
    __shared__ int slot, now;
    int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32;
    int head = t % SIZE / HEAD, part = t % HEAD;  // of its element of y
    for (;;) {
        if (t == 0) slot = atomicAdd(queue, 1);
        __syncthreads();
        if (slot >= slots) break;
        if (t == 0) now = length[slot];
        __syncthreads();
        while (now >= 0) {
            if (t < SIZE) x[t] = tokens[token[slot] * SIZE + t] + places[now * SIZE + t];
            for (int layer = 0; layer < layers; layer++) {
                int seat = (layer * slots + slot) * CONTEXT * SIZE;
                float *key = keys + seat, *value = values + seat;
                block_norm(gain_1 + layer * SIZE, x, y);
                block_linear(3 * SIZE, SIZE, SET, qkv + layer * 3 * SIZE * SIZE, y, asked);
                if (t < SIZE) {
                    key[(head * CONTEXT + now) * HEAD + part] = asked[SIZE + t];
                    value[(head * CONTEXT + now) * HEAD + part] = asked[2 * SIZE + t];
                }
                __syncthreads();
                for (int j = warp; j < HEADS * (now + 1); j += warps) {  // a warp for each head and place
                    int h = j % HEADS, place = j / HEADS;
                    float score = 0.0f;
                    for (int i = lane; i < HEAD; i += 32)
                        score += asked[h * HEAD + i] * key[(h * CONTEXT + place) * HEAD + i];
                    score = warp_sum(score);
                    if (lane == 0) weight[h * CONTEXT + place] = score * rsqrtf(HEAD);
                }
                __syncthreads();
                if (warp < HEADS) {  // a warp for each head
                    float most = TINY, sum = 0.0f, *mine = weight + warp * CONTEXT;
                    for (int j = lane; j <= now; j += 32) most = fmaxf(most, mine[j]);
                    most = warp_most(most);
                    for (int j = lane; j <= now; j += 32) sum += mine[j] = expf(mine[j] - most);
                    sum = warp_sum(sum);
                    for (int j = lane; j <= now; j += 32) mine[j] /= sum;
                }
                __syncthreads();
                float mix = 0.0f;
                for (int j = t / SIZE; j <= now; j += blockDim.x / SIZE)
                    mix += weight[head * CONTEXT + j] * value[(head * CONTEXT + j) * HEAD + part];
                broad[t] = mix;
                __syncthreads();
                if (t < SIZE) y[t] = broad[t] + broad[t + SIZE] + broad[t + 2 * SIZE] + broad[t + 3 * SIZE];
                __syncthreads();
                block_linear(SIZE, SIZE, ADD, out + layer * SIZE * SIZE, y, x);
                block_norm(gain_2 + layer * SIZE, x, y);
                block_linear(4 * SIZE, SIZE, SET_GELU, wide + layer * 4 * SIZE * SIZE, y, broad);
                block_linear(SIZE, 4 * SIZE, ADD, narrow + layer * 4 * SIZE * SIZE, broad, x);
            }
            block_norm(gain, x, y);
            block_linear(VOCABULARY, SIZE, SET, logits, y, broad);
            float most = TINY;
            for (int i = t; i < VOCABULARY; i += blockDim.x) most = fmaxf(most, broad[i]);
            most = block_most(most);
            for (int i = t; i < VOCABULARY; i += blockDim.x)
                broad[i] = expf((broad[i] - most) / fmaxf(heat[slot], 1e-3f));
            __syncthreads();
            if (warp == 0) {
                int next = draw(broad, chance[slot * CONTEXT + now]);
                __syncwarp();
                if (lane == 0) now = say(slot, next, now, prompt, last, text, token, length, said, going);
            }
            __syncthreads();
        }
    }
    if (t == 0 && slot == slots + gridDim.x - 1) *queue = 0;
}
