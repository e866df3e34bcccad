"""Links between simulated GPUs: times as they were measured, and which algorithm is the quickest."""

from __future__ import annotations

import pytest

from simgpu.links import Wiring, collective_works, peer_copy, steps_and_bytes
from simgpu.spec import H200, NVLINK

# In us, two H200 on NVLink, and NCCL over sockets of one host; "measured" in the spec says how.
COPIES = {1 << 12: 5.1, 1 << 20: 7.6, 1 << 24: 48.5, 1 << 28: 682.0}
REDUCES = {1 << 12: 16.4, 1 << 20: 23.9, 1 << 24: 79.0, 1 << 26: 257.0}
OVER_SOCKETS = {1 << 12: 44.0, 1 << 20: 396.0, 1 << 26: 17_200.0}


def reduced(wiring: Wiring, ranks: int, nbytes: int) -> float:
    """Of an all-reduce, in us."""
    pairs = [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    works = collective_works(wiring, H200, "all_reduce", pairs, nbytes)
    assert len({work.us for work in works}) == 1
    return works[0].us


@pytest.mark.parametrize(("nbytes", "us"), COPIES.items())
def test_copies_are_as_measured(nbytes: int, us: float) -> None:
    assert peer_copy(Wiring(), 0, 1, nbytes).us == pytest.approx(us, rel=0.04)


@pytest.mark.parametrize(("nbytes", "us"), REDUCES.items())
def test_all_reduce_is_as_measured(nbytes: int, us: float) -> None:
    assert reduced(Wiring(), 2, nbytes) == pytest.approx(us, rel=0.04)


@pytest.mark.parametrize(("nbytes", "us"), OVER_SOCKETS.items())
def test_all_reduce_over_sockets_is_as_measured(nbytes: int, us: float) -> None:
    assert reduced(Wiring(gpus_per_node=1), 2, nbytes) == pytest.approx(us, rel=0.04)


def test_a_ring_moves_least_and_a_tree_takes_the_fewest_steps() -> None:
    (ring, few), (tree, many) = (
        steps_and_bytes("all_reduce", how, 16, 1000) for how in ("ring", "tree")
    )
    assert (ring, tree) == (30, 8)
    assert few < many
    # So a tree is chosen where there is little data, and a ring where there is much.
    small, large = reduced(Wiring(), 16, 1 << 10), reduced(Wiring(), 16, 1 << 30)
    assert small == pytest.approx(15.2 + 8 * 0.6, rel=0.02)
    assert large == pytest.approx(30 / 16 * 2**30 / 310e3, rel=0.03)


def test_every_constant_of_a_link_has_a_source() -> None:
    for link in (NVLINK, Wiring().between):
        names = {name for name, source in link.sources if source}
        assert names == {"copy_us", "copy_gb_s", "protocols", "sms"}
