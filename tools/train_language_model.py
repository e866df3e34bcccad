"""Train the language model of `agt.data`: ``python tools/train_language_model.py``. Needs a GPU and PyTorch.

The text is what learners read: the prose of the pages, what their guesses tell, hints, explanations, and
the docs for learners, a paragraph a line. A twentieth of the paragraphs is held out: the curve tells when
the model stops learning and goes on memorising, which here is what we want.

Everything random has a seed, and PyTorch is asked for deterministic kernels, so the same text on the same GPU
gives the same weights. Half of the texts of a batch begin with a paragraph, since that is how a conversation
begins, and half anywhere.

``--corpus FILE`` writes the text and trains nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from asyncgpu_tutor.data import LanguageModel
from asyncgpu_tutor.data.language import END, WEIGHT_NAMES, WORDLIKE

ROOT = Path(__file__).resolve().parents[1]
DOCS = ("glossary", "misconceptions", "from_cupy", "microscope", "profiling", "cluster")
PLAIN = str.maketrans(
    dict(zip("\u00b5\u201c\u201d\u2019\u2018\u2013\u00d7\u2212", "u\"\"''-x-", strict=True))
)
NOT_PROSE = re.compile(r"```.*?```|<[^>]+>|\$\$.*?\$\$", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
RARE = 20  # a paragraph with a character that is seen less often is left out

VOCABULARY, SIZE, HEADS, LAYERS, CONTEXT = 512, 128, 4, 3, 128
STEPS, BATCH, RATE, LOOK = 9_000, 64, 2e-3, 300


# ---------------------------------------------------------------------- the text
def markdown(root: Path) -> Iterator[str]:
    """All Markdown that learners read."""
    for file in sorted((root / "solutions").glob("*.ipynb")):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for folder in ("answers", "guesses"):
        for file in sorted((root / "asyncgpu_course" / "exercises" / folder).glob("*.json")):
            yield from words_of(json.loads(file.read_text("utf-8")))
    for name in DOCS:
        yield (root / "docs" / f"{name}.md").read_text("utf-8")


def words_of(stored: Any) -> Iterator[str]:
    """The strings of an answer or a guess that are prose."""
    if isinstance(stored, dict):
        for name, part in stored.items():
            if name not in {"starter", "solution", "slips"}:
                yield from words_of(part)
    elif isinstance(stored, list):
        for part in stored:
            yield from words_of(part)
    elif isinstance(stored, str):
        yield stored


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of Markdown in plain characters; an entry of a list is one, a title is none."""
    text = LINK.sub(r"\1", NOT_PROSE.sub("", text))
    text = re.sub(r"^\s*(\||#).*$", "", text, flags=re.MULTILINE)
    for part in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+", text):
        plain = re.sub(r"[*`>]", "", part.translate(PLAIN))
        plain = re.sub(r"\s+", " ", "".join(ch for ch in plain if ch.isascii())).strip(" -")
        letters = sum(ch.isalpha() or ch == " " for ch in plain)
        if len(plain.split()) >= 5 and letters >= 0.85 * len(plain) and plain[-1] in ".:?!)":
            yield plain


def corpus(root: Path = ROOT) -> list[str]:
    """All paragraphs, each once."""
    found = list(dict.fromkeys(p for text in markdown(root) for p in paragraphs(text)))
    seen = Counter("".join(found))
    return [paragraph for paragraph in found if all(seen[ch] >= RARE for ch in paragraph)]


# ---------------------------------------------------------------------- the tokens
def pairs_of(text: str, size: int) -> tuple[str, ...]:
    """A vocabulary by byte-pair encoding: the commonest pair becomes a token, again and again.

    Sennrich, Haddow and Birch (2016), https://arxiv.org/abs/1508.07909. Of two as common, the first by name.
    """
    pieces = Counter(WORDLIKE.findall(text))
    parts = {piece: tuple(piece) for piece in pieces if piece != "\n"}
    vocabulary = ["\n", *sorted({ch for piece in parts for ch in piece})]
    while len(vocabulary) < size:
        counts = Counter[tuple[str, str]]()
        for piece, part in parts.items():
            for pair in pairwise(part):
                counts[pair] += pieces[piece]
        a, b = min(counts, key=lambda pair: (-counts[pair], pair))
        vocabulary.append(a + b)
        for piece, part in parts.items():
            if a + b in piece:
                parts[piece] = tuple(joined(part, a, b))
    return tuple(vocabulary)


def joined(part: tuple[str, ...], a: str, b: str) -> Iterator[str]:
    """A piece with one pair joined, wherever it stands in it."""
    at = 0
    while at < len(part):
        both = part[at : at + 2] == (a, b)
        yield a + b if both else part[at]
        at += 1 + both


