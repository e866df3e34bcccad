"""Serving: requests in, a pipeline on several streams, results out; and kernels that call the host."""

from asyncgpu_tutor.serving.hostcalls import hostcalls
from asyncgpu_tutor.serving.server import Server

__all__ = ["Server", "hostcalls"]
