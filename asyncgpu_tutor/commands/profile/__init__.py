"""``asyncgpu-tutor profile``: a program under Nsight Systems, and a profile read."""
