"""Kernels held against a spec: `simgpu check` for their authors, `simgpu judge` for graders, and pytest."""
