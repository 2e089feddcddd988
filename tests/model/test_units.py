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
        (1000, 1, "1.000 µs"),
        (10**9, 1, "1.000 s"),
        (10**6, 100_000, "1.0 ms"),
        (10**6, 10_000, "1.00 ms"),
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
        (10_000_000_000, 1, "s", 2),
        (9_999_999_999, 1, "ms", 2),
        (10_000_000, 1, "ms", 2),
        (9_999_999, 1, "ms", 3),
        (1_000_000, 1, "ms", 3),
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
        (1.003, "100 %"),
        (0.99, "99.0 %"),
        (0.989, "99 %"),
        (0.9995, ">99.9 %"),
        (0.0005, "0.1 %"),
        (-0.05, "-5.0 %"),
        (-0.5, "-50 %"),
    ],
)
def test_a_share_never_claims_none_or_all_by_rounding(share, text):
    assert units.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"), [(9096, "9,096"), (80.5, "80.5"), (104.0, "104"), (0, "0"), (1234.5, "1,234.5")]
)
def test_counts_have_separators(value, text):
    assert units.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "12 B"),
        (1500, "1.5 kB"),
        (12_345_678, "12.3 MB"),
        (203_000_000, "203 MB"),
        (10**9, "1.0 GB"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_900, "99.9 kB"),
        (100_000, "100 kB"),
        (10**6, "1.0 MB"),
    ],
)
def test_sizes_are_decimal(value, text):
    assert units.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (10_230, "9.99 KiB"),
        (10_240, "10.0 KiB"),
        (102_400, "100 KiB"),
        (-1536, "-1.50 KiB"),
        (1 << 20, "1.00 MiB"),
        (5 << 29, "2.50 GiB"),
        (80 << 30, "80.0 GiB"),
        (2000 << 30, "2,000 GiB"),
    ],
)
def test_device_memory_is_binary(value, text):
    assert units.memory(value) == text


@pytest.mark.parametrize(
    ("number", "unit", "text", "changed"),
    [
        (1_500_000, "ns", "1.500 ms", "+1.500 ms"),
        (-1_500_000, "ns", "-1.500 ms", "-1.500 ms"),
        (0, "ns", "0 ms", "0 ms"),
        (2048, "B", "2.00 KiB", "+2.00 KiB"),
        (0.125, "%", "12.5 %", "+12.5 %"),
        (12.5, "percent", "12.5 %", "+12.5 %"),
        (12.5, "points", "12.5 points", "+12.5 points"),
        (1234, "count", "1,234", "+1,234"),
        (1234.5, "TFLOP/s", "1,234 TFLOP/s", "+1,234 TFLOP/s"),
    ],
)
def test_a_quantity_has_its_unit_and_a_change_its_sign(number, unit, text, changed):
    assert (units.quantity(number, unit), units.quantity(number, unit, change=True)) == (text, changed)


@pytest.mark.parametrize(("value", "text"), [(1.444, "1.44"), (99.99, "99.99"), (100, "100"), (1234.4, "1,234")])
def test_a_ratio_has_two_decimals_while_it_is_small(value, text):
    assert units.ratio(value) == text


@pytest.mark.parametrize(("share", "text"), [(0.4336, "43.4"), (-0.0001, "0.0"), (-0.01, "-1.0"), (1, "100.0")])
def test_a_share_in_a_column_has_one_decimal(share, text):
    assert units.percent_cell(share) == text


def test_a_number_in_a_unit_has_its_decimals():
    assert units.in_unit(1_234_567_890, units.Unit("ms", 10**6, 2)) == "1,234.57"


@given(st.integers(1, 10**15), st.sampled_from([1, 1000]))
def test_a_duration_read_back_is_close(ns, resolution):
    number, name = units.duration(ns, resolution).split(" ")
    size = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}[name]
    assert float(number.replace(",", "")) * size == pytest.approx(ns, rel=0.01, abs=resolution)
