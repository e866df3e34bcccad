"""Pictures of traces: one visual language for the whole course.

- `timeline` and `nsight_window` make pictures; `layout` decides where everything goes, `style` how it looks;
  `panel` is a timeline with all that is said on it, and `alternative_text` says it in words.
- `scene` turns panels into boxes, lines and words, which `svg` writes for a page, and `bitmap` paints with
  matplotlib, which is slow to import. `curve` is a picture of its own: one number against a parameter.
"""

from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.timeline import Timeline, compare_timelines, plot

__all__ = ["Timeline", "alt_text", "compare_timelines", "plot"]
