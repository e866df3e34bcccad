"""The server, over real sockets: every client hears their own text or an error, and no slot is lost."""

import asyncio
import gc
import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.serve import deadlines, model_server
from asyncgpu_tutor.commands.serve.answers import Answer
from asyncgpu_tutor.commands.serve.deadlines import PunctualProtocol
from asyncgpu_tutor.commands.serve.questions import MODEL_NAME
from asyncgpu_tutor.commands.serve.stop_strings import StopStrings
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.language.conversations import Conversation
from tests.asyncgpu_tutor.commands.serve.serving import (
    HEAT,
    Client,
    Served,
    ask,
    data_of,
    question,
    reference,
    served,
    until,
)
from tests.tools import ROOT, Command

TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
LONG = next(seed for seed in range(99) if len(reference(seed)[0]) == 9)


async def settled(here: Served) -> None:
    """Let the server see that clients have gone, and wait for its last answer."""
    state = here.server.server_state
    await until(lambda: not state.tasks and not state.connections)


async def numbers(here: Served) -> list[str]:
    """The lines of its metrics."""
    _, text = await (await Client.sends(here.port, "/metrics")).response()
    return text.decode().splitlines()


# ---------------------------------------------------------------------- as chat clients have it
async def test_a_client_of_that_api_gets_its_answers(device: Device) -> None:
    options: Any = {"model": MODEL_NAME, "max_tokens": 6, "temperature": HEAT, "seed": 3}
    wanted, end = reference(3, 6, (0, 1, 2))
    talk: Any = {
        "messages": [{"role": "system", "content": "?"}, {"role": "user", "content": "ab"}]
    }
    async with served() as here:
        patient: Any = {"max_retries": 0, "timeout": None}  # on a busy machine, too
        client = openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key="none", **patient)
        async with client:
            assert [model.id async for model in client.models.list()] == [MODEL_NAME]
            text = await client.completions.create(prompt="ab", **options)
            chat = await client.chat.completions.create(**talk, **options)
            assert (text.choices[0].text, text.choices[0].finish_reason) == (wanted, end)
            assert chat.choices[0].message.content == wanted
            assert chat.usage is not None
            assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (3, 6)

            parts = [
                part.choices[0]
                async for part in await client.completions.create(
                    prompt="ab", stream=True, **options
                )
            ]
            assert "".join(part.text for part in parts) == wanted
            assert [part.finish_reason for part in parts][-2:] == [None, end]
            deltas = [
                part
                async for part in await client.chat.completions.create(
                    stream=True, stream_options={"include_usage": True}, **talk, **options
                )
            ]
            *said, last = deltas
            assert "".join(part.choices[0].delta.content or "" for part in said) == wanted
            assert [part.choices[0].delta.role for part in said] == ["assistant"] + [None] * 6
            assert [part.usage for part in said] == [None] * len(said)
            assert last.usage is not None
            assert last.usage.total_tokens == 9

            assert (await client.models.retrieve(MODEL_NAME)).id == MODEL_NAME
            with pytest.raises(openai.NotFoundError, match='no model "gpt"'):
                await client.models.retrieve("gpt")
            with pytest.raises(openai.NotFoundError, match='no model "gpt"'):
                await client.completions.create(prompt="ab", model="gpt")
            with pytest.raises(openai.BadRequestError, match="never seen '!'") as caught:
                await client.chat.completions.create(
                    messages=[{"role": "user", "content": "!"}], model=MODEL_NAME
                )
            assert caught.value.param == "messages"


