"""Clusters whose workers are devices of this process."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from asyncgpu_tutor.clusters.members import Cluster, Gpu, rank_numbers
from asyncgpu_tutor.clusters.recipes import host_arrays_of
from asyncgpu_tutor.clusters.remote import Worker
from asyncgpu_tutor.devices.opening import wire
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import Wiring
from asyncgpu_tutor.errors import ClusterError, DeviceUnavailableError
from asyncgpu_tutor.ops.collectives import Group, forget_group, group, name_group
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.current import resolve

# What Dask took (docs/cluster.md, 2026-11-23): a call of an actor, and 64 MB scattered in 0.15 s.
CALL_US = 1000.0
BYTES_PER_US = 64e6 / 0.15e6

# A result, when it was there, and the arrays that are kept there, or their numbers.
RunRecipe = Callable[[], Awaitable[tuple[Any, float, Collection[int]]]]


class Link:
    """Wire that the calls of workers that are apart go through: in each direction one after the other."""

    def __init__(self) -> None:
        self.free = {"sent": 0.0, "received": 0.0}  # when it is

    async def cross(self, device: Device, way: str, nbytes: int, since: float) -> None:
        """One way of a call, with so many bytes, from a time on. On a GPU the trip itself takes its time."""
        if device.simulated:
            there = self.free[way] = max(self.free[way], since) + nbytes / BYTES_PER_US
            await device.sleep(max(there - device.now() + CALL_US / 2, 0.0))

    async def carry(self, device: Device, rank: int, op: DeviceOp[Any], run: RunRecipe) -> Any:
        """A recipe's way to a worker in another process, its run there, and the way back."""
        begun, received, kept = device.now(), 0, ()
        sent = sum(array.nbytes for array in host_arrays_of(op))
        try:
            await self.cross(device, "sent", sent, begun)
            result, ended, kept = await run()
            received = sum(array.nbytes for array in host_arrays_of(result))
            await self.cross(device, "received", received, ended)
        finally:
            if (log := device.log) is not None:
                detail = {"gpu": rank, "sent": sent, "received": received, "kept": len(kept)}
                draft = log.draft("range", f"gpu {rank}: {op.label}", None, detail=detail)
                log.finish(draft, begun, device.now())
        return result


class LocalGpu(Gpu):
    """A worker in this process; with a `link`, it behaves as one that is not."""

    def __init__(self, rank: int, device: Device, cluster: str, link: Link | None = None) -> None:
        super().__init__(rank, f"gpu {rank} ({device.name})")
        self.device = device
        self._link = link
        self._worker = Worker(f"{cluster} {rank}", device)

    async def _run(self, op: DeviceOp[Any]) -> Any:
        self._check_alive()
        link = self._link
        return await self._result(self._far(op, link) if link else self._worker.run(op))

    async def _far(self, op: DeviceOp[Any], link: Link) -> Any:
        async def run_there() -> tuple[Any, float, Collection[int]]:
            try:
                result = await self._worker.run(op)
            except Exception as error:  # noqa: BLE001 - whatever it is, it travels back
                result = error
            return result, self.device.now(), self._worker.arrays

        result = await link.carry(self.device, self.rank, op, run_there)
        if isinstance(result, Exception):
            raise result
        return result

    def _drop(self, number: int) -> None:
        self._worker.drop([number])

    def lose(self, why: str) -> None:
        """As if its process had ended; see `Gpu.lose`."""
        super().lose(why)
        self._worker.close()

    def close(self) -> None:
        """Let go of its arrays."""
        self.closed = True
        self._worker.close()
        for task in list(self._going):
            task.cancel()


class LocalCluster(Cluster):
    """All devices are of this process."""

    def __init__(
        self, kind: str, gpus: int | None, machines: int, *, apart: bool, on: Sequence[Device] = ()
    ) -> None:
        super().__init__(f"cluster {next(rank_numbers)}")
        self._kind, self._count, self._machines = kind, gpus, machines
        self._apart, self._devices = apart, on
        self._wired: Wiring | None = None  # as simulated devices were before
        self._made: list[str] = []

    async def group(self) -> Group:
        """A new group; see `Cluster.group`."""
        self._made.append(f"{self.name} group {next(self._groups)}")
        return name_group(group(*(gpu.device for gpu in self._gpus)), self._made[-1])

    async def _opened(self) -> None:
        devices = self._devices or _open(self._kind, self._count)
        if self._kind == "sim":
            on_each = -(-len(devices) // self._machines) if self._machines > 1 else None
            self._wired = wire(Wiring(gpus_per_node=on_each))
        link = Link() if self._apart else None
        self._gpus = [
            LocalGpu(rank, device, self.name, link) for rank, device in enumerate(devices)
        ]

    async def _closed(self) -> None:
        for gpu in self._gpus:
            gpu.close()
        for name in self._made:
            forget_group(name)
        if self._wired is not None:
            wire(self._wired)


def _open(kind: str, number: int | None) -> list[Device]:
    if kind == "sim":
        return [resolve(f"sim:{ordinal}") for ordinal in range(number or 2)]
    devices: list[Device] = [resolve("cuda:0")]
    while len(devices) != number:
        try:
            devices.append(resolve(f"cuda:{len(devices)}"))
        except DeviceUnavailableError as error:
            if number is None:
                break
            raise ClusterError(
                f"cluster('cuda', gpus={number}): this machine has {len(devices)}, so ask for no more"
            ) from error
    return devices
