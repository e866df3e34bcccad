"""What operations run on: the protocol of a device, CuPy behind one door, and simgpu behind another."""