async def test_a_text_that_ends_by_itself_says_so(sim: Device) -> None:
    seed = next(seed for seed in range(99) if reference(seed) == ("", "stop"))
    async with served() as here:
        _, whole = await ask(here.port, TEXT, question(seed))
        client = await Client.sends(here.port, TEXT, question(seed, stream=True))
        *parts, done = await client.events()
    assert whole["choices"][0] == {
        "index": 0,
        "text": "",
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert whole["usage"]["completion_tokens"] == 1
    assert [part["choices"][0] for part in parts] == [whole["choices"][0]]
    assert done == b"[DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_text_ends_before_a_stop_string(sim: Device, stream: bool) -> None:
    whole = reference(LONG)[0]
    stop = whole[5:8]  # of three tokens, each of which is a letter
    almost, told = f"{whole[:2]}?", whole[: whole.find(stop)]
    assert 3 < len(told) < 6
    async with served(slots=1) as here:
        client = openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key="none", max_retries=0)
        async with client:
            asked: Any = {"model": MODEL_NAME, **question(LONG), "stop": [stop, almost]}
            if stream:
                text = await client.completions.create(stream=True, **asked)
                parts = [part.choices[0] async for part in text]
                assert [part.text for part in parts] == [*told, ""]  # though some were held back
            else:
                parts = (await client.completions.create(**asked)).choices
            assert "".join(part.text for part in parts) == told
            assert parts[-1].finish_reason == "stop"
            assert here.engine.seated == 0  # it doesn't talk on
            asked["stop"] = almost
            answer = await client.completions.create(**asked)
            assert answer.choices[0].text == whole
            asked |= {"stop": whole[-1] + "?"}  # held back to the end, which is none
            answer = await client.completions.create(**asked)
            assert answer.choices[0].text == whole


@given(
    st.lists(st.text("ab", max_size=3), max_size=9), st.lists(st.text("ab", min_size=1), max_size=4)
)
def test_what_may_become_a_stop_string_is_held_back(tokens: list[str], stops: list[str]) -> None:
    said, told, heard = "", "", StopStrings(stops)
    for token in tokens:
        said += token
        told += heard.tell(token)
        ends = [at for stop in stops if (at := said.find(stop)) >= 0]
        assert heard.met == bool(ends)
        if ends:
            assert told == said[: min(ends)]
            return
        held = said[len(told) :]
        assert said == told + held
        assert any(stop.startswith(held) for stop in stops) or not held
        # Nothing longer at the end could become one: what was told can't be taken back.
        longer = (said[at:] for at in range(len(told)))
        assert not any(stop.startswith(part) for part in longer for stop in stops)
    assert told + heard.rest() == said


