"""NVTX ranges, seen through a stand-in for the package nvtx."""

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces import nvtx as ranges
from tests.tools import python


class FakeDomain:
    """Writes down what it is asked for, with the signatures of `nvtx.Domain`."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.prepared: list[str] = []
        self.stack: list[str] = []
        self.open: list[str] = []

    def get_event_attributes(self, message: str) -> str:
        self.prepared.append(message)
        return message

    def push_range(self, name: str) -> None:
        self.stack.append(name)
        self.log.append(("push", name))

    def pop_range(self) -> None:
        self.log.append(("pop", self.stack.pop()))

    def start_range(self, name: str) -> str:
        self.open.append(name)
        self.log.append(("start", name))
        return name

    def end_range(self, range_id: str) -> None:
        self.open.remove(range_id)
        self.log.append(("end", range_id))


@pytest.fixture(autouse=True)
def _off_before_and_after() -> Iterator[None]:
    was_on = ranges.enabled()
    ranges.disable()
    yield
    (ranges.enable if was_on else ranges.disable)()


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> FakeDomain:
    made = FakeDomain()
    module = SimpleNamespace(get_domain={ranges.DOMAIN: made}.__getitem__)
    monkeypatch.setitem(sys.modules, "nvtx", module)
    ranges.enable()
    return made


def test_they_are_off_until_asked_for(domain: FakeDomain) -> None:
    assert ranges.enabled()
    ranges.disable()
    assert not ranges.enabled()
    with ranges.span("a"), ranges.across("b"):
        ranges.end(ranges.start("c"))
    assert domain.log == domain.prepared == []


def test_spans_nest_and_a_name_is_prepared_once(domain: FakeDomain) -> None:
    for _ in range(2):
        with ranges.span("outer"), ranges.span("inner"):
            pass
    assert domain.log == 2 * [
        ("push", "outer"), ("push", "inner"), ("pop", "inner"), ("pop", "outer")
    ]  # fmt: skip
    assert domain.prepared == ["outer", "inner"]


@pytest.mark.parametrize("marked", [ranges.span, ranges.across])
def test_an_exception_closes_the_range_and_goes_on(marked: type, domain: FakeDomain) -> None:
    with pytest.raises(ValueError, match="mine"), marked("a"):
        raise ValueError("mine")
    assert [name for _, name in domain.log] == ["a", "a"]


def test_a_range_ends_anywhere_and_once_and_after_the_switch_too(domain: FakeDomain) -> None:
    first, second = ranges.start("first"), ranges.start("second")
    with ranges.span("block"):
        ranges.end(first)
        ranges.disable()
    for token in (second, first):
        ranges.end(token)
    assert domain.log[3:] == [("end", "first"), ("pop", "block"), ("end", "second")]


def test_an_nvtx_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(UsageError, match=r"not installed: pip install 'nvtx>="):
        ranges.enable()
    assert not ranges.enabled()
    with ranges.span("harmless"):
        pass


FAKE = "types.SimpleNamespace(get_domain=lambda name: types.SimpleNamespace(push_range=None))"


@pytest.mark.parametrize(
    ("value", "module", "on", "said"),
    [
        ("TRUE", FAKE, True, ""),
        ("0", FAKE, False, ""),
        ("1", None, False, "ASYNCGPU_NVTX is set, but NVTX ranges need the package nvtx"),
    ],
)
def test_the_environment_switches_them_on_and_an_import_survives_where_it_cannot(
    value: str, module: str | None, on: bool, said: str
) -> None:
    code = (
        f"import sys, types; sys.modules['nvtx'] = {module}\n"
        "from asyncgpu_tutor import ranges; print(ranges.enabled())"
    )
    done = python("-c", code, check=False, ASYNCGPU_NVTX=value)
    assert done.stdout.strip() == str(on), done.stderr
    assert said in done.stderr


def test_the_real_package_takes_our_calls() -> None:
    pytest.importorskip("nvtx")
    ranges.enable()
    with ranges.span("block"), ranges.across("task"):
        ranges.end(ranges.start("range"))
    assert importlib.import_module("nvtx").get_domain(ranges.DOMAIN) is ranges.current_domain


def test_a_recording_is_a_range_and_ends_if_it_fails(domain: FakeDomain, sim: object) -> None:
    with pytest.raises(ZeroDivisionError), agt.record():
        agt.zeros(4).map(lambda _: 1 / 0).named("one").sync()
    assert (domain.log[0], domain.log[-1]) == (("start", "record"), ("end", "record"))
    assert ("push", "one") in domain.log
