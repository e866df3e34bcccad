"""Operations between which the device chooses, in a CUDA graph: loops, branches and switches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.ops.array_operations import Take
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.run.context import ExecutionContext


def _decision(what: str, number: DeviceArray, bodies: Sequence[DeviceOp[Any]]) -> Take:
    """Read a number on the device, and go on with what that says; yields the number's array."""
    if isinstance(number, DeviceArray) and (number.dtype != np.int32 or number.size < 1):  # pyright: ignore[reportUnnecessaryIsInstance] - Take says what else it may be
        raise errors.ArrayDTypeError(
            f"{what} goes by the first element of an array of int32, and {number.name!r} has "
            f"{number.size} of {number.dtype}: make one with agt.zeros(1, np.int32)"
        )
    ops = tuple([as_op(body) for body in bodies])

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> DeviceArray:
        context.decide(what, arrays[0], [partial(evaluate, body, context) for body in ops])
        return arrays[0]

    return Take(what, (number,), act, bodies=ops)


def while_loop(go: DeviceArray, body: DeviceOp[Any]) -> DeviceOp[DeviceArray]:
    """Run `body` again and again on the device, while the first element of `go` is not 0; yields `go`.

    The host is not asked: it launches one CUDA graph, and a kernel of the body sets `go` to 0 when it is
    enough. Where `go` is 0 from the start the body does not run.

    Parameters
    ----------
    go : DeviceArray
        Of int32. The body needs it too, so pass ``go.borrow()`` to both.
    body : DeviceOp
        Kernels, memsets and copies within the device, one after the other; decisions, too.

    Raises
    ------
    ArrayDTypeError
        If `go` is no array of int32.
    CaptureError
        If it runs outside of a graph (see `DeviceOp.graph_on`), or the body has a copy to or from the host,
        an allocation, or an `overlap`.
    RunawayKernelError
        On the simulated device, if it has come round 10,000 times.

    Notes
    -----
    A conditional node of type ``while``: CUDA C++ Programming Guide, "Conditional Graph Nodes".
    """
    return _decision("while_loop", go, [body])


def cond(
    which: DeviceArray, then: DeviceOp[Any], otherwise: DeviceOp[Any] | None = None
) -> DeviceOp[DeviceArray]:
    """Run `then` if the first element of `which` is not 0 on the device, else `otherwise`; yields `which`.

    Parameters and errors are as for `while_loop`. With `otherwise` a GPU needs CUDA 12.8 or newer.
    """
    bodies = (then,) if otherwise is None else (then, otherwise)
    return _decision("cond", which, bodies)


def switch(number: DeviceArray, *cases: DeviceOp[Any]) -> DeviceOp[DeviceArray]:
    """Run the case that the first element of `number` counts to on the device, from 0; yields `number`.

    A number beyond the cases runs none. Parameters and errors are as for `while_loop`. A GPU needs CUDA 12.8
    or newer.
    """
    if not cases:
        raise errors.UsageError("switch chooses among cases, and got none: give it operations")
    return _decision("switch", number, cases)