def of(**asked: object) -> tuple[str, object]:
    return TEXT, {"prompt": "ab", **asked}


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        (TEXT, b"{", 400, "no JSON"),
        (TEXT, b"\xff", 400, "no JSON"),
        (TEXT, b"[" * 60_000, 400, "no JSON"),
        (TEXT, [1], 400, "no JSON object"),
        (TEXT, {}, 200, ""),
        (TEXT, b"x" * 70_000, 413, "at most 65536 bytes"),
        (TEXT, {"prompt": "ab" * 99}, 400, "at most 10 tokens"),
        (TEXT, {"prompt": [99]}, 400, "tokens are 0 to 26"),
        (TEXT, {"prompt": ["a", "b"]}, 400, "prompt is one text"),
        (TEXT, {"prompt": [[["a"]]]}, 400, "prompt is one text"),
        (TEXT, {"prompt": ["a"]}, 200, ""),
        (TEXT, {"prompt": [[1, 2]]}, 200, ""),
        (TEXT, {"prompt": [True]}, 400, "prompt is one text"),
        (TEXT, {"prompt": "\ud800"}, 400, "never seen"),
        (*of(prompt=[int("9" * 4000)]), 400, "tokens are 0 to 26, and got 9"),
        (*of(max_tokens=0), 400, "max_tokens can't be 0"),
        (*of(max_completion_tokens=1), 400, 'can\'t do "max_completion_tokens": 1'),
        (*of(max_tokens="9"), 400, 'max_tokens is a whole number, and can\'t be "9"'),
        (*of(max_tokens=True), 400, "max_tokens is a whole number, and can't be true"),
        (*of(temperature=-1), 400, "temperature is"),
        (*of(temperature=float("nan")), 400, "temperature is"),
        (*of(seed=1.5), 400, "seed is a whole number, and can't be 1.5"),
        (*of(stream=1), 400, "stream is true or false, and can't be 1"),
        (*of(stream_options={"include_usage": True}), 400, "need stream to be true"),
        (*of(stream=True, stream_options=[]), 400, "stream_options is an object"),
        (*of(stream=True, stream_options={"include_usage": 1}), 400, "include_usage is true"),
        (*of(stream=True, stream_options={"usage": True}), 400, "only: not"),
        (*of(stream=True, stream_options={"include_obfuscation": True}), 400, "obfuscation"),
        (*of(n=2), 400, 'can\'t do "n": 2'),
        (*of(n=True), 400, 'can\'t do "n": true'),
        (*of(logprobs=0), 400, 'can\'t do "logprobs": 0'),  # those of what is said, not none
        (*of(stop=["?"] * 5), 400, "list of at most 4"),
        (*of(stop=[""]), 400, "that aren't empty"),
        (*of(stop=[None]), 400, "aren't empty: not [null]"),
        (*of(seed="\ud800"), 400, 'seed is a whole number, and can\'t be "\\ud800"'),
        (TEXT, b'{"n": ' + b"[" * 993 + b"]" * 993 + b"}", 400, ""),
        (*of(stop=1), 400, "stop is a text"),
        (*of(stop=["?"] * 4), 200, ""),
        (*of(stop=[]), 200, ""),
        (*of(stop="", top_k=-1, min_p=0.0, repetition_penalty=1, top_logprobs=0), 200, ""),
        (*of(top_k=5), 400, 'can\'t do "top_k": 5'),
        (
            *of(response_format={"type": "json_object"}),
            400,
            'can\'t do "response_format": {"type": "json_object"}',
        ),
        (*of(response_format={"type": "text"}, tool_choice="auto", echo=False), 200, ""),
        (*of(n=1, top_p=1.0, stop=None, user="me", seed=2**70, temperature=0), 200, ""),
        (*of(anything=1), 400, 'can\'t do "anything": 1'),
        (*of(**{"\udcff" * 99: 1}), 400, "can't do"),
        (CHAT, {}, 400, "messages is a list"),
        (CHAT, {"messages": [{"content": 1}]}, 400, "messages is a list"),
        (CHAT, {"messages": [{"content": [{"type": "image_url"}]}]}, 400, "messages is a list"),
        (CHAT, {"messages": [{"content": [{"type": "text", "text": "a"}]}]}, 200, ""),
        (CHAT, {"messages": [1, {"content": "a"}]}, 400, "messages is a list"),
        (CHAT, {"messages": [{"role": "system"}, {"content": "a"}]}, 200, ""),
        (CHAT, {"messages": [{"content": "a"}], "max_completion_tokens": 1}, 200, ""),
        (
            CHAT,
            {"messages": [{"content": "a"}], "max_completion_tokens": 0},
            400,
            "max_completion_tokens can't be 0",
        ),
        ("/v1/responses", {"input": "a"}, 404, "Not Found: this server has /v1/completions and"),
        (TEXT, None, 405, "Method Not Allowed"),
    ],
)
def test_it_says_what_is_wrong_with_a_question(
    asked: Any, path: str, body: object, status: int, told: str
) -> None:
    if isinstance(body, dict) and status == 200 and "max_completion_tokens" not in body:
        body = {"max_tokens": 1, **body}
    found, answer = asked(path, body)
    assert found == status
    if status == 200:
        assert answer["usage"]["completion_tokens"] == 1
    else:
        assert told in answer["error"]["message"]
        assert len(answer["error"]["param"] or "") <= 240
        assert len(answer["error"]["message"]) <= 400
        assert answer["error"].keys() == {"message", "type", "param", "code"}


def test_an_error_names_the_field_that_was_given(asked: Any) -> None:
    talk: Any = {"messages": [{"content": "a"}], "max_completion_tokens": 0}
    assert asked(CHAT, talk)[1]["error"]["param"] == "max_completion_tokens"
    _, answer = asked(CHAT, {**talk, "max_tokens": 1})
    assert "give one of them" in answer["error"]["message"]


@pytest.fixture(scope="module")
def asked() -> Any:
    """Ask a server that all these questions share."""
    from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine

    with agt.using(SimDevice(machine=SimMachine())), asyncio.Runner() as runner:
        # `runner.run` would handle SIGINT while it runs, and the server, which ends in another run than it
        # began in, would give that handler back to this process.
        context, run = served(), runner.get_loop().run_until_complete
        here = run(context.__aenter__())
        yield lambda path, body, **options: run(ask(here.port, path, body, **options))
        run(context.__aexit__(None, None, None))


