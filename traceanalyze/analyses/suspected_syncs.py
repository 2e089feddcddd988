"""Where the host may have waited for the device, when its calls for that were not recorded (definitions §7)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.results import SyncSite
from traceanalyze.model.classify import is_data_dependent
from traceanalyze.model.vocabulary import SyncKind

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def suspected_syncs(context: Context) -> tuple[SyncSite, ...]:
    """Operators in the analysed time that need a value from the device, by name and user frame, most frequent first.

    One inside another is the same point; what they cost is not known.
    """
    trace, nest = context.trace, context.op_nest
    needy = trace.strings.lookup(trace.events.name[nest.row], is_data_dependent).astype(np.bool_)
    before = np.concatenate(([0], np.cumsum(needy)))
    innermost = needy & (before[nest.stop] == before[np.arange(len(nest)) + 1])
    places = np.flatnonzero(innermost & intervals.contains(context.host_windows, nest.start))
    found: Counter[tuple[str | None, str | None]] = Counter()
    track = trace.events.track[nest.row[places]]
    for one in sorted(set(track.tolist())):
        _, name, frame = context.locate(one, nest.start[places[track == one]])
        found.update(zip(name, frame, strict=True))
    return tuple(
        SyncSite(op, frame, "", SyncKind.SUSPECTED, count, None, None, data_dependent=True)
        for (op, frame), count in found.most_common()
    )
