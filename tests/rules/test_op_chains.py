"""Where runs of operators begin again, against a walk over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.rules.common import op_chains
from traceanalyze.rules.common.op_chains import _first_again


def walked(codes, opens):
    """The same one by one: a code that came since the run began, or began again, begins it again."""
    found, seen = [], set()
    for at, (code, first) in enumerate(zip(codes, opens, strict=True)):
        if first or code in seen:
            found += [] if first else [at]
            seen = set()
        seen.add(code)
    return found


@pytest.mark.parametrize("few", [0, 2, 64])
@given(runs=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=12))
def test_a_run_begins_again_where_a_code_comes_again(few, runs):
    codes = [code for run in runs for code in run]
    opens = [at == 0 for run in runs for at in range(len(run))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(op_chains, "_FEW", few)
        found = _first_again(np.array(codes, np.int32), np.array(opens))
    assert sorted(found.tolist()) == walked(codes, opens)
