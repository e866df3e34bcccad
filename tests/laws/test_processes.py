"""A device is of one process: a forked child is refused, and so are operations for a pool of processes."""

import multiprocessing
import os
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import CannotTravelError
from tests.conftest import LOOPS

from .test_waiting import awaited, slow


def forked(act: Callable[[], object]) -> str:
    """What a child says of the error of `act`; empty if there was none."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException:  # noqa: BLE001 - a child must not go on with the tests
            os.write(write, traceback.format_exc().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as said:
        found = said.read()
    os.waitpid(child, 0)
    return found


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def test_a_forked_child_is_refused_with_a_cure(device: Device) -> None:
    x = agt.ones(4).sync()
    future = slow().into_future()
    LOOPS["asyncio"](lambda: awaited(agt.value(1)))
    ways: list[Callable[[], object]] = [
        lambda: agt.ones(4).to_host().sync(),
        lambda: agt.d2h(x).sync(),
        lambda: LOOPS["asyncio"](lambda: awaited(future)),
        lambda: agt.pinned(4),
        agt.create_stream,
        agt.synchronize,
    ]
    for way in ways:
        said = forked(way)
        assert f"UsageError: {device.name} was opened in process {os.getpid()}, and this" in said
        assert "get_context('spawn')" in said
    assert agt.d2h(x).sync().tolist() == [1.0] * 4


def test_a_child_may_open_a_device_of_its_own(sim: Device) -> None:
    def opens() -> None:
        with agt.using(type(sim)(1)):
            assert agt.ones(4).to_host().sync().tolist() == [1.0] * 4

    assert forked(opens) == ""


def test_an_operation_for_a_pool_says_what_to_hand_over_instead(sim: Device) -> None:
    op = agt.ones(4).named("four ones")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for handed in (op, [op], {"x": op.to_host()}):
            with pytest.raises(CannotTravelError, match=r"operation '.*' can't be handed.*'spawn'"):
                pool.submit(id, handed).result(60)
