"""Reports of kernels: counts, line by line, accesses, and the times that the model makes of them."""
