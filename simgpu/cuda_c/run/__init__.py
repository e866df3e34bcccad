"""Programs, and launches of their kernels."""
