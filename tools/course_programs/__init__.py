"""The programs of the course that are recorded on a GPU, for those who have none.

`programs` says what such a program is, and records one. The other modules fill the table: a new program is
a function in one of them.
"""

from . import chapters, driven, gallery, language, suspects
from .programs import RUNS, Run, find_run, record_run, trace_of
from .same_work import same_work

PROGRAMS = (chapters, suspects, driven, gallery, language)  # importing them fills the table

__all__ = ["PROGRAMS", "RUNS", "Run", "find_run", "record_run", "same_work", "trace_of"]
