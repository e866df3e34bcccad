"""``asyncgpu-tutor profile``: a program under Nsight Systems, and a profile read."""

from asyncgpu_tutor.commands.profile.profile_command import add_arguments, run

__all__ = ["add_arguments", "run"]
