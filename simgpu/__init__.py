"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times."""
