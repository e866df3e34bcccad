"""Open the course: ``asyncgpu-tutor start``."""

from asyncgpu_course.start.command import add_start_arguments, run_start
from asyncgpu_course.start.pages import FIRST_PAGE, PARTS, bring, course

__all__ = ["FIRST_PAGE", "PARTS", "add_start_arguments", "bring", "course", "run_start"]
