"""Sequences matched in order: as many pairs as possible, and never quadratic work."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.comparison import align as module
from traceanalyze.comparison.align import align

tokens = st.lists(st.integers(0, 3), max_size=40)


def aligned(a, b):
    i, j = align(np.array(a, np.int64), np.array(b, np.int64))
    return list(zip(i.tolist(), j.tolist(), strict=True))


def longest(a, b):
    """Length of the longest common subsequence by the textbook table."""
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for place, y in enumerate(b):
            row.append(above[place] + 1 if x == y else max(row[-1], above[place + 1]))
        above = row
    return above[-1]


def check(a, b):
    pairs = aligned(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    return pairs


@given(a=tokens, b=tokens)
def test_no_matching_in_order_has_more_pairs(a, b):
    assert len(check(a, b)) == longest(a, b)


@given(a=tokens, b=tokens, band=st.integers(1, 8))
def test_the_same_when_the_band_is_narrow_at_first(a, b, band):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST_BAND", band)
        assert len(check(a, b)) == longest(a, b)


@given(a=tokens, b=tokens, bits=st.integers(1, 200))
def test_a_band_that_may_not_be_widened_still_matches_equal_tokens_in_order(a, b, bits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST_BAND", 2)
        patch.setattr(module, "MEMORY_BITS", bits)
        assert len(check(a, b)) <= longest(a, b)


@given(a=tokens, b=tokens)
def test_swapping_the_sequences_swaps_the_pairs(a, b):
    assert aligned(a, b) == [(i, j) for j, i in aligned(b, a)]


@given(st.data(), st.lists(st.integers(0, 5), max_size=300))
def test_a_sequence_with_tokens_inserted_keeps_all_its_partners(data, a):
    b = list(a)
    for _ in range(data.draw(st.integers(0, 60))):
        b.insert(data.draw(st.integers(0, len(b))), data.draw(st.integers(0, 5)))
    assert [i for i, _ in check(a, b)] == list(range(len(a)))


def operations(monkeypatch, a, b):
    """Bits of all rows of all tables."""
    done = []
    original = module.lengths

    def counted(first, second, band):
        rows = original(first, second, band)
        done.extend(bits.bit_length() for bits in rows.bits)
        return rows

    monkeypatch.setattr(module, "lengths", counted)
    aligned(a, b)
    monkeypatch.undo()
    return sum(done)


def test_three_repeating_names_with_some_inserted_take_linear_work(monkeypatch):
    def work(size):
        a = [place % 3 for place in range(size)]
        b = [token for place, token in enumerate(a) for token in ([token, 1] if place % (size // 50) == 7 else [token])]
        return operations(monkeypatch, a, b)

    five, ten, twenty = work(5000), work(10000), work(20000)
    assert five > 0
    assert ten < 2.2 * five
    assert twenty < 2.2 * ten


def test_equal_sequences_take_none(monkeypatch):
    assert operations(monkeypatch, [0, 1, 2] * 7000, [0, 1, 2] * 7000) == 0


def test_sequences_that_have_nothing_in_common_stay_within_the_bound(monkeypatch):
    rng = np.random.default_rng(0)
    for size in (20_000, 40_000):
        a, b = (rng.integers(0, 3, size).tolist() for _ in range(2))
        assert operations(monkeypatch, a, b) < 2 * module.MEMORY_BITS
