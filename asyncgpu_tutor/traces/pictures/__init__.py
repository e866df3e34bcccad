"""Pictures of traces: one visual language for the whole course.

- `layout` decides where everything goes, and merges what is too short to be seen; `style` how it looks;
  `panel` is a timeline with all that is said on it, `hover` what is said of one span, `alternative_text` of
  all of it. None of them knows how it is drawn.
- `timeline` has the two functions that people call, and what they return.
- `svg` draws it for a page, still, and gives the live view its data.
- `draw` puts it on Axes. It imports matplotlib, which is slow, so only those who ask for Axes or a bitmap
  import it. Both get their texts from `_fitting`.
- `nsight_window` arranges a trace as the window of Nsight Systems does. It imports matplotlib too.
"""

from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.timeline import Timeline, compare_timelines, plot

__all__ = ["Timeline", "alt_text", "compare_timelines", "plot"]
