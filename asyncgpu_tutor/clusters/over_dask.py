"""Workers in other processes, on this machine or others, reached by Dask's actors.

Dask is the control plane: it starts processes, carries recipes and results, and knows who is alive. The
data between GPUs goes by NCCL, because Dask would copy it through the host. A worker is an actor of Dask's
and not a series of tasks: a call of an actor takes a millisecond where a task takes ten, the arrays have to
stay in one process, and coroutines of one actor run side by side.

The hard part is a worker that dies. Dask would wait for a lost actor forever in some cases, and a program
that awaits a GPU should get an error within seconds. A time limit for each call won't do, because a recipe
may rightly take an hour. So we don't limit the work, but ask who is alive: the scheduler knows which
workers it has lost, and each worker's nanny, a process of its own, knows whether it is stopped. The worker
itself isn't asked, since it may be busy for long. Each wait also ends when one of them says that the worker
is gone, and what doesn't need that worker goes on.

Silence is measured without the time in which our own loop stood still (`_answer`), or a program that
computes for ten seconds would find all its workers lost. An error of a recipe comes back as a value, so
that its `OSError` isn't taken for a broken connection.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar, cast

import asyncgpu_tutor
from asyncgpu_tutor.clusters.guests import Guest
from asyncgpu_tutor.clusters.in_process import Link
from asyncgpu_tutor.clusters.members import Cluster, Gpu, rank_numbers
from asyncgpu_tutor.clusters.recipes import packed, unpacked
from asyncgpu_tutor.clusters.remote import Worker
from asyncgpu_tutor.devices.event_loop import shielded
from asyncgpu_tutor.devices.opening import new_group_id, open_rank
from asyncgpu_tutor.devices.protocol import CollectiveCall, Device
from asyncgpu_tutor.errors import ClusterError, CollectiveError, DeviceError, DeviceUnavailableError
from asyncgpu_tutor.ops.collectives import Group, Ledger, forget_group, name_group
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.current import resolve
from asyncgpu_tutor.run.recording import under_way
from asyncgpu_tutor.traces.spans import Span, SpanLog

T = TypeVar("T")

CONNECT_S = 5.0  # for how long a scheduler may take to answer, and its workers to be there
START_S = 60.0  # for how long a worker may take to load this package and open its device
_LOOK_S = 0.5  # how often the scheduler is asked who is alive
EXCHANGES = 10  # of times, to set a worker's clock by ours: a millisecond each
SILENT_S = 4.0  # a scheduler or a machine that says nothing for so long is gone


class Actor:
    """A worker in a process of Dask's."""

    def __init__(self, name: str, kind: str, ordinal: int) -> None:
        if os.environ.get("CUDA_VISIBLE_DEVICES"):  # dask-cuda puts each worker's own GPU first
            ordinal = 0
        try:
            device = resolve("sim:0" if kind == "sim" else f"cuda:{ordinal}")
        except DeviceUnavailableError:
            if kind != "auto":
                raise
            device = resolve("sim:0")
        self._worker = Worker(name, device)
        self._groups: dict[str, Group] = {}
        self._running = self._told = 0  # recipes; and spans of the recording that were sent
        self._recording: int | None = None  # the caller's number of it

    async def facts(self) -> dict[str, str]:
        """Facts that have to be the same everywhere; and the device."""
        return {**versions(), "device": self._worker.device.name}

    async def now(self) -> tuple[float, bool]:
        """The time on the device's clock, in us, and whether that is modelled."""
        return self._worker.device.now(), self._worker.device.simulated

    async def run(self, payload: bytes, recording: int | None = None, at: float = 0.0) -> Any:
        """Run a recipe; the result as it travels, or the error, and the collectives that were called since.

        For a recording also the time now, the arrays that are kept, and the spans since the last call. A
        simulated device begins when its clock says `at`.
        """
        device = self._worker.device
        self._record(recording)
        self._running += 1
        try:
            if at > device.now():
                await device.sleep(at - device.now())
            result = await self._worker.run(unpacked(payload))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            result = error
        finally:
            self._running -= 1
        calls = {name: group.log.copy() for name, group in self._groups.items()}
        for group in self._groups.values():
            group.log.clear()
        return result, calls, device.now(), list(self._worker.arrays), self._spans()

    def _record(self, recording: int | None) -> None:
        """Begin a recording, or end one, unless recipes run."""
        if recording != self._recording and not self._running:
            self._recording, self._told = recording, 0
            self._worker.device.stop_log()
            if recording is not None:
                self._worker.device.start_log(count())

    def _spans(self) -> list[Span]:
        """The spans since the last time, once no recipe runs: to read them is to wait for the device."""
        if (log := self._worker.device.log) is None or self._running:
            return []
        with suppress(DeviceError):  # the recipe's own error says so already
            self._worker.device.settle_log()
        told, self._told = self._told, len(log.spans)
        return log.spans[told:]

    async def drop(self, numbers: list[int]) -> None:
        """Nobody has a handle to these arrays any more."""
        self._worker.drop(numbers)

    async def new_id(self) -> Any:
        """A name by which the ranks of a new group find each other."""
        return new_group_id(self._worker.device)

    async def join(self, name: str, rank: int, size: int, found_by: Any) -> None:
        """Become a rank of a group; returns when all are there."""
        device = self._worker.device
        made = await device.apart(lambda: open_rank(device, rank, size, found_by))
        self._groups[name] = name_group(Group(size, {rank: device}, made), name)

    async def close(self) -> None:
        """Let go of everything."""
        for name in self._groups:
            forget_group(name)
        self._record(None)
        self._worker.close()


