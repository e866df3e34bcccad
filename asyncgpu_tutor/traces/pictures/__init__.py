"""Pictures of traces: one visual language for the whole course.

- `layout` decides where everything goes, and `style` how it looks. They know nothing of matplotlib.
- `draw` puts a layout on Axes, with texts from `_fitting`. They import matplotlib, which is slow, so the
  first picture imports them.
- `plots` has the two functions that people call, `alternative_text` describes a picture to those who
  cannot see it.
- `nsight_window` arranges a trace as the window of Nsight Systems does. It imports matplotlib too.
"""

from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.plots import compare_timelines, plot

__all__ = ["alt_text", "compare_timelines", "plot"]