def test_pages_of_the_web_cannot_use_it(asked: Any) -> None:
    status, answer = asked(TEXT, question(1), kind="text/plain")
    assert (status, "application/json" in answer["error"]["message"]) == (415, True)
    with pytest.raises(json.JSONDecodeError):
        asked("/health", None, host="example.com")
    status, answer = asked("/health", None, host="127.0.0.1\r\nSec-Fetch-Site: cross-site")
    assert (status, "other sites" in answer["error"]["message"]) == (403, True)


# ---------------------------------------------------------------------- a crowd
@cache
def known(seed: int) -> tuple[str, str]:
    return reference(seed, 3)


def talks_and_answers() -> set[object]:
    gc.collect()
    return {o for o in gc.get_objects() if type(o) in (Answer, Conversation)}


async def test_a_thousand_requests_of_all_kinds(sim: Device) -> None:
    draw = random.Random(0)
    kinds = ["whole"] * 6 + ["stream"] * 5 + ["bad", "gone asking", "gone waiting", "gone hearing"]
    ends = dict[str, int]()

    async def client(here: Served) -> None:
        kind, seed = draw.choice(kinds), draw.randrange(16)
        asked: Any = question(seed, 3, stream=kind in ("stream", "gone hearing"))
        if kind == "bad":
            asked["seed"] = "none"
        size = 999 if kind == "gone asking" else None
        connection = await Client.sends(here.port, TEXT, asked, size=size)
        if kind in ("gone asking", "gone waiting"):
            for _ in range(draw.randrange(20)):
                await asyncio.sleep(0)
            await connection.gone()
        elif kind == "gone hearing":
            head = await connection.reader.readline()
            if b" 200 " in head:
                part = (await connection.event())["choices"][0]["text"]
                assert known(seed)[0].startswith(part)
            await connection.gone()
        else:
            status, body = await connection.response()
            if kind == "bad":
                assert status == 400
            elif status == 429:
                kind = "busy"
                assert json.loads(body)["error"]["code"] == "rate_limit_exceeded"
            else:
                *parts, last = [json.loads(body)] if kind == "whole" else data_of(body)[:-1]
                texts = [part["choices"][0]["text"] for part in [*parts, last]]
                assert ("".join(texts), last["choices"][0]["finish_reason"]) == known(seed)
        ends[kind] = ends.get(kind, 0) + 1

    before = agt.in_flight()  # of other tests, which nobody has looked at
    others = talks_and_answers()
    async with served(slots=32, waiting=12) as here:
        left, kept = 1000, list[tuple[int, int]]()

        async def clients() -> None:
            nonlocal left
            while left:
                left -= 1
                await client(here)

        for until in (400, 0):  # twice, to compare what is kept
            rest, left = until, left - until
            await asyncio.gather(*(clients() for _ in range(60)))
            await settled(here)
            left = rest
            assert {"asyncgpu_seated 0.0", "asyncgpu_waiting 0.0"} < {*await numbers(here)}
            await ask(here.port, TEXT, question(1, 1))  # sends away whoever has left
            going = await agt.d2h(here.engine._made.arrays["going"].borrow())
            assert going[0] == 0
            seen = {talk for step in here.engine.steps for talk in step.seats}
            kept.append((len(talks_and_answers() - seen - others), agt.in_flight() - before))
        assert sum(ends.values()) == 1000
        assert ends["busy"] > 5
        assert set(kinds) < set(ends)
        assert all(talks == 0 and under_way <= 0 for talks, under_way in kept)


async def test_it_turns_away_who_finds_the_queue_full(sim: Device) -> None:
    async with served(slots=1, waiting=1) as here:
        talking = await Client.sends(here.port, TEXT, question(LONG, stream=True))
        await talking.event()
        waiting = await Client.sends(here.port, TEXT, question(2))
        await until(lambda: here.engine.waiting > 0)
        client = await Client.sends(here.port, TEXT, question(3))
        head, _, body = (await client.reader.read()).partition(b"\r\n\r\n")
        assert b"429" in head
        assert b"retry-after: 1" in head.lower()
        told = json.loads(body)["error"]
        assert (told["type"], told["code"]) == ("rate_limit_error", "rate_limit_exceeded")
        assert (await waiting.json())[1]["choices"][0]["text"] == reference(2)[0]
        await client.gone()
        await talking.gone()


