"""One lane of a server: a stream, inputs in pinned memory, and the pipelines that read them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.future import FutureState
from asyncgpu_tutor.host import in_containers
from asyncgpu_tutor.memory import pinned
from asyncgpu_tutor.ops import DeviceOp, Standing, overlap
from asyncgpu_tutor.ops.operation import as_op
from asyncgpu_tutor.runtime import create_stream

__all__ = ["Host", "Lane", "Request"]

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
        self._slots = [pinned(shape, dtype) for _ in range(together)]
        for slot in self._slots:
            slot[...] = np.zeros((), dtype)
        stream = create_stream()
        prepared = [as_op(pipeline(slot), pipeline).prepare() for slot in self._slots]
        launches = [one.launch() for one in prepared]
        # The first inputs, as many as there are requests; of several each has a branch.
        wholes: list[DeviceOp[Any]] = [overlap(*launches[:n]) for n in range(2, together + 1)]
        self._runs: list[Standing[Any]] = [
            Standing(launches[0].graph_on(stream) if graphs else prepared[0], stream),
            *(
                Standing(one.graph_on(stream) if graphs else one.prepare(), stream)
                for one in wholes
            ),
        ]
        self._count = 1  # of the requests in the latest run
        self.run = self._runs[0]  # the latest; it may be one that was cancelled

    async def quiet(self) -> None:
        """Wait until the device neither reads nor writes its memory."""
        if self.run.state is FutureState.EXECUTING:
            with suppress(Exception):  # it is for who asks for the result
                await self.run

    def start(self, requests: Sequence[Request]) -> None:
        """Write requests to the inputs and launch."""
        for number, request in enumerate(requests):
            slot = self._slots[number]
            if callable(request):
                written = request(slot)
                if written is not None and inspect.iscoroutine(written):
                    written.close()
                    raise UsageError(
                        "the function of a request is asynchronous, and has to write the input at once: "
                        "await the data first, and make the request of what has come"
                    )
            else:
                slot[...] = request
        self._count = len(requests)
        self.run = self._runs[self._count - 1]
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


def _copied(handle: Any) -> Any:
    """What a caller may keep."""
    return handle.copy() if isinstance(handle, np.ndarray) else handle  # pyright: ignore[reportUnknownVariableType] - whatever is in it
