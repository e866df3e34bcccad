# Explained in https://github.com/asyncgpu-tutor/asyncgpu_tutor/blob/main/docs/from_pytorch.md

import asyncio
import gc
import json
import logging
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

import torch

log = logging.getLogger("uvicorn.error")
torch.set_num_threads(1)  # or else torch.stack wakes all cores, for some kilobytes


# ---------------------------------------------------------------- YOURS from here
SHAPE, DTYPE = (64,), torch.float32  # of one request


def toy():
    layers = [torch.nn.Linear(64, 4096)]
    for _ in range(7):
        layers += [torch.nn.ReLU(), torch.nn.Linear(4096, 4096)]
    made = torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(4096, 10))
    for weights in (each for each in made.parameters() if each.dim() > 1):
        torch.nn.init.kaiming_uniform_(weights, nonlinearity="relu")  # or all answers are alike
    return made


model = toy().cuda().eval()  # YOUR MODEL


def example(rows):
    """Test data: so many requests."""
    return torch.rand(rows, *SHAPE)


LARGEST, DEADLINE_S = 65_536, 2.0  # bytes of a body; seconds for its upload and its answer
SLOW = False  # whether decoding takes milliseconds, and so a thread
WANTED = f'send {{"x": [...]}} with finite numbers of shape {SHAPE}'
parsed = json.loads  # or bytes, if a body isn't JSON


def decoded(asked):
    """The tensor that a request stands for, or any error."""
    numbers = asked["x"]
    if not torch.can_cast(torch.tensor(numbers).dtype, DTYPE):  # nobody wants token 3 for 3.7
        raise ValueError
    return torch.tensor(numbers, dtype=DTYPE)


def encoded(y):
    """What JSON says of an answer."""
    return {"best": int(y.argmax()), "scores": y.tolist()}


# ---------------------------------------------------------------- YOURS to here


@dataclass
class Lane:
    """The memory of one batch at a time, and the model as graphs on it."""

    stream: torch.cuda.Stream
    x_host: torch.Tensor  # pinned, as y_host
    x: torch.Tensor
    y_host: torch.Tensor
    graphs: list  # each for so many rows: their number, a graph, and the tensor that it writes
    begun: float = math.inf  # when its batch began


