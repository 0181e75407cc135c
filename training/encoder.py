"""MiniLM's layers for training: fast on a CPU too, with any number of texts at once."""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, INNER = 384, 12, 1536
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    """One transformer layer; the three projections of attention are one."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.wide = nn.Linear(WIDTH, INNER)
        self.narrow = nn.Linear(INNER, WIDTH)
        self.norm_out = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, hidden, mask, drop):
        """Attend and transform."""
        rows, length, _ = hidden.shape
        split = self.qkv(hidden).view(rows, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask
        )
        mixed = self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        hidden = self.norm(hidden + drop(mixed))
        inner = self.narrow(functional.gelu(self.wide(hidden)))
        return self.norm_out(hidden + drop(inner))


class Encoder(nn.Module):
    """MiniLM from its weights; the word embeddings stay as they are."""

    def __init__(self, weights: Mapping[str, torch.Tensor], dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

        def table(name: str, *, trained: bool) -> nn.Embedding:
            weight = weights[f"embeddings.{name}_embeddings.weight"].float()
            return nn.Embedding.from_pretrained(weight, freeze=not trained)

        self.words = table("word", trained=False)
        self.positions = table("position", trained=True)
        self.kinds = table("token_type", trained=True)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(6))
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith(("norm.", "layers.")):
                    parameter.copy_(torch.cat([weights[n] for n in _sources(name)]))

    def drop(self, values):
        """Drop features of whole texts: a mask for every value costs a quarter."""
        if not self.training or not self.dropout:
            return values
        shape = (values.shape[0], 1, values.shape[2])
        kept = torch.rand(shape, device=values.device) >= self.dropout
        return values * kept.to(values.dtype) / (1 - self.dropout)

    def forward(self, ids, kinds, attention):
        """Return the vector of every token."""
        rows, length = ids.shape
        hidden = self.words(ids) + self.positions.weight[:length] + self.kinds(kinds)
        hidden = self.drop(self.norm(hidden))
        half = torch.is_autocast_enabled(DEVICE)
        mask = torch.where(attention[:, None, None, :] == 1, 0.0, -1e4)
        mask = mask.to(torch.bfloat16 if half else hidden.dtype)
        mask = mask.expand(rows, 1, length, length)
        for layer in self.layers:
            hidden = layer(hidden, mask, self.drop)
        return hidden

    def exported(self) -> dict[str, torch.Tensor]:
        """Return the weights by the names that MiniLM has for them, without words."""
        found: dict[str, torch.Tensor] = {
            "embeddings.position_embeddings.weight": self.positions.weight,
            "embeddings.token_type_embeddings.weight": self.kinds.weight,
        }
        for name, parameter in self.named_parameters():
            if name.startswith(("norm.", "layers.")):
                sources = _sources(name)
                parts = parameter.chunk(len(sources))
                found |= dict(zip(sources, parts, strict=True))
        return {name: weight.detach().float().cpu() for name, weight in found.items()}


_PARTS = {
    "qkv": tuple(f"attention.self.{each}" for each in ("query", "key", "value")),
    "out": ("attention.output.dense",),
    "norm": ("attention.output.LayerNorm",),
    "wide": ("intermediate.dense",),
    "narrow": ("output.dense",),
    "norm_out": ("output.LayerNorm",),
}


def _sources(name: str) -> list[str]:
    """Return the names of the weights that a parameter is made of."""
    if name.startswith("norm."):
        return [f"embeddings.LayerNorm.{name.removeprefix('norm.')}"]
    _, layer, part, kind = name.split(".")
    return [f"encoder.layer.{layer}.{each}.{kind}" for each in _PARTS[part]]
