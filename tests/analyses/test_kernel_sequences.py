"""Recurring kernels on hand-made traces, and against counting by hand over random ones."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples


def sequences(b):
    return {item.kernel_names.replace(" → ", ""): item for item in b.rows("kernel_sequences")}


def row_of(b, names, at, *, dur=2, every=3, **more):
    for index, name in enumerate(names):
        b.device(at + every * index, dur, name=name, **more)


def test_count_times_and_gaps():
    b = TraceBuilder()
    b.step(1, 0, 100)
    row_of(b, "abc", 0)
    row_of(b, "x", 20)
    row_of(b, "abc", 40)
    row_of(b, "y", 60)
    found = sequences(b)
    assert set(found) == {"abc"}
    item = found["abc"]
    assert (item.count, item.device_time_ns, item.between_ns, item.mean_kernel_ns) == (2, 12_000, 4000, 2000)
    assert (item.kernels_each, item.fewer_launches) == (3, 4)


def test_a_part_that_occurs_elsewhere_too_has_its_own_row():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for index, names in enumerate(("abc", "x", "abc", "y", "ab", "z")):
        row_of(b, names, 15 * index)
    found = sequences(b)
    assert {names: item.count for names, item in found.items()} == {"abc": 2, "ab": 3}


def test_occurrences_do_not_overlap():
    b = TraceBuilder()
    b.step(1, 0, 100)
    row_of(b, "aaaaaaa", 0)
    assert {names: item.count for names, item in sequences(b).items()} == {"aa": 3, "aaa": 2}


def test_other_work_on_the_stream_parts_and_other_streams_do_not():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for at in (0, 20):
        row_of(b, "ab", at)
        b.device(at + 6, 1, name="Memset (Device)", cat="gpu_memset")
        row_of(b, "cd", at + 7)
        b.device(at + 1, 5, name=f"other{at}", stream=9)
    assert set(sequences(b)) == {"ab", "cd"}


def test_steps_part():
    b = TraceBuilder()
    for step, at in enumerate((0, 10, 20)):
        b.step(step, at, 10)
        b.launch(at, 1, at + 1, 2, name="a")
        b.launch(at + 2, 1, at + 4, 2, name="b")
    assert {names: item.count for names, item in sequences(b).items()} == {"ab": 3}


def test_overlapping_kernels_have_no_gap():
    b = TraceBuilder()
    b.step(1, 0, 100)
    row_of(b, "ab", 0, dur=5)
    row_of(b, "x", 20)
    row_of(b, "ab", 30, dur=5)
    assert sequences(b)["ab"].between_ns == 0


def test_most_launches_saved_come_first_and_fifty_are_kept():
    b = TraceBuilder()
    b.step(1, 0, 10_000)
    at = 0
    for index in range(60):
        for times in range(4 if index == 59 else 2):
            b.device(at, 1, name=f"first{index}")
            b.device(at + 2, 1, name=f"second{index}")
            b.device(at + 4, 1, name=f"parted{index}.{times}")
            at += 6
    found = b.rows("kernel_sequences")
    assert len(found) == 50
    assert found[0].kernel_names == "first59 → second59"


def test_nothing_recurs():
    b = TraceBuilder()
    b.device(0, 1)
    assert sequences(b) == {}
    b.device(2, 1, name="other")
    assert sequences(b) == {}


def test_only_compute_kernels_count():
    b = TraceBuilder()
    for at in range(4):
        b.device(at, 1, name="Memset (Device)", cat="gpu_memset")
    assert sequences(b) == {}


def counted_by_hand(rows):
    """Sequences by how often they occur, those that one longer sequence always holds left out."""
    raw = defaultdict(int)
    for row in rows:
        for length in range(2, 6):
            for at in range(len(row) - length + 1):
                raw[row[at : at + length]] += 1
    held = {
        part for more, times in raw.items() for part in (more[1:], more[:-1]) if len(part) > 1 and raw[part] == times
    }
    # `str.count` counts from the left and without overlap.
    counts = {part: sum(row.count(part) for row in rows) for part in raw.keys() - held}
    return {part: count for part, count in counts.items() if count > 1}


@examples(20)
@given(st.lists(st.text("abc", min_size=1, max_size=14), min_size=1, max_size=4))
def test_counts_agree_with_counting_by_hand(rows):
    b = TraceBuilder()
    for index, row in enumerate(rows):
        row_of(b, row, 100 * index)
        b.device(100 * index + 90, 1, name="Memset (Device)", cat="gpu_memset")
    expected = counted_by_hand(rows)
    found = {names: item.count for names, item in sequences(b).items()}
    assert found.items() <= expected.items()
    assert len(found) == min(len(expected), 50)


@pytest.mark.parametrize("letters", ["ab", "abcd", "abcdefghijkl"])
def test_of_many_sequences_the_best_are_kept(letters):
    row = "".join(random.Random(7).choices(letters, k=600))
    b = TraceBuilder()
    row_of(b, row, 0)
    saved = sorted((count * (len(part) - 1) for part, count in counted_by_hand([row]).items()), reverse=True)
    assert len(saved) > 50
    assert [item.fewer_launches for item in b.rows("kernel_sequences")] == saved[:50]
