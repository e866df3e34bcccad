"""The application: which path leads where, and limits that hold for all of them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.serve.answers import Answer, error_response
from asyncgpu_tutor.commands.serve.questions import MODEL_NAME, ApiError, check_model, read_question
from asyncgpu_tutor.commands.serve.seat_timeline import SeatTimeline
from asyncgpu_tutor.commands.serve.serve_metrics import ServeMetrics
from asyncgpu_tutor.errors import AsyncGpuError
from asyncgpu_tutor.language import Conversations

_ERRORS = ApiError, HTTPException, AsyncGpuError, TimeoutError, Exception
_MOST_BYTES = 64 * 1024  # of a question
_READ_S = 10.0  # until all of a question has to be there
_PAGE = Path(__file__).with_name("page.html")
_FROM_HERE = (
    # The page needs nothing else, and nobody else shows it.
    "default-src 'self' 'unsafe-inline'; img-src blob: data:; frame-ancestors 'none'"
)


def application(engine: Conversations, *, most_s: float, hosts: tuple[str, ...]) -> Starlette:
    """An application of ASGI around an engine, which it opens when it starts, and closes in the end.

    An answer may take `most_s` seconds. Clients may call it by the names of `hosts`: a page of the web that
    has its own name point here has another.
    """
    metrics, pictures = ServeMetrics(engine), SeatTimeline(engine)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncGenerator[None, None]:
        async with engine:
            yield

    async def complete(chat: bool, request: Request) -> Any:
        asked = read_question(await _body(request), engine.model, chat=chat)
        return Answer(engine, asked, metrics, most_s)

    one = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": MODEL_NAME}

    async def model(request: Request) -> Response:
        check_model(request.path_params["name"])
        return JSONResponse(one)

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [one]})

    async def health(request: Request) -> Response:
        device = agt.current_device()
        told: dict[str, Any] = {"status": "ok" if engine.closed is None else str(engine.closed)}
        told |= {"device": device.description, "slots": engine.slots}
        told |= {"seated": engine.seated, "waiting": engine.waiting}
        return JSONResponse(told, 200 if engine.closed is None else 503)

    async def numbers(request: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def picture(request: Request) -> Response:
        with anyio.fail_after(_READ_S):
            drawn = await pictures.draw()
        if drawn is None:
            return Response(status_code=204)
        return Response(drawn, media_type="image/svg+xml", headers={"Cache-Control": "no-store"})

    async def page(request: Request) -> Response:
        return FileResponse(
            _PAGE, headers={"Content-Security-Policy": _FROM_HERE, "X-Frame-Options": "DENY"}
        )

    async def failed(request: Request, error: Exception) -> Response:
        told = ApiError.of(error)
        metrics.requests.labels(str(told.status)).inc()
        return error_response(told)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/v1/completions", partial(complete, False), methods=["POST"]),
            Route("/v1/chat/completions", partial(complete, True), methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name}", model),
            Route("/health", health),
            Route("/metrics", numbers),
            Route("/timeline.svg", picture),
        ],
        middleware=[
            Middleware(_Door),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
        ],
        exception_handlers=dict.fromkeys(_ERRORS, failed),
        lifespan=life,
    )


class _Door:
    """Turns pages of other sites away, and keeps answers from them; tells who's asking when it closes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        is_begun, come = False, Headers(scope=scope)

        async def sent(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cross-Origin-Resource-Policy"] = "same-origin"
            await send(message)

        # A link may lead here from anywhere.
        if come.get("sec-fetch-site") == "cross-site" and come.get("sec-fetch-mode") != "navigate":
            told = ApiError("pages of other sites can't use this server", 403)
            return await error_response(told)(scope, receive, sent)
        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:  # the server ends, and some still ask, or don't read
            if not is_begun:
                told = ApiError("the server is being stopped", 503, code="stopping")
                await error_response(told)(scope, receive, send)


async def _body(request: Request) -> bytes:
    """The body of a question, if it's one that we'd read."""
    kind = request.headers.get("content-type", "")
    # Other pages in the reader's browser may send forms and plain text here, but no JSON.
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise ApiError(f'send JSON, with Content-Type: application/json, and not "{kind:.99}"', 415)
    body = bytearray()
    try:
        with anyio.fail_after(_READ_S):
            async for part in request.stream():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ApiError(f"a request has at most {_MOST_BYTES} bytes", 413)
    except TimeoutError:
        raise ApiError(f"the body wasn't there within {_READ_S:.0f} s", 408) from None
    except ClientDisconnect:
        raise ApiError("the client went away while it was asking", 400) from None
    return bytes(body)
