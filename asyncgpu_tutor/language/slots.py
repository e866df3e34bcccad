"""Slots: seats for conversations with a language model, which get a token each in every step.

A GPU says one token for thirty-two people in hardly more time than for one, since both wait for the same
weights. But people don't begin together, and their texts differ in length. So a step must not care: each slot
has a length of its own, a free one costs next to nothing, and whoever leaves makes room for the next one
between two steps.

Hence everything that a step needs to know lies on the device: what is said, how much, and where it ends. The
host may enqueue many steps ahead, look at the results later, and need not know who was still talking. All
steps are the same launches with the same arguments, which is what a graph wants. New conversations come in as
one array in pinned memory, whose copy is a part of the step.

It breaks if anybody writes to that array before the step that reads it is over. The simulated device says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor.data import LanguageModel
from asyncgpu_tutor.data.language import WEIGHT_NAMES
from asyncgpu_tutor.errors import ArrayShapeError, UsageError, demand, whole

_SOURCES = [Path(__file__).with_name(name) for name in ("kernels.cu", "talk.cu")]
_SET, _SET_GELU, _ADD = range(3)  # as in kernels.cu
# Numbers of a newcomer: is it new, tokens of its prompt, place of the last token, seed, and bits of the heat.
_BEFORE_PROMPT = 5
_AS_IT_IS = -1  # of the heat: the bits of no number from 0 on
_MOST_HEAT = 1000  # all tokens are equally likely long before


def slots(model: LanguageModel, count: int) -> agt.DeviceOp[Slots]:
    """Put a model on the device, with seats for so many conversations, all of them free.

    Raises
    ------
    UsageError
        If `count` is not a positive integer.
    """
    demand(model, LanguageModel, "slots are of a LanguageModel")
    count = whole("the number of slots", count, 1)
    size, places = model.size, (count, model.context)
    keys, words = (model.layers, count, model.context * size), len(model.vocabulary)
    rows = {"x": size, "y": size, "qkv": 3 * size, "wide": 4 * size, "logits": words}
    shapes: dict[str, tuple[int, ...]] = {name: (count, length) for name, length in rows.items()}
    shapes |= {"chance": places, "heat": (count,), "keys": keys, "values": keys}
    numbers = {"prompt": places, "text": places, "news": (count, _BEFORE_PROMPT + model.context)}
    numbers |= {"token": (count,), "said": (count,), "last": (count,), "going": (1,), "queue": (1,)}
    made = {f"weights of {name}": agt.h2d(agt.pin(w), name) for name, w in model.weights.items()}
    made["weights of logits"] = agt.h2d(agt.pin(model.weights["tokens"]), "logits' weights")
    made |= {name: agt.zeros(shape, name=name) for name, shape in shapes.items()}
    made |= {name: agt.zeros(shape, np.int32, name=name) for name, shape in numbers.items()}
    made["length"] = agt.full((count,), -1, np.int32, name="length")
    return agt.zip(*made.values()).map(
        lambda arrays: Slots(model, count, dict(zip(made, arrays, strict=True)))
    )


class Slots:
    """A model on the device, and seats for conversations with it. Made by `slots`.

    Attributes
    ----------
    model : LanguageModel
    count : int
        Number of seats.
    arrays : mapping of str to DeviceArray
        Weights (those of the last layer are ``weights of logits``, apart from the tokens', so that they can
        be trained alone), what a step writes on its way, and what is known of each seat: ``length`` (the
        place of the token that is read now, -1 in a free seat), ``token``, ``text``, ``said`` (the last
        place), ``last``, ``prompt``, ``heat`` and ``chance``; and ``going``, the number of taken seats.
    """

    def __init__(
        self, model: LanguageModel, count: int, arrays: Mapping[str, agt.DeviceArray]
    ) -> None:
        self.model, self.count, self.arrays = model, count, arrays
        sizes = {"SIZE": model.size, "HEADS": model.heads, "CONTEXT": model.context}
        sizes["VOCABULARY"] = len(model.vocabulary)
        defines = "".join(f"#define {name} {value}\n" for name, value in sizes.items())
        self._source = defines + "".join(file.read_text(encoding="utf-8") for file in _SOURCES)
        self._kernels: dict[str, agt.Kernel] = {}

    def __repr__(self) -> str:
        return (
            f"<Slots: {self.count} of a model of {self.model.layers} layers of {self.model.size}>"
        )

    # ------------------------------------------------------------------ a step
    def step(self) -> agt.DeviceOp[Any]:
        """One token for each seat that is taken: seven launches a layer, and four more."""
        return self._step_with(self._from_norm)

    def fused_step(self) -> agt.DeviceOp[Any]:
        """The same in five launches a layer, and three more: `layer_norm` and what follows are one."""
        return self._step_with(self._fused)

    def _step_with(self, from_norm: Callable[..., list[agt.DeviceOp[Any]]]) -> agt.DeviceOp[Any]:
        done = [self._embed()]
        for layer in range(self.model.layers):
            done += [
                *from_norm(layer, "gain_1", "qkv", _SET, "qkv"),
                self._attention(layer),
                self._linear(layer, "out", _ADD, "y", "x"),
                *from_norm(layer, "gain_2", "wide", _SET_GELU, "wide"),
                self._linear(layer, "narrow", _ADD, "wide", "x"),
            ]
        done += [*from_norm(0, "gain", "logits", _SET, "logits"), self._choose()]
        return agt.zip(*done).named("step")

    def talk(self, blocks: int | None = None) -> agt.DeviceOp[Any]:
        """Let each seat that is taken say its text to the end, in one launch of a block for each.

        With fewer `blocks` than slots, a block that is done takes the next slot.
        """
        weights = [f"weights of {name}" for name in (*WEIGHT_NAMES, "logits")]
        seats = "keys", "values", "heat", "chance", "prompt", "last", "text", "token", "length"
        given = self.model.layers, self.count, *weights, *seats, "said", "going", "queue"
        blocks = self.count if blocks is None else blocks
        return self._launch("talk", *given, grid=blocks, block=4 * self.model.size)

    def _launch(
        self, name: str, *args: Any, grid: int | tuple[int, int], block: int
    ) -> agt.DeviceOp[Any]:
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = agt.Kernel(self._source, name, contract=True)
        arrays = [self.arrays[arg].borrow() if isinstance(arg, str) else arg for arg in args]
        return kernel(*arrays, grid=grid, block=block)

    def _embed(self) -> agt.DeviceOp[Any]:
        given = "length", "token", "weights of tokens", "weights of places", "x"
        return self._launch("embed", *given, grid=self.count, block=self.model.size)

    def _from_norm(
        self, layer: int, gain: str, name: str, how: int, to: str
    ) -> list[agt.DeviceOp[Any]]:
        given = layer, "length", f"weights of {gain}", "x", "y"
        norm = self._launch("layer_norm", *given, grid=self.count, block=self.model.size)
        return [norm, self._linear(layer, name, how, "y", to)]

    def _linear(self, layer: int, name: str, how: int, x: str, y: str) -> agt.DeviceOp[Any]:
        rows, columns = self.arrays[f"weights of {name}"].shape[-2:]
        given = rows, columns, how, layer, "length", f"weights of {name}", x, y
        return self._launch("linear", *given, grid=(-(-rows // 8), self.count), block=256)

    def _fused(
        self, layer: int, gain: str, name: str, how: int, to: str
    ) -> list[agt.DeviceOp[Any]]:
        rows, columns = self.arrays[f"weights of {name}"].shape[-2:]
        weights = f"weights of {gain}", f"weights of {name}"
        given = rows, columns, how, layer, "length", *weights, "x", to
        return [self._launch("norm_linear", *given, grid=(-(-rows // 8), self.count), block=256)]

    def _attention(self, layer: int) -> agt.DeviceOp[Any]:
        given = layer, "length", "qkv", "keys", "values", "y"
        return self._launch("attention", *given, grid=(self.model.heads, self.count), block=128)

    def _choose(self) -> agt.DeviceOp[Any]:
        of_seats = "heat", "chance", "prompt", "last", "text", "token", "length", "said", "going"
        return self._launch("choose", "logits", *of_seats, grid=self.count, block=128)

    # ------------------------------------------------------------------ who sits where
    def newcomers(self) -> npt.NDArray[np.int32]:
        """An array in pinned memory for `admit`, with nobody in it."""
        newcomers = agt.pinned((self.count, _BEFORE_PROMPT + self.model.context), np.int32)
        newcomers[:] = 0
        return newcomers

    def seat(
        self,
        newcomers: npt.NDArray[np.int32],
        slot: int,
        prompt: Sequence[int],
        last: int | None = None,
        seed: int = 0,
        heat: float | None = None,
    ) -> None:
        """Write a conversation for a slot into an array of `newcomers`; somebody who sits there has to go.

        Parameters
        ----------
        prompt : sequence of int
            Its first tokens, at least one.
        last : int, optional
            The place of its last token at the latest; by default the model's last.
        seed : int
            Decides what is drawn, together with the place, whoever else is there: see `chances`.
        heat : float, optional
            What its logits are divided by, from 0 to 1000; by default as it was in that slot.

        Raises
        ------
        UsageError
            If there is no such slot, or a token that the model doesn't have, or the prompt doesn't fit, or
            the heat or the seed is no such number.
        """
        last = self.model.context - 1 if last is None else whole("the last place", last)
        self._check(slot, newcomers)
        check_text(self.model, prompt, last, 0 if heat is None else heat)
        bits = _AS_IT_IS if heat is None else np.float32(heat).view(np.int32)
        bits_of_seed = np.uint32(whole("the seed", seed) & 0xFFFFFFFF).view(np.int32)
        newcomers[slot, :_BEFORE_PROMPT] = 1, len(prompt), last, bits_of_seed, bits
        newcomers[slot, _BEFORE_PROMPT : _BEFORE_PROMPT + len(prompt)] = prompt

    def leave(self, newcomers: npt.NDArray[np.int32], slot: int) -> None:
        """Write into such an array that whoever sits in a slot has to go before the text is over."""
        self._check(slot, newcomers)
        newcomers[slot, :_BEFORE_PROMPT] = 1, 0, 0, 0, _AS_IT_IS

    def _check(self, slot: int, newcomers: npt.NDArray[np.int32]) -> None:
        whole("a slot", slot, 0, self.count - 1)
        wanted = self.count, _BEFORE_PROMPT + self.model.context
        if np.shape(newcomers) != wanted:
            raise ArrayShapeError(
                f"the newcomers of these slots have shape {wanted}, and got {np.shape(newcomers)}"
            )

    def admit(self, newcomers: npt.NDArray[np.int32]) -> agt.DeviceOp[Any]:
        """Let the newcomers take their seats: a copy and a launch, at the head of a step.

        Their array must stay as it is until they are done.
        """
        self._check(0, newcomers)
        given = "news", "prompt", "last", "heat", "chance", "text", "token", "length", "going"
        copy = agt.memcpy(self.arrays["news"].borrow(), newcomers)
        return agt.zip(copy, self._launch("admit", *given, grid=self.count, block=128))


def check_text(model: LanguageModel, prompt: Sequence[int], last: int, heat: float) -> None:
    """`UsageError` if a model can't say such a text: see `Slots.seat`."""
    most = model.context - 1
    demand(prompt, (Sequence, np.ndarray), "a prompt is a sequence of tokens")
    if not 1 <= len(prompt) <= last <= most:
        raise UsageError(
            f"a text has at least one token of a prompt, at most {most + 1} in all, and ends at a place "
            f"behind its prompt: got a prompt of {len(prompt)} that should end at place {last}"
        )
    model.check_tokens(prompt)
    # None would leave the heat of whoever had the seat before.
    if not isinstance(heat, Real) or not 0 <= heat <= _MOST_HEAT:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise UsageError(f"the heat is a number from 0 to {_MOST_HEAT}, and got {heat!r:.99}")


def chances(model: LanguageModel, seed: int) -> npt.NDArray[np.float32]:
    """The numbers that decide what a conversation of this seed says: one for each place, from 0 to 1."""
    with np.errstate(over="ignore"):
        first = np.uint32(whole("the seed", seed) & 0xFFFFFFFF) * np.uint32(model.context)
        r = np.arange(model.context, dtype=np.uint32) + first
        r = r * np.uint32(747796405) + np.uint32(2891336453)
        r = ((r >> ((r >> 28) + 4)) ^ r) * np.uint32(277803737)
    return (((r >> 22) ^ r) >> 8).astype(np.float32) * np.float32(2.0**-24)
