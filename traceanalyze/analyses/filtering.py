"""Part of a recording: device work of some streams or names, or what ran in some time. The rest is as if unrecorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.model.columns import Sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Filter, Options
    from traceanalyze.model.trace import Events, Trace


def context_of(trace: Trace, options: Options) -> Context:
    """What is derived from a trace, or from the part of it that the user wants."""
    context = Context(trace, options)
    return context if options.keep is None else Context(_filtered(context, options.keep), options)


def _filtered(context: Context, chosen: Filter) -> Trace:
    """The trace with what is to be kept, and a remark on how much that is not."""
    trace, device = context.trace, context.device
    keep = np.ones(len(trace.events), np.bool_)
    if chosen.streams is not None:
        keep[device.row[~chosen.streams(device.stream)]] = False
    if chosen.name is not None:
        pattern = chosen.name
        fits = trace.strings.lookup(device.name, lambda text: pattern.search(text) is not None).astype(np.bool_)
        keep[device.row[~fits]] = False
    if chosen.time is not None and len(trace.events):
        start = trace.events.ts - trace.events.ts.min()
        keep &= (start < chosen.time[1]) & (start + trace.events.dur >= chosen.time[0])
    left_out = int((~keep).sum())
    note = f"filtered: {left_out:,} of {len(keep):,} events are left out; what they did counts as not recorded"
    read = replace(trace.read, notes=(*trace.read.notes, note))
    return replace(trace, events=_taken(trace.events, keep), read=read)


def _taken(events: Events, keep: NDArray[np.bool_]) -> Events:
    """The rows to keep; columns that only some rows have get the new row numbers."""
    place = np.cumsum(keep) - 1
    fields = {}
    for name, column in events.fields.items():
        kept = keep[column.row]
        if not kept.any():
            continue
        value = column.value[kept]
        if name == "part_of":
            # Refers to rows: what it refers to may be gone.
            value = np.where((value >= 0) & keep[np.maximum(value, 0)], place[np.maximum(value, 0)], -1)
        fields[name] = Sparse(place[column.row[kept]].astype(np.uint32), value)
    return replace(
        events,
        ts=events.ts[keep],
        dur=events.dur[keep],
        name=events.name[keep],
        cat=events.cat[keep],
        track=events.track[keep],
        fields=fields,
    )
