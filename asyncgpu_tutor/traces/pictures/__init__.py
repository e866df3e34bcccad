"""Pictures of traces: one visual language for the whole course.

- `layout` decides where everything goes, and merges what is too short to be seen; `style` how it looks;
  `panel` is a timeline with all that is said on it and of each span, `alternative_text` says all of it in
  words. None of them knows how it is drawn.
- `timeline` has the two functions that people call, and what they return; `nsight_window` arranges a trace
  as the window of Nsight Systems does, and returns the same.
- `scene` turns panels into boxes, lines and words. `svg` writes these for a page, and gives the live view its
  data; `bitmap` paints the same shapes with matplotlib, which is slow to import, and so is imported only when
  somebody asks for a figure or a ``.png``.
- `curve` is a picture of its own: one number against a parameter.
"""

from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.timeline import Timeline, compare_timelines, plot

__all__ = ["Timeline", "alt_text", "compare_timelines", "plot"]