# ---------------------------------------------------------------------- every wait ends
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("most_s", [0.0, -2.0])  # over; and over for long, as after a long step
async def test_an_answer_has_so_much_time(sim: Device, stream: bool, most_s: float) -> None:
    async with served(most_s=most_s) as here:
        status, body = await ask(here.port, TEXT, question(1, stream=stream))
        assert (status, body["error"]["code"]) == (504, "too_slow")
        assert (here.engine.seated, here.engine.waiting) == (0, 0)


async def connected(here: Served) -> tuple[Client, PunctualProtocol]:
    """A connection on which nothing has been sent, and the server's end of it."""
    client = Client(*await asyncio.open_connection("127.0.0.1", here.port))
    connections = here.server.server_state.connections
    await until(lambda: bool(connections))
    (connection,) = connections
    assert isinstance(connection, PunctualProtocol)
    return client, connection


async def test_the_head_of_a_request_has_so_much_time(
    sim: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served() as here:
        client, connection = await connected(here)
        due = connection._head_until
        assert due is not None
        client.writer.write(b"POST /health HTTP/1.1\r\n")
        await until(lambda: bool(connection.conn.trailing_data[0]))
        assert connection._head_until is due  # more of it is no reason to wait longer
        client.writer.write(b"Host: localhost\r\nContent-Length: 9\r\n\r\n")
        assert b" 405 " in await client.reader.readline()
        assert due.cancelled()
        client.writer.write(b"a rest, ")  # of a question that has its answer
        await until(lambda: connection._head_until is not None)
        client.writer.write(b".GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await client.reader.readuntil(b"owned_by")
        monkeypatch.setattr(deadlines, "HEAD_S", 0.0)
        client.writer.write(b"GET")
        assert b" 408 Request Timeout" in await client.reader.read()
        await client.gone()
        await settled(here)


async def test_what_was_sent_has_to_be_read_in_so_much_time(
    sim: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served() as here:
        client, connection = await connected(here)
        theirs: Any = client.writer.transport
        for end in (theirs, connection.transport):
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        theirs.pause_reading()
        client.writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000)
        await until(lambda: connection._read_until is not None)
        due = connection._read_until
        assert due is not None
        theirs.resume_reading()
        reading = asyncio.create_task(client.reader.readexactly(100_000))
        await until(lambda: not connection.flow.write_paused)
        assert due.cancelled()  # nobody who reads at last is cut off
        await reading
        monkeypatch.setattr(deadlines, "UNREAD_S", 0.0)
        theirs.pause_reading()
        await settled(here)
        await client.gone()


async def test_an_error_of_the_device_is_told_to_each_client(sim: Device) -> None:
    async with served() as here:
        first = await Client.sends(here.port, TEXT, question(LONG, stream=True))
        await first.event()
        others = [await Client.sends(here.port, TEXT, question(LONG)) for _ in range(3)]
        wild, engine = np.full(2, 10**6, np.int32), here.engine
        copy = agt.memcpy(engine._made.arrays["token"].borrow(), agt.pin(wild))
        await copy.schedule(agt.SingleStream(engine._stream))
        assert "embed" in (await first.events())[-1]["error"]["message"]
        for other in others:
            status, body = await other.json()
            assert (status, body["error"]["type"]) == (500, "server_error")
        status, body = await ask(here.port, "/health")
        assert status == 503
        assert "embed" in body["status"]
        assert {"asyncgpu_seated 0.0", "asyncgpu_waiting 0.0"} < {*await numbers(here)}


async def test_it_stops_with_requests_in_flight(
    sim: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_server, "_FINISH_S", 0.0)
    async with served(slots=1) as here:
        talking = await Client.sends(here.port, TEXT, question(LONG, stream=True))
        first = await talking.event()
        waiting = await Client.sends(here.port, TEXT, question(2))
        await until(lambda: here.engine.waiting > 0)
        stopping = asyncio.create_task(here.server.shutdown())  # at once, while it talks
        parts = [first, *(await talking.events())]
        assert parts[-1]["error"]["code"] == "stopping"
        text = "".join(part["choices"][0]["text"] for part in parts[:-1])
        assert reference(LONG)[0].startswith(text)
        status, body = await waiting.json()
        assert (status, body["error"]["code"]) == (503, "stopping")
        await stopping
        assert not here.server.server_state.connections


async def test_who_is_still_asking_is_told_that_it_stops(
    sim: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as here:
        here.server.config.timeout_graceful_shutdown = 0
        asking = await Client.sends(here.port, TEXT, b"{", size=9)
        await until(lambda: bool(here.server.server_state.tasks))
        here.server.should_exit = True
        status, body = await asking.json()
        assert (status, body["error"]["code"]) == (503, "stopping")
        await here.running
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
async def test_a_signal_stops_the_command(ends: signal.Signals) -> None:
    words = ["-m", "asyncgpu_course", "serve", "--device=sim", "--port=0", "--slots=1"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    told = (await process.stdout.readuntil(b"/v1\n")).decode()
    client = await Client.sends(
        int(told.split("/v1")[0].rpartition(":")[2]), TEXT, {"prompt": "A stream", "stream": True}
    )
    await client.event()
    process.send_signal(ends)
    process.send_signal(ends)
    assert (await client.events())[-1]["error"]["code"] == "stopping"
    out, err = await process.communicate()
    assert (process.returncode, out.split()[-1], err) == (0, b"Stopped.", b"")


# ---------------------------------------------------------------------- what one can look at
async def test_it_tells_how_it_is(sim: Device, tell: Callable[[str], None]) -> None:
    async with served() as here:
        status, told = await ask(here.port, "/health")
        assert status == 200
        tell(f"{told} {await ask(here.port, '/v1/models')}")
        await ask(here.port, TEXT, question(LONG, 2))
        await ask(here.port, TEXT, question(LONG, 0))
        told = await numbers(here)
        lasting = [line for line in told if "_created" not in line]  # and without their values
        tell("\n".join(x if x[0] == "#" else x.rpartition(" ")[0] for x in lasting))
        for line in (
            "asyncgpu_tokens_total 2.0",
            'asyncgpu_requests_total{end="length"} 1.0',
            'asyncgpu_requests_total{end="400"} 1.0',
            "asyncgpu_first_token_seconds_count 1.0",
            "asyncgpu_seated 0.0",
            "asyncgpu_slots 2.0",
        ):
            assert line in told


async def test_its_picture_has_steps_and_who_sat_where(sim: Device) -> None:
    async with served() as here:
        client = await Client.sends(here.port, "/timeline.svg")
        assert (await client.response())[0] == 204  # nobody talks
        talk = await Client.sends(here.port, TEXT, question(LONG, prompt="ab"))
        await until(lambda: here.engine.seated > 0)
        status, drawn = await (await Client.sends(here.port, "/timeline.svg")).response()
        assert status == 200
        for word in (b"seat 0", b"ab", b"attention", b"choose"):
            assert word in drawn
        await talk.response()
        here.engine.step = lambda: 1 / 0
        status, body = await ask(here.port, "/timeline.svg")
        assert (status, body["error"]["message"]) == (500, "something went wrong in the server")


async def test_its_page_needs_nothing_from_elsewhere(sim: Device) -> None:
    async with served() as here:
        client = await Client.sends(here.port, "/")
        head, _, page = (await client.reader.read()).partition(b"\r\n\r\n")
        await client.gone()
    for line in (
        b"frame-ancestors 'none'",
        b"x-frame-options: DENY",
        b"cross-origin-resource-policy: same-origin",
    ):
        assert line in head
    assert b'"v1/completions"' in page
    assert b"timeline.svg" in page
    assert b"http" not in page.replace(b"http://www.w3.org", b"")


def test_what_cannot_be_served_is_said(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "from 0 to 65535" in command("serve", "--port", 99999, code=2).err
    assert "slots is an integer, 1 or more" in command("serve", "--slots", 0, code=2).err
    assert "name an address" in command("serve", "--host", "", code=2).err
    assert "at most 256" in command("serve", "--slots", 257, code=2).err
    for seconds in ("nan", "-1", "0", "inf"):
        assert "needs some time" in command("serve", f"--seconds={seconds}", code=2).err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "asyncgpu_tutor.commands.serve.model_server")
    assert "pip install 'asyncgpu_tutor[serve]'" in command("serve", code=2).err
