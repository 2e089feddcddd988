"""A small GPT-2: learned positions, pre-norm blocks, attention written out or fused, shared embedding."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Attention and a feed-forward layer, each with its norm and a way around."""

    def __init__(self, width: int, heads: int, *, fused_attention: bool) -> None:
        super().__init__()
        self.heads, self.fused_attention = heads, fused_attention
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project_in, self.project_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_attention(x))
        return x + self.feed(self.norm_feed(x))

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.project_in(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = split
        if self.fused_attention:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ value
        return self.project_out(mixed.transpose(1, 2).reshape(batch, length, width))


class GPT(nn.Module):
    """Tokens to the loss of the next one."""

    def __init__(
        self, *, vocabulary: int, layers: int, width: int, heads: int, length: int, sdpa: bool, checkpointing: bool
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, fused_attention=sdpa) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.checkpointing = checkpointing

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.tokens(inputs) + self.positions(torch.arange(inputs.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())
