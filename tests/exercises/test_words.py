"""Captions say in words what a picture shows."""

from __future__ import annotations

from asyncgpu_tutor.exercises import Words, in_words
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace


def test_each_trace_gets_a_caption_of_its_own() -> None:
    busy = Trace([Span(0, "kernel", "relu", 0.0, 2.0, device="sim:0", stream=1)])

    first, second = in_words(busy, Trace()).text.split("\n\n")
    assert "1 kernel in 1 stream" in first
    assert "nothing was recorded" in second


def test_words_are_the_same_wherever_they_are_shown() -> None:
    words = Words("**Right.**")

    assert str(words) == repr(words) == words._repr_markdown_() == "**Right.**"
