"""The detective: what is wrong with a program, as its trace shows it."""

from __future__ import annotations

from dataclasses import dataclass

from asyncgpu_tutor.traces.spans import Trace

__all__ = ["Finding", "diagnose"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with the evidence.

    Attributes
    ----------
    name : str
        Which defect: ``"null stream"``, ``"hidden synchronisation"``, ``"pageable copy"``,
        ``"lazy module loading"``, ``"allocation in the loop"``, ``"too few streams"``,
        ``"one big kernel"``.
    title : str
        The same in a few words, for people.
    sentence : str
        What was seen, with numbers.
    advice : str
        What to do about it.
    spans : tuple of int
        Ids of the spans that show it, ascending: ``trace.plot(highlight=...)`` takes the spans.
    cost : float
        About how much time it costs, in us; 0 where that cannot be told from the trace.
    """

    name: str
    title: str
    sentence: str
    advice: str
    spans: tuple[int, ...]
    cost: float = 0.0

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence} {self.advice}"


def diagnose(trace: Trace) -> list[Finding]:
    """Go through the detective's list, and say what the trace gives evidence for.

    Parameters
    ----------
    trace : Trace
        Of a program that was warmed up, or the loading of its kernels is what will be found.

    Returns
    -------
    list of Finding
        What costs most comes first. Empty where nothing was found, which is no proof of innocence.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync_on(agt.current_device().default_stream)
    >>> [finding.name for finding in agt.diagnose(trace)]
    ['null stream']
    """
    from asyncgpu_tutor.traces.analysis.defects import DETECTORS

    found = [finding for detect in DETECTORS for finding in detect(trace)]
    return sorted(found, key=lambda finding: -finding.cost)
