"""Groups of rows against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.analyses.grouping import distinct, group

KEYS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([-(2**62), 0, 5, 2**40])), max_size=40)


@given(KEYS)
def test_equal_keys_are_one_group_in_order_of_the_keys(keys):
    found = group(np.array([a for a, _ in keys], np.int64), np.array([b for _, b in keys], np.int64))
    distinct = sorted(set(keys))
    assert found.of.tolist() == [distinct.index(key) for key in keys]
    assert found.first.tolist() == [keys.index(key) for key in distinct]


def test_keys_of_any_width_stay_as_they_are():
    short, flags, bytes_ = (
        np.array([7, -1, 7, 7], np.int32),
        np.array([True, True, False, True]),
        np.array([9, 9, 9, 8], np.uint8),
    )
    found = group(short, flags, bytes_)
    assert found.of.tolist() == [3, 0, 1, 2]
    assert (short.tolist(), flags.tolist(), bytes_.tolist()) == ([7, -1, 7, 7], [True, True, False, True], [9, 9, 9, 8])
    wide = np.array([5, 3, 5])
    assert group(wide).of.tolist() == [1, 0, 1]
    assert wide.tolist() == [5, 3, 5]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10**12)), max_size=40))
def test_times_of_each_group(rows):
    found = group(np.array([key for key, _ in rows], np.int64))
    spread = found.spread(np.array([time for _, time in rows], np.int64))
    times = {key: [t for k, t in rows if k == key] for key, _ in rows}
    expected = [(len(t), sum(t), min(t), max(t)) for _, t in sorted(times.items())]
    columns = (spread.number, spread.total, spread.shortest, spread.longest)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert spread.mean.tolist() == [(2 * total + count) // (2 * count) for count, total, *_ in expected]


def test_a_weighted_mean_leaves_out_what_is_not_known():
    found = group(np.array([0, 0, 0, 1]))
    means = found.mean(np.array([1.0, 4.0, np.nan, np.nan]), np.array([3, 1, 5, 1]))
    assert means[0] == 1.75
    assert np.isnan(means[1])


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_groups_of_equal_keys_are_one(keys, data):
    of = data.draw(st.lists(st.integers(0, len(keys) - 1), max_size=20))
    found, position = distinct(keys, np.array(of, np.int64))
    assert found == list(dict.fromkeys(keys))
    assert [found[at] for at in position.tolist()] == [keys[group_of] for group_of in of]
