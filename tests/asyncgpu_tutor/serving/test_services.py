"""Files by name, connections, and refusals: what a kernel may ask for within what the office allows."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from errno import EACCES, EBADF, EBUSY, EINVAL, ELOOP, EMFILE, ENOENT, ENOSPC
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import CallRefusedError
from asyncgpu_tutor.serving.hostcalls import keeps_order
from asyncgpu_tutor.serving.services import Files, HostcallRequest
from tests.laws.loops import any_loop, turn

# A script of calls, in one packet: service, a, b, c each, where -1 stands for the answer of the first call.
# Bytes of the first call come from `text`. What each answered is left in `out`, or minus its error.
SCRIPT = """#include "hostcall.cuh"
__global__ void script(unsigned long long* mail, unsigned long long* stack, int calls, const long long* what,
                       const unsigned char* text, int length, long long* out, unsigned char* seen) {
    Hostcalls host = hostcalls(mail, stack);
    int p = hostcall_begin(host);
    if (p < 0) return;
    char* bytes = hostcall_bytes(host, p);
    for (int i = 0; i < length; ++i) bytes[i] = text[i];
    for (int k = 0; k < calls; ++k) {
        long long a = what[4 * k + 1] == -1 ? out[0] : what[4 * k + 1];
        hostcall_ask(host, p, (int)what[4 * k], a, what[4 * k + 2], what[4 * k + 3]);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int error = hostcall_error(host, p);
        out[k] = error != 0 ? -error : (long long)hostcall_answer(host, p);
    }
    for (int i = 0; i < 64; ++i) seen[i] = bytes[i];
    hostcall_end(host, p);
}"""
OPEN, CLOSE, CONNECT, SEND, RECEIVE, READ, WRITE = 6, 7, 8, 9, 10, 4, 5


async def played(text: bytes, *calls: tuple[int, ...], **office: Any) -> tuple[list[int], bytes]:
    """What each call answered, and the bytes of the packet in the end."""
    out, seen = agt.pin(np.full(len(calls), 99, np.int64)), agt.pin(np.zeros(64, np.uint8))
    what = await agt.h2d(agt.pin(np.array(calls, np.int64).ravel()))
    given = await agt.h2d(agt.pin(np.frombuffer(text or b" ", np.uint8)))
    kernel = agt.Kernel(SCRIPT)
    async with agt.hostcalls(**office) as host:
        args = (len(calls), what, given, len(text), agt.mapped(out), agt.mapped(seen))
        await host.run(kernel(*host.arrays, *args, grid=1, block=1))
    return out.tolist(), seen.tobytes()


class TestFilesByName:
    async def test_a_file_is_written_and_another_read(self, device: Device, tmp_path: Path) -> None:
        (tmp_path / "in.txt").write_text("hello")
        use = (OPEN, 6, 0, 0), (READ, -1, 1, 8), (WRITE, -1, 0, 1), (CLOSE, -1, 0, 0)
        use = *use, (READ, -1, 0, 1)
        got, seen = await played(b"in.txt", *use, folder=tmp_path)
        assert (got, seen) == ([0, 4, -EBADF, 0, -EBADF], b"ello" + b"xt" + bytes(58))
        write = (OPEN, 7, 1, 0), (WRITE, -1, 0, 3), (CLOSE, -1, 0, 0)
        assert (await played(b"out.txt", *write, folder=tmp_path))[0] == [0, 3, 0]
        assert (tmp_path / "out.txt").read_text() == "out"

    @pytest.mark.parametrize(
        "name", ["../secret", "below/../../secret", "/etc/hostname", "link", "below", "", "missing"]
    )
    async def test_nothing_outside_of_the_folder_is_opened(
        self, device: Device, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "secret").write_text("secret")
        folder = tmp_path / "allowed"
        (folder / "below").mkdir(parents=True)
        (folder / "link").symlink_to(tmp_path / "secret")
        for writes in (0, 1):
            if name == "missing" and writes:
                continue
            found, _ = await played(name.encode(), (OPEN, len(name), writes, 0), folder=folder)
            assert found == [-(ENOENT if name == "missing" else EACCES)]
        assert (tmp_path / "secret").read_text() == "secret"
        assert (await played(b"secret", (OPEN, 6, 0, 0)))[0] == [-EACCES]

    async def test_no_more_than_64_are_open(self, device: Device, tmp_path: Path) -> None:
        (tmp_path / "f").write_text("precious")
        found, _ = await played(b"f", *[(OPEN, 1, 0, 0)] * 64, (OPEN, 1, 1, 0), folder=tmp_path)
        assert found == [*range(64), -EMFILE]
        assert (tmp_path / "f").read_text() == "precious"  # what is refused has done nothing


BIG, TOP = 2**63 - 1, -1  # the latter is 2**64 - 1 for the host
NO_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
FULL = pytest.param(b"", [(WRITE, 0, 0, 8)], {"files": ["/dev/full"]}, ENOSPC, marks=NO_FULL)
MISTAKES: list[Any] = [
    (b"f", [(OPEN, 1, 0, 0), (READ, -1, TOP, 8)], {}, EINVAL),
    (b"f", [(OPEN, 1, 0, 0), (READ, -1, BIG, 8)], {}, EINVAL),
    (b"f", [(OPEN, 1, 1, 0), (WRITE, -1, BIG, 8)], {}, EINVAL),
    FULL,
    (b"", [(CONNECT, 0, 0, 0)], {"addresses": [""]}, EINVAL),
    (b"loop", [(OPEN, 4, 1, 0)], {}, ELOOP),
    (b"h:99999", [(CONNECT, 7, 0, 0)], {"addresses": ["h:99999"]}, EINVAL),
]


@pytest.mark.parametrize(("text", "calls", "office", "error"), MISTAKES)
async def test_a_mistake_is_an_error_of_its_kernel_alone(
    device: Device, tmp_path: Path, text: bytes, calls: Any, office: Any, error: int
) -> None:
    (tmp_path / "f").touch()
    (tmp_path / "loop").symlink_to("loop")
    found, _ = await played(text, *calls, (CLOSE, 99, 0, 0), folder=tmp_path, **office)
    assert found[-2:] == [-error, -EBADF]


@asynccontextmanager
async def served(answer: Callable[[bytes], bytes]) -> AsyncGenerator[str]:
    """The address of a server."""

    async def handle(stream: Any) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    if said := answer(await stream.receive(64)):
                        await stream.send(said)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield f"127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


@any_loop
async def test_two_that_receive_from_one_connection_get_an_error_for_one(sim: Device) -> None:
    async with served(lambda _: b"") as address, anyio.create_task_group() as group:
        files = Files([], None, [address])
        data = np.frombuffer(address.encode(), np.uint8).copy()
        number = await files.connect(HostcallRequest(CONNECT, len(data), 0, 0, data))
        call = HostcallRequest(RECEIVE, number, 0, 8, np.zeros(8, np.uint8))
        got: list[int] = []

        async def receive() -> None:
            got.append(await files.receive(call))

        group.start_soon(receive)
        await turn()
        await turn()
        with pytest.raises(CallRefusedError) as refused:
            await files.receive(call)
        assert refused.value.number == EBUSY
        files.close()
    assert got == [0]


TALK = """#include "hostcall.cuh"
__global__ void talk(unsigned long long* mail, unsigned long long* stack, const unsigned char* text,
                     int address, int said, long long* out, unsigned char* seen) {
    Hostcalls host = hostcalls(mail, stack);
    int p = hostcall_begin(host);
    if (p < 0) return;
    char* bytes = hostcall_bytes(host, p);
    int services[4] = {HOSTCALL_CONNECT, HOSTCALL_SEND, HOSTCALL_RECEIVE, HOSTCALL_CLOSE};
    for (int k = 0; k < 4; ++k) {
        if (k == 0) for (int i = 0; i < address; ++i) bytes[i] = text[i];
        if (k == 1) for (int i = 0; i < said; ++i) bytes[i] = text[address + i];
        hostcall_ask(host, p, services[k], k == 0 ? address : out[0], 0, k == 1 ? said : 64);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int error = hostcall_error(host, p);
        out[k] = error != 0 ? -error : (long long)hostcall_answer(host, p);
        if (k == 2) for (int i = 0; i < 64; ++i) seen[i] = bytes[i];
    }
    hostcall_end(host, p);
}"""


def echo(got: bytes) -> bytes:
    """Send back what comes, or a page to who asks for one."""
    return b"HTTP/1.0 200 OK\r\n\r\nhi" if got.startswith(b"GET / ") else got


@any_loop
@pytest.mark.parametrize(
    ("said", "heard"),
    [(b"ping", b"ping"), (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nhi")],
)
async def test_a_kernel_talks_to_a_server(device: Device, said: bytes, heard: bytes) -> None:
    out, seen = agt.pin(np.zeros(4, np.int64)), agt.pin(np.zeros(64, np.uint8))
    kernel = agt.Kernel(TALK)
    async with served(echo) as address, agt.hostcalls(addresses=[address]) as host:
        # The address and what is said lie in one packet, one after the other.
        text = agt.pin(np.frombuffer(address.encode() + said, np.uint8))
        sizes = (len(address), len(said))
        args = (agt.h2d(text), *sizes, agt.mapped(out), agt.mapped(seen))
        await host.run(kernel(*host.arrays, *args, grid=1, block=1))
    assert out.tolist() == [0, len(said), len(heard), 0]
    assert seen.tobytes()[: len(heard)] == heard


async def test_other_addresses_are_refused(device: Device) -> None:
    found, _ = await played(
        b"127.0.0.1:9", (CONNECT, 11, 0, 0), (SEND, -1, 0, 1), addresses=["127.0.0.1:99"]
    )
    assert found == [-EACCES, -EBADF]


@pytest.mark.parametrize("later", [False, True])
async def test_a_handler_refuses_one_call_and_answers_the_next(device: Device, later: bool) -> None:
    def handler(call: Any) -> int:
        if call.a == 1:
            raise CallRefusedError(7)
        return call.a

    async def slowly(call: Any) -> int:
        await asyncio.sleep(0)
        return handler(call)

    chosen: Callable[[Any], Any] = slowly if later else handler
    found, _ = await played(b"", (16, 1, 0, 0), (16, 2, 0, 0), handlers={16: chosen})
    assert found == [-7, 2]


def test_hosts_that_keep_the_order_of_their_accesses() -> None:
    assert [keeps_order(name) for name in ("x86_64", "AMD64", "aarch64")] == [True, True, False]
