"""Questions as chat clients send them, and errors as they expect them.

The form is OpenAI's, since every chat client knows it: ``/v1/completions`` continues a text, and
``/v1/chat/completions`` answers the last message of a talk. Our model has never seen a talk, so to it a
message is the beginning of a text like any other.

Clients send many settings that make no difference, and some that would. Those that would, and that we don't
have, are errors, because an answer that silently isn't what was asked for is worse.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from starlette.exceptions import HTTPException

from asyncgpu_tutor.data import LanguageModel
from asyncgpu_tutor.data.language import END
from asyncgpu_tutor.errors import AsyncGpuError, ServerBusyError, UsageError

MODEL_NAME = "asyncgpu-tutor"
_MOST_HEAT = 1000
_MOST_STOPS = 4  # as OpenAI's server has it
_IGNORED = {
    "user",
    "metadata",
    "store",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
}
# What is the same as not to say it; more than that we don't have.
_NEUTRAL: Mapping[str, Sequence[object]] = {
    **dict.fromkeys(("n", "best_of", "top_p", "repetition_penalty"), (1,)),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "top_logprobs", "min_p"), (0,)),
    "top_k": [0, -1],
    "parallel_tool_calls": [True, False],
    **dict.fromkeys(("logprobs", "echo"), (False,)),  # to completions, logprobs of 0 are some
    **dict.fromkeys(("tools", "functions"), ([],)),
    **dict.fromkeys(("tool_choice", "function_call"), ("none", "auto")),
    "suffix": [""],
    "logit_bias": [{}],
    "modalities": [["text"]],
    "response_format": [{"type": "text"}],
    "service_tier": ["auto", "default"],
}
_KINDS: Mapping[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    (int, float): "a number",
    dict: "an object",
}


class ApiError(Exception):
    """An error for a client: the `status` of HTTP, and the `body`, in the form of the API."""

    def __init__(
        self, said: str, status: int = 400, *, part: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(said)
        self.status = status
        kind = "server_error" if status >= 500 else "invalid_request_error"
        kind = "rate_limit_error" if status == 429 else kind
        self.body = {"error": {"message": said, "type": kind, "param": part, "code": code}}

    @classmethod
    def of(cls, error: Exception) -> ApiError:
        """An error that came up on the way to an answer."""
        match error:
            case ServerBusyError():
                return cls(str(error), 429, code="rate_limit_exceeded")
            case TimeoutError():
                return cls("the answer took too long", 504, code="too_slow")
            case UsageError():
                return cls("the server is being stopped", 503, code="stopping")
            case AsyncGpuError():
                return cls(str(error), 500)
            case HTTPException(status_code=404):  # as to clients that ask for /v1/responses
                return cls(
                    f"{error.detail}: this server has /v1/completions and /v1/chat/completions", 404
                )
            case HTTPException():
                return cls(error.detail, error.status_code)
            case ApiError():
                return error
            case _:
                return cls("something went wrong in the server", 500)


@dataclass(frozen=True)
class Question:
    """What a client wants to hear."""

    chat: bool
    prompt: list[int]
    most: int | None
    heat: float
    seed: int
    stop: tuple[str, ...]  # texts at which it ends
    stream: bool
    usage: bool  # whether the end of a stream says how many tokens it had


def read_question(body: bytes, model: LanguageModel, *, chat: bool) -> Question:
    """Read the body of a request; `ApiError` says what is wrong with it."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(f"the body of the request is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError("the body of the request is no JSON object")
    asked = {k: v for k, v in cast("dict[str, Any]", found).items() if v is not None}
    check_model(_taken(asked, "model", str, MODEL_NAME))
    part = "messages" if chat else "prompt"
    prompt = _tokens(_last_message(asked) if chat else asked.pop("prompt", ""), model, part)
    most_name, most = "max_tokens", _taken(asked, "max_tokens", int, None)
    if chat and "max_completion_tokens" in asked:
        if most is not None:
            told = "max_tokens is an older name of max_completion_tokens: give one of them"
            raise ApiError(told, part="max_tokens")
        most_name = "max_completion_tokens"
        most = _taken(asked, most_name, int, None)
    if most is not None and most < 1:
        told = f"an answer has at least one token: {most_name} can't be {_as_json(most)}"
        raise ApiError(told, part=most_name)
    heat = _taken(asked, "temperature", (int, float), 0.7)
    if not 0 <= heat <= _MOST_HEAT:
        told = f"temperature is a number from 0 to {_MOST_HEAT}, and not {_as_json(heat)}"
        raise ApiError(told, part="temperature")
    seed = _taken(asked, "seed", int, random.getrandbits(32))
    stops, stream = _stops(asked), _taken(asked, "stream", bool, False)
    usage = _stream_options(asked, stream)
    question = Question(chat, prompt, most, heat, seed, stops, stream, usage)
    for name in asked.keys() - _IGNORED:
        if not any(_is_same(asked[name], neutral) for neutral in _NEUTRAL.get(name, ())):
            told = f"this server can't do {_as_json(name, 40)}: {_as_json(asked[name])}"
            raise ApiError(told, part=_printable(name))
    return question


