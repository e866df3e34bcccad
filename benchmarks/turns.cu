// A turn of a loop, in each way that CUDA C++ has: launches, programmatic dependent launch (PDL), a graph, a graph's
// `while` node, and a barrier of the grid. Then what gpu_driven.py does in Python: Newton's rounds and a queue of small
// jobs, driven by the host or by the GPU, with a copy of the results to the host.
//
//     nvcc -O3 -arch=native -o turns benchmarks/turns.cu && ./turns
//
// Medians of 15 runs, in us. Each loop is bounded. WRONG stands behind a time whose results aren't right.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define OK(call) if (auto e = call; e != cudaSuccess) { printf("%s: %s\n", #call, cudaGetErrorString(e)); exit(1); }

const int TURNS = 200;

// One step of a loop: a thread adds one to a number that the step before has left. With PDL it begins early, and waits.
__global__ void step(int* number) {
    cudaGridDependencySynchronize();
    *number += 1;
    cudaTriggerProgrammaticLaunchCompletion();
}
// The last step of a turn, which also says whether there is another.
__global__ void step_and_ask(int* number, int most, cudaGraphConditionalHandle again) {
    *number += 1;
    cudaGraphSetConditional(again, *number < most);
}
__global__ void steps_in_one(int* number, int steps) {
    auto grid = cooperative_groups::this_grid();
    for (int k = 0; k < steps; k++) {
        if (grid.thread_rank() == 0) *number += 1;
        grid.sync();
    }
}
__global__ void fill(unsigned n, float* x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
__global__ void newton_step(unsigned n, const float* a, float* x, int* moved) {
    cudaGridDependencySynchronize();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float before = x[i];
        x[i] = 0.5f * (before + a[i] / before);
        if (fabsf(x[i] - before) > 1e-6f * x[i]) *moved = 1;
    }
    cudaTriggerProgrammaticLaunchCompletion();
}
__global__ void ask(const int* moved, cudaGraphConditionalHandle again) {
    cudaGraphSetConditional(again, *moved);
}
__global__ void newton(unsigned n, const float* a, float* x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float now = 1.0f, before;
        int rounds = 0;
        do {
            before = now;
            now = 0.5f * (before + a[i] / before);
        } while (++rounds < 100 && fabsf(now - before) > 1e-6f * now);
        x[i] = now;
    }
}
// A job adds up as many terms as its length says.
__device__ void work(unsigned job, const unsigned* lengths, float* results) {
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned k = threadIdx.x + 1; k <= lengths[job]; k += blockDim.x) sum += 1.0f / ((float)k * (float)k);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) results[job] = part[0];
}
// A job for each block, from this one on.
__global__ void jobs_from(unsigned first, const unsigned* lengths, float* results) {
    work(first + blockIdx.x, lengths, results);
}
__global__ void worker(unsigned jobs, const unsigned* lengths, int* next, float* results) {
    __shared__ int job;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(next, 1);
        __syncthreads();
        unsigned mine = job;
        if (mine >= jobs) return;
        work(mine, lengths, results);
        __syncthreads();
    }
}

cudaStream_t stream;

double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Work>
double median(Work work) {
    std::vector<double> took;
    for (int k = 0; k < 16; k++) {
        OK(cudaStreamSynchronize(stream));
        double start = now();
        work();
        OK(cudaStreamSynchronize(stream));
        if (k > 0) took.push_back(now() - start);  // the first one loads what it needs
    }
    std::sort(took.begin(), took.end());
    return took[7];
}

template <typename... Types, typename... Given>
void launch(bool pdl, unsigned grid, unsigned block, void (*kernel)(Types...), Given... given) {
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = pdl;
    OK(cudaLaunchKernelEx(&config, kernel, Types(given)...));
}

template <typename Work>
cudaGraphExec_t graph_of(Work work) {
    cudaGraph_t graph;
    cudaGraphExec_t made;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&made, graph, 0));
    return made;
}

