"""The server around the application: where it listens, and how it ends."""

import asyncio
import socket
from types import FrameType

import uvicorn

from asyncgpu_tutor.commands.serve.application import application
from asyncgpu_tutor.commands.serve.deadlines import PunctualProtocol
from asyncgpu_tutor.language import Conversations

_LOCAL = "127.0.0.1", "localhost"
# When it's stopped: how long answers may still take, and when those that don't end are cut off.
_FINISH_S, _CUT_S = 1.0, 2


class ModelServer(uvicorn.Server):
    """A server that ends within seconds, also where answers are under way.

    When it's stopped, they may still finish for a while. Then the engine ends them, and each client is told.
    An answer may take `most_s` seconds. A `host` that is this machine alone is called by its own names only.
    """

    lets_kernels_finish = True  # at Ctrl+C; a simulated GPU asks for it

    def __init__(self, engine: Conversations, *, most_s: float, host: str = _LOCAL[0]) -> None:
        self._engine = engine
        hosts = _LOCAL if host in _LOCAL else ("*",)
        app = application(engine, most_s=most_s, hosts=hosts)
        config = uvicorn.Config(app, http=PunctualProtocol, ws="none", log_level="warning")
        config.timeout_graceful_shutdown = _CUT_S
        super().__init__(config)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, at any signal; another one makes no difference, and none is raised again afterwards."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: no more questions, and an end for those that are being answered."""
        end = asyncio.get_running_loop().call_later(_FINISH_S, self._engine.hang_up)
        await super().shutdown(sockets)
        end.cancel()
