"""Live views in a notebook: one widget for all of them, on anywidget, without a network.

A view is a dictionary of JSON values; its entry ``"view"`` says which class of `live.js` draws it. Whoever
has one calls `show`, with the still picture that stands where no widget can be: without anywidget, on a
page that was exported, in a terminal. Nothing here knows what is shown.
"""

from asyncgpu_tutor.traces.live.widget import show

__all__ = ["show"]
