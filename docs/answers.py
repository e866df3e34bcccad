import asyncio
import math

import torch

import asyncgpu_tutor as agt

agt.use("cuda")  # or an error, if there's no GPU

# YOUR MODEL: on the GPU, in eval mode; and the shape and dtype of one request.
SHAPE, DTYPE = (4096,), torch.float32
layers = [torch.nn.Linear(4096, 4096) if at % 2 == 0 else torch.nn.ReLU() for at in range(15)]
model = torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10)).cuda().eval()

import time
from dataclasses import dataclass

agt.current_device().patience_us = 50_000  # as long as an await asks the GPU itself
torch.set_num_threads(1)  # or else torch.stack wakes all cores, for half a megabyte


class Unavailable(Exception):
    """The service is full, or it has ended."""


@dataclass
class Lane:
    """The memory of one batch at a time, and the model as a graph on it."""

    x_host: torch.Tensor  # pinned, as y_host
    x: torch.Tensor
    y: torch.Tensor
    y_host: torch.Tensor
    graph: torch.cuda.CUDAGraph
    copying: torch.cuda.Stream
    begun: float = math.inf  # when its batch began


class Service:
    """Answers requests in batches. While the GPU computes one, the next is made ready."""

    def __init__(self, model, shape, dtype=torch.float32, max_batch=32, max_queue=1000):
        self.model, self.max_batch = model, max_batch
        self.expected = torch.Size(shape), dtype, torch.device("cpu")
        self.queue, self.closed = asyncio.Queue(max_queue), False
        self.computing = torch.cuda.Stream()
        self.lanes = [self.lane() for _ in range(2)]

    def lane(self):
        shape, dtype, _ = self.expected
        x_host = torch.zeros(self.max_batch, *shape, dtype=dtype, pin_memory=True)
        x = torch.zeros(self.max_batch, *shape, dtype=dtype, device="cuda")
        with torch.inference_mode():
            graph, y = self.capture(x)
        y_host = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)
        return Lane(x_host, x, y, y_host, graph, torch.cuda.Stream())

    def capture(self, x):
        self.model(x)  # once before, so that everything is loaded
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.computing):  # not the one of all other captures
            y = self.model(x)
        return graph, y

    def compute(self, lane):
        lane.graph.replay()
        return lane.y

    async def __call__(self, x):
        """The answer to one request."""
        given = x.shape, x.dtype, x.device
        if given != self.expected:  # it would fail the whole batch
            raise ValueError(f"a request is {self.expected}, not {given}")
        if self.closed or self.queue.full():
            raise Unavailable("the service has ended" if self.closed else "too many requests wait")
        answer = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((x, answer))
        return await answer

    def healthy(self, seconds=10.0):
        """False once the service has ended, or if a batch takes the GPU too long."""
        begun = min(lane.begun for lane in self.lanes)
        return not self.closed and time.monotonic() - begun < seconds

    async def run(self):
        """Serve until it's cancelled, or until the GPU fails."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in self.lanes:
                    tasks.create_task(self.serve(lane))
        finally:
            self.closed = True
            self.refuse(self.queue.get_nowait() for _ in range(self.queue.qsize()))
            await agt.reached(self.computing)  # a batch may still use our memory

    def refuse(self, batch):
        for _, answer in batch:
            if not answer.done():
                answer.set_exception(Unavailable("the service has ended"))

    async def serve(self, lane):
        while True:
            batch = []
            while not batch or (len(batch) < self.max_batch and not self.queue.empty()):
                x, answer = self.queue.get_nowait() if batch else await self.queue.get()
                if not answer.done():  # or else nobody waits for it: its deadline has passed
                    batch.append((x, answer))
            lane.begun = time.monotonic()
            try:
                rows = await self.process([x for x, _ in batch], lane)
                for at, ((_, answer), y) in enumerate(zip(batch, rows)):
                    if not answer.done():
                        answer.set_result(y)
                    if at % 8 == 7:
                        await asyncio.sleep(0)  # a turn of the loop wakes eight handlers, not 32
            except Exception as error:
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                if isinstance(error, agt.DeviceError):
                    raise  # every later batch would fail, too: the service ends
            finally:
                lane.begun = math.inf
                self.refuse(batch)  # those that aren't answered, because the lane was cancelled

    async def process(self, rows, lane):
        try:
            y = self.enqueue(rows, lane)
        finally:  # also if it failed halfway: the next batch will overwrite the pinned memory
            await agt.reached(self.computing)
        return y.clone()

    def enqueue(self, rows, lane):
        """Hand a batch to the GPU: copy in, compute, copy out. Never waits for it."""
        with agt.ranges.span("batch"), torch.inference_mode():
            torch.stack(rows, out=lane.x_host[: len(rows)])
            with torch.cuda.stream(lane.copying):
                lane.x.copy_(lane.x_host, non_blocking=True)
            self.computing.wait_stream(lane.copying)
            with torch.cuda.stream(self.computing):
                return lane.y_host.copy_(self.compute(lane), non_blocking=True)

import gc
import logging
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

DEADLINE_S, SHUTDOWN_S = 2.0, 10.0


@asynccontextmanager
async def lifespan(app):
    app.state.service = Service(model, SHAPE, DTYPE)
    gc.collect()
    gc.freeze()  # or else the collector looks through all of PyTorch, for a tenth of a second
    running = asyncio.create_task(app.state.service.run())
    running.add_done_callback(ended)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=SHUTDOWN_S)  # not for ever: the GPU may hang


def ended(running):
    if not running.cancelled():
        log = logging.getLogger("uvicorn.error")
        log.error("the service has ended", exc_info=running.exception())


def problem(status, why):
    return JSONResponse({"error": why}, status_code=status)


async def answer(request):
    body, numbers = bytearray(), math.prod(SHAPE)
    size = numbers * DTYPE.itemsize
    try:
        async with asyncio.timeout(DEADLINE_S):  # for a slow upload, too
            async for part in request.stream():
                body += part
                if len(body) > size:
                    break
            if len(body) != size:
                return problem(422, f"send {numbers} numbers, {DTYPE}, little-endian: {size} bytes")
            x = torch.frombuffer(body, dtype=DTYPE).reshape(SHAPE)
            y = await request.app.state.service(x)
    except TimeoutError:
        return problem(504, f"no answer within {DEADLINE_S} s")
    except Unavailable as error:
        return problem(503, str(error))
    return JSONResponse({"best": int(y.argmax())})  # YOUR ANSWER


async def health(request):
    healthy = request.app.state.service.healthy()
    return JSONResponse({"healthy": healthy}, status_code=200 if healthy else 503)


routes = [Route("/", answer, methods=["POST"]), Route("/health", health)]
app = Starlette(routes=routes, lifespan=lifespan)
