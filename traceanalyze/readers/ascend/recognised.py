"""Whether a trace is that of an Ascend profile: told without what reads one, which other traces need not wait for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.readers.header import process_names

if TYPE_CHECKING:
    from traceanalyze.readers.scan import Scan

_PROCESSES = frozenset({"Ascend Hardware", "CANN", "Overlap Analysis"})
_CATEGORIES = frozenset({"async_npu", "async_task_queue", "enqueue", "dequeue"})
_IN_HEAD = re.compile(
    rb'"(?:async_npu|async_task_queue|enqueue|dequeue|torch_to_npu|HostToDevice|Task Type|connection_id'
    rb'|Ascend Hardware|CANN|Overlap Analysis)"|"ts"\s*:\s*"'
)


def looks_ascend(head: bytes) -> bool:
    """Whether the beginning of a trace looks like that of an Ascend profile; what was scanned decides in the end."""
    return _IN_HEAD.search(head) is not None


def is_ascend(found: Scan) -> bool:
    """Whether a scanned trace is that of an Ascend profile, by its processes, else by its categories."""
    if _PROCESSES & {name.partition(" [")[0] for name in process_names(found.metadata).values()}:
        return True
    used = np.zeros(len(found.strings), np.bool_)
    used[found.events.cat] = True
    used[found.flows.cat] = True
    return any(found.strings.text(code) in _CATEGORIES for code in np.flatnonzero(used).tolist())
