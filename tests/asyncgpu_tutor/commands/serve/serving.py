"""A server with a small model, and clients that do as they like, since no library for clients would."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any, NamedTuple

from asyncgpu_tutor.commands.serve.model_server import ModelServer
from asyncgpu_tutor.data import LanguageModel, reference_say
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.language import Conversations, chances

MODEL = untrained_model(32, heads=1, layers=1, context=10, vocabulary=27)
HEAT = 0.9


class Served(NamedTuple):
    """A server that runs."""

    engine: Conversations
    server: ModelServer
    running: "asyncio.Task[None]"
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def served(
    slots: int = 2, waiting: int = 8, most_s: float = 60.0
) -> AsyncGenerator[Served, None]:
    """A server on a port of this machine, which is stopped in the end."""
    engine = Conversations(MODEL, slots=slots, waiting=waiting)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        server = ModelServer(engine, most_s=most_s)
        running = asyncio.create_task(server.serve([listening]))
        try:
            yield Served(engine, server, running, listening.getsockname()[1])
        finally:
            server.should_exit = True
            await running


class Client:
    """A connection on which a request was sent; HTTP 1.0, so its end is the end of the response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def sends(
        cls,
        port: int,
        path: str,
        body: object = None,
        *,
        method: str = "",
        kind: str = "application/json",
        host: str = "127.0.0.1",
        size: int | None = None,
    ) -> "Client":
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = b"" if body is None else data
        head = (
            f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.0\r\nHost: {host}\r\n"
        )
        head += (
            f"Content-Type: {kind}\r\nContent-Length: {len(data) if size is None else size}\r\n\r\n"
        )
        writer.write(head.encode() + data)
        return cls(reader, writer)

    async def response(self) -> tuple[int, bytes]:
        """All of the response: its status, and its body."""
        head, _, body = (await self.reader.read()).partition(b"\r\n\r\n")
        await self.gone()
        return int(head.split()[1]), body

    async def json(self) -> tuple[int, Any]:
        status, body = await self.response()
        return status, json.loads(body)

    async def events(self) -> list[Any]:
        """The data of all events of a stream that are left."""
        rest = await self.reader.read()
        await self.gone()
        return data_of(rest)

    async def event(self) -> Any:
        """The next one."""
        while not (line := await self.reader.readline()).startswith(b"data: "):
            assert line, "the stream is over"
        return json.loads(line[6:])

    async def gone(self) -> None:
        """Cut the connection."""
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


async def ask(port: int, path: str, body: object = None, **options: Any) -> tuple[int, Any]:
    return await (await Client.sends(port, path, body, **options)).json()


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until it holds."""
    while not condition():  # noqa: ASYNC110 - nobody would set an event
        await asyncio.sleep(0)


def data_of(stream: bytes) -> list[Any]:
    lines = [line[6:] for line in stream.splitlines() if line.startswith(b"data: ")]
    return [line if line == b"[DONE]" else json.loads(line) for line in lines]


def question(seed: int, most: int = 9, **more: object) -> dict[str, Any]:
    return {"prompt": [1], "seed": seed, "max_tokens": most, "temperature": HEAT, **more}


def reference(
    seed: int, most: int = 9, prompt: tuple[int, ...] = (1,), model: LanguageModel = MODEL
) -> tuple[str, str]:
    """The text of the answer to a question, and why it ends."""
    last = len(prompt) - 1 + most
    said = reference_say(model, prompt, last, HEAT, chances(model, seed))[0][len(prompt) :]
    text = model.decode(said)
    return text.rstrip("\n"), "stop" if said[-1] == 0 else "length"