// A `while` node, whose turn is what `turn` enqueues; the last kernel there says whether there is another.
template <typename Turn>
cudaGraphExec_t while_node(Turn turn) {
    cudaGraph_t graph, body;
    cudaGraphExec_t made;
    cudaGraphConditionalHandle again;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams loop = {};
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = again;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
#else
    OK(cudaGraphAddNode(&node, graph, nullptr, 0, &loop));
#endif
    body = loop.conditional.phGraph_out[0];
    OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    turn(again);
    OK(cudaStreamEndCapture(stream, &body));
    OK(cudaGraphInstantiate(&made, graph, 0));
    return made;
}

// A copy of these on the GPU.
template <typename Number>
Number* on_gpu(const std::vector<Number>& numbers) {
    Number* there;
    OK(cudaMalloc(&there, sizeof(Number) * numbers.size()));
    OK(cudaMemcpy(there, numbers.data(), sizeof(Number) * numbers.size(), cudaMemcpyHostToDevice));
    return there;
}

// How long it takes to do the work and to copy its results to the host, and whether they are right.
template <typename Work>
void compared(const char* way, const std::vector<double>& right, float* results, Work work) {
    std::vector<float> found(right.size());
    size_t bytes = 4 * right.size(), wrong = 0;
    OK(cudaHostRegister(found.data(), bytes, cudaHostRegisterDefault));
    auto all = [&] {
        work();
        OK(cudaMemcpyAsync(found.data(), results, bytes, cudaMemcpyDeviceToHost, stream));
    };
    double took = median(all);
    OK(cudaMemset(results, 0, bytes));  // so that what is compared comes from one more run
    all();
    OK(cudaStreamSynchronize(stream));
    OK(cudaHostUnregister(found.data()));
    for (size_t i = 0; i < right.size(); i++) wrong += !(std::abs(found[i] - right[i]) <= 1e-5 * right[i]);
    printf("    %-40s %7.0f%s\n", way, took, wrong ? " WRONG" : "");
}

void newton_of(unsigned n, int* moved, int* flag) {
    std::minstd_rand random;
    std::vector<float> numbers(n);
    std::vector<double> right(n);
    for (auto& each : numbers) each = 1 + random() % 999;
    for (unsigned i = 0; i < n; i++) right[i] = std::sqrt((double)numbers[i]);
    float *a = on_gpu(numbers), *x = on_gpu(numbers);
    unsigned blocks = (n + 255) / 256;
    int rounds = 0;
    auto start = [&] { launch(false, blocks, 256, fill, n, x); };
    auto round = [&](bool pdl = false) { launch(pdl, blocks, 256, newton_step, n, a, x, moved); };
    auto lower = [&] { OK(cudaMemsetAsync(moved, 0, sizeof(int), stream)); };

    printf("  Newton, %u numbers\n", n);
    compared("a flag read back after each round", right, x, [&] {
        start();
        rounds = 0;
        do {
            lower();
            round();
            OK(cudaMemcpyAsync(flag, moved, sizeof(int), cudaMemcpyDeviceToHost, stream));
            OK(cudaStreamSynchronize(stream));
        } while (++rounds < 100 && *flag);
    });
    printf("    %d rounds\n", rounds);
    if (rounds == 100) return;  // without this, a `while` node might never end
    for (bool pdl : {false, true}) {
        compared(pdl ? "all rounds enqueued, with PDL" : "all rounds enqueued", right, x, [&] {
            start();
            for (int k = 0; k < rounds; k++) round(pdl);
        });
    }
    for (int each : {1, 4}) {
        auto graph = while_node([&](auto again) {
            for (int k = 1; k < each; k++) round();
            lower();
            round();
            launch(false, 1, 1, ask, moved, again);
        });
        compared(each > 1 ? "a `while` node, 4 steps a turn" : "a `while` node", right, x, [&] {
            start();
            OK(cudaGraphLaunch(graph, stream));
        });
    }
    compared("one kernel", right, x, [&] { launch(false, blocks, 256, newton, n, a, x); });
}

