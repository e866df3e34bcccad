"""Numbers for a monitor, in the form of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

import asyncgpu_tutor as agt
from asyncgpu_tutor.language import Conversations

# In seconds of the device's clock: a step takes some tens of microseconds on a GPU.
_BUCKETS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class ServeMetrics:
    """What has been asked, answered and waited for: `tokens`, `requests` and `first_token` are counted up.

    A request's label says how it ended: ``stop`` (the text was over), ``length``, ``gone`` (the client was),
    or the status of its error.
    """

    def __init__(self, engine: Conversations) -> None:
        registry = self._registry = CollectorRegistry()
        clock = agt.current_device().clock
        self.tokens = Counter("asyncgpu_tokens", "Tokens that were said.", registry=registry)
        told = "Requests by how they ended."
        self.requests = Counter("asyncgpu_requests", told, ["end"], registry=registry)
        told = f"From the question to the first token; the clock: {clock}."
        name = "asyncgpu_first_token_seconds"
        self.first_token = Histogram(name, told, buckets=_BUCKETS, registry=registry)
        for name, told, now in (
            ("slots", "Slots for conversations.", lambda: engine.slots),
            ("seated", "Conversations that have a slot.", lambda: engine.seated),
            ("waiting", "Conversations that wait for one.", lambda: engine.waiting),
        ):
            Gauge(f"asyncgpu_{name}", told, registry=registry).set_function(now)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self._registry)
