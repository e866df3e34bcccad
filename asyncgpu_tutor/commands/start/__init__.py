"""Open the course: ``asyncgpu-tutor start``."""

from asyncgpu_tutor.commands.start.command import add_arguments, run
from asyncgpu_tutor.commands.start.pages import FIRST_PAGE, PARTS, bring, course

__all__ = ["FIRST_PAGE", "PARTS", "add_arguments", "bring", "course", "run"]
