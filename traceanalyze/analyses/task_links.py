"""What the tasks of collectives went over, where the profile records it (Ascend)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.work import argument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

NETWORK = re.compile(r"RDMA|ROCE", re.IGNORECASE)
ON_DEVICE = re.compile(r"ON_CHIP|LOCAL", re.IGNORECASE)


def went_over(context: Context, row: NDArray[np.int64], link: re.Pattern[str]) -> NDArray[np.bool_]:
    """Whether the kind of link, or of transport, of each task (rows of events) is so called; False where not told."""
    found = np.zeros(len(row), np.bool_)
    for name in ("link_type", "transport"):
        code = argument(context, name, row)
        known = code >= 0
        named = context.trace.strings.lookup(code[known].astype(np.int32), lambda text: link.search(text) is not None)
        found[known] |= named.astype(np.bool_)
    return found
