"""What `import asyncgpu_tutor as agt` offers. A name that comes or goes is a decision: make it here too."""

from __future__ import annotations

import inspect

import asyncgpu_tutor as agt

PUBLIC = [
    "Analysis",
    "AsyncGpuError",
    "Comparison",
    "CudaGraph",
    "Device",
    "DeviceArray",
    "DeviceError",
    "DeviceFuture",
    "DeviceOp",
    "Event",
    "ExecutionContext",
    "Finding",
    "FutureState",
    "GraphScope",
    "HostArray",
    "Kernel",
    "KernelCompileError",
    "KernelFault",
    "KernelSource",
    "PageableCopyWarning",
    "Partition",
    "Prepared",
    "SchedulingPolicy",
    "Server",
    "SharedOp",
    "SingleStream",
    "Span",
    "Stream",
    "StreamPoolRoundRobin",
    "Trace",
    "UsageError",
    "analyse",
    "arange",
    "asarray",
    "compare",
    "create_stream",
    "current_device",
    "current_policy",
    "d2h",
    "data",
    "diagnose",
    "dup",
    "errors",
    "full",
    "h2d",
    "in_flight",
    "inspect",
    "known_devices",
    "matvec_naive",
    "memcpy",
    "microscope",
    "ones",
    "overlap",
    "pin",
    "pinned",
    "policy_for",
    "randn",
    "ranges",
    "record",
    "relu",
    "resolve",
    "sgemm_naive",
    "sleep",
    "spawn",
    "synchronize",
    "use",
    "using",
    "value",
    "with_context",
    "work",
    "zeros",
    "zip",
]


def test_the_public_names_are_these() -> None:
    assert sorted(agt.__all__) == sorted(PUBLIC)


def test_each_public_name_is_there_and_what_is_not_named_is_not_public() -> None:
    visible = {
        name
        for name, value in vars(agt).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert visible <= set(PUBLIC)
    assert [name for name in PUBLIC if not hasattr(agt, name)] == []


def test_each_public_class_and_function_is_documented() -> None:
    undocumented = [
        name
        for name in PUBLIC
        if (inspect.isclass(value := getattr(agt, name)) or inspect.isroutine(value))
        and not inspect.getdoc(value)
    ]

    assert undocumented == []