void queue_of(unsigned jobs, int* next) {
    std::minstd_rand random;
    std::vector<unsigned> terms(jobs);
    std::vector<double> right(jobs);
    for (auto& each : terms) each = 10 + random() % 990;
    for (unsigned job = 0; job < jobs; job++) {
        for (unsigned k = 1; k <= terms[job]; k++) right[job] += 1 / ((double)k * k);
    }
    unsigned* lengths = on_gpu(terms);
    float* results = on_gpu(std::vector<float>(jobs));
    auto launches = [&] {
        for (unsigned job = 0; job < jobs; job++) launch(false, 1, 64, jobs_from, job, lengths, results);
    };
    auto graph = graph_of(launches);

    printf("  %u jobs\n", jobs);
    compared("a launch each", right, results, launches);
    compared("a graph of these launches", right, results, [&] { OK(cudaGraphLaunch(graph, stream)); });
    compared("64 blocks that stay, and a counter", right, results, [&] {
        OK(cudaMemsetAsync(next, 0, sizeof(int), stream));
        launch(false, 64, 64, worker, jobs, lengths, next, results);
    });
    compared("one launch, a block for each job", right, results,
             [&] { launch(false, jobs, 64, jobs_from, 0, lengths, results); });
}

int main() {
    cudaDeviceProp gpu;
    int *number, *flag, found = 0;
    OK(cudaGetDeviceProperties(&gpu, 0));
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc(&number, sizeof(int)));
    OK(cudaMallocHost(&flag, sizeof(int)));
    printf("%s, CUDA %d; us\n", gpu.name, CUDART_VERSION);

    // Each way takes TURNS steps from 0, and is then asked whether it did.
    auto told = [&](const char* way, auto work, int steps = TURNS) {
        double all = median([&] {
            OK(cudaMemsetAsync(number, 0, sizeof(int), stream));
            work();
        });
        OK(cudaMemcpy(&found, number, sizeof(int), cudaMemcpyDeviceToHost));
        printf("  %-52s %7.2f a step (%.0f in all)%s\n", way, all / steps, all, found == steps ? "" : " WRONG");
    };
    for (bool pdl : {false, true}) {
        auto all_steps = [&] {
            for (int k = 0; k < TURNS; k++) launch(pdl, 1, 1, step, number);
        };
        told(pdl ? "a launch a step, with PDL" : "a launch a step", all_steps);
        auto graph = graph_of(all_steps);
        told(pdl ? "a graph of all steps, with PDL" : "a graph of all steps", [&] { OK(cudaGraphLaunch(graph, stream)); });
    }
    told("a launch and a wait a step", [&] {
        for (int k = 0; k < TURNS; k++) {
            launch(false, 1, 1, step, number);
            OK(cudaStreamSynchronize(stream));
        }
    });
    for (int each : {1, 2, 4, 8}) {
        auto graph = while_node([&](auto again) {
            for (int k = 1; k < each; k++) launch(false, 1, 1, step, number);
            launch(false, 1, 1, step_and_ask, number, TURNS, again);
        });
        char way[60];
        snprintf(way, sizeof way, "a `while` node, %d steps a turn", each);
        told(way, [&] { OK(cudaGraphLaunch(graph, stream)); });
    }
    for (int blocks : {1, gpu.multiProcessorCount}) {
        int steps = TURNS;
        void* given[] = {&number, &steps};
        char way[60];
        snprintf(way, sizeof way, "one kernel, a barrier of its %d blocks a step", blocks);
        told(way, [&] { OK(cudaLaunchCooperativeKernel((void*)steps_in_one, blocks, 256, given, 0, stream)); });
    }

    for (unsigned n : {1024u, 65536u, 1048576u}) newton_of(n, number, flag);
    for (unsigned jobs : {64u, 256u, 1024u}) queue_of(jobs, number);
}
