"""NVTX ranges, seen through a stand-in for the package nvtx."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces import nvtx as ranges


class FakeDomain:
    """Writes down what it is asked for, with the signatures of `nvtx.Domain`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log: list[tuple[object, ...]] = []
        self.prepared: list[str] = []
        self.stack: list[str] = []
        self.open: dict[int, str] = {}

    def get_event_attributes(
        self, message: str | None = None, color: object = None, category: object = None
    ) -> tuple[str, str]:
        assert message is not None
        self.prepared.append(message)
        return ("attributes", message)

    def push_range(self, attributes: tuple[str, str]) -> None:
        self.stack.append(attributes[1])
        self.log.append(("push", attributes[1]))

    def pop_range(self) -> None:
        self.log.append(("pop", self.stack.pop()))

    def start_range(self, attributes: tuple[str, str]) -> int:
        number = 100 + len(self.log)
        self.open[number] = attributes[1]
        self.log.append(("start", attributes[1]))
        return number

    def end_range(self, range_id: int) -> None:
        self.log.append(("end", self.open.pop(range_id)))


@pytest.fixture(autouse=True)
def _off_before_and_after() -> Iterator[None]:
    was_on = ranges.enabled()
    ranges.disable()
    yield
    if was_on:
        ranges.enable()
    else:
        ranges.disable()


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> FakeDomain:
    module, made = ModuleType("nvtx"), FakeDomain(ranges.DOMAIN)

    def get_domain(name: str | None = None) -> FakeDomain:
        assert name == made.name
        return made

    module.get_domain = get_domain
    monkeypatch.setitem(sys.modules, "nvtx", module)
    return made


def test_they_are_off_until_asked_for(domain: FakeDomain) -> None:
    assert not ranges.enabled()
    with ranges.span("a"), ranges.across("b"):
        ranges.end(ranges.start("c"))
    assert domain.log == domain.prepared == []
    ranges.enable()
    assert ranges.enabled()
    ranges.disable()
    assert not ranges.enabled()


def test_spans_nest(domain: FakeDomain) -> None:
    ranges.enable()
    with ranges.span("outer"), ranges.span("inner"):
        pass
    assert domain.log == [("push", "outer"), ("push", "inner"), ("pop", "inner"), ("pop", "outer")]


@pytest.mark.parametrize("marked", [ranges.span, ranges.across])
def test_an_exception_closes_the_range_and_goes_on(marked: type, domain: FakeDomain) -> None:
    ranges.enable()
    with pytest.raises(ValueError, match="mine"), marked("a"):
        raise ValueError("mine")
    assert len(domain.log) == 2
    assert not domain.stack
    assert not domain.open


def test_tasks_that_interleave_each_end_their_own_range(domain: FakeDomain) -> None:
    async def task(name: str, mine: asyncio.Event, other: asyncio.Event) -> None:
        with ranges.across(name):
            other.set()
            await mine.wait()

    async def main() -> None:
        a, b = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(task("a", a, b))
            group.create_task(task("b", b, a))

    ranges.enable()
    asyncio.run(main())
    assert sorted(domain.log[:2]) == [("start", "a"), ("start", "b")]
    assert sorted(domain.log[2:]) == [("end", "a"), ("end", "b")]
    assert not domain.stack


def test_a_range_may_end_anywhere_and_ends_once(domain: FakeDomain) -> None:
    ranges.enable()
    first, second = ranges.start("first"), ranges.start("second")
    for token in (first, second, first):
        ranges.end(token)
    assert domain.log[2:] == [("end", "first"), ("end", "second")]


def test_what_is_open_when_ranges_are_switched_off_still_ends(domain: FakeDomain) -> None:
    ranges.enable()
    token = ranges.start("task")
    with ranges.span("block"):
        ranges.disable()
    ranges.end(token)
    assert domain.log[2:] == [("pop", "block"), ("end", "task")]


def test_a_name_is_prepared_once(domain: FakeDomain) -> None:
    ranges.enable()
    for _ in range(3):
        with ranges.span("again"):
            ranges.end(ranges.start("again"))
    assert domain.prepared == ["again"]


def test_without_nvtx_enabling_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(UsageError, match=r"not installed: pip install 'nvtx>="):
        ranges.enable()
    assert not ranges.enabled()
    with ranges.span("harmless"):
        pass


@pytest.mark.parametrize("attribute", [None, "get_domain"])
def test_an_nvtx_that_is_too_old_is_refused(
    attribute: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 0.2.10 has no get_domain; the domains of 0.2.11 have no push_range.
    module = ModuleType("nvtx")
    if attribute:
        setattr(module, attribute, lambda _name: object())
    monkeypatch.setitem(sys.modules, "nvtx", module)
    with pytest.raises(UsageError, match="too old"):
        ranges.enable()
    assert not ranges.enabled()


@pytest.mark.parametrize(("value", "on"), [("TRUE", True), ("0", False)])
def test_the_environment_switches_them_on(value: str, on: bool) -> None:
    code = (
        "import sys, types; fake = types.ModuleType('nvtx'); sys.modules['nvtx'] = fake\n"
        "fake.get_domain = lambda name: types.SimpleNamespace(push_range=None)\n"
        "from asyncgpu_tutor import ranges; print(ranges.enabled())"
    )
    done = run(code, value)
    assert done.stdout.strip() == str(on), done.stderr


def test_an_import_survives_an_environment_that_asks_in_vain() -> None:
    code = (
        "import sys; sys.modules['nvtx'] = None\n"
        "from asyncgpu_tutor import ranges; print(ranges.enabled())"
    )
    done = run(code, "1")
    assert done.stdout.strip() == "False"
    assert "ASYNCGPU_NVTX is set, but NVTX ranges need the package nvtx" in done.stderr


def test_the_real_package_takes_our_calls() -> None:
    pytest.importorskip("nvtx")
    ranges.enable()
    with ranges.span("block"), ranges.across("task"):
        ranges.end(ranges.start("range"))
    assert importlib.import_module("nvtx").get_domain(ranges.DOMAIN) is ranges._domain


def run(code: str, value: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASYNCGPU_NVTX": value},
    )


def test_a_recording_is_a_range_across_whatever_it_holds(domain: FakeDomain, sim: object) -> None:
    import asyncgpu_tutor as agt

    async def main() -> None:
        with agt.record():
            await agt.zeros(4).named("one")

    ranges.enable()
    asyncio.run(main())
    marks = [entry for entry in domain.log if entry[1] == "record"]
    assert [mark[0] for mark in marks] == ["start", "end"]
    between = domain.log[domain.log.index(marks[0]) : domain.log.index(marks[1])]
    assert ("push", "one") in between


def test_a_recording_that_fails_ends_its_range(domain: FakeDomain, sim: object) -> None:
    import asyncgpu_tutor as agt

    ranges.enable()
    with pytest.raises(ZeroDivisionError), agt.record():
        _ = 1 / 0
    assert [entry[0] for entry in domain.log if entry[1] == "record"] == ["start", "end"]
