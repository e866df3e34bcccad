"""A rejection shows both timelines on one scale, with the first wrong edge marked, and says so in words."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest

from asyncgpu_course import OutcomeWords, check, solved
from asyncgpu_course.checks.rejection import Rejected, compared
from asyncgpu_course.checks.schedule import one_stream
from asyncgpu_course.outcome import Outcome, rejection
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace

A = Span(1, "kernel", "a", 0, 3, device="sim:0", stream=1)
B = Span(2, "kernel", "b", 3, 5, device="sim:0", stream=2)
GOOD = Trace([A, Span(2, "kernel", "b", 3, 9, device="sim:0", stream=1)])


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def rejected() -> Outcome:
    with pytest.raises(Rejected) as no, compared(Trace([A, B]), GOOD):
        one_stream(Trace([A, B]))
    return rejection("Title", no.value)


def test_the_words_have_cause_edge_and_both_timelines(rejected: Outcome) -> None:
    text = repr(rejected)
    assert "**Not yet.** *Title*: `b` ran on stream 2" in text
    assert "Marked in the picture is where it first goes wrong: `a` → `b`." in text
    assert "Yours: Timeline" in text
    assert "Expected: Timeline" in text
    assert "Timeline" not in rejected._repr_markdown_()  # the picture beside it carries its words


def test_the_picture_has_both_on_one_scale_with_the_edge_marked(rejected: Outcome) -> None:
    picture = rejected.plot()
    assert picture is not None
    yours, expected = picture.panels
    assert (yours.title, expected.title) == ("Yours", "Expected")
    assert (yours.layout.begin, yours.layout.end) == (expected.layout.begin, expected.layout.end)
    assert [yours.state(bar) for bar in yours.layout.bars].count("out") == 2
    assert expected.highlight is None  # and so it keeps its arrows


def test_spans_of_another_run_are_not_marked_and_without_timelines_there_is_no_picture() -> None:
    with pytest.raises(Rejected) as no, compared(Trace([A]), GOOD):
        one_stream(Trace([A, B]))
    outcome = rejection("Title", no.value)
    assert outcome.edge == (A,)
    assert "Marked in the picture is where it first goes wrong: `a`." in repr(outcome)
    outcome = rejection("Title", Rejected("`x` is not `y`"))
    assert outcome.plot() is None
    assert outcome.text == "**Not yet.** *Title*: `x` is not `y`"


def test_the_solutions_timeline_is_kept_back_at_the_first_miss_and_shown_at_the_second() -> None:
    for titles in (["Yours"], ["Yours", "Expected"]):
        picture = check("01-meanwhile", lambda op, job: (op.sync(), job())[0]).plot()
        assert [panel.title for panel in getattr(picture, "panels", ())] == titles


def test_what_was_run_too_early_is_drawn_as_on_an_idle_device_and_once_if_it_looks_alike() -> None:
    for _ in range(2):
        outcome = check("01-one-wait", lambda a, x: solved("01-one-wait")(a, x).sync())
    assert [panel.title for panel in getattr(outcome.plot(), "panels", ())] == ["Yours"]
    assert 0 < min(s.start for s in getattr(outcome.got, "device_spans", ())) < 20


def test_a_notebook_shows_words_and_picture(
    rejected: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    display = pytest.importorskip("IPython.display")
    shown: list[object] = []
    monkeypatch.setattr(display, "display", shown.append)
    rejected._ipython_display_()
    words, picture = shown
    assert words.data == rejected.text
    assert picture == rejected.plot()


def test_a_check_draws_nothing_by_itself_and_its_words_are_the_same_everywhere() -> None:
    outcome = check("01-meanwhile", lambda op, job: (job(), op.sync())[1])
    assert outcome.edge
    assert not plt.get_fignums()
    words = OutcomeWords("**Right.**")
    assert str(words) == repr(words) == words._repr_markdown_() == "**Right.**"
