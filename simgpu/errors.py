"""The errors of the simulated GPU; a tree of its own takes the place of these."""

from asyncgpu_tutor.errors import *  # noqa: F403
