"""Columns and dictionary-coded strings against what NumPy and plain Python say of the same values."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceanalyze.model import columns, intervals
from traceanalyze.model.columns import (
    Sparse,
    Strings,
    distinct,
    distinct_codes,
    find,
    median,
    occurs,
    rows_of,
    strings_of,
    taken,
    width,
)
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import dataclass

NUMBERS = st.lists(st.integers(-(2**62), 2**62), max_size=30)
FEW = st.lists(st.integers(-3, 3), max_size=30)


def strings(*texts):
    offsets = np.cumsum([0, *map(len, texts)])
    return Strings(np.frombuffer(b"".join(texts), np.uint8), offsets)


@given(FEW | NUMBERS, FEW | NUMBERS)
def test_occurs_is_membership(values, among):
    found = occurs(np.array(values, np.int64), np.array(among, np.int64))
    assert found.tolist() == [value in set(among) for value in values]


@given(FEW | NUMBERS)
def test_distinct_values_ascend(values):
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_distinct_codes_are_those_of_unique(dtype):
    codes = np.array([7, 2, 7, 0, 2], dtype)
    found, position = distinct_codes(codes, 9)
    assert found.tolist() == [0, 2, 7]
    assert found[position].tolist() == codes.tolist()


def test_texts_are_decoded_one_by_one_and_together_alike():
    known = strings(b"", b"aten::mm", "多卡".encode(), b"\xff\xfe bad", b"aten::mm")
    codes = np.array([3, 1, 2, 0])
    assert list(known.texts(codes)) == [known.text(code) for code in codes.tolist()]
    assert list(known.texts(codes)) == ["�� bad", "aten::mm", "多卡", ""]


def test_a_value_is_looked_up_once_a_distinct_code_in_the_order_of_rows():
    known, asked = strings(b"", b"a", b"bb", b"ccc"), []

    def length(text):
        asked.append(text)
        return len(text)

    assert known.lookup(np.array([3, 1, 3, 1, 2], np.int32), length).tolist() == [3, 1, 3, 1, 2]
    assert asked == ["a", "bb", "ccc"]
    assert known.lookup(np.empty(0, np.int32), length).tolist() == []


@pytest.mark.parametrize("size", [5, 1000])
def test_a_sparse_column_is_taken_at_any_rows(size):
    column = Sparse(np.array([1, 4, size], np.uint32), np.array([10, 40, 99]))
    assert column.take(np.array([4, 0, -1, size, size + 1, 4]), -7).tolist() == [40, -7, -7, 99, -7, 40]
    assert column.take(np.empty(0, np.int64), -7).tolist() == []


@pytest.mark.skipif(columns._library() is None, reason="the native library was not built")
@given(
    st.sets(st.integers(0, 60), min_size=1),
    st.lists(st.integers(-1, 70), min_size=1),
    st.sampled_from((np.int64, np.int32, np.float64)),
)
def test_native_and_twin_take_alike(known, rows, dtype):
    row = np.array(sorted(known), np.uint32)
    column, wanted = Sparse(row, (row * 3).astype(dtype)), np.array(rows, np.int64)
    found = column._take(wanted, -7, columns._library())
    np.testing.assert_array_equal(found, column._take_twin(wanted, -7))
    assert found.tolist() == [3 * each if each in known else -7 for each in rows]
    assert found.dtype == dtype


@given(FEW | NUMBERS, FEW | NUMBERS)
def test_a_value_is_found_where_it_is_first(values, among):
    found = find(np.array(values, np.int64), np.array(among, np.int64))
    assert found.tolist() == [among.index(value) if value in among else -1 for value in values]


def test_a_dictionary_of_texts_has_them_at_their_places():
    known = strings_of([b"", b"aten::mm", b"a"])
    assert (len(known), [known.raw(code) for code in range(3)]) == (3, [b"", b"aten::mm", b"a"])
    assert known.matches(np.array([2, 1, 0]), lambda text: text.startswith("a")).tolist() == [True, True, False]


def test_columns_asked_twice_and_others_in_their_place():
    known = strings(b"", b"one", b"two")
    for codes in ([1, 2], [2, 2], [0, 1]):
        asked = np.array(codes, np.int32)
        for _ in range(2):
            assert known.matches(asked, lambda text: text == "two").tolist() == [code == 2 for code in codes]
            assert known.lookup(asked, len).tolist() == [3 * (code > 0) for code in codes]


@given(NUMBERS | st.lists(st.floats(-1e18, 1e18), max_size=30))
def test_the_median_is_that_of_numpy(values):
    if values:
        assert median(np.array(values)) == np.median(np.array(values))
    else:
        assert math.isnan(median(np.array(values, np.int64)))


@dataclass(frozen=True, eq=False)
class Own:
    """As the standard one below."""

    first: int
    second: str = "b"
    more: list[int] = dataclasses.field(default_factory=list, repr=False)
    kept: dict[str, int] = dataclasses.field(default_factory=dict, init=False)


@dataclasses.dataclass(frozen=True, eq=False)
class Theirs:
    """As `Own`."""

    first: int
    second: str = "b"
    more: list[int] = dataclasses.field(default_factory=list, repr=False)
    kept: dict[str, int] = dataclasses.field(default_factory=dict, init=False)


@dataclass(frozen=True, eq=False, repr=False)
class Derived(Own):
    """With a field and words of its own."""

    third: int = 3

    def __repr__(self):
        return "derived"


GIVEN = [
    ((1,), {}),
    ((1, "x", [2]), {}),
    ((), {"second": "y", "first": 4}),
    ((), {}),
    ((1, "x", [2], {}), {}),
    ((1,), {"first": 1}),
    ((1,), {"fourth": 1}),
    ((), {"second": "x", "fourth": 1}),
    ((1,), {"kept": {}}),
]


@pytest.mark.parametrize(("values", "named"), GIVEN)
def test_immutable_classes_take_what_those_of_the_standard_library_take(values, named):
    try:
        expected = Theirs(*values, **named)
    except TypeError:
        with pytest.raises(TypeError):
            Own(*values, **named)
        return
    found = Own(*values, **named)
    assert list(vars(found).items()) == list(vars(expected).items())
    assert repr(found) == repr(expected).replace("Theirs", "Own")
    assert list(vars(pickle.loads(pickle.dumps(found))).items()) == list(vars(expected).items())
    assert found.more is not Own(*values, **named).more or "more" in named or len(values) > 2


def test_immutable_classes_are_immutable_and_compare_by_identity():
    one = Own(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.first
    assert one != Own(1)
    assert len({one, Own(1)}) == 2
    assert vars(dataclasses.replace(one, second="c")) == vars(Own(1, "c"))


def test_immutable_classes_are_derived_from():
    found = Derived(1, third=4)
    assert (found.first, found.second, found.third, repr(found)) == (1, "b", 4, "derived")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.third = 5


@pytest.mark.parametrize("wrong", [{"frozen": False, "eq": False}, {"frozen": True, "eq": True}])
def test_only_immutable_classes_are_made_so(wrong):
    with pytest.raises(TypeError):
        dataclass(**wrong)


@pytest.mark.skipif(columns._library() is None, reason="the native library was not built")
@given(st.lists(st.integers(0, 40), max_size=80), st.sampled_from((np.int32, np.int64)))
def test_native_and_twin_find_the_codes_present_alike(codes, dtype):
    given = np.array(codes, dtype)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "_SHORT", 0)
        assert columns._present(given, 41).tolist() == columns._present_twin(given, 41).tolist()
        # What is in no table is found by neither.
        outside = np.append(given, dtype(41))
        for find in (columns._present, columns._present_twin):
            with pytest.raises(IndexError):
                find(outside, 41)


@pytest.mark.skipif(columns._library() is None, reason="the native library was not built")
@given(st.lists(st.integers(0, 255) | st.integers(5, 7), max_size=100), st.integers(-9, 260), st.integers(-1, 255))
@example([0, 3] * 50, 256, 3)
@example([0, 3] * 50, 0, 255)
def test_native_and_twin_find_rows_alike(values, first, more):
    given, last = np.array(values, np.uint8), first + more
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "_SHORT", 0)
        found = rows_of(given, first, last)
    assert found.tolist() == columns._rows_of_twin(given, first, last).tolist()
    assert found.tolist() == [row for row, value in enumerate(values) if first <= value <= last]


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 23])
def test_large_tables_are_worked_on_in_stretches(monkeypatch, size):
    monkeypatch.setattr(intervals, "CHUNK", 7)
    rng = np.random.default_rng(size)
    assert [row for part in intervals.chunks(size) for row in range(size)[part]] == list(range(size))
    codes, table = rng.integers(0, 9, size).astype(np.int32), rng.integers(0, 1000, 9)
    assert taken(table, codes).tolist() == table[codes].tolist()
    known, of = distinct_codes(codes, 9)
    assert known[of].tolist() == codes.tolist()
    assert known.tolist() == sorted(set(codes.tolist()))
    inside = intervals.contains(Intervals(np.array([10, 40]), np.array([20, 41])), t := rng.integers(0, 50, size))
    assert inside.tolist() == [10 <= one < 20 or one == 40 for one in t.tolist()]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
def test_the_narrowest_type_of_whole_numbers_holds_the_ends_of_its_range_and_no_more(bits, kind):
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    for number, larger in ((least, least - 1), (most, most + 1)):
        if np.iinfo(kind).min <= number <= np.iinfo(kind).max:
            assert width(np.array([0, number], kind)) == np.dtype(f"<i{bits // 8}")
        if np.iinfo(kind).min <= larger <= np.iinfo(kind).max:
            assert width(np.array([larger, 0], kind)) == np.dtype(f"<i{bits // 4}")
