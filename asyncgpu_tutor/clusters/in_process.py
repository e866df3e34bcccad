"""Clusters whose workers are devices of this process."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from asyncgpu_tutor.clusters.members import Cluster, Gpu, numbers
from asyncgpu_tutor.clusters.worker import Worker
from asyncgpu_tutor.devices.opening import open_group, wire
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import ClusterError, DeviceUnavailableError
from asyncgpu_tutor.ops.collectives import Group, forget_group, name_group
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.current import resolve


class LocalGpu(Gpu):
    """A worker in this process."""

    def __init__(self, rank: int, device: Device, cluster: str) -> None:
        super().__init__(rank, f"gpu {rank} ({device.name})")
        self.device = device
        self._worker = Worker(f"{cluster} {rank}", device)

    async def _run(self, op: DeviceOp[Any]) -> Any:
        return await self._worker.run(op)

    def _drop(self, number: int) -> None:
        self._worker.store.drop([number])

    def close(self) -> None:
        """Let go of its arrays."""
        self.closed = True
        self._worker.store.close()


class LocalCluster(Cluster):
    """All devices are of this process."""

    def __init__(self, kind: str, gpus: int | None, machines: int) -> None:
        super().__init__(f"cluster {next(numbers)}")
        self._kind, self._count, self._machines = kind, gpus, machines
        self._rewire: Any = None
        self._made: list[str] = []

    async def group(self) -> Group:
        """A new group; see `Cluster.group`."""
        devices = [gpu.device for gpu in self._gpus]
        made = Group(len(devices), dict(enumerate(devices)), open_group(devices))
        self._made.append(f"{self.name} group {next(self._groups)}")
        return name_group(made, self._made[-1])

    async def __aenter__(self) -> Self:
        devices = _open(self._kind, self._count)
        if self._kind == "sim":
            self._rewire = wire(-(-len(devices) // self._machines) if self._machines > 1 else None)
        self._gpus = [LocalGpu(rank, device, self.name) for rank, device in enumerate(devices)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, at)
        for name in self._made:
            forget_group(name)
        if self._rewire is not None:
            self._rewire()


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
