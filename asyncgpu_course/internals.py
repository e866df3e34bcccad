"""The parts below `agt` that the exercises need; they import them only from here.

Otherwise checks are written as a learner writes a program, with `agt`. A warning that comes up in a check
names the learner's line, and so does an array that was never freed: code of the course is skipped for both.
"""

from pathlib import Path

from asyncgpu_tutor.arrays.host import in_containers
from asyncgpu_tutor.clusters.in_process import LocalCluster
from asyncgpu_tutor.devices.cuda_source import read_signature
from asyncgpu_tutor.devices.protocol import Dim3
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine, find_spec
from asyncgpu_tutor.devices.simulated.report import Watched, memory_of
from asyncgpu_tutor.devices.simulated.sim_device import pass_over
from asyncgpu_tutor.kernels.files import include_headers
from asyncgpu_tutor.ops.array_operations import Make
from asyncgpu_tutor.ops.leaves import Download
from asyncgpu_tutor.run.context import skip_frames_of
from asyncgpu_tutor.traces.live import show
from asyncgpu_tutor.traces.pictures import Timeline
from asyncgpu_tutor.traces.pictures import compare_timelines as compare
from asyncgpu_tutor.traces.spans.lanes import lane_of
from asyncgpu_tutor.traces.spans.relations import happens_before, overlap_between
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.spans.whole_file import replace_text

__all__ = [
    "Dim3", "Download", "LocalCluster", "Make", "SimDevice", "SimMachine", "Timeline", "Watched", "compare",
    "count", "find_spec", "happens_before", "in_containers", "include_headers", "lane_of",
    "memory_of", "overlap_between", "read_signature", "replace_text", "show",
]  # fmt: skip

for skip in (pass_over, skip_frames_of):
    skip(Path(__file__).resolve().parent)
