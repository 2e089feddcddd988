"""Members of enumerations beside columns."""

import numpy as np
import pytest

from traceanalyze.model.vocabulary import Code, EventKind


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("code", EventKind)
def test_a_column_is_compared_with_a_member_as_with_its_number(dtype, code):
    column = np.arange(len(EventKind)).astype(dtype)
    assert (column == code).tolist() == (code == column).tolist() == [each == code.value for each in column.tolist()]
    assert (column < code).tolist() == (code > column).tolist() == [each < code.value for each in column.tolist()]
    assert np.equal(code, code)


def test_what_else_is_computed_of_members_has_room():
    column = np.full(3, 255, np.uint8)
    assert (column + EventKind.API).tolist() == [255 + EventKind.API] * 3
    assert (EventKind.API * column).dtype == np.int64
    np.add.at(total := np.zeros(2, np.int64), [1, 1], EventKind.API)
    assert total.tolist() == [0, 2 * EventKind.API]
    assert isinstance(EventKind.API, Code)
