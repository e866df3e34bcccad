"""The devices that operations run on: their protocol, CuPy behind one door, and simgpu behind another."""
