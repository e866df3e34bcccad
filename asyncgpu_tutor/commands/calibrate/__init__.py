"""Making a `DeviceSpec` by measuring an NVIDIA GPU: ``asyncgpu-tutor calibrate``."""

from asyncgpu_tutor.commands.calibrate.command import add_arguments, run

__all__ = ["add_arguments", "run"]
