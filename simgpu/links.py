"""Links between GPUs: which of them a copy or a collective goes over, and how long it takes there.

A GPU has one port for what it sends and one for what it gets, as behind an NVLink switch; the GPUs of one
machine share its ports to the network. A collective is an algorithm over these. In a *ring* each rank sends
to the next one, in steps: together they move as few bytes as possible, and need more steps the more ranks
there are. In a *tree* values go up to a root and down again, which takes few steps and more bytes. (Thakur,
Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005; NCCL has both.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simgpu.errors import DeviceMismatchError
from simgpu.queues import Port, ResourceDemand
from simgpu.spec import NETWORK, NVLINK, DeviceSpec, LinkSpec

ALGORITHMS = ("ring", "tree")


@dataclass(frozen=True)
class Wiring:
    """The links of a machine, or of several that are simulated as one.

    With `gpus_per_node`, so many devices in a row are one node; between nodes there is only a network.
    """

    inside: LinkSpec = NVLINK
    between: LinkSpec = NETWORK
    gpus_per_node: int | None = None

    def node(self, device: int) -> int:
        """The node that a device is in."""
        return 0 if self.gpus_per_node is None else device // self.gpus_per_node

    def link(self, origin: int, target: int) -> LinkSpec:
        """The link from one device to another."""
        return self.inside if self.node(origin) == self.node(target) else self.between

    def ports(self, origin: int, target: int) -> tuple[Port, ...]:
        """The ports that are busy while `origin` sends to `target`."""
        if self.node(origin) == self.node(target):
            return ("out", origin), ("in", target)
        return ("network out", self.node(origin)), ("network in", self.node(target))


def peer_copy(wiring: Wiring, origin: int, target: int, nbytes: int) -> ResourceDemand:
    """A copy from one device to another, by a copy engine."""
    link = wiring.link(origin, target)
    if link.copy_us == math.inf:
        raise DeviceMismatchError(
            f"devices {origin} and {target} are in different machines, and a copy stays within "
            "one: send and recv of a group go through the network"
        )
    moving = nbytes / (link.copy_gb_s * 1e3)
    us = link.copy_us + moving
    return ResourceDemand(us, ports=wiring.ports(origin, target), load=moving / us)


def steps_and_bytes(what: str, algorithm: str, ranks: int, nbytes: int) -> tuple[int, float]:
    """How many steps a collective takes one after the other, and how many bytes a rank sends in them.

    `nbytes` is what a rank has at the end of it; at its beginning for a reduce-scatter.
    """
    if what in ("send", "recv", "exchange"):
        return 1, nbytes
    hops = ranks - 1
    if algorithm == "tree" and what in ("all_reduce", "broadcast"):
        depth = math.ceil(math.log2(ranks))
        return (2 * depth, 2 * nbytes) if what == "all_reduce" else (depth, 2 * nbytes)
    part = nbytes / ranks
    return {
        "all_reduce": (2 * hops, 2 * hops * part),
        "all_gather": (hops, hops * part),
        "reduce_scatter": (hops, hops * part),
        "broadcast": (hops, float(nbytes)),
    }[what]


def collective_works(
    wiring: Wiring, spec: DeviceSpec, what: str, pairs: Sequence[tuple[int, int]], nbytes: int
) -> list[ResourceDemand]:
    """The work of each rank, by the quickest of all algorithms and of the protocols for so many bytes.

    `pairs` says for each rank from which device to which it sends.
    """
    links = {wiring.link(a, b) for a, b in pairs}
    slowest = min(links, key=lambda link: link.protocols[-1].gb_s)
    alone = what in ("send", "recv", "exchange")
    ways = [
        (protocol.base_us + steps * protocol.step_us + moved / (protocol.gb_s * 1e3), moved)
        for algorithm in ALGORITHMS
        for steps, moved in [steps_and_bytes(what, algorithm, len(pairs), nbytes)]
        for protocol in (slowest.sends if what in ("send", "recv") else slowest.protocols)
        if alone or moved <= protocol.largest + steps * protocol.largest_step
    ]
    us, moved = min(ways)
    places = min(1.0, slowest.sms / spec.sms)
    each = ResourceDemand(us, places, places, urgent=True, together=object())
    works: list[ResourceDemand] = []
    for a, b in pairs:
        load = min(1.0, moved / (wiring.link(a, b).copy_gb_s * 1e3) / us)
        works.append(replace(each, ports=wiring.ports(a, b) if a != b else (), load=load))
    return works
