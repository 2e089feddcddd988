from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.model import units


@pytest.mark.parametrize(
    ("ns", "resolution", "text"),
    [
        (177_592_167, 1000, "177.6 ms"),
        (141_068_000, 1000, "141.1 ms"),
        (9_492_000, 1, "9.492 ms"),
        (28_000, 1000, "28 µs"),
        (28_500, 1, "28.50 µs"),
        (135_000, 1000, "135 µs"),
        (999, 1, "999 ns"),
        (0, 1, "0 ms"),
        (12_920_000_000, 1, "12.92 s"),
        (86_400_000_000_000, 1, "86,400 s"),
        (-1_500_000, 1, "-1.500 ms"),
    ],
)
def test_a_duration_has_four_digits_and_never_more_than_the_clock(ns, resolution, text):
    assert units.duration(ns, resolution) == text


@pytest.mark.parametrize(
    ("longest", "resolution", "name", "digits"),
    [
        (177_592_167, 1000, "ms", 2),
        (8_179_000, 1, "ms", 3),
        (187_000, 1000, "µs", 0),
        (187_000, 1, "µs", 2),
        (1_008_570_000, 1, "ms", 2),
        (20_000_000_000, 1, "s", 2),
        (500, 1, "ns", 0),
        (0, 1, "ns", 0),
    ],
)
def test_a_column_has_one_unit(longest, resolution, name, digits):
    unit = units.column_unit(longest, resolution)
    assert (unit.name, unit.digits) == (name, digits)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.4336, "43 %"),
        (0.331, "33 %"),
        (0.0082, "0.8 %"),
        (0.0954, "9.5 %"),
        (0.0996, "10 %"),
        (0.993, "99.3 %"),
        (0.99999, ">99.9 %"),
        (0.0001, "<0.1 %"),
        (0, "0.0 %"),
        (1, "100 %"),
        (1.5, "150 %"),
    ],
)
def test_a_share_never_claims_none_or_all_by_rounding(share, text):
    assert units.percent(share) == text


@pytest.mark.parametrize(("value", "text"), [(9096, "9,096"), (80.5, "80.5"), (104.0, "104"), (0, "0")])
def test_counts_have_separators(value, text):
    assert units.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12 B"), (1500, "1.5 kB"), (12_345_678, "12.3 MB"), (203_000_000, "203 MB"), (10**9, "1.0 GB")],
)
def test_sizes_are_decimal(value, text):
    assert units.size(value) == text


@given(st.integers(1, 10**15), st.sampled_from([1, 1000]))
def test_a_duration_read_back_is_close(ns, resolution):
    number, name = units.duration(ns, resolution).split(" ")
    size = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}[name]
    assert float(number.replace(",", "")) * size == pytest.approx(ns, rel=0.01, abs=resolution)
