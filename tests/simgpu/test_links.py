"""Links between simulated GPUs: which algorithm is the quickest. Their times: `tests/test_fidelity.py`."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from simgpu.links import Wiring, collective_works, peer_copy, steps_and_bytes
from simgpu.spec import H200, NVLINK


def reduced(wiring: Wiring, ranks: int, nbytes: int) -> float:
    """Of an all-reduce, in us."""
    pairs = [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    works = collective_works(wiring, H200, "all_reduce", pairs, nbytes)
    assert len({work.us for work in works}) == 1
    assert {work.places for work in works} == {
        wiring.link(0, 1).sms / H200.sms
    }  # for as long as it takes
    return works[0].us


def test_a_ring_moves_least_and_a_tree_takes_the_fewest_steps() -> None:
    (ring, few), (tree, many) = (
        steps_and_bytes("all_reduce", how, 16, 1000) for how in ("ring", "tree")
    )
    assert (ring, tree) == (30, 8)
    assert few < many
    # So a tree is chosen where there is little data, and a ring where there is much.
    small, large = reduced(Wiring(), 16, 1 << 10), reduced(Wiring(), 16, 1 << 30)
    few, *_, much = NVLINK.protocols
    assert small == pytest.approx(few.base_us + 8 * few.step_us, rel=0.02)
    assert large == pytest.approx(30 / 16 * 2**30 / (1e3 * much.gb_s), rel=0.04)


def test_every_constant_of_a_link_has_a_source() -> None:
    for link in (NVLINK, Wiring().between):
        names = {name for name, source in link.sources if source}
        assert names == {field.name for field in fields(link)} - {"name", "sources"}


@pytest.mark.parametrize("gpus_per_node", [None, 2])
def test_what_each_collective_takes_of_each_link(
    gpus_per_node: int | None, tell: Callable[[str], None]
) -> None:
    wiring = Wiring(gpus_per_node=gpus_per_node)
    for what in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "exchange", "send"):
        pairs = [(0, 3)] * 2 if what == "send" else [(0, 1), (1, 2), (2, 3), (3, 3)]
        for nbytes in (1 << 8, 1 << 20, 1 << 28):
            works = collective_works(wiring, H200, what, pairs, nbytes)
            assert len({(w.us, w.places, w.demand, w.urgent, w.together) for w in works}) == 1
            sent = [f"{w.load:.0%} of {', '.join(f'{a} {n}' for a, n in w.ports)}" for w in works]
            tell(f"{what} of {nbytes:,}: {works[0].us:.2f} us; {'; '.join(sent)}")
    copy = peer_copy(wiring, 0, 1, 1 << 20)
    tell(f"{copy.us:.2f} us, {copy.load:.2f} of {copy.ports}")
