"""For how many clocks a warp's instruction keeps its unit busy, where no other warp is there.

A scheduler of an SM hands an instruction of 32 threads to a unit that has room for fewer of them, so that the
unit takes it in parts. Results a clock of an SM, which has four schedulers, are from the CUDA C++ Programming
Guide, throughput of native arithmetic instructions; its load-store units from NVIDIA H100 Tensor Core GPU
Architecture. Listings of nvcc 13.0 for sm_90 (`nvdisasm -hex`), in which each instruction says how long the
warp has to wait behind it, have the same clocks where instructions of one kind follow each other.
"""

FLOATS = 1.0  # 128 results a clock
INTEGERS = 2.0  # 64: also comparisons, shifts, addresses, conversions and double precision
MEMORY = 4.0  # 32 load-store units
