"""Pictures of traces: one visual language for the whole course.

`layout` decides where everything goes. `panel` adds what is said, `scene` turns that into boxes, lines and
words, and `svg` writes those down.
"""

from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.timeline import Timeline, compare_timelines, plot

__all__ = ["Timeline", "alt_text", "compare_timelines", "plot"]
