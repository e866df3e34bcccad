"""Clusters: GPUs of this and other machines, one worker each, to which recipes are sent.

An operation only describes work, so it can be described here and run elsewhere. `worker.py` is where it runs,
`remote.py` has the handles to what stays there, and `recipes.py` packs what travels. A program sees what is
in `members.py`; the workers are of this process (`in_process.py`), or of others (`over_dask.py`). The room is
not called as the function is, because importing it would hide that.
"""

from asyncgpu_tutor.clusters.members import Cluster, Gpu
from asyncgpu_tutor.clusters.opening import cluster
from asyncgpu_tutor.clusters.remote import RemoteArray

__all__ = ["Cluster", "Gpu", "RemoteArray", "cluster"]
