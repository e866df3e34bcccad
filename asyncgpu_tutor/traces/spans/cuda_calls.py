"""The host's calls into CUDA, by the names that CUPTI and the files of profilers have for them."""

from collections.abc import Mapping

WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cuStreamSynchronize",
         "cuEventSynchronize", "cuCtxSynchronize")  # fmt: skip

# These ask whether something is done, and return at once, although CUPTI lists them with the waits.
QUERIES = ("cudaEventQuery", "cudaStreamQuery", "cuEventQuery", "cuStreamQuery")

# How the names of calls begin that enqueue work.
ENQUEUE = ("cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch", "cuLaunch", "cuMemcpy", "cuMemset",
            "cuGraphLaunch")  # fmt: skip

# How the names begin of those that always have work; a copy or a fill of 0 bytes has none.
LAUNCHING_CALLS = ("cudaLaunchKernel", "cudaLaunchCooperative", "cuLaunchKernel", "cuLaunchCooperative",
            "cudaGraphLaunch", "cuGraphLaunch")  # fmt: skip

_OTHERS: Mapping[str, str] = {
    "cudaMallocHost": "malloc host", "cudaHostAlloc": "malloc host", "cuMemAllocHost": "malloc host",
    "cuMemHostAlloc": "malloc host", "cudaFreeHost": "free host", "cuMemFreeHost": "free host",
    "cudaMalloc": "malloc", "cuMemAlloc": "malloc", "cudaFree": "free", "cuMemFree": "free",
    "cuModuleLoad": "load module", "cuLibraryLoad": "load module", "cudaLibraryLoad": "load module",
}  # fmt: skip

# How the names begin of all calls that a trace tells of. The rest, such as the one that asks for the current
# device, is left out unless it enqueued something.
TOLD = (*ENQUEUE, *WAITS, *_OTHERS)


def other_call(name: str) -> str:
    """Say in two words what a call does that neither enqueues nor waits; empty if not worth telling."""
    return next((words for begin, words in _OTHERS.items() if name.startswith(begin)), "")


def wait_name(name: str) -> str:
    """Name the thing that one of `WAITS` waits for."""
    what = "stream" if "Stream" in name else "event" if "Event" in name else "device"
    return f"synchronize {what}"
