// What nvcc has of launches that depend on each other, and NVRTC does not: for a GPU's compiler alone.
#if __CUDA_ARCH__ >= 900
__device__ inline void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void cudaTriggerProgrammaticLaunchCompletion() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
#else
__device__ inline void cudaGridDependencySynchronize() {}
__device__ inline void cudaTriggerProgrammaticLaunchCompletion() {}
#endif
