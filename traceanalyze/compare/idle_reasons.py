"""Idle time of one side by part and by the operator whose work ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses import idle
from traceanalyze.analyses.grouping import group
from traceanalyze.compare.reasons import Pieces, summed_up
from traceanalyze.compare.work_reasons import operator_names
from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceanalyze.compare.reasons import Key, Reasons
    from traceanalyze.compare.side import Side
    from traceanalyze.compare.work_reasons import Labels


def idle_reasons(side: Side, labels: Labels, of_cause: Mapping[Cause, str]) -> Reasons:
    """Time and number of gaps of the headline device by reason; sums to every idle part.

    A gap with several causes counts in the row of each. Waiting for data is one row, whatever came next.
    """
    context = side.context
    cut, _ = idle.clipped(context.pieces, context.steps.start, context.steps.end)
    event = context.gaps.event[cut.gap]
    known = event >= 0
    known[known] = context.event_op[event[known]] >= 0
    names, of = operator_names(side, event[known], labels)
    name = np.full(len(event), -1, np.int64)
    name[known] = of
    parts = list(dict.fromkeys(of_cause.values()))
    part = np.array([parts.index(of_cause[cause]) for cause in Cause], np.int64)[cut.cause]
    rows = group(part, name)
    keys = [_key(parts[int(part[first])], names[name[first]] if name[first] >= 0 else None) for first in rows.first]
    position = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    key = np.array([position[each] for each in keys], np.int64)[rows.of]
    return summed_up(side, list(position), Pieces(key, cut.end - cut.start, event, cut.gap))


def _key(part: str, name: str | None) -> Key:
    if part == "data_loading":
        return part, "data_loading", "DataLoader"
    return (part, "rest", "rest") if name is None else (part, "next_op", name)
