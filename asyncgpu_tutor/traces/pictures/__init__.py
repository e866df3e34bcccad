"""Pictures of traces: one visual language for the whole course.

- `layout` decides where everything goes, and `style` how it looks. They know nothing of matplotlib.
- `draw` puts a layout on Axes, with texts from `fitting`. These two alone import matplotlib, and are
  themselves imported by the first picture.
- `plots` has the two functions that people call, `words` describes a picture to those who cannot
  see it.
"""

from asyncgpu_tutor.traces.pictures.plots import compare_timelines, plot
from asyncgpu_tutor.traces.pictures.words import alt_text

__all__ = ["alt_text", "compare_timelines", "plot"]
