"""One lane of a server: a stream, inputs in pinned memory, and the pipelines that read them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.array import DeviceArray, Partition
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.future import FutureState
from asyncgpu_tutor.host import in_containers
from asyncgpu_tutor.memory import pinned
from asyncgpu_tutor.ops import DeviceOp, Standing, overlap
from asyncgpu_tutor.ops.operation import as_op
from asyncgpu_tutor.runtime import create_stream
from asyncgpu_tutor.serving.pace import Pace

__all__ = ["Host", "Lane", "Request", "check_fits"]

T = TypeVar("T")
Host = npt.NDArray[Any]

# A request: an array, or a function that writes one to the array that it is given.
Request = Host | Callable[[Host], object]


class Lane(Generic[T]):
    """A stream, inputs, and for each input the pipeline that reads it.

    Parameters
    ----------
    pipeline : callable
        See `Server`.
    shape, dtype : tuple of int, dtype
        Of an input.
    together : int
        How many inputs.
    graphs : bool
        See `Server`.
    """

    def __init__(
        self,
        pipeline: Callable[[Host], DeviceOp[T]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        together: int,
        graphs: bool,
    ) -> None:
        self._shape, self._dtype = shape, dtype
        self._slots = [pinned(shape, dtype) for _ in range(together)]
        for slot in self._slots:
            slot[...] = np.zeros((), dtype)
        self._graphs = graphs
        self._stream = create_stream()
        self._prepared = [as_op(pipeline(slot), pipeline).prepare() for slot in self._slots]
        for one in self._prepared:
            in_containers(_no_array, one.delivered)
        self._runs: dict[int, Standing[Any]] = {}  # by the number of requests in them
        for count in Pace.sizes(together):
            self._run_of(count)
        self._count = 1  # of the requests in the latest run
        self.run = self._runs[1]  # the latest; it may be one that was cancelled

    def _run_of(self, count: int) -> Standing[Any]:
        """What reads so many inputs, the first ones; where there are several, each has a branch."""
        run = self._runs.get(count)
        if run is None:
            first, *more = (one.launch() for one in self._prepared[:count])
            op: DeviceOp[Any] = overlap(first, *more) if more else first
            whole = op.graph_on(self._stream) if self._graphs else op.prepare()
            run = self._runs[count] = Standing(whole, self._stream)
        return run

    async def quiet(self) -> None:
        """Wait until the device neither reads nor writes its memory."""
        if self.run.state is FutureState.EXECUTING:
            with suppress(Exception):  # it is for who asks for the result
                await self.run

    def write(self, number: int, request: Request) -> None:
        """Write a request to an input.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            See `check_fits`.
        UsageError
            If it is a function that does not write.
        """
        slot = self._slots[number]
        if not callable(request):
            # Nearly always it is just that; the rest takes its time.
            if (
                type(request) is not np.ndarray
                or request.shape != self._shape
                or request.dtype is not self._dtype
            ):
                check_fits(request, self._shape, self._dtype)
            slot[...] = request
            return
        written: Any = request(slot)
        if written is None:
            return
        if inspect.isawaitable(written):
            if inspect.iscoroutine(written):
                written.close()
            raise UsageError(
                "the function of a request is asynchronous, and has to write the input at once: await the "
                "data first, and make the request of what has come"
            )
        if type(written) is np.ndarray and not np.may_share_memory(written, slot):
            raise UsageError(
                "the function of a request has returned an array, and has to write to the one that it is "
                "given: slot[...] = data"
            )

    def launch(self, count: int) -> None:
        """Launch what reads the first inputs."""
        self._count = count
        self.run = self._run_of(count)
        self.run.start()

    def taken(self) -> list[T]:
        """The results, as the caller's own: the next run writes to the lane's arrays again."""
        result: Any = self.run.result()
        results: Any = result if self._count > 1 else (result,)
        own: list[Any] = [
            one.copy() if type(one) is np.ndarray else in_containers(_copied, one)
            for one in results
        ]
        return own


def check_fits(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Whether it is a request of this shape and dtype; a function will write one.

    Raises
    ------
    ArrayShapeError, ArrayDTypeError
        If not.
    """
    if callable(request):
        return
    if not hasattr(request, "dtype"):
        raise ArrayDTypeError(
            f"a request to this server is a NumPy array, or a function that writes one, and got "
            f"{type(request).__name__}: use np.asarray(request, {str(dtype)!r})"
        )
    if getattr(request, "shape", None) != shape:
        raise ArrayShapeError(
            f"a request to this server has shape {shape}, and this one has {np.shape(request)}"
        )
    if request.dtype != dtype:
        raise ArrayDTypeError(
            f"a request to this server has dtype {dtype}, and this one has {request.dtype}: convert it with "
            f"astype({str(dtype)!r})"
        )


def _no_array(handle: Any) -> None:
    if isinstance(handle, DeviceArray | Partition):
        raise UsageError(
            f"the pipeline of a server yields {handle!r}, which the next request overwrites: end it in a "
            "copy to the host, .to_host() or agt.d2h(...)"
        )


def _copied(handle: Any) -> Any:
    """What a caller may keep."""
    return handle.copy() if isinstance(handle, np.ndarray) else handle  # pyright: ignore[reportUnknownVariableType] - whatever is in it
