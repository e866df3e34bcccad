"""A language model behind HTTP, as chat clients expect it."""

from asyncgpu_tutor.commands.serve.serve_command import add_serve_arguments as add_serve_arguments
from asyncgpu_tutor.commands.serve.serve_command import run_serve as run_serve
