// Pointers to functions, tables of rows, lists and trees, and a wait within an expression.

typedef float (*binary)(float, float);
__device__ float add_two(float a, float b) { return a + b; }
__device__ float multiply_two(float a, float b) { return a * b; }
__device__ float larger(float a, float b) { return a > b ? a : b; }
__device__ binary operations[] = {add_two, multiply_two, larger};

extern "C" __global__ void by_table(const float* a, const float* b, const int* which, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = operations[which[i]](a[i], b[i]);
}

__device__ float folded_with(binary f, const float* x, int n) {
    float out = x[0];
    for (int k = 1; k < n; k++) out = f(out, x[k]);
    return out;
}

extern "C" __global__ void fold_rows(const float* x, float* o, int rows, int columns) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    o[2 * r] = folded_with(larger, x + r * columns, columns);
    o[2 * r + 1] = folded_with(r % 2 ? multiply_two : add_two, x + r * columns, columns);
}

extern "C" __global__ void swap_rows(float* x, int columns) {
    float* row[4];
    for (int k = 0; k < 4; k++) row[k] = x + (4 * blockIdx.x + k) * columns;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float* from = row[c % 4];
        float kept = from[c];
        from[c] = row[(c + 1) % 4][c];
        row[(c + 1) % 4][c] = kept;
    }
}

extern "C" __global__ void padded(const float* x, float* o) {
    __shared__ float tile[16][17];
    float (*rows)[17] = tile;
    rows[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
    __syncthreads();
    o[threadIdx.y * 16 + threadIdx.x] = rows[threadIdx.x][threadIdx.y];
}

struct Node { int value; Node* next; };

extern "C" __global__ void list_sums(const int* values, int* o) {
    __shared__ Node nodes[64];
    int i = threadIdx.x;
    nodes[i].value = values[blockIdx.x * 64 + i];
    nodes[i].next = i >= 3 ? &nodes[i - 3] : nullptr;
    __syncthreads();
    int sum = 0;
    for (const Node* at = &nodes[i]; at != nullptr; at = at->next) sum += at->value;
    o[blockIdx.x * 64 + i] = sum;
}

struct Branch { int key; Branch *left, *right; };

extern "C" __global__ void tree_search(const int* keys, int count, const int* wanted, int* steps) {
    __shared__ Branch tree[32];
    __shared__ Branch* root;
    if (threadIdx.x == 0) {
        root = nullptr;
        for (int k = 0; k < count; k++) {
            Branch** at = &root;
            while (*at) at = keys[k] < (*at)->key ? &(*at)->left : &(*at)->right;
            tree[k].key = keys[k];
            tree[k].left = tree[k].right = nullptr;
            *at = &tree[k];
        }
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, deep = 0;
    Branch* at = root;
    while (at && at->key != wanted[i]) {
        at = wanted[i] < at->key ? at->left : at->right;
        deep++;
    }
    steps[i] = at ? deep : -1;
}

__device__ int published(int* flags, int block) {
    int seen;
    while ((seen = atomicAdd(&flags[block], 0)) == 0) ;
    return seen - 1;
}

extern "C" __global__ void chained(const int* x, int* o, int* flags) {
    int mine = x[blockIdx.x];
    int total = mine + (blockIdx.x > 0 ? published(flags, blockIdx.x - 1) : 0);
    o[blockIdx.x] = total;
    atomicExch(&flags[blockIdx.x], total + 1);
}

extern "C" __global__ void aligned(const float* x, int* o) {
    unsigned long long at = (unsigned long long)(x + threadIdx.x);
    const float* back = (const float*)(at - at % 16);
    o[threadIdx.x] = (int)(at % 16) + (int)back[0];
}
