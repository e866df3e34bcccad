"""Collectives: what they compute, in which order, for how long, and what ranks that disagree are told."""

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
import simgpu
from asyncgpu_tutor.devices.protocol import CollectiveCall
from asyncgpu_tutor.errors import CollectiveError, UpstreamError, UsageError
from tests.asyncgpu_tutor.devices.cuda import host_cupy
from tests.laws.kernels import scale
from tests.laws.programs import N

KINDS = ["sim", *host_cupy.KINDS]
Rank = Callable[[int], agt.DeviceOp[Any]]


@pytest.fixture(params=KINDS)
def ranks(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A group of two, of which the first rank's device is current."""
    with host_cupy.gpus(request.param, 2) as devices:
        yield agt.group(*devices)


@contextmanager
def four_ranks() -> Iterator[Any]:
    """A group of four simulated GPUs, whose host is given little time to bring a rank that is missing."""
    with agt.using("sim:0") as device:
        machine: Any = device.machine  # type: ignore[attr-defined]
        before, machine.patience_s = machine.patience_s, 0.02
        group = agt.group(*(f"sim:{number}" for number in range(4)))
        yield group
        machine.patience_s = before
        for each in group.devices:  # nobody has waited for what was enqueued before a mistake
            with suppress(agt.DeviceError):
                each.synchronize()


@pytest.fixture
def four() -> Iterator[Any]:
    with four_ranks() as group:
        yield group


def test_a_device_that_is_no_rank(four: Any) -> None:
    told = r"sim:9 is no rank of <group \d+, 4 ranks: sim:0, sim:1, sim:2, sim:3>"
    with agt.using("sim:9") as other, pytest.raises(agt.errors.DeviceMismatchError, match=told):
        four.rank(other)


def on_each(ranks: Any, values: Callable[[int], Any]) -> list[agt.DeviceArray]:
    """An array for each rank, where it is."""
    return [
        agt.h2d(np.asarray(values(rank), np.float32)).on(device).sync()
        for rank, device in enumerate(ranks.devices)
    ]


def host(arrays: Any) -> list[list[float]]:
    return [agt.d2h(array).on(array.device).sync().tolist() for array in arrays]


def test_all_ranks_in_one_call(ranks: Any) -> None:
    sums = ranks.all_reduce(on_each(ranks, lambda rank: [rank, 10.0])).sync()
    assert host(sums) == [[1.0, 20.0]] * 2
    top = ranks.all_reduce(on_each(ranks, lambda rank: [rank, -rank]), "max").sync()
    assert host(top) == [[1.0, 0.0]] * 2
    all_of_them = ranks.all_gather(on_each(ranks, lambda rank: [rank, rank])).sync()
    assert [array.shape for array in all_of_them] == [(2, 2)] * 2
    assert host(all_of_them) == [[[0.0, 0.0], [1.0, 1.0]]] * 2
    parts = ranks.reduce_scatter(on_each(ranks, lambda rank: [1.0, 2.0])).sync()
    assert host(parts) == [[2.0], [4.0]]
    copies = ranks.broadcast(on_each(ranks, lambda rank: [rank]), root=1).sync()
    assert host(copies) == [[1.0], [1.0]]


def test_it_comes_after_what_precedes_it_and_before_what_follows(ranks: Any) -> None:
    made = agt.overlap(*(agt.full(1 << 20, 1.0).on(device) for device in ranks.devices))
    chain = made.and_then(lambda arrays: ranks.all_reduce(list(arrays)))
    fetched = chain.and_then(lambda sums: agt.overlap(*(agt.d2h(s).on(s.device) for s in sums)))
    assert all(set(values.tolist()) == {2.0} for values in fetched.sync())


@pytest.mark.parametrize("how", ["prepare", "graph_on"])
def test_a_call_for_all_ranks_is_captured_and_no_other(ranks: Any, how: str) -> None:
    """Each launch comes after what ranks did before, and whatever they do next comes after it."""

    def capture(op: agt.DeviceOp[Any]) -> Any:
        return op.prepare() if how == "prepare" else op.graph_on(agt.create_stream())

    owners = on_each(ranks, lambda rank: [rank + 1])
    lent = x, _ = [array.borrow() for array in owners]
    fill = agt.Kernel("__global__ void fill(float* x) { *x = 1; }")(x, grid=1, block=1)
    made = capture(agt.zip(fill, ranks.all_reduce(lent), ranks.broadcast(lent)))
    assert host(lent) == [[1.0], [2.0]]  # nothing has run
    assert made.kernels == ["fill", "all_reduce", "broadcast"]
    for expected in (3.0, 4.0):
        made.launch().sync()
        assert host(lent) == [[expected]] * 2
    agt.zip(made.launch(), made.launch(), ranks.all_reduce(lent)).sync()
    assert host(lent) == [[12.0]] * 2
    for op in (ranks.send(x, 1), ranks.exchange(x, 1, x, None), ranks.all_gather(lent)):
        with pytest.raises(agt.errors.CaptureError, match="is not captured"):
            capture(op)
    assert host(ranks.all_reduce(lent).sync()) == [[24.0]] * 2  # the group goes on


def test_both_devices_record_what_goes_over_the_link(ranks: Any) -> None:
    x, y = on_each(ranks, lambda rank: [rank])
    with agt.record() as trace:
        ranks.all_reduce([x.borrow(), y.borrow()]).sync()
        x.to(ranks.devices[1]).sync()
    one, other = (device.name for device in ranks.devices)
    link = {(span.device, span.name) for span in trace.device_spans if span.talks}
    assert link == {(one, "all_reduce"), (one, "peer copy"), (other, "all_reduce")}
    assert sorted(trace.metrics().engine_busy) == [(one, "link"), (other, "link")]
    assert trace.metrics().hidden == 0


def one_on_each(ranks: Any, recipe: Rank) -> list[Any]:
    """Run a recipe for each rank, each on a stream of its device, and wait for all."""

    async def run() -> list[Any]:
        return await asyncio.gather(
            *(agt.spawn(recipe(rank).on(d)) for rank, d in enumerate(ranks.devices)),
            return_exceptions=True,
        )

    return asyncio.run(run())


def test_each_rank_has_an_operation_of_its_own(four: Any) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        part = four.reduce_scatter(agt.full((4, 2), float(rank)))
        whole = part.and_then(lambda array: four.all_gather(array.reshape(2)))
        return whole.to_host()

    for result in one_on_each(four, recipe):
        assert result.tolist() == [[6.0, 6.0]] * 4


def test_a_ring_by_hand_does_what_all_reduce_does(four: Any) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        mine, got = agt.full(8, rank + 1.0), agt.zeros(8)

        def step(both: Any) -> agt.DeviceOp[Any]:
            out, into = both
            return four.exchange(out, (rank + 1) % 4, into, (rank - 1) % 4)

        once = agt.zip(mine, got).and_then(step)
        twice = once.map(lambda both: both[::-1]).and_then(step)  # what came goes on
        return twice.map(lambda both: both[1]).to_host()

    found = one_on_each(four, recipe)
    assert [values[0] for values in found] == [3.0, 4.0, 1.0, 2.0]  # from two ranks before


@pytest.mark.parametrize("kind", ["sim", "on the host"])
def test_what_one_sends_another_gets(kind: str) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        x, sends = agt.full(4, float(rank)), rank % 2 == 0
        pair = four.send(x, to=rank + 1) if sends else four.recv(x, source=rank - 1)
        return pair.and_then(four.all_reduce).to_host()

    with host_cupy.gpus(kind, 4) as devices:
        four = agt.group(*devices)
        found = asyncio.run(four.on_each(recipe))
    assert [host.tolist() for host in found] == [[0.0 + 0.0 + 2.0 + 2.0] * 4] * 4


def test_at_an_edge_nobody_is_asked(ranks: Any) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        right, left = (1, None) if rank == 0 else (None, 0)
        both = agt.zip(agt.full(2, float(rank)), agt.full(2, -1.0))
        return both.and_then(lambda xs: ranks.exchange(xs[0], right, xs[1], left)).last().to_host()

    assert [values.tolist() for values in asyncio.run(ranks.on_each(recipe))] == [
        [-1.0] * 2,
        [0.0] * 2,
    ]


def test_each_ranks_graph_may_be_updated_by_what_all_do(ranks: Any) -> None:
    """Each update holds what is shared and its turn, until the others have come."""

    def updated(x: agt.DeviceArray) -> Any:
        with agt.using(x.device):
            graph = scale(x.borrow(), 2.0).graph_on(agt.create_stream())
            graph.update(ranks.all_reduce(x.borrow()))
            return graph

    arrays = on_each(ranks, lambda rank: [rank + 1.0] * N)
    with ThreadPoolExecutor(2) as pool:
        for graph in [*pool.map(updated, arrays, timeout=60)]:
            assert graph.launch().to_host().on(graph.device).sync().tolist() == [6.0] * N


def test_a_launch_that_comes_while_an_update_meets_others_is_not_the_last_use() -> None:
    with host_cupy.gpus("on the host", 2) as (one, other):
        ranks = agt.group(one, other)
        x, y = on_each(ranks, lambda rank: [rank + 1.0] * N)
        graph = scale(x.borrow(), 2.0).graph_on(agt.create_stream())
        has_its_turn, reduce = threading.Event(), ranks.all_reduce(x.borrow())

        def update() -> Any:
            with agt.using(one):
                graph.update(agt.zip(agt.value(None).map(lambda _: has_its_turn.set()), reduce))

        with ThreadPoolExecutor(1) as pool:
            updated = pool.submit(update)
            assert has_its_turn.wait(60)
            graph.launch().async_on(agt.create_stream())
            ranks.all_reduce(y.borrow()).on(other).sync()
            updated.result(60)
        assert graph._used[0].last.stream is graph.stream
        assert graph.launch().to_host().sync().tolist() == [2.0 * (2 * 1 + 2)] * N


def test_ranks_that_meet_on_the_host_wait_so_long_and_in_no_event_loop() -> None:
    with host_cupy.gpus("on the host", 2) as devices:
        one, other = agt.group(*devices), agt.group(*devices)
        sys.modules["asyncgpu_tutor.devices.cuda.nccl"].MEETING_S = 0.01  # type: ignore[attr-defined]
        for says in r"^rank 0 with all_reduce of 4 float32.* waited 0 s for 1 more\n", "waited 0 s":
            with pytest.raises(CollectiveError, match=says):
                one.all_reduce(agt.ones(4)).sync()
        for error in one_on_each(other, lambda rank: other.all_reduce(agt.ones(4))):
            with pytest.raises(
                (UsageError, CollectiveError), match=r"loop that would|could not wait"
            ):
                raise error


MISTAKES: dict[str, tuple[Rank, str]] = {}


def mistake(message: str) -> Callable[[Any], Any]:
    def keep(recipe: Any) -> Any:
        MISTAKES[recipe.__name__] = recipe, message
        return recipe

    return keep


@mistake(r"all_reduce of 4 .*py:\d+.*all_reduce of 5 .*py:\d+")
def size(group: Any, rank: int) -> agt.DeviceOp[Any]:
    return group.all_reduce(agt.ones(4 + (rank == 1)))


@mistake(r"float32 .*py:\d+.* int32 .*py:\d+")
def dtype(group: Any, rank: int) -> agt.DeviceOp[Any]:
    return group.all_reduce(agt.ones(4, np.int32 if rank == 1 else np.float32))


@mistake(r"\(sum\) at .*py:\d+.*\(max\) at .*py:\d+")
def reduction(group: Any, rank: int) -> agt.DeviceOp[Any]:
    return group.all_reduce(agt.ones(4), "max" if rank == 1 else "sum")


@mistake(r"from rank 0 at .*py:\d+.*from rank 1 at .*py:\d+")
def root(group: Any, rank: int) -> agt.DeviceOp[Any]:
    return group.broadcast(agt.ones(4), root=int(rank == 1))


@mistake(r"all_reduce of .*py:\d+.*broadcast of .*py:\d+")
def order(group: Any, rank: int) -> agt.DeviceOp[Any]:
    steps = [group.all_reduce, group.broadcast]
    first, second = steps if rank == 0 else steps[::-1]
    return first(agt.ones(4)).and_then(second)


@mistake(r"rank 0 waits in all_reduce .*py:\d+.*rank 1 does not come: it has called nothing that")
def nobody(group: Any, rank: int) -> agt.DeviceOp[Any]:
    return agt.zeros(4) if rank == 1 else group.all_reduce(agt.ones(4))


@mistake(r"rank 0 waits in send .*py:\d+.*rank 1 does not come: it waits in send .*py:\d+")
def both_send(group: Any, rank: int) -> agt.DeviceOp[Any]:
    other = 1 - rank
    if rank > 1:
        return agt.zeros(4)
    sent = group.send(agt.ones(4), to=other)
    return sent.and_then(lambda array: group.recv(array, source=other))


@pytest.mark.parametrize("name", MISTAKES)
def test_ranks_that_disagree_are_told_both_calls_and_their_lines(four: Any, name: str) -> None:
    recipe, message = MISTAKES[name]
    errors = [e for e in one_on_each(four, lambda r: recipe(four, r)) if isinstance(e, Exception)]
    failed = [error for error in errors if isinstance(error, CollectiveError)]
    assert all(error in failed or isinstance(error, UpstreamError) for error in errors)
    with pytest.raises(CollectiveError, match=message):
        raise failed[0]
    assert agt.ones(2).to_host().sync().tolist() == [1.0, 1.0]  # the device goes on


def test_a_blocking_wait_for_ranks_that_never_come_ends_at_once(four: Any) -> None:
    for who in ("rank 3 does not come", "does not come"):
        with pytest.raises(CollectiveError, match=who):
            four.all_reduce(agt.ones(4)).sync()


def test_a_rank_whose_work_failed_fails_the_others_too(four: Any) -> None:
    kernel = agt.Kernel("__global__ void bad(float* x) { x[99] = 1; }")

    def recipe(rank: int) -> agt.DeviceOp[Any]:
        array: Any = agt.zeros(4)
        if rank == 2:
            array = kernel(array, grid=1, block=1).output()
        return four.all_reduce(array)

    found = one_on_each(four, recipe)
    assert isinstance(found[2], agt.errors.OutOfBoundsError)
    assert all(isinstance(found[rank], UpstreamError) for rank in (0, 1, 3))
    assert "rank 2" in str(found[0])


def test_a_call_that_no_rank_could_make_is_refused(four: Any) -> None:
    array, mine = agt.ones((3, 2)).sync().share(), agt.ones(2).sync()
    swapped = agt.ones(2, ">f4").sync().share()
    for call, message in (
        (lambda: four.all_reduce(array, "mean"), "no reduction"),
        (lambda: four.all_reduce([array]), "one for each of 4 ranks"),
        (lambda: four.broadcast(array, root=4), "rank in <group .* from 0 to 3, and got 4"),
        (lambda: four.broadcast(array, root=1.0), "an integer from 0 to 3, and got 1.0"),
        (lambda: four.send(array, to=True), "an integer from 0 to 3, and got True"),
        (lambda: four.send(array, to=np.int64(0)).sync(), "rank 0 calls send with itself"),
        (lambda: four.recv(mine.borrow(), source=0).sync(), "rank 0 calls recv with itself"),
        (lambda: four.all_reduce(5), "all_reduce takes device arrays, and got int"),
        (lambda: four.all_reduce(np.ones(4)), "and got ndarray: agt.h2d"),
        (lambda: four.all_gather([1, 2, 3, 4]), "all_gather takes device arrays, and got int"),
        (lambda: four.exchange(mine.borrow(), 1, None, 1), "exchange takes .* and got NoneType"),
        (lambda: four.exchange(agt.ones(2), 1, mine.borrow(), 1), "got an operation"),
        (lambda: four.exchange(mine.borrow(), 1, mine.borrow(), 1), "same memory.*agt.dup"),
        (lambda: four.all_reduce(swapped, "prod"), "'ones' has dtype >f4: .*astype.'float32'"),
        (lambda: four.reduce_scatter(swapped), "byte order"),
        (lambda: four.rank("sim:0"), r"as in group.rank\(.*got 'sim:0'"),
        (lambda: four.reduce_scatter(array).sync(), "as many rows"),
        (lambda: four.all_reduce(array).sync(), "shared arrays are for reading"),
        (lambda: four.all_gather(agt.ones(2).on("sim:5")).on("sim:5").sync(), "is no rank"),
    ):
        with pytest.raises((UsageError, agt.errors.CaptureError), match=message):
            call()
    ones = on_each(four, lambda rank: [1.0])
    assert host(agt.zip(*four.all_reduce(ones).unzip()).sync()) == [[4.0]] * 4  # one for each rank


def test_ranks_wait_for_the_last_one_and_end_together(four: Any) -> None:
    with agt.record() as trace:
        one_on_each(four, lambda rank: four.all_reduce(agt.ones(1 << 20)))
    spans = trace.find("all_reduce")
    assert len({span.end for span in spans}) == 1
    assert [span.detail["rank"] for span in spans] == [0, 1, 2, 3]
    assert max(span.start for span in spans) > min(span.start for span in spans)


def test_the_same_program_has_the_same_times(four: Any) -> None:
    def times() -> list[float]:
        with agt.record() as trace:
            one_on_each(four, lambda rank: four.all_reduce(agt.ones(1 << 20)))
        return [round(span.duration, 6) for span in trace.find("all_reduce")]

    times()  # from now on each call comes after an earlier one of its rank
    assert times() == times()


CALL = st.tuples(st.sampled_from(["all_reduce", "broadcast", "all_gather"]), st.integers(1, 3))
CALLS = st.lists(CALL, min_size=2, max_size=4)


@settings(max_examples=30)
@given(calls=CALLS, wrong=st.integers(0, 3), place=st.integers(0, 3), how=st.integers(0, 2))
def test_any_program_in_which_one_rank_differs_ends_with_both_lines(
    calls: list[tuple[str, int]], wrong: int, place: int, how: int
) -> None:
    with four_ranks() as group:

        def recipe(rank: int) -> agt.DeviceOp[Any]:
            mine = list(calls)
            at = place % len(mine)
            what, size = mine[at]
            if rank == wrong and how == 0:
                mine[at] = what, size + 1
            elif rank == wrong and how == 1:
                mine[at] = "reduce_scatter", 4 * size
            elif rank == wrong:
                del mine[at:]
            steps = [getattr(group, what)(agt.ones(size)) for what, size in mine]
            return agt.zip(*steps, agt.zeros(1))

        found = one_on_each(group, recipe)
        texts = [str(error) for error in found if isinstance(error, CollectiveError)]
        assert texts
        lines = re.findall(r"test_collectives\.py:\d+", texts[0])
        assert len(lines) == (1 if "called nothing" in texts[0] else 2)


def in_a_row(first: Any, second: Any) -> agt.DeviceOp[Any]:
    after = lambda _: agt.full(4, 2.0).and_then(second.all_reduce)  # noqa: E731
    return agt.full(4, 1.0).and_then(first.all_reduce).and_then(after)


def side_by_side(first: Any, second: Any) -> agt.DeviceOp[Any]:
    return agt.overlap(first.all_reduce(agt.ones(4)), second.all_reduce(agt.ones(4)))


@pytest.mark.parametrize("how", [in_a_row, side_by_side])
def test_groups_of_the_same_devices_have_one_order(four: Any, how: Callable[..., Any]) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        swapped = crossed and rank == 1
        return how(second, first) if swapped else how(first, second)

    for crossed in (False, True, False):
        first, second = agt.group("sim:0", "sim:1"), agt.group("sim:1", "sim:0")
        if not crossed:
            assert len(asyncio.run(first.on_each(recipe))) == 2
            continue
        with pytest.raises(CollectiveError, match="two groups are called in opposite") as caught:
            asyncio.run(first.on_each(recipe))
        said = str(caught.value)
        assert len(re.findall(r"at test_collectives\.py:\d+, of group \d+", said)) == 3
        assert len(set(re.findall(r"group \d+", said))) == 2


def test_a_recipe_runs_for_each_rank_of_a_group(ranks: Any) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        return ranks.all_gather(agt.full(2, float(rank))).to_host()

    found = asyncio.run(ranks.on_each(recipe))
    assert [result.tolist() for result in found] == [[[0.0, 0.0], [1.0, 1.0]]] * 2
    one = ranks.all_gather(agt.zeros(2)).shared()
    with pytest.raises(agt.errors.AsyncGpuError, match=r"another rank|used here on another device"):
        asyncio.run(ranks.on_each(lambda _: one))


def test_of_ranks_that_fail_the_first_is_told_and_nobody_waits_for_it(four: Any) -> None:
    def recipe(rank: int) -> agt.DeviceOp[Any]:
        if rank == 2:
            raise LookupError("no recipe for me")
        return four.all_reduce(agt.ones(4))

    with pytest.raises(LookupError, match="for me"):
        asyncio.run(four.on_each(recipe))
    with pytest.raises(CollectiveError, match="rank 2 does not come, since it failed"):
        four.all_reduce(agt.ones(4)).sync()


def test_a_wait_in_vain_is_a_bar_of_the_trace(four: Any) -> None:
    with agt.record() as trace, pytest.raises(CollectiveError, match="does not come"):
        asyncio.run(four.on_each(lambda rank: both_send(four, rank)))
    sends = trace.find("send")
    assert [span.device for span in sends] == ["sim:0", "sim:1"]
    assert all(span.detail["failed"] and span.duration > 0 for span in sends)
    assert not trace.find("recv")


def test_a_call_in_a_cell_is_told_by_its_line_there(four: Any) -> None:
    cell = "def part(rank):\n    return four.all_reduce(agt.ones(4 + rank % 2))"
    names: dict[str, Any] = {"four": four, "agt": agt}
    exec(compile(cell, "/nowhere/ipykernel_7/8.py", "exec"), names)
    with pytest.raises(CollectiveError, match=r"at line 2 of the cell with `part`, and .*`part`"):
        asyncio.run(four.on_each(names["part"]))


@pytest.mark.parametrize(
    ("what", "partners", "words"),
    [
        ("all_reduce", {}, "all_reduce of 1,000 float32 (sum) at a.py:3"),
        ("broadcast", {"root": 3}, "broadcast of 1,000 float32 from rank 3 at a.py:3"),
        ("all_gather", {}, "all_gather of 1,000 float32 at a.py:3"),
        ("send", {"to": 1}, "send of 1,000 float32 to rank 1 at a.py:3"),
        ("recv", {"origin": 2}, "recv of 1,000 float32 from rank 2 at a.py:3"),
        (
            "exchange",
            {"to": 1, "origin": 2},
            "exchange of 1,000 float32 to rank 1, from rank 2 at a.py:3",
        ),
        ("exchange", {"origin": 2}, "exchange of 1,000 float32 from rank 2 at a.py:3"),
    ],
)
def test_a_call_is_told_in_the_same_words_by_both_devices(
    what: str, partners: dict[str, int], words: str
) -> None:
    facts: dict[str, Any] = {
        "count": 1000,
        "dtype": np.dtype(np.float32),
        "where": "a.py:3",
        **partners,
    }
    assert (
        str(CollectiveCall(what, rank=0, **facts)) == str(simgpu.Collective(what, **facts)) == words
    )
