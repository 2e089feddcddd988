"""Numbers that stand for words in columns and files: none stands for two, and all are positions in arrays."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import pytest

from traceanalyze.analyses.steps import inference
from traceanalyze.model import kernel_classes, phases, snapshot, vocabulary

ENUMS = [
    each
    for module in (inference, kernel_classes, phases, snapshot, vocabulary)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, IntEnum | IntFlag) and each.__module__ == module.__name__
]


@pytest.mark.parametrize("words", ENUMS, ids=lambda words: words.__name__)
def test_every_word_has_a_number_of_its_own_from_0_on(words):
    numbers = [word.value for word in words.__members__.values()]
    counted = [0, *(1 << bit for bit in range(len(numbers) - 1))] if issubclass(words, IntFlag) else range(len(numbers))
    assert numbers == list(counted)
