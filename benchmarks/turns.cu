// A turn of a loop, in each way that CUDA C++ has: launches, programmatic dependent launch (PDL), a graph, a graph's
// `while` node, and a barrier of the grid. Then Newton's rounds with a flag that the host reads back, and without.
//
//     nvcc -O3 -arch=native -o turns benchmarks/turns.cu && ./turns
//
// Medians of 15 runs, in us. Each loop is bounded.

#include <algorithm>
#include <chrono>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
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

// So many steps, a few of them in each turn of a `while` node.
cudaGraphExec_t while_node(int* number, int steps, int each) {
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
    for (int k = 1; k < each; k++) launch(false, 1, 1, step, number);
    launch(false, 1, 1, step_and_ask, number, steps, again);
    OK(cudaStreamEndCapture(stream, &body));
    OK(cudaGraphInstantiate(&made, graph, 0));
    return made;
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
        auto graph = while_node(number, TURNS, each);
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

    for (unsigned n : {1024u, 65536u, 1048576u}) {
        std::vector<float> numbers(n);
        unsigned seed = 1;
        for (auto& each : numbers) each = 1 + ((seed = seed * 1664525u + 1013904223u) >> 8) % 999;
        float *a, *x;
        OK(cudaMalloc(&a, 4 * n));
        OK(cudaMalloc(&x, 4 * n));
        OK(cudaMemcpy(a, numbers.data(), 4 * n, cudaMemcpyHostToDevice));
        int rounds = 0;
        double asked = median([&] {
            launch(false, (n + 255) / 256, 256, fill, n, x);
            rounds = 0;
            do {
                OK(cudaMemsetAsync(number, 0, sizeof(int), stream));
                launch(false, (n + 255) / 256, 256, newton_step, n, a, x, number);
                OK(cudaMemcpyAsync(flag, number, sizeof(int), cudaMemcpyDeviceToHost, stream));
                OK(cudaStreamSynchronize(stream));
            } while (++rounds < 100 && *flag);
        });
        double known[2];
        for (bool pdl : {false, true}) {
            known[pdl] = median([&] {
                launch(false, (n + 255) / 256, 256, fill, n, x);
                for (int k = 0; k < rounds; k++) launch(pdl, (n + 255) / 256, 256, newton_step, n, a, x, number);
            });
        }
        printf("  Newton, %7u numbers, %d rounds: a flag read back each %.0f; all rounds enqueued %.0f, with PDL %.0f\n", n,
               rounds, asked, known[0], known[1]);
    }
}
