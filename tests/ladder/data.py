"""Random text, tokenised when it is asked for: the loader's work is real work, done in Python."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import torch
from torch.utils.data import Dataset


class Texts(Dataset[torch.Tensor]):
    """Sample i is the same tokens in every run. `merges` sets what it costs, as a tokeniser's merges do."""

    def __init__(self, samples: int, *, length: int, vocabulary: int, merges: int) -> None:
        self.samples, self.length, self.vocabulary, self.merges = samples, length, vocabulary, merges

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        choose = random.Random(index)
        tokens = [choose.randrange(128) for _ in range(4 * self.length)]
        for new in range(128, 128 + self.merges):
            tokens = merged(tokens, new % self.vocabulary)
        # Random text merges little; should it ever be too short, it is read again.
        return torch.tensor((tokens * 4)[: self.length])


def merged(tokens: list[int], new: int) -> list[int]:
    """The tokens with the most frequent pair replaced by one new token."""
    pair, _ = Counter(pairwise(tokens)).most_common(1)[0]
    result, at = [], 0
    while at < len(tokens):
        both = tuple(tokens[at : at + 2]) == pair
        result.append(new if both else tokens[at])
        at += 2 if both else 1
    return result
