"""Lanes of a server, and what fits into one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import in_containers
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.ops import DeviceOp, Standing, overlap, pinned
from asyncgpu_tutor.ops import zip as in_order
from asyncgpu_tutor.ops.operation import as_op
from asyncgpu_tutor.run import create_stream
from asyncgpu_tutor.run.future import FutureState

__all__ = ["Host", "Lane", "Request", "check_fits"]

T = TypeVar("T")
Host = npt.NDArray[Any]

# A request: an array, or a function that writes one to the array that it is given.
Request = Host | Callable[[Host], object]


class Lane(Generic[T]):
    """A stream, inputs in pinned memory, and for each input the pipeline that reads it.

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

    Attributes
    ----------
    run : Standing
        The latest run; it may be one that was cancelled.
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
        stream = create_stream()
        prepared = [as_op(pipeline(slot), pipeline).prepare() for slot in self._slots]
        for one in prepared:
            in_containers(_no_array, one.delivered)
        launches = [one.launch() for one in prepared]
        self._runs: list[Standing[Any]] = []  # the first reads the first input, the next two, ...
        for count in range(1, together + 1):
            some: DeviceOp[Any] = launches[0]
            if count > 1:  # branches of a graph, or one after the other on this stream
                some = (overlap if graphs else in_order)(*launches[:count])
            whole = some.graph_on(stream) if graphs else some.prepare()
            self._runs.append(Standing(whole, stream))
        self._count = 1  # of the requests in the latest run
        self.run = self._runs[0]

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
            check_fits(request, self._shape, self._dtype)
            slot[...] = request
            return
        written: Any = request(slot)
        if written is None or isinstance(written, int):  # how much was read, as of a socket
            return
        if inspect.isawaitable(written):
            if inspect.iscoroutine(written):
                written.close()
            raise UsageError(
                "the function of a request is asynchronous, and has to write the input at once: await the "
                "data first, and make the request of what has come"
            )
        if type(written) is not np.ndarray or not np.may_share_memory(written, slot):
            raise UsageError(
                f"the function of a request has returned {type(written).__name__}, and has to write to the "
                "array that it is given: slot[...] = data"
            )

    def launch(self, count: int) -> None:
        """Launch what reads the first inputs."""
        self._count = count
        self.run = self._runs[count - 1]
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
    """Refuse what is no request of this shape and dtype; a function will write one.

    Raises
    ------
    ArrayShapeError, ArrayDTypeError
        If it is none.
    """
    if callable(request) or (
        type(request) is np.ndarray  # nearly always; all the rest takes its time
        and request.shape == shape
        and request.dtype is dtype
    ):
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
