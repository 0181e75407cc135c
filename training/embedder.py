"""Train the embedder: questions near the passages that answer them.

A low-rank difference to MiniLM's layers, learned from the same questions as the
reader: written questions and their passages, with neighbours of a real search as hard
negatives where the reader's teacher sees no answer in them. On general text the
vectors are held to those of before, so that science and news lose nothing.

usage: python training/embedder.py FOLDER --out OUT [--hold-out KINDS] [--teacher T.pt]
"""

import argparse
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reader import DEVICE, Encoder, Reader, headed, loaded, read, weights_of
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, normalize
from transformers import BertConfig, BertModel

LONGEST = 256  # tokens, as in the product


class LowRank(torch.nn.Module):
    """A linear layer with a low-rank difference that is trained."""

    def __init__(self, layer: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        for weight in layer.parameters():
            weight.requires_grad = False
        self.down = torch.nn.Parameter(torch.randn(rank, layer.in_features) * 0.02)
        self.up = torch.nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        """Return the layer's output with the difference."""
        return self.layer(x) + (x @ self.down.T) @ self.up.T


class Embedder(torch.nn.Module):
    """MiniLM, its layers with low-rank differences."""

    def __init__(self, weights: dict[str, torch.Tensor], rank: int) -> None:
        super().__init__()
        config = BertConfig(
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.bert.load_state_dict(weights, strict=False)
        for weight in self.bert.parameters():
            weight.requires_grad = False
        if rank:
            for layer in self.bert.encoder.layer:
                for owner, name in (
                    (layer.attention.self, "query"),
                    (layer.attention.self, "key"),
                    (layer.attention.self, "value"),
                    (layer.attention.output, "dense"),
                    (layer.intermediate, "dense"),
                    (layer.output, "dense"),
                ):
                    setattr(owner, name, LowRank(getattr(owner, name), rank))

    def forward(self, ids, attention):
        """Return unit vectors."""
        hidden = self.bert(input_ids=ids, attention_mask=attention).last_hidden_state
        mask = attention.unsqueeze(-1).float()
        return normalize((hidden.float() * mask).sum(1) / mask.sum(1), dim=1)


class Texts:
    """Tokenised texts, each encoded once."""

    def __init__(self, path: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.no_padding()
        self.known: dict[str, np.ndarray] = {}

    def learn(self, texts: list[str]) -> None:
        """Encode all texts at once."""
        fresh = list(dict.fromkeys(t for t in texts if t not in self.known))
        for text, found in zip(fresh, self.tokenizer.encode_batch(fresh), strict=True):
            self.known[text] = np.array(found.ids, np.int64)

    def __call__(self, texts: list[str]):
        """Return ids and attention of a batch."""
        rows = [self.known[text] for text in texts]
        width = max(map(len, rows))
        ids, attention = np.zeros((2, len(rows), width), np.int64)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = row
            attention[n, : len(row)] = 1
        return torch.from_numpy(ids).to(DEVICE), torch.from_numpy(attention).to(DEVICE)


@torch.no_grad()
def vectors(model: Embedder, texts: Texts, wanted: list[str]) -> torch.Tensor:
    """Return the vector of each text."""
    model.eval()
    texts.learn(wanted)
    order = sorted(range(len(wanted)), key=lambda n: len(texts.known[wanted[n]]))
    out = torch.zeros(len(wanted), 384, device=DEVICE)
    for at in range(0, len(order), 512):
        part = order[at : at + 512]
        with torch.autocast(DEVICE, torch.bfloat16):
            out[part] = model(*texts([wanted[n] for n in part]))
    return out


def recall(model: Embedder, texts: Texts, pools: dict[str, Any]) -> dict[str, float]:
    """Return how often the own passage is among the ten nearest of its collection."""
    hits: list[bool] = []
    ranks: list[float] = []
    for passages, asked in pools.values():
        found = vectors(model, texts, passages)
        asking = vectors(model, texts, [question for question, _ in asked])
        scores = asking @ found.T
        own = torch.tensor([place for _, place in asked], device=DEVICE)
        above = (scores > scores.gather(1, own.unsqueeze(1))).sum(1)
        hits += (above < 10).tolist()
        ranks += (1 / (1 + above.float())).tolist()
    return {"recall@10": float(np.mean(hits)), "mrr": float(np.mean(ranks))}


def main() -> None:
    """Train as the command line says, and print what it bought."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="embedder")
    parser.add_argument("--hold-out")
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--hard", type=int, default=2)
    parser.add_argument("--scale", type=float, default=20.0)
    parser.add_argument(
        "--keep", type=float, default=1.0, help="weight of the old ways"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began, rng = time.time(), random.Random(options.seed)
    torch.manual_seed(options.seed)
    data, _ = loaded(options.folder, options.hold_out)
    everything, _ = loaded(options.folder, None)
    trained = {q["passage_id"] for q in data.questions}
    left = [q for q in everything.questions if q["passage_id"] not in trained]
    weights = weights_of(options.folder, "minilm")
    model = Embedder(weights, options.rank).to(DEVICE)
    before = Embedder(weights, 0).to(DEVICE)
    texts = Texts(options.folder / "minilm-tokenizer.json")
    pools = pools_of(everything, [q for q in left if q["answer"]])
    print("before", json.dumps(recall(before, texts, pools)), flush=True)
    pairs = training_pairs(data, options, rng)
    general = [
        r["passage"] for r in rng.sample(data.public, min(len(data.public), 16_000))
    ]
    asked = [
        r["question"] for r in rng.sample(data.public, min(len(data.public), 8_000))
    ]
    texts.learn([t for pair in pairs for t in (pair[0], pair[1], *pair[2])])
    texts.learn(general + asked)
    fit(model, before, texts, pairs, general + asked, options, rng)
    print(
        options.name,
        json.dumps(recall(model, texts, pools)),
        f"{len(pairs)} pairs, {time.time() - began:.0f} s",
        flush=True,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    learned = {
        name: weight.detach().half().cpu()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }
    torch.save(learned, options.out / f"{options.name}.pt")


def pools_of(data: Any, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, per source, its passages and the left-out questions with their places."""
    found: dict[str, Any] = {}
    for q in asked:
        texts = {headed(q["title"], q["passage"]) + q["passage"]: 0}
        for title, text in data.near.get(q["question"], []):
            texts.setdefault(headed(title, text) + text, 0)
        passages, questions, places = found.setdefault(q["source"], ([], [], {}))
        for text in texts:
            if text not in places:
                places[text] = len(passages)
                passages.append(text)
        own = headed(q["title"], q["passage"]) + q["passage"]
        questions.append((q["question"], places[own]))
    return {source: (p, q) for source, (p, q, _) in found.items()}


def training_pairs(
    data: Any, options: argparse.Namespace, rng: random.Random
) -> list[tuple[str, str, list[str]]]:
    """Return (question, its passage, hard negatives without an answer in them)."""
    answerable = [q for q in data.questions if q["answer"]]
    worth: dict[tuple[str, str], float] = {}
    if options.teacher:
        teacher = Reader("mpnet", weights_of(options.folder, "mpnet")).to(DEVICE)
        teacher.load_state_dict(torch.load(options.teacher, map_location=DEVICE))
        encoder = Encoder(options.folder / "mpnet-tokenizer.json")
        wanted = [
            (q["question"], *each)
            for q in answerable
            for each in data.near.get(q["question"], [])[:8]
        ]
        for pair, one in zip(wanted, read(teacher, encoder, wanted), strict=True):
            worth[pair[0], pair[2]] = one.worth
        del teacher
    pairs = []
    for q in answerable:
        near = data.near.get(q["question"], [])[:8]
        hard = [
            headed(title, text) + text
            for title, text in near
            if worth.get((q["question"], text), 0.0) < -1.0
        ]
        own = headed(q["title"], q["passage"]) + q["passage"]
        pairs.append((q["question"], own, hard))
    for q in data.judged:
        good = [p for p in q["passages"] if p["grade"] == 3]
        bad = [p for p in q["passages"] if p["grade"] == 0]
        if good and bad:
            best = rng.choice(good)
            pairs.append(
                (
                    q["question"],
                    headed(best["title"], best["text"]) + best["text"],
                    [headed(p["title"], p["text"]) + p["text"] for p in bad],
                )
            )
    return pairs


def fit(model, before, texts, pairs, general, options, rng) -> None:
    """Train the differences by contrast, holding general text to where it was."""
    weights = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(
        weights, lr=options.rate, weight_decay=0.01, fused=DEVICE == "cuda"
    )
    steps = options.epochs * (len(pairs) // options.size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min(1, (s + 1) / (0.1 * steps)) * max(0.02, 1 - s / steps),
    )
    for epoch in range(options.epochs):
        rng.shuffle(pairs)
        model.train()
        total = kept = torch.zeros((), device=DEVICE)
        for at in range(0, len(pairs) - options.size + 1, options.size):
            part = pairs[at : at + options.size]
            hard = [rng.sample(h, min(options.hard, len(h))) for *_, h in part]
            flat = [text for those in hard for text in those]
            same = torch.tensor([hash(p) for _, p, _ in part], device=DEVICE)
            with torch.autocast(DEVICE, torch.bfloat16):
                asking = model(*texts([q for q, _, _ in part]))
                found = model(*texts([p for _, p, _ in part] + flat))
            scores = options.scale * asking @ found.T
            # The same passage may stand in a batch twice: it is no negative.
            twins = same.unsqueeze(0) == same.unsqueeze(1)
            twins.fill_diagonal_(fill_value=False)
            scores[:, : len(part)] = scores[:, : len(part)].masked_fill(twins, -1e4)
            target = torch.arange(len(part), device=DEVICE)
            loss = cross_entropy(scores, target)
            some = rng.sample(general, options.size)
            with torch.autocast(DEVICE, torch.bfloat16):
                now = model(*texts(some))
                with torch.no_grad():
                    then = before(*texts(some))
            # Both where each text lies, and how all of them lie to each other.
            moved = (1 - (now * then).sum(1)).mean()
            bent = ((now @ now.T - then @ then.T) ** 2).mean()
            hold = moved + 10 * bent
            (loss + options.keep * hold).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            total, kept = total + loss.detach(), kept + hold.detach()
        count = max(1, len(pairs) // options.size)
        shown = float(total) / count, float(kept) / count
        print(
            f"  epoch {epoch + 1}: loss {shown[0]:.4f}, kept {shown[1]:.5f}", flush=True
        )
        if not math.isfinite(shown[0]):
            msg = "the loss is not finite"
            raise ValueError(msg)


if __name__ == "__main__":
    main()
