"""The command line of the server: ``python -m asyncgpu_tutor serve``."""

import argparse
import asyncio
import math
import socket
from contextlib import suppress

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import load_language_model
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.language import Conversations

_MOST_SLOTS = 256


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor serve``."""
    add = parser.add_argument
    add("--device", metavar="NAME", help="auto, sim, sim:N, cuda or cuda:N")
    told = "the address that it listens on (%(default)s: this machine alone); there is no password"
    add("--host", default="127.0.0.1", help=told)
    add("--port", type=int, default=8000, help="%(default)s; 0 takes one that is free")
    add("--slots", type=int, default=8, help="how many talk at a time (%(default)s)")
    add("--waiting", type=int, default=64, help="how many more may wait (%(default)s)")
    add("--seconds", type=float, default=60.0, help="how long an answer may take (%(default)s)")


def run_serve(args: argparse.Namespace) -> int:
    """Serve until a signal comes; the exit code, 0."""
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port {args.port}: a port is a number from 0 to 65535")
    if not args.host:
        raise UsageError("--host is empty: name an address, such as 127.0.0.1, or 0.0.0.0 for all")
    if not 0 < args.seconds < math.inf:
        raise UsageError(f"--seconds {args.seconds}: an answer needs some time, and has an end")
    if args.slots > _MOST_SLOTS:
        raise UsageError(f"--slots {args.slots}: at most {_MOST_SLOTS} talk at a time")
    try:
        from asyncgpu_tutor.commands.serve.model_server import ModelServer
    except ImportError as error:
        raise UsageError(
            f"a server needs {error.name}: pip install 'asyncgpu_tutor[serve]'"
        ) from None
    with agt.using(args.device) as device:
        engine = Conversations(load_language_model(), slots=args.slots, waiting=args.waiting)
        server = ModelServer(engine, most_s=args.seconds, host=args.host)
        listening = socket.create_server((args.host, args.port))
        host, port = listening.getsockname()[:2]
        print(f"Device: {device.name}, {device.description}")
        print(f"Talk to it at http://{host}:{port}, or with a client at http://{host}:{port}/v1")
        print("Ctrl+C stops it.", flush=True)
        with suppress(KeyboardInterrupt):  # just before it listens, or after its end
            asyncio.run(server.serve([listening]))
        print("Stopped.")
    return 0
