"""Ranks of process groups that torch writes only in part: of more than 30 it keeps 29 and the last one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceanalyze.model.columns import Sparse, Strings
from traceanalyze.model.trace import Trace

_CUT = "..."


def whole_groups(trace: Trace) -> Trace:
    """The trace with the ranks of such groups as its header lists them (`pg_config`), by their names; else with none.

    A part of the ranks would pass for all of them. Without any, the group is known by its name and its size.
    """
    fields = trace.events.fields
    ranks, name = fields.get("group_ranks"), fields.get("group")
    if ranks is None:
        return trace
    cut = trace.strings.matches(ranks.value, lambda text: _CUT in text)
    if not cut.any():
        return trace
    named = np.full(len(cut), -1, np.int64) if name is None else name.take(ranks.row.astype(np.int64), -1)
    texts: dict[int, str] = {}
    for code in set(named[cut & (named >= 0)].tolist()):
        members = trace.groups.get(trace.strings.text(code), ())
        if members:
            texts[code] = str(list(members))
    strings, place = _with_texts(trace.strings, tuple(dict.fromkeys(texts.values())))
    value = ranks.value.copy()
    for code, text in texts.items():
        value[cut & (named == code)] = place[text]
    kept = ~cut | np.isin(named, list(texts))
    whole = {**fields, "group_ranks": Sparse(ranks.row[kept], value[kept])}
    if not kept.any():
        del whole["group_ranks"]
    return replace(trace, strings=strings, events=replace(trace.events, fields=whole))


def _with_texts(strings: Strings, texts: tuple[str, ...]) -> tuple[Strings, dict[str, int]]:
    """The dictionary with some more texts, and the codes of these."""
    written = [text.encode() for text in texts]
    blob = np.concatenate((strings.blob, np.frombuffer(b"".join(written), np.uint8)))
    ends = strings.offsets[-1] + np.cumsum([len(each) for each in written], dtype=np.int64)
    place = {text: len(strings) + number for number, text in enumerate(texts)}
    return Strings(blob, np.concatenate((strings.offsets, ends))), place