class Lanes:
    """The model on the GPU, in lanes: one computes, while a batch for another is made ready."""

    def __init__(self, model, shape, dtype=torch.float32, max_batch=32, lanes=2):
        self.model, self.max_batch = model, max_batch
        self.sizes = sorted({1, max(1, max_batch // 4), max_batch})
        self.expected = torch.Size(shape), dtype, torch.device("cpu")
        self.lanes = [self.lane() for _ in range(lanes)]

    def lane(self):
        shape, dtype, _ = self.expected
        stream = torch.cuda.Stream()
        x_host = torch.zeros(self.max_batch, *shape, dtype=dtype, pin_memory=True)
        x = torch.zeros(self.max_batch, *shape, dtype=dtype, device="cuda")
        with torch.inference_mode():
            graphs = [(size, *self.capture(x[:size], stream)) for size in self.sizes]
        for size, _, y in graphs:
            if not isinstance(y, torch.Tensor) or y.shape[:1] != (size,):
                made = getattr(y, "shape", type(y).__name__)
                raise ValueError(f"for {size} rows the model has to return as many, not {made}")
        y_host = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)
        return Lane(stream, x_host, x, y_host, graphs)

    def capture(self, x, stream):
        self.model(x)  # once before, so that everything is loaded
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):  # PyTorch's own is one for all lanes
                y = self.model(x)
        except Exception as error:
            raise RuntimeError("no capture of this model: set SERVICE to Uncaptured") from error
        return graph, y

    def compute(self, x, graph, y):
        graph.replay()
        return y

    def enqueue(self, rows, lane):
        """Hand a batch to the GPU: copy in, compute, copy out."""
        size, graph, y = next(each for each in lane.graphs if each[0] >= len(rows))
        x, x_host, y_host = lane.x[:size], lane.x_host[:size], lane.y_host[:size]
        with torch.inference_mode(), torch.cuda.stream(lane.stream):
            torch.stack(rows, out=x_host[: len(rows)])
            x.copy_(x_host, non_blocking=True)
            return y_host.copy_(self.compute(x, graph, y), non_blocking=True)


class Unavailable(Exception):
    """The service is full, or it has ended."""


class Failed(Exception):
    """The model failed; its own error is the cause."""


def refuse(batch, kind, why, cause=None):
    for _, answer in batch:
        if not answer.done():
            error = kind(why)  # each its own, because raising an exception writes into it
            error.__cause__ = cause
            answer.set_exception(error)


class Service(Lanes):
    """Answers requests in batches."""

    fault = torch.AcceleratorError  # CUDA's errors: after most of them the GPU is lost to us

    def __init__(self, *args, max_queue=1000, **options):
        super().__init__(*args, **options)
        self.queue, self.closed = asyncio.Queue(max_queue), False

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
            left = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
            refuse(left, Unavailable, "the service has ended")

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
                for i, ((_, answer), y) in enumerate(zip(batch, rows)):
                    if not answer.done():
                        answer.set_result(y)
                    if i % 8 == 7:
                        await asyncio.sleep(0)  # a turn of the loop wakes eight handlers, not 32
            except Exception as error:
                log.error("a batch failed", exc_info=error)  # once, also if nobody waits any more
                refuse(batch, Failed, "the model failed", error)
                if isinstance(error, self.fault):
                    raise  # the service ends
            finally:
                lane.begun = math.inf
                refuse(batch, Unavailable, "the service has ended")  # if the lane was cancelled


class InThreads(Service):
    """A thread for each lane enqueues its batches, and sleeps until they're done."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.pool = ThreadPoolExecutor(len(self.lanes))

    def waited(self, rows, lane):
        end = torch.cuda.Event(blocking=True)  # without this, waiting keeps a core busy
        try:
            y = self.enqueue(rows, lane)
        finally:  # also if it failed halfway: the next batch will overwrite the pinned memory
            end.record(lane.stream)
            end.synchronize()
        return y.clone()

    async def process(self, rows, lane):
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self.pool, self.waited, rows, lane)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:  # which stops no thread
            await asyncio.wait([job])
            if error := job.exception():
                log.error("the last batch failed", exc_info=error)
            raise


class Uncaptured(InThreads):
    """For a model that can't be captured: the lane's thread calls it for each batch."""

    turn = threading.Lock()

    def capture(self, x, stream):
        y = self.model(x)
        torch.cuda.synchronize()
        return None, y

    def compute(self, x, graph, y):
        with self.turn:  # or else two threads run the module at once
            return self.model(x)  # of few shapes, as each new one may be compiled anew


from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Route

SERVICE, MAX_BATCH, LANES = InThreads, 32, 2  # or Uncaptured
SHUTDOWN_S = 10.0


@asynccontextmanager
async def lifespan(app):
    app.state.service = SERVICE(model, SHAPE, DTYPE, MAX_BATCH, LANES)
    gc.collect()
    gc.freeze()  # or else the collector looks through all of PyTorch, for a tenth of a second
    running = asyncio.create_task(app.state.service.run())
    running.add_done_callback(ended)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=SHUTDOWN_S)
        if not running.done():  # Python can't end a thread that waits for the GPU
            log.error("the GPU hangs, so this process may have to be killed")


def ended(running):
    if not running.cancelled():
        log.error("the service has ended", exc_info=running.exception())


@asynccontextmanager
async def deadline():
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield
    except TimeoutError:
        raise HTTPException(504, f"no answer within {DEADLINE_S} s") from None


async def answered(service, decode):
    """The answer to the request that `decode` returns, as it's told to the client."""
    try:
        x = await asyncio.to_thread(decode) if SLOW else decode()
        if x.shape != SHAPE or not torch.isfinite(x).all():
            raise ValueError("another shape, or a number that isn't finite")
    except Exception as error:  # the request is to blame, or your `decoded`: the log says which
        log.warning("refused", exc_info=error)
        raise HTTPException(400, WANTED) from error
    try:
        y = await service(x)
        if not torch.isfinite(y).all():  # JSON has no word for it
            log.error("the model's answer isn't finite")
            raise Failed("the model's answer isn't finite")
    except Unavailable as error:
        raise HTTPException(503, str(error)) from error
    except Failed as error:
        raise HTTPException(500, str(error)) from error
    return encoded(y)


async def handle(request):
    body = bytearray()
    async with deadline():  # for a slow upload, too
        try:
            async for part in request.stream():
                body += part
                if len(body) > LARGEST:
                    raise HTTPException(413, f"send at most {LARGEST} bytes")
        except ClientDisconnect:
            raise HTTPException(400, "the client is gone") from None
        said = await answered(request.app.state.service, lambda: decoded(parsed(body)))
        return JSONResponse(said)


async def problem(request, error):
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def health(request):
    healthy = request.app.state.service.healthy()
    return JSONResponse({"healthy": healthy}, status_code=200 if healthy else 503)


routes = [Route("/", handle, methods=["POST"]), Route("/health", health)]
app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: problem})
