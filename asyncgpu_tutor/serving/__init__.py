"""A small server loop: requests in, a pipeline on each of several streams, results out."""

from asyncgpu_tutor.serving.server import Server

__all__ = ["Server"]
