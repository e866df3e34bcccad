"""Microseconds a token takes, by every rung of chapter 18, and by PyTorch with the same weights.

    python benchmarks/tokens.py --json tokens.json

Each conversation is given as many tokens as are timed, so that none ends early. Rungs that ask read back
after each token how many conversations go on. Before anything is timed, each rung says texts of several
lengths, which are compared with those of NumPy. Medians, in turns, in one process. It needs a GPU, and if
PyTorch is there, that stands beside ours; with ``--device sim`` the times are modelled.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from in_turns import device_us, in_turns, medians

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import LanguageModel, load_language_model, reference_say
from asyncgpu_tutor.language import chances, slots

HEAT = 0.7
Talks = list[tuple[list[int], int]]  # of each slot: the prompt, and the place of the last token
Rungs = dict[str, Callable[[int], object]]  # each says so many tokens of every slot


class Ours:
    """The rungs of the package."""

    def __init__(self, model: LanguageModel, count: int) -> None:
        self.made = made = slots(model, count).sync()
        stream = agt.create_stream()
        heat = agt.pin(np.full(count, HEAT, np.float32))
        agt.memcpy(made.arrays["heat"].borrow(), heat).sync()
        self.flag, self.newcomers = agt.pinned(1, np.int32), made.newcomers()

        def asking(step: agt.DeviceOp[Any]) -> agt.DeviceOp[Any]:
            return agt.zip(step, agt.d2h(made.arrays["going"].borrow(), out=self.flag))

        def each(step: Callable[[], object], end: Callable[[], object]) -> Callable[[int], object]:
            def run(steps: int) -> None:
                for _ in range(steps):
                    step()
                end()

            return run

        def asked(launch: agt.DeviceOp[Any]) -> Callable[[int], object]:
            return each(partial(launch.sync_on, stream), lambda: None)

        def queued(launch: agt.DeviceOp[Any]) -> Callable[[int], object]:
            return each(partial(launch.async_on, stream), stream.synchronize)

        def loop(step: agt.DeviceOp[Any]) -> Callable[[int], object]:
            whole = agt.CudaGraph.while_loop(made.arrays["going"].borrow(), step)
            launch = whole.graph_on(stream).launch()
            return lambda steps: launch.sync_on(stream)

        def graph(op: agt.DeviceOp[Any]) -> agt.DeviceOp[Any]:
            return op.graph_on(stream).launch()

        alone = made.talk().prepare().launch()
        self.rungs: Rungs = {
            "Python": each(lambda: asking(made.step()).sync_on(stream), lambda: None),
            "prepared": asked(asking(made.step()).prepare().launch()),
            "graph": asked(graph(asking(made.step()))),
            "graph, nobody asks": queued(graph(made.step())),
            "while node": loop(made.step()),
            "fused graph": asked(graph(asking(made.fused_step()))),
            "fused graph, nobody asks": queued(graph(made.fused_step())),
            "fused while node": loop(made.fused_step()),
            "one kernel, a block each": lambda steps: alone.sync_on(stream),
        }

    def seat(self, talks: Talks) -> None:
        """Let these conversations begin."""
        for slot, (prompt, last) in enumerate(talks):
            self.made.seat(self.newcomers, slot, prompt, last, seed=slot)
        self.made.admit(self.newcomers).sync()

    def texts(self) -> list[list[int]]:
        """The tokens that have been said in each slot."""
        arrays = self.made.arrays
        text, said = agt.zip(*[agt.d2h(arrays[name].borrow()) for name in ("text", "said")]).sync()
        return [row[: n + 1].tolist() for row, n in zip(text, said, strict=True)]


class Torch:
    """The same model in PyTorch: eager, as its CUDA graph, and compiled with ``reduce-overhead``."""

    def __init__(self, model: LanguageModel, count: int) -> None:
        import torch
        from torch import nn
        from torch.nn import functional

        size, heads, context = model.size, model.heads, model.context
        last = len(model.vocabulary) - 1
        self.model, self.torch = model, torch

        class Step(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                for name, w in model.weights.items():
                    self.register_buffer(name, torch.tensor(w, dtype=torch.float32))
                cache = model.layers, count, heads, context, size // heads
                for name in ("keys", "values"):
                    self.register_buffer(name, torch.zeros(cache))
                for name in ("token", "place"):
                    self.register_buffer(name, torch.zeros(count, dtype=torch.long))
                for name, kind in (("prompt", torch.long), ("chance", torch.float32)):
                    self.register_buffer(name, torch.zeros(count, context, dtype=kind))
                self.register_buffer("text", torch.zeros(count, context, dtype=torch.long))
                self.register_buffer("rows", torch.arange(count))
                self.register_buffer("all", torch.arange(context))

            def weighed(self, x: Any, gain: Any, weights: Any) -> Any:
                return functional.linear(functional.layer_norm(x, (size,), gain), weights)

            def forward(self) -> Any:
                place, rows = self.place, self.rows
                x = self.tokens[self.token] + self.places[place]
                seen = (self.all[None] <= place[:, None])[:, None, None]
                for i in range(model.layers):
                    qkv = self.weighed(x, self.gain_1[i], self.qkv[i])
                    q, k, v = qkv.view(count, 3, heads, -1).unbind(1)
                    self.keys[i, rows, :, place] = k
                    self.values[i, rows, :, place] = v
                    y = functional.scaled_dot_product_attention(
                        q[:, :, None], self.keys[i], self.values[i], attn_mask=seen
                    )
                    x = x + functional.linear(y.reshape(count, size), self.out[i])
                    y = self.weighed(x, self.gain_2[i], self.wide[i])
                    y = functional.gelu(y, approximate="tanh")
                    x = x + functional.linear(y, self.narrow[i])
                logits = self.weighed(x, self.gain, self.tokens).float()
                shares = (logits / HEAT).softmax(-1).cumsum(-1)
                aim = self.chance[rows, place][:, None] * shares[:, -1:]
                drawn = torch.searchsorted(shares, aim, right=True)[:, 0].clamp(max=last)
                place = place + 1
                given = self.prompt[rows, place]
                self.token.copy_(torch.where(given >= 0, given, drawn))
                self.text[rows, place] = self.token
                self.place.copy_(place)
                return self.token

        self.step = step = Step().cuda().eval()
        compiled = torch.compile(step, mode="reduce-overhead", fullgraph=True)
        self.captured: Any = None

        def asked(run: Callable[[], Any]) -> Callable[[int], None]:
            def say(steps: int) -> None:
                with torch.no_grad():
                    for _ in range(steps):
                        run()
                        step.token.cpu()

            return say

        def queued(steps: int) -> None:
            for _ in range(steps):
                self._replay()
            torch.cuda.synchronize()

        self.rungs: Rungs = {
            "PyTorch, eager": asked(step),
            "PyTorch, its graph": asked(self._replay),
            "PyTorch, its graph, nobody asks": queued,
            "PyTorch, compiled": asked(compiled),
        }

    def _replay(self) -> None:
        torch = self.torch
        if self.captured is None:
            kept = {name: buffer.clone() for name, buffer in self.step.named_buffers()}
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.no_grad(), torch.cuda.stream(side):
                for _ in range(3):
                    self.step()
            torch.cuda.current_stream().wait_stream(side)
            self.captured = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(self.captured):
                self.step()
            for name, buffer in self.step.named_buffers():
                buffer.copy_(kept[name])
        self.captured.replay()

    def seat(self, talks: Talks) -> None:
        torch, step = self.torch, self.step
        prompt = np.full(tuple(step.prompt.shape), -1)
        for slot, (given, _) in enumerate(talks):
            prompt[slot, : len(given)] = given
        drawn = np.stack([chances(self.model, slot) for slot in range(len(talks))])
        step.prompt.copy_(torch.from_numpy(prompt))
        step.chance.copy_(torch.from_numpy(drawn))
        step.token.copy_(torch.from_numpy(prompt[:, 0]))
        step.text[:, 0] = step.token
        step.place.zero_()
        torch.cuda.synchronize()

    def texts(self) -> list[list[int]]:
        """The tokens of each slot; these go on where ours stop."""
        return self.step.text.cpu().tolist()


def as_in_numpy(model: LanguageModel, side: Any, count: int, steps: int) -> dict[str, int]:
    """For each rung, how many conversations of several lengths are as in NumPy."""
    random, found = np.random.default_rng(1), dict[str, int]()
    tokens = len(model.vocabulary)
    talks = [
        (random.integers(1, tokens, 1 + slot % 5).tolist(), max(1 + slot % 5, steps - slot % 3))
        for slot in range(count)
    ]
    right = [
        reference_say(model, prompt, last, HEAT, chances(model, slot))[0]
        for slot, (prompt, last) in enumerate(talks)
    ]
    for name, run in [*side.rungs.items()]:
        side.seat(talks)
        try:
            run(steps)
        except RuntimeError as error:  # such as of PyTorch's compiler
            print(f"{name} is left out: {error}")
            del side.rungs[name]
            continue
        pairs = zip(side.texts(), right, strict=True)
        found[name] = sum(got[: len(text)] == text for got, text in pairs)
    return found


def measure(sides: list[Any], count: int, steps: int, turns: int) -> dict[str, float]:
    """Microseconds a token of all slots, of each rung."""
    random = np.random.default_rng(0)
    tokens = len(sides[0].made.model.vocabulary)
    talks: Talks = [(random.integers(1, tokens, steps).tolist(), steps) for _ in range(count)]
    side_of = {name: side for side in sides for name in side.rungs}
    ways = {name: partial(side.rungs[name], steps) for name, side in side_of.items()}

    seat = {name: partial(side.seat, talks) for name, side in side_of.items()}
    took = in_turns(ways, turns, before=lambda name: seat[name](), took=device_us)
    return {name: us / steps for name, us in medians(took).items()}


def table(found: Mapping[int, Mapping[str, float]]) -> str:
    """The times in rows of rungs."""
    names = [*next(iter(found.values()))]
    rows = [f"{'us a token, of all slots':36}" + "".join(f"{n:>9} slots" for n in found)]
    rows += [f"{name:36}" + "".join(f"{us[name]:15.1f}" for us in found.values()) for name in names]
    return "\n".join(rows)


def main(args: list[str] | None = None, model: LanguageModel | None = None) -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(description="Microseconds a token.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(args)
    model, device = model or load_language_model(), agt.use(given.device)
    torch = not device.simulated and find_spec("torch") is not None
    found: dict[int, dict[str, float]] = {}
    for count in given.slots:
        sides: list[Any] = [Ours(model, count)]
        sides += [Torch(model, count)] if torch else []
        for side in sides:
            for name, right in as_in_numpy(model, side, count, min(given.steps, 20)).items():
                print(f"{count} slots, {name}: {right} of {count} texts as in NumPy", flush=True)
        found[count] = measure(sides, count, given.steps, given.turns)
        if given.json:
            given.json.write_text(json.dumps({"device": repr(device), "us": found}, indent=1))
        print(table({count: found[count]}), flush=True)
    print(f"{device}\n{table(found)}")


if __name__ == "__main__":
    main()
