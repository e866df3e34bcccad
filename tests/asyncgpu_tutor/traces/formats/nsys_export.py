"""Exports of Nsight Systems, made up table by table, as its documentation describes them."""

import sqlite3
from pathlib import Path
from typing import Any

from asyncgpu_tutor import Trace

Row = dict[str, Any]
KERNEL, COPY, FILL = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
RUNTIME, SYNC, EVENT = (
    f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")
)
THREAD = 281484522947129
OUR_DOMAIN = 1


def place(stream: int, correlation: int) -> Row:
    """The columns that say where work ran, and which call asked for it."""
    return {"deviceId": 0, "contextId": 1, "streamId": stream, "correlationId": correlation}


class Export:
    """Tables as lists of rows; those without rows are not made, as in a real export."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {}
        self._texts: dict[str, int] = {}

    def add(self, table: str, **row: Any) -> Row:
        self.tables.setdefault(table, []).append(row)
        return row

    def text(self, words: str) -> int:
        if words not in self._texts:
            self._texts[words] = len(self._texts) + 1
            self.add("StringIds", id=self._texts[words], value=words)
        return self._texts[words]

    def call(self, name: str, start: int, end: int, correlation: int, thread: int = THREAD) -> None:
        self.add(RUNTIME, start=start, end=end, eventClass=0, globalTid=thread,
                 correlationId=correlation, nameId=self.text(name), returnValue=0)  # fmt: skip

    def kernel(
        self, name: str, start: int, end: int, stream: int, correlation: int, node: int | None = None
    ) -> None:  # fmt: skip
        grid = dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1)
        self.add(KERNEL, start=start, end=end, shortName=self.text(name), graphNodeId=node,
                 **place(stream, correlation), **grid)  # fmt: skip

    def launch(
        self, name: str, call: int, start: int, end: int, number: int, stream: int = 13
    ) -> None:
        """A kernel, and the call that asked for it."""
        self.call("cudaLaunchKernel_v7000", call, call + 100, number)
        self.kernel(name, start, end, stream, number)

    def copy(
        self, kind: int, start: int, end: int, stream: int, correlation: int, host: int = 1
    ) -> None:
        ends = {"srcKind": host, "dstKind": 2} if kind == 1 else {"srcKind": 2, "dstKind": host}
        self.add(COPY, start=start, end=end, bytes=1024, copyKind=kind, **ends,
                 **place(stream, correlation))  # fmt: skip

    def range(self, name: str, start: int, end: int | None, nested: bool = True) -> None:
        self.add("NVTX_EVENTS", start=start, end=end, eventType=59 if nested else 60, text=None,
                 textId=self.text(name), globalTid=THREAD, domainId=OUR_DOMAIN)  # fmt: skip

    def domain(self, name: str = "asyncgpu_tutor") -> None:
        self.add("NVTX_EVENTS", start=0, end=None, eventType=75, text=name, textId=None,
                 globalTid=THREAD, domainId=OUR_DOMAIN)  # fmt: skip

    def write(self, path: Path) -> Path:
        connection = sqlite3.connect(path)
        for table, rows in self.tables.items():
            names = list(dict.fromkeys(key for row in rows for key in row))
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            marks = ", ".join("?" * len(names))
            # Last things first: the order of a table means nothing.
            values = [[row.get(name) for name in names] for row in reversed(rows)]
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        connection.commit()
        connection.close()
        return path


def small() -> Export:
    """Two operations on streams 13 and 14; the second waits for an event of the first."""
    export = Export()
    export.domain()
    export.range("record", 900, 20_000, nested=False)
    export.range("one", 1_000, 4_000)
    export.call("cudaMemcpyAsync_v3020", 1_100, 1_500, 10)
    export.copy(1, 1_700, 2_700, 13, 10)
    export.call("cuLaunchKernel", 2_000, 2_300, 11)
    export.kernel("relu", 2_800, 5_000, 13, 11)
    export.call("cudaEventRecord_v3020", 2_400, 2_500, 12)
    export.add(EVENT, eventId=1, eventSyncId=1, **place(13, 12))
    export.range("two", 4_100, 8_000)
    export.call("cudaStreamWaitEvent_v3020", 4_200, 4_300, 13)
    export.add(SYNC, start=4_200, end=4_300, syncType=2, eventId=1, eventSyncId=1, **place(14, 13))
    export.call("cuLaunchKernel", 4_500, 4_700, 14)
    export.kernel("matvec", 5_100, 9_000, 14, 14)
    export.call("cudaStreamSynchronize_v3020", 8_100, 9_200, 15)
    export.add(SYNC, start=8_100, end=9_200, syncType=3, eventId=0, eventSyncId=0, **place(14, 15))
    export.call("cudaGetDevice", 9_300, 9_310, 16)
    export.add(
        "TARGET_INFO_GPU", name="NVIDIA H200", smCount=132, maxWarpsPerSm=64, threadsPerWarp=32
    )
    export.add("TARGET_INFO_GPU", name="NVIDIA H200", smCount=9)
    export.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2025.3.2.0")
    return export


def read(export: Export, folder: Path, **options: object) -> Trace:
    """The trace of an export."""
    path = folder / "export.sqlite"
    path.unlink(missing_ok=True)
    return Trace.from_nsys(export.write(path), **options)
