"""The nodes of a CUDA graph, for a recording that can see them."""

from collections.abc import Sequence
from typing import Any

from asyncgpu_tutor.devices.protocol import CollectiveCall, RecordedCall
from asyncgpu_tutor.traces.spans import Draft, SpanKind, SpanLog

Facts = tuple[SpanKind, str, dict[str, object]]


class Outline:
    """The nodes of a graph and their order, as the calls say that it was captured from.

    The first branch is drawn on the stream of the launch, the others on streams of the numbers `branches`.
    """

    def __init__(self, graph: str, calls: Sequence[RecordedCall], branches: Sequence[int]) -> None:
        self._branches = tuple(branches)
        self._steps = [(call, call_facts(call)) for call in calls]
        self._graph = graph
        self.nodes = sum(call.is_work for call in calls)  # how many there are
        # How often a node runs is not known before, where the device decides: then the whole is one span.
        self.fixed = all(call.verb != "decide" for call in calls)

    def draft(
        self, log: SpanLog, stream: int, op: int | None, label: str, call: int | None
    ) -> list[Draft]:
        """The spans of one launch, still without times; each comes after what it needs in the graph."""
        lanes = (stream, *self._branches)
        events: dict[int, tuple[int, tuple[int, ...]]] = {}
        drafts: list[Draft] = []
        for step, facts in self._steps:
            lane = lanes[step.stream]
            if facts is not None:
                kind, name, known = facts
                detail = {**known, "graph": self._graph, "node": len(drafts)}
                drafts.append(
                    log.draft(kind, name, lane, op=op, label=label, call=call, detail=detail)
                )
            elif step.verb == "record":
                events[step.args[0]] = lane, log.heads(lane)
            elif events[step.args[0]][0] != lane:
                log.wait(lane, events[step.args[0]][1])
        return drafts


def span_facts(verb: str, args: Sequence[Any]) -> Facts:
    """Kind, name and details of a call, which takes these and a stream."""
    if verb == "launch":
        function, grid, block = args[:3]
        return "kernel", function.name, {"grid": list(grid), "block": list(block)}
    if verb == "decide":
        return "kernel", args[0], {}
    if verb == "collective":
        return "kernel", args[1][0].what, collective_facts(args[1][0], len(args[1]))
    if verb == "memset_async":
        return "memset", "memset", {"bytes": args[2]}
    if verb == "copy_from_host_async":
        return "h2d", "h2d", {"bytes": args[1].nbytes}
    if verb == "copy_to_host_async":
        return "d2h", "d2h", {"bytes": args[0].nbytes}
    if verb == "copy_to_peer_async":
        ends = {"from": args[1].device.ordinal, "to": args[0].device.ordinal}
        return "peer", "peer copy", {"bytes": args[2], **ends}
    return "d2d", "d2d", {"bytes": args[2]}


def collective_facts(call: CollectiveCall, ranks: int) -> dict[str, object]:
    """Details of a rank's part in something that so many ranks do together."""
    return {"bytes": call.count * call.dtype.itemsize, "rank": call.rank, "ranks": ranks}


def call_facts(call: RecordedCall) -> Facts | None:
    """As `span_facts`, with the name of the part that it was captured in; None where it is no work."""
    if not call.is_work:
        return None
    kind, name, known = span_facts(call.verb, call.args)
    return kind, name, {**known, "named": call.named} if call.named else known
