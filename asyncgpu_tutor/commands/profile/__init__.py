"""``asyncgpu-tutor profile``: a program under Nsight Systems, and a profile read."""

from asyncgpu_tutor.commands.profile.profile_command import add_profile_arguments, run_profile

__all__ = ["add_profile_arguments", "run_profile"]
