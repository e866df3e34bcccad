import asyncio
import math

import torch

import asyncgpu_tutor as agt

agt.use("cuda")  # or an error, if there's no GPU

# YOUR MODEL: on the GPU, in eval mode; and the shape and dtype of one request.
SHAPE, DTYPE = (4096,), torch.float32
layers = [torch.nn.Linear(4096, 4096) if at % 2 == 0 else torch.nn.ReLU() for at in range(15)]
model = torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10)).cuda().eval()

from dataclasses import dataclass

agt.current_device().patience_us = 50_000  # for so long an await looks itself; then a thread does


class Unavailable(Exception):
    """The service is full, or it has ended."""


@dataclass
class Lane:
    """The memory of one batch at a time, and the model as a graph on it."""

    pinned: torch.Tensor  # requests, on the host
    x: torch.Tensor  # and on the GPU
    y: torch.Tensor  # answers, there
    found: torch.Tensor  # and on the host, pinned
    graph: torch.cuda.CUDAGraph
    copying: torch.cuda.Stream


class Service:
    """Answers requests in batches. While the GPU computes one, the next is copied to it."""

    def __init__(self, model, shape, dtype=torch.float32, most=32, room=1000):
        self.model, self.most = model, most
        self.wanted = torch.Size(shape), dtype, torch.device("cpu")
        self.waiting, self.closed = asyncio.Queue(room), False
        self.computing = torch.cuda.Stream()
        self.lanes = [self.lane() for _ in range(2)]  # one copies while the other computes

    def lane(self):
        shape, dtype, _ = self.wanted
        pinned = torch.zeros(self.most, *shape, dtype=dtype, pin_memory=True)
        x = torch.zeros(self.most, *shape, dtype=dtype, device="cuda")
        with torch.inference_mode():
            self.model(x)  # once before it's captured, so that everything is loaded
            graph, y = self.capture(x)
        found = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)
        return Lane(pinned, x, y, found, graph, torch.cuda.Stream())

    def capture(self, x):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self.model(x)
        return graph, y

    def compute(self, lane):
        lane.graph.replay()
        return lane.y

    async def __call__(self, x):
        """The answer to one request."""
        given = x.shape, x.dtype, x.device
        if given != self.wanted:  # it would fail the whole batch
            raise ValueError(f"a request is {self.wanted}, not {given}")
        if self.closed or self.waiting.full():
            raise Unavailable("the service has ended" if self.closed else "too many requests wait")
        answer = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((x, answer))
        return await answer

    async def run(self):
        """Serve until it's cancelled, or until the GPU fails."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in self.lanes:
                    tasks.create_task(self.serve(lane))
        finally:
            self.closed = True
            self.refuse(self.waiting.get_nowait() for _ in range(self.waiting.qsize()))
            await agt.reached(self.computing)  # a batch may still use our memory

    def refuse(self, batch):
        for _, answer in batch:
            if not answer.done():
                answer.set_exception(Unavailable("the service has ended"))

    async def serve(self, lane):
        while True:
            batch = []
            while not batch or (len(batch) < self.most and not self.waiting.empty()):
                x, answer = self.waiting.get_nowait() if batch else await self.waiting.get()
                if not answer.done():  # or else nobody waits for it: its deadline has passed
                    batch.append((x, answer))
            try:
                answers = await self.answers([x for x, _ in batch], lane)
            except Exception as error:
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                if isinstance(error, agt.DeviceError):
                    raise  # every later batch would fail, too: the service ends
            else:
                for (_, answer), y in zip(batch, answers):
                    if not answer.done():
                        answer.set_result(y)
            finally:
                self.refuse(batch)  # those that aren't answered, because the lane was cancelled
            await asyncio.sleep(0)  # others have a turn before the next batch

    async def answers(self, rows, lane):
        try:
            found = self.enqueue(rows, lane)
        finally:  # also if it failed halfway: the next batch will overwrite the pinned memory
            await agt.reached(self.computing)
        return found.clone()

    def enqueue(self, rows, lane):
        """Hand a batch to the GPU: copy in, compute, copy out. Never waits for it."""
        with agt.ranges.span("batch"), torch.inference_mode():
            torch.stack(rows, out=lane.pinned[: len(rows)])
            with torch.cuda.stream(lane.copying):
                lane.x.copy_(lane.pinned, non_blocking=True)
            self.computing.wait_stream(lane.copying)
            with torch.cuda.stream(self.computing):
                return lane.found.copy_(self.compute(lane), non_blocking=True)

from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

DEADLINE_S = 2.0


@asynccontextmanager
async def lifespan(app):
    app.state.service = Service(model, SHAPE, DTYPE)
    running = asyncio.create_task(app.state.service.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


def refused(status, why):
    return JSONResponse({"error": why}, status_code=status)


async def answer(request):
    body, numbers = bytearray(), math.prod(SHAPE)
    size = numbers * DTYPE.itemsize
    async for part in request.stream():
        body += part
        if len(body) > size:
            break
    if len(body) != size:
        return refused(422, f"send {numbers} numbers, {DTYPE}, little-endian: {size} bytes")
    x = torch.frombuffer(body, dtype=DTYPE).reshape(SHAPE)
    try:
        async with asyncio.timeout(DEADLINE_S):
            y = await request.app.state.service(x)
    except TimeoutError:
        return refused(504, f"no answer within {DEADLINE_S} s")
    except Unavailable as error:
        return refused(503, str(error))
    return JSONResponse({"best": int(y.argmax())})  # YOUR ANSWER


async def health(request):
    closed = request.app.state.service.closed
    return JSONResponse({"serves": not closed}, status_code=503 if closed else 200)


routes = [Route("/", answer, methods=["POST"]), Route("/health", health)]
app = Starlette(routes=routes, lifespan=lifespan)
