"""Clusters: GPUs of this and other machines, one worker each, to which recipes are sent.

An operation only describes work, so it can be described here and run elsewhere. `remote.py` is where it runs,
and has the handles to what stays there; `recipes.py` packs what travels. A program sees what is
in `members.py`; the workers are of this process (`in_process.py`), or of others (`over_dask.py`). The room is
not called as the function is, because importing it would hide that.
"""

from typing import Any

from asyncgpu_tutor.clusters.in_process import LocalCluster
from asyncgpu_tutor.clusters.members import Cluster, Gpu
from asyncgpu_tutor.clusters.remote import RemoteArray
from asyncgpu_tutor.errors import UsageError, demand, whole

__all__ = ["Cluster", "Gpu", "RemoteArray", "cluster"]


def cluster(
    where: str = "sim",
    gpus: int | None = None,
    *,
    machines: int = 1,
    apart: bool = False,
    device: str = "auto",
    security: Any = None,
) -> Cluster:
    """GPUs of this machine or of others, for recipes: ``async with agt.cluster(...) as gpus``.

    Parameters
    ----------
    where : str
        ``"sim"``: simulated GPUs in this process. ``"cuda"``: those of this machine, in this process. Or the
        address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``: a GPU for each of its workers.
    gpus : int, optional
        How many. Without it 2 that are simulated, or all that there are.
    machines : int
        Over how many machines simulated GPUs are spread: between those there is a network.
    apart : bool
        Simulated GPUs as if each were in a process of its own: a call takes a millisecond, and 2.3 ms for a
        megabyte that goes along. A recording has a range for each call, which says how many bytes were
        ``sent`` and ``received``, and how many arrays were then ``kept`` there.
    device : {"auto", "sim", "cuda"}
        What a worker of Dask runs recipes on.
    security : distributed.Security, optional
        The certificates for a scheduler at ``"tls://..."``: those of a `LocalCluster` of Dask's are its
        ``security``. Without them, those that Dask's configuration names.

    Raises
    ------
    ClusterError
        On entering the block, if nobody answers at that address, there are fewer workers, or they have other
        versions of Python or of this package.

    Examples
    --------
    >>> import asyncio
    >>> import asyncgpu_tutor as agt
    >>> async def main():
    ...     async with agt.cluster("sim", gpus=2) as gpus:
    ...         x = await gpus[1].put([1.0, 2.0])
    ...         return await gpus[1](x.op().to_host())
    >>> asyncio.run(main()).tolist()
    [1.0, 2.0]
    """
    gpus = None if gpus is None else whole("the number of GPUs", gpus, 1)
    machines = whole("the number of machines", machines, 1)
    if not isinstance(device, str) or device not in ("auto", "sim", "cuda"):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise UsageError(f"the device is 'auto', 'sim' or 'cuda', and got {device!r:.99}")
    demand(where, str, "a cluster is 'sim', 'cuda', or the address of a Dask scheduler")
    if apart and where != "sim":
        raise UsageError(f"apart=True is for a simulated cluster, and not for {where!r}")
    if where in ("sim", "cuda"):
        return LocalCluster(where, gpus, machines, apart=apart)
    if "://" in where:
        from asyncgpu_tutor.clusters.over_dask import DaskCluster

        return DaskCluster(where, gpus, device, security)
    raise UsageError(
        f"{where!r} is not a cluster: say 'sim', 'cuda', or the address of a Dask scheduler, as in "
        "'tcp://10.0.0.1:8786'"
    )
