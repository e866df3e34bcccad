"""Programs to be profiled, and the commands that record them.

- `programs`: what a program of the course is, for a recording.
- `chapters`, `suspects`, `driven`, `gallery`: the table of them. A new one is a function there.
- `course_command`, `profile_command`: ``asyncgpu-tutor record-course`` and ``asyncgpu-tutor profile``.
- `nsys`: finding and running Nsight Systems.
"""

from asyncgpu_tutor.commands.profile import chapters, driven, gallery, suspects
from asyncgpu_tutor.commands.profile.programs import RUNS, Run, record_run, trace_of

PROGRAMS = (chapters, suspects, driven, gallery)  # importing them has filled the table

__all__ = ["PROGRAMS", "RUNS", "Run", "record_run", "trace_of"]
