"""What the kernels of a test cost is held like the words that it is told (tests/told.py).

Tests ask for the counts that they are about. The others are held here for each test that is told nothing else, so
that no change of the model of costs goes unnoticed, nor one of what hostile memory does.
"""

from collections.abc import Generator
from zlib import crc32

import pytest

from tests.told import hooks

from .support import COUNTED, LEFT


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    COUNTED.clear()
    LEFT.clear()
    yield
    told = hooks(item.config)
    if COUNTED and not told.met:
        issued, clocks = (
            sum(getattr(c, name) for c in COUNTED)
            for name in ("warp_instructions", "chain_latency")
        )
        whole = repr(COUNTED) + "".join(map(str, LEFT))
        told.tell(
            f"{len(COUNTED)} launched: {issued} instructions, {clocks} clocks, {crc32(whole.encode()):08x}"
        )
