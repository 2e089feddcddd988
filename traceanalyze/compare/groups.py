"""Process groups of collectives, named alike on both sides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.collective_ranges import description_rows
from traceanalyze.analyses.collectives import ranks_label
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.work import argument
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

Names = dict[str, str]
"""What a side calls a group (empty where it does not say) → what both sides are to call it."""


def event_groups(context: Context, event: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Groups (ranks, else name, else empty), and the position of that of each communication event."""
    described = description_rows(context, event)
    ranks, name = (
        np.where(described >= 0, argument(context, field, np.maximum(described, 0)), -1)
        for field in ("group_ranks", "group")
    )
    code = np.maximum(np.where(ranks >= 0, ranks, name), -1)
    rows = group(code)
    texts = [context.trace.strings.text(int(code[f])) if code[f] >= 0 else "" for f in rows.first.tolist()]
    labels = [ranks_label(text) for text in texts]
    position = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return list(position), np.array([position[label] for label in labels], np.int64)[rows.of]


def common_names(base: Context, candidate: Context) -> tuple[Names, Names]:
    """What to call the groups of both sides.

    Where each side has one group, these are compared whatever their ranks. Of several those that are named alike; what
    is left, in the order of first use, with the next group of as many ranks.
    """
    labels = [_labels(context) for context in (base, candidate)]
    if len(labels[0]) == len(labels[1]) == 1 and labels[0] != labels[1]:
        both = " → ".join(label or "?" for (label,) in labels)
        return {labels[0][0]: both}, {labels[1][0]: both}
    names = {label: label for label in labels[0]}, {label: label for label in labels[1]}
    left = [label for label in labels[1] if label not in names[0]]
    for label in labels[0]:
        partner = next((other for other in left if _size(other) == _size(label)), None)
        if label not in names[1] and partner is not None:
            left.remove(partner)
            names[0][label] = names[1][partner] = f"{label or '?'} → {partner or '?'}"
    return names


def _labels(context: Context) -> list[str]:
    """Groups in the order of first use."""
    comm = context.device.klass[context.work.event] == DeviceClass.COMM
    labels, of = event_groups(context, context.work.event[comm])
    return [labels[each] for each in dict.fromkeys(of.tolist())]


def _size(label: str) -> int | None:
    """Ranks of a group that is called by them, see `ranks_label`."""
    if not re.fullmatch(r"\d+(-\d+|(, \d+)*)", label):
        return None
    first, to, last = label.partition("-")
    return int(last) - int(first) + 1 if to else label.count(",") + 1


def several(names: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
    """Whether there is more than one group, so that rows must name theirs."""
    return len({*names[0].values(), *names[1].values()}) > 1