def versions() -> dict[str, str]:
    """Facts that client and workers have to agree on: recipes hold Python's own code."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"asyncgpu_tutor": asyncgpu_tutor.__version__, "Python": python}


class DaskGpu(Gpu):
    """A worker of Dask."""

    def __init__(self, rank: int, address: str, actor: Any, cluster: DaskCluster) -> None:
        super().__init__(rank, f"gpu {rank} ({address})")
        self.address = address
        self._actor, self._cluster = actor, cluster

    async def _run(self, op: DeviceOp[Any]) -> Any:
        self._check_alive()
        result, wrong = await self._result(self._send(op, packed(op)))
        failed = isinstance(result, Exception)
        if wrong:
            if not failed:
                self._received(result)  # nobody gets it, so it goes
            cause = result if failed else None
            raise CollectiveError(f"{wrong}. Their results are wrong") from cause
        if failed:
            result.add_note(f"on {self.name}")
            raise result
        return result

    async def _send(self, op: DeviceOp[Any], payload: bytes) -> tuple[Any, str]:
        """Have a recipe run there; the result or the error, and what is wrong with its collectives."""
        recording = under_way()
        guest = recording and await self._cluster.guest(self.rank, *recording)
        if not guest:
            result, calls, *_ = await self._call("run", payload)
            return result, self._compared(calls)
        device = guest.device

        async def run_there() -> tuple[Any, float, list[int]]:
            at = device.now() + guest.ahead if device.simulated else 0.0
            *answer, ended, kept, spans = await self._call("run", payload, guest.number, at)
            guest.take(spans)
            return answer, ended - guest.ahead, kept

        result, calls = await self._cluster.link.carry(device, self.rank, op, run_there)
        return result, self._compared(calls)

    async def welcome(self, device: Device, log: SpanLog) -> Guest | None:
        """Its place in a recording, with its clock set by ours; None if they keep different kinds of time."""
        guest = Guest(f"gpu {self.rank}", device, log)
        for _ in range(EXCHANGES):
            asked = device.now()
            there, modelled = await self.ask("now")
            if modelled != device.simulated:
                said = cast("list[str]", log.about.setdefault("warnings", []))
                said.append(
                    f"{self.name} isn't recorded: not both of it and {device.name} are simulated"
                )
                return None
            guest.heard(asked, there, device.now())
        worst = cast("float", log.about.get("clocks_within_us", 0.0))
        log.about["clocks_within_us"] = max(worst, round(guest.within, 3))
        return guest

    def _compared(self, calls: Mapping[str, Sequence[CollectiveCall]]) -> str:
        """Say what is wrong with the collectives of its recipes, next to those of other ranks."""
        known = self._cluster.ledgers
        told = [known[n].enter(c) for n in calls if n in known for c in calls[n]]
        return next((words for words in told if words), "")

    async def ask(self, method: str, *args: Any) -> Any:
        """Call a method of the actor; `WorkerLostError` if it is gone, or goes meanwhile."""
        self._check_alive()
        return await self._end(self._start(self._call(method, *args)))

    async def _end(self, call: asyncio.Task[Any]) -> Any:
        try:
            return await super()._end(call)
        except OSError as error:  # a connection that broke
            self.lose(str(error))
            self._check_alive()

    async def _call(self, method: str, *args: Any) -> Any:
        # An actor looks for its client when it is first asked.
        with self._cluster.client.as_current():
            try:
                answer = getattr(self._actor, method)(*args)
            except RuntimeError as error:  # Dask knows already that it is gone
                raise ConnectionError(str(error)) from error
        return await answer

    def _drop(self, number: int) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the worker's arrays are gone
            self._loop.call_soon_threadsafe(self._drop_here, number)

    def _drop_here(self, number: int) -> None:
        if not self.closed and not self._lost.done():
            self._start(self.ask("drop", [number]))

    async def close(self) -> None:
        """Let go of its arrays."""
        self.closed = True
        with suppress(ClusterError, TimeoutError):
            await asyncio.wait_for(self.ask("close"), CONNECT_S)
        for task in list(self._going):
            task.cancel()


class DaskCluster(Cluster):
    """The workers of a Dask scheduler."""

    def __init__(self, address: str, gpus: int | None, device: str, security: Any) -> None:
        super().__init__(f"cluster {next(rank_numbers)} of {os.getpid()}")
        self._address, self._count, self._kind = address, gpus, device
        self._security = security
        self.client: Any = None
        self._watches: list[asyncio.Task[None]] = []
        self.ledgers: dict[str, Ledger] = {}  # of its groups: what their ranks have called
        self._actors: list[Any] = []  # Dask's futures: they keep the actors
        self.link = Link()
        self._guests: tuple[SpanLog, asyncio.Future[list[Any]]] | None = None  # of a recording

    async def _opened(self) -> None:
        self._gpus = []
        self.client = await self._connect()
        try:
            await self._place()
        except BaseException:
            await self.client.close()
            raise
        looks = [self._look(), *map(self._look_at, self._gpus)]
        self._watches = [asyncio.create_task(look) for look in looks]

    async def _closed(self) -> None:
        for watch in self._watches:
            watch.cancel()
        with shielded():
            await asyncio.gather(*(gpu.close() for gpu in self._gpus))
            for name in self.ledgers:
                forget_group(name)
            self._actors.clear()
            await self.client.close()

    async def group(self) -> Group:
        """A new group; see `Cluster.group`."""
        name = f"{self.name} group {next(self._groups)}"
        found_by = await self._gpus[0].ask("new_id")
        size = len(self._gpus)
        await asyncio.gather(
            *(gpu.ask("join", name, rank, size, found_by) for rank, gpu in enumerate(self._gpus))
        )
        self.ledgers[name] = Ledger(size)
        return name_group(Group(size, {}, None), name)

    async def guest(self, rank: int, device: Device, log: SpanLog) -> Guest | None:
        """A worker's place in a recording. The clocks of all are set when the first one is asked for."""
        if self._guests is None or self._guests[0] is not log:
            found = (gpu.welcome(device, log) for gpu in self._gpus)
            self._guests = log, asyncio.gather(*found, return_exceptions=True)
        guest = (await asyncio.shield(self._guests[1]))[rank]
        return guest if isinstance(guest, Guest) else None

    async def _connect(self) -> Any:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ClusterError(
                f"a cluster at {self._address} needs Dask ({error}): pip install 'asyncgpu_tutor[cluster]'"
            ) from error
        try:
            how = {"timeout": CONNECT_S, "set_as_default": False, "security": self._security}
            client = distributed.Client(self._address, asynchronous=True, **how)
            try:
                return await client
            except TypeError:  # with others it does so itself
                await client.close()
                raise
        except (TypeError, ImportError) as error:  # Dask's way to say so
            raise ClusterError(
                f"the certificates for {self._address} are not there ({error}): give those of its scheduler, "
                "agt.cluster(..., security=distributed.Security(...)), or have Dask's "
                "configuration name them"
            ) from error
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {self._address} within {CONNECT_S:.0f} s ({error}): is it "
                "running, and is its port open from here? `dask scheduler` starts one and prints it"
            ) from error

    async def _place(self) -> None:
        """Put an actor on each worker."""
        wanted = self._count or 1
        with suppress(OSError, TimeoutError):  # the message below says how many there are
            await self.client.wait_for_workers(wanted, timeout=CONNECT_S)
        # Sorted, so that the same workers have the same ranks in each run.
        addresses = sorted(await self.client.run_on_scheduler(_workers))[: self._count]
        if len(addresses) < wanted:
            raise ClusterError(
                f"you asked for {wanted} GPUs, and the scheduler at {self._address} has {len(addresses)} "
                f"workers: start one for each GPU, with `dask worker {self._address}`"
            )
        on_host: dict[str, int] = {}
        for rank, address in enumerate(addresses):
            host = address.rpartition(":")[0]
            ordinal = on_host[host] = on_host.get(host, -1) + 1
            future = self.client.submit(
                Actor, f"{self.name} {rank}", self._kind, ordinal,
                actor=True, workers=[address], allow_other_workers=False, pure=False,
            )  # fmt: skip
            self._actors.append(future)
        for rank, (address, future) in enumerate(zip(addresses, self._actors, strict=True)):
            try:
                with self.client.as_current():
                    actor = await asyncio.wait_for(future, START_S)
                gpu = DaskGpu(rank, address, actor, self)
                facts = await gpu.ask("facts")
            except (ImportError, AttributeError, TimeoutError) as error:
                raise ClusterError(
                    f"gpu {rank} ({address}) cannot load asyncgpu_tutor: {error!r}. Install it there"
                ) from error
            for what, mine in versions().items():
                if facts[what] != mine:
                    raise ClusterError(
                        f"{gpu.name} has {what} {facts[what]}, and here it is {mine}: recipes travel as "
                        "code, so both have to be the same"
                    )
            gpu.name = f"gpu {rank} ({facts['device']} at {address})"
            self._gpus.append(gpu)

    async def _look(self) -> None:
        """Ask the scheduler again and again who is alive."""
        loop = asyncio.get_running_loop()
        heard = loop.time()
        while True:
            try:
                alive = set(await _answer(self.client.run_on_scheduler(_workers)))
            except (OSError, TimeoutError, RuntimeError) as error:
                if loop.time() - heard > SILENT_S or self.client.status != "running":
                    self._lose(set(), f"the scheduler at {self._address} is silent: {error}")
                    return
            else:
                heard = loop.time()
                self._lose(alive, "the scheduler has lost it")
            await asyncio.sleep(_LOOK_S)

    async def _look_at(self, gpu: DaskGpu) -> None:
        """Ask a worker's nanny again and again whether it is stopped; it itself may be busy for long."""
        while True:
            try:
                asked = self.client.run(_state, workers=[gpu.address], nanny=True)
                if "stopped" in (await _answer(asked)).values():
                    gpu.lose("its process is stopped")
            except TimeoutError:
                gpu.lose(f"nothing on its machine answers for {SILENT_S:.0f} s")
            except Exception:  # noqa: BLE001 - it has no nanny, or is gone, as the scheduler says
                pass
            await asyncio.sleep(_LOOK_S)

    def _lose(self, alive: set[str], why: str) -> None:
        for gpu in self._gpus:
            if gpu.address not in alive:
                gpu.lose(why)


async def _answer(call: Awaitable[T]) -> T:
    """What is answered; `TimeoutError` after `SILENT_S` without the time in which this loop stood still."""
    task = asyncio.ensure_future(call)
    try:
        for _ in range(round(SILENT_S / _LOOK_S)):
            await asyncio.wait({task}, timeout=_LOOK_S)
            if task.done():
                return task.result()
        raise TimeoutError(f"no answer in {SILENT_S:.0f} s")
    finally:
        task.cancel()


def _state(dask_worker: Any) -> str:
    """How the process of this nanny's worker is, in the words of psutil, which Dask brings."""
    psutil: Any = importlib.import_module("psutil")
    return psutil.Process(dask_worker.pid).status()


def _workers(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.workers)
