"""The constants that the simulated device's times are made of, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["H200", "SPECS", "DeviceSpec"]

GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability"
DATASHEET = "NVIDIA H200 datasheet"
GRAPH = (
    "measured: H200, driver 580.159, CuPy 14.2.0, 2026-11-21, median time a node of a CUDA graph of "
    "twenty equal ones"
)
MEASURED_NEW = "measured: H200, driver 580.159, CuPy 14.2.0, Python 3.12, 2026-11-21, medians"
MEASURED = "measured: H200, driver 580.159, CuPy 14.2.0, Python 3.12, 2026-11-20, medians"


@dataclass(frozen=True)
class DeviceSpec:
    """A GPU and the host in front of it, as far as the model of time knows them.

    Attributes
    ----------
    name : str
        For people.
    memory_bytes : int
        Device memory.
    sms : int
        Streaming multiprocessors.
    clock_mhz : float
        Clock of the SMs.
    threads_per_sm, blocks_per_sm, shared_bytes_per_sm : int
        What one SM can hold at once; together they limit occupancy.
    issue_per_clock : float
        Warp instructions that one SM issues in a clock.
    sectors_per_clock : float
        32-byte sectors of global memory that the load-store units of one SM pass in a clock.
    dram_gb_s : float
        Bandwidth of device memory, in 1e9 bytes a second.
    launch_us : float
        Shortest time that a kernel takes on the device.
    step_clocks : float
        Clocks from one instruction of a warp to the next that needs its result.
    first_load_clocks, load_clocks : float
        Clocks until a warp's first load from global memory arrives; and what each further round of loads
        adds, which a compiler's unrolling and the caches hide in part.
    h2d_gb_s, d2h_gb_s, h2d_us, d2h_us : float
        Copies over the bus: bandwidth in 1e9 bytes a second, and the fixed time of one copy.
    fill_us : float
        The fixed time of a memset, and of a copy within the device.
    pageable_gb_s : float
        Rate at which the host stages pageable memory.
    call_launch_us, call_copy_us, call_memset_us, call_malloc_us, call_event_us, call_query_us : float
        What the host pays for a call from Python.
    sync_us : float
        From the end of the work to the return of a blocking wait.
    wake_us : float
        From the end of the work to the resumption of an awaiting task.
    sources : tuple of (str, str)
        For each constant, where it is from.
    """

    name: str
    memory_bytes: int
    sms: int
    clock_mhz: float
    threads_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    issue_per_clock: float
    sectors_per_clock: float
    dram_gb_s: float
    launch_us: float
    step_clocks: float
    first_load_clocks: float
    load_clocks: float
    h2d_gb_s: float
    d2h_gb_s: float
    h2d_us: float
    d2h_us: float
    fill_us: float
    pageable_gb_s: float
    call_launch_us: float
    call_copy_us: float
    call_memset_us: float
    call_malloc_us: float
    call_event_us: float
    call_query_us: float
    sync_us: float
    wake_us: float
    sources: tuple[tuple[str, str], ...]


H200 = DeviceSpec(
    name="H200",
    memory_bytes=141 * 10**9,
    sms=132,
    clock_mhz=1980.0,
    threads_per_sm=2048,
    blocks_per_sm=32,
    shared_bytes_per_sm=228 * 1024,
    issue_per_clock=4.0,
    sectors_per_clock=1.0,
    dram_gb_s=4800.0,
    launch_us=0.64,
    step_clocks=4.0,
    first_load_clocks=500.0,
    load_clocks=60.0,
    h2d_gb_s=55.0,
    d2h_gb_s=55.0,
    h2d_us=2.5,
    d2h_us=1.7,
    fill_us=1.0,
    pageable_gb_s=20.0,
    call_launch_us=5.9,
    call_copy_us=5.0,
    call_memset_us=3.0,
    call_malloc_us=2.2,
    call_event_us=1.0,
    call_query_us=0.5,
    sync_us=4.6,
    wake_us=27.0,
    sources=(
        ("memory_bytes", DATASHEET),
        ("sms", "reported by the device (cudaDeviceProp.multiProcessorCount)"),
        ("clock_mhz", "read under load with nvidia-smi"),
        ("threads_per_sm", GUIDE),
        ("blocks_per_sm", GUIDE),
        ("shared_bytes_per_sm", GUIDE),
        ("issue_per_clock", "four warp schedulers an SM: NVIDIA H100 Tensor Core GPU Architecture"),
        ("dram_gb_s", DATASHEET),
        ("sectors_per_clock", f"{GRAPH}: matvec_naive at DIM 256, sgemm_naive at DIM 512 and 1024"),
        ("launch_us", f"{GRAPH}: an empty kernel"),
        ("step_clocks", "rough: dependent float32 arithmetic, 4 clocks since Volta"),
        ("first_load_clocks", f"rough; {GRAPH}: relu takes 0.3 us more than an empty kernel"),
        ("load_clocks", f"rough; {GRAPH}: sgemm_naive and matvec_naive at DIM 16 to 256"),
        ("h2d_gb_s", f"{MEASURED}: 256 MiB, pinned"),
        ("d2h_gb_s", f"{MEASURED}: 256 MiB, pinned"),
        ("h2d_us", f"{GRAPH}: 4 to 256 KiB"),
        ("d2h_us", f"{GRAPH}: 4 to 256 KiB"),
        ("fill_us", f"{GRAPH}: 16 to 256 KiB"),
        ("pageable_gb_s", f"{MEASURED_NEW}: pageable copies of 256 KiB to 4 MiB"),
        ("call_launch_us", f"{MEASURED}: CuPy RawKernel call, stream current"),
        ("call_copy_us", "rough: of the order of a launch"),
        ("call_memset_us", "rough: of the order of a launch"),
        ("call_malloc_us", f"{MEASURED}: default pool, allocation and release"),
        ("call_event_us", "rough: a driver call without work, through CuPy"),
        ("call_query_us", "rough: a driver call without work, through CuPy"),
        ("sync_us", f"{MEASURED}: a 10 us kernel and stream.synchronize take 14.6 us"),
        ("wake_us", f"{MEASURED}: a 10 us kernel awaited through a waiting thread takes 37 us"),
    ),
)

SPECS: dict[str, DeviceSpec] = {"h200": H200}