def _stops(asked: dict[str, Any]) -> tuple[str, ...]:
    """The texts at which the answer ends; an empty one alone is none."""
    match asked.pop("stop", ""):
        case "":
            return ()
        case str(one):
            return (one,)
        case [*some] if len(some) <= _MOST_STOPS and all(isinstance(s, str) and s for s in some):
            return tuple(some)
        case found:
            told = f"stop is a text, or a list of at most {_MOST_STOPS} that aren't empty: "
            raise ApiError(f"{told}not {_as_json(found)}", part="stop")


def _stream_options(asked: dict[str, Any], stream: bool) -> bool:
    """Whether the end of a stream says how many tokens it had."""
    if "stream_options" in asked and not stream:
        told = "stream_options are for a stream: they need stream to be true"
        raise ApiError(told, part="stream_options")
    found = _taken(asked, "stream_options", dict, {})
    options = {name: value for name, value in found.items() if value is not None}
    usage = _taken(options, "include_usage", bool, False)
    # Padding against eavesdroppers, which nobody needs on one machine.
    if _taken(options, "include_obfuscation", bool, False) or options:
        told = f"of stream_options this server can do include_usage only: not {_as_json([*found])}"
        raise ApiError(told, part="stream_options")
    return usage


def check_model(name: str) -> None:
    """There's one; `ApiError` says which."""
    if name != MODEL_NAME:
        told = f"there is no model {_as_json(name)} here, only {_as_json(MODEL_NAME)}"
        raise ApiError(told, 404, part="model", code="model_not_found")


def _taken(asked: dict[str, Any], name: str, kind: Any, default: Any) -> Any:
    found = asked.pop(name, default)
    # True is an int of Python's, and no number of JSON's.
    fits = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
    if found is not default and not fits:
        raise ApiError(f"{name} is {_KINDS[kind]}, and can't be {_as_json(found)}", part=name)
    return found


def _is_same(found: object, neutral: object) -> bool:
    """Compare as JSON does, to which true isn't 1."""
    return found == neutral and isinstance(found, bool) == isinstance(neutral, bool)


def _as_json(value: object, most: int = 99) -> str:
    """Spell a value as the client did, which isn't Python's way, in so many characters at most."""
    with suppress(RecursionError):
        return json.dumps(value)[:most]
    return "something so deep"


def _printable(name: str) -> str:
    """A field's name as far as an error repeats it: half of a surrogate pair can't be sent as it is."""
    return name[:40].encode("ascii", "backslashreplace").decode()


def _last_message(asked: dict[str, Any]) -> object:
    """The text of the last message, which may come in parts."""
    match asked.pop("messages", None):
        case [*earlier, {"content": str(text)}] if _are_objects(earlier):
            return text
        case [*earlier, {"content": [*parts]}] if _are_objects([*earlier, *parts]):
            texts: list[Any] = [
                part.get("text") if part.get("type") == "text" else None for part in parts
            ]
            if all(isinstance(text, str) for text in texts):
                return "".join(texts)
        case _:
            pass
    told = "messages is a list of objects, and the content of the last one is a text"
    raise ApiError(told, part="messages")


def _are_objects(found: list[Any]) -> bool:
    return all(isinstance(one, dict) for one in found)


def _tokens(text: Any, model: LanguageModel, part: str) -> list[int]:
    match text:
        case str(one) | [str(one)]:
            try:
                tokens = [END, *model.encode(one)]
            except UsageError as error:
                raise ApiError(str(error), part=part) from None
        case ([int(), *_] as one) | [[int(), *_] as one] if all(type(n) is int for n in one):
            tokens = [*one]
        case _:
            raise ApiError(f"{part} is one text, or the numbers of its tokens", part=part)
    if len(tokens) >= model.context:
        told = f"a text of this model has at most {model.context} tokens, and {part} alone {len(tokens)}"
        raise ApiError(told, part=part, code="context_length_exceeded")
    return tokens