# ---------------------------------------------------------------------- the training
def train(text: list[str], held_out: list[str], vocabulary: tuple[str, ...]) -> LanguageModel:
    """Train with PyTorch; see the constants above."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch
    from torch.nn import functional

    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    empty = LanguageModel(vocabulary, {}, HEADS, np.zeros((0, 3), np.float32))

    def tokens(paragraphs: list[str]) -> Any:
        found = [END]
        for paragraph in paragraphs:
            found += [*empty.encode(paragraph), END]
        return torch.tensor(found, device="cuda")

    learned, unseen = tokens(text), tokens(held_out)
    weights: dict[str, Any] = {}
    narrow = 0.02 / math.sqrt(2 * LAYERS)
    for name, shape, spread in (
        ("tokens", (VOCABULARY, SIZE), 0.02),
        ("places", (CONTEXT, SIZE), 0.02),
        ("qkv", (LAYERS, 3 * SIZE, SIZE), 0.02),
        ("out", (LAYERS, SIZE, SIZE), narrow),
        ("wide", (LAYERS, 4 * SIZE, SIZE), 0.02),
        ("narrow", (LAYERS, SIZE, 4 * SIZE), narrow),
    ):
        weights[name] = torch.normal(0.0, spread, shape, device="cuda").requires_grad_()
    for name, shape in (("gain_1", (LAYERS, SIZE)), ("gain_2", (LAYERS, SIZE)), ("gain", (SIZE,))):
        weights[name] = torch.ones(shape, device="cuda").requires_grad_()

    def logits(ids: Any) -> Any:
        x = weights["tokens"][ids] + weights["places"][: ids.shape[1]]
        many, long = ids.shape
        for layer in range(LAYERS):
            y = functional.layer_norm(x, (SIZE,), weights["gain_1"][layer])
            heads = functional.linear(y, weights["qkv"][layer]).view(many, long, 3, HEADS, -1)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            mix = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + functional.linear(
                mix.transpose(1, 2).reshape(many, long, SIZE), weights["out"][layer]
            )
            y = functional.layer_norm(x, (SIZE,), weights["gain_2"][layer])
            y = functional.gelu(functional.linear(y, weights["wide"][layer]), approximate="tanh")
            x = x + functional.linear(y, weights["narrow"][layer])
        return functional.linear(
            functional.layer_norm(x, (SIZE,), weights["gain"]), weights["tokens"]
        )

    def loss(data: Any, starts: Any) -> Any:
        ids = data[starts[:, None] + torch.arange(CONTEXT + 1, device="cuda")]
        return functional.cross_entropy(logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    most = len(learned) - CONTEXT - 2
    begins = (learned[:most] == END).nonzero().flatten()
    spaced = torch.linspace(0, len(unseen) - CONTEXT - 2, BATCH, device="cuda").long()
    matrices = [w for name, w in weights.items() if not name.startswith("gain")]
    gains = [w for name, w in weights.items() if name.startswith("gain")]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))
    curve: list[tuple[float, float, float]] = []
    for step in range(STEPS):
        rate = RATE * min(1, (step + 1) / 200) * (0.525 + 0.475 * math.cos(math.pi * step / STEPS))
        for group in optimiser.param_groups:
            group["lr"] = rate
        anywhere = torch.randint(0, most, (BATCH // 2,), device="cuda")
        from_begin = begins[torch.randint(0, len(begins), (BATCH // 2,), device="cuda")]
        now = loss(learned, torch.cat([anywhere, from_begin]))
        optimiser.zero_grad()
        now.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimiser.step()
        if step % LOOK == 0 or step == STEPS - 1:
            with torch.no_grad():
                curve.append((step, float(now), float(loss(unseen, spaced))))
            print(
                f"step {step}: {curve[-1][1]:.3f} nats a token, held out {curve[-1][2]:.3f}",
                flush=True,
            )
    floats = {name: weight.detach().cpu().numpy() for name, weight in weights.items()}
    return LanguageModel(vocabulary, floats, HEADS, np.array(curve, np.float32))


def save_language_model(model: LanguageModel, file: Path) -> None:
    """Store it: a byte for each weight of a matrix, and a scale for each of its rows."""
    stored: dict[str, np.ndarray] = {}
    for name in WEIGHT_NAMES:
        weights = model.weights[name]
        if name.startswith("gain"):
            stored[name] = weights.astype(np.float16)
            continue
        scale = (np.abs(weights).max(-1, keepdims=True) / 127).astype(np.float16)
        stored[f"{name}_scale"] = scale
        stored[name] = np.rint(weights / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
    stored["vocabulary"], stored["heads"] = np.array(model.vocabulary), np.array(model.heads)
    stored["curve"] = model.curve
    np.savez_compressed(file, **stored)


def main() -> None:
    """Train, and write the file that the package ships."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="write the text here, and train nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "asyncgpu_tutor/data/language.npz")
    given = parser.parse_args()
    found = corpus()
    words = sum(len(paragraph.split()) for paragraph in found)
    print(f"{len(found):,} paragraphs, {words:,} words, {len(set(''.join(found)))} characters")
    if given.corpus:
        given.corpus.write_text("\n".join(found) + "\n", encoding="utf-8")
        return
    order = np.random.default_rng(0).permutation(len(found))
    shuffled = [found[i] for i in order]
    cut = len(shuffled) // 20
    vocabulary = pairs_of("\n".join(shuffled), VOCABULARY)
    model = train(shuffled[cut:], shuffled[:cut], vocabulary)
    save_language_model(model, given.out)
    print(f"{given.out}: {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
