"""Answers over HTTP: whole or token by token, and an end for each, whatever happens.

An answer has four ways to end: the text is over, the client goes away, it takes too long, or something
fails. Each of them has to free the slot. So there's one place that iterates over tokens, and all of them end
it there: whoever notices that a client is gone only cancels.

Nothing is sent before the first token is there. Up to then an error can have a status of its own, such as 429
where too many wait. Later it's an event in the stream, which clients of this API raise as an error, too.
"""

import json
import time
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import anyio
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.serve.questions import MODEL_NAME, ApiError, Question
from asyncgpu_tutor.commands.serve.serve_metrics import ServeMetrics
from asyncgpu_tutor.commands.serve.stop_strings import StopStrings
from asyncgpu_tutor.data.language import END
from asyncgpu_tutor.errors import AsyncGpuError, UsageError
from asyncgpu_tutor.language import Conversations


def error_response(error: ApiError) -> JSONResponse:
    """An error in place of an answer."""
    headers = {"Retry-After": "1"} if error.status == 429 else None
    return JSONResponse(error.body, error.status, headers)


class Answer:
    """The answer to a question, from the engine to the client; an application of ASGI.

    `ApiError` if the engine can't say such a text.
    """

    def __init__(
        self, engine: Conversations, asked: Question, metrics: ServeMetrics, most_s: float
    ) -> None:
        self._asked, self._metrics, self._most_s = asked, metrics, most_s
        self._decode = engine.model.decode
        try:
            self._talk = engine.say(asked.prompt, most=asked.most, seed=asked.seed, heat=asked.heat)
        except UsageError as error:
            raise ApiError(str(error)) from None
        self._said, self._text = 0, ""  # tokens, and what was told of them
        self._is_begun = False
        kind = "chat.completion" + ".chunk" * asked.stream if asked.chat else "text_completion"
        number = f"{'chatcmpl' if asked.chat else 'cmpl'}-{uuid4().hex}"
        self._head = {
            "id": number,
            "object": kind,
            "created": int(time.time()),
            "model": MODEL_NAME,
            **({"usage": None} if asked.usage else {}),  # the end of the stream has it
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, until the text is over or the client is gone."""
        end = "gone"
        try:
            async with anyio.create_task_group() as group:

                async def until_gone() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    group.cancel_scope.cancel()

                group.start_soon(until_gone)
                end = await self._answered(scope, receive, send, group.cancel_scope)
                group.cancel_scope.cancel()  # not every server says after a response that it is over
        finally:
            self._metrics.requests.labels(end).inc()

    async def _answered(
        self, scope: Scope, receive: Receive, send: Send, all_of_it: anyio.CancelScope
    ) -> str:
        """Say all of it; how it ended."""
        try:
            with anyio.fail_after(self._most_s):
                try:
                    end = await self._told(send)
                finally:  # a client may not read the end, and a long step isn't to count here
                    all_of_it.deadline = anyio.current_time() + 1
        except (AsyncGpuError, TimeoutError) as failure:
            error = ApiError.of(failure)
            if self._is_begun:
                await self._event(send, error.body)
                await send({"type": "http.response.body"})
            else:
                await error_response(error)(scope, receive, send)
            return str(error.status)
        if self._asked.stream:
            await self._event(send, self._part("", end))
            if self._asked.usage:
                await self._event(send, {**self._head, "choices": [], "usage": self._usage()})
            await self._event(send, "[DONE]")
            await send({"type": "http.response.body"})
        else:
            body = {**self._part(self._text, end), "usage": self._usage()}
            await JSONResponse(body)(scope, receive, send)
        return end

    async def _told(self, send: Send) -> str:
        """Hear each token, and send it on to a client that wants it at once; how the text ended."""
        now = agt.current_device().now
        asked_us, stops, end = now(), StopStrings(self._asked.stop), "length"
        async with aclosing(self._talk) as talk:
            async for token in talk:
                if not self._said:
                    self._metrics.first_token.observe((now() - asked_us) * 1e-6)
                self._metrics.tokens.inc()
                self._said += 1
                if token != END:
                    await self._tell(send, stops.tell(self._decode([token])))
                if token == END or stops.met:
                    end = "stop"
                    break
        await self._tell(send, stops.rest())
        return end

    async def _tell(self, send: Send, text: str) -> None:
        """Add to the text of the answer, of which a client may want each part at once."""
        self._text += text
        if text and self._asked.stream:
            await self._event(send, self._part(text))

    def _part(self, text: str, end: str | None = None) -> dict[str, Any]:
        """A part of the answer, or all of it."""
        role = {} if self._is_begun else {"role": "assistant"}
        said: dict[str, Any]
        if not self._asked.chat:
            said = {"text": text, "logprobs": None}
        elif self._asked.stream:
            said = {"delta": {**role, "content": text} if text else role}
        else:
            said = {"message": {**role, "content": text}}
        return {**self._head, "choices": [{"index": 0, **said, "finish_reason": end}]}

    def _usage(self) -> dict[str, int]:
        read, said = len(self._asked.prompt), self._said
        return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}

    async def _event(self, send: Send, data: dict[str, Any] | str) -> None:
        """Send an event; the first one begins the response."""
        if not self._is_begun:
            self._is_begun = True
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        text = data if isinstance(data, str) else json.dumps(data)
        body = f"data: {text}\n\n".encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})
