"""What a rank was run and recorded with, for the comparison with the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context

_OWN = re.compile(r"RANK|DEVICE|VISIBLE|PORT|PATH|HOME|_IP|IFNAME|SOCKET|LOG_DIR|WORK_DIR|CACHE_DIR|WHITELIST")
"""Variables that differ between ranks by their nature."""


def recording(context: Context) -> dict[str, str]:
    """What was recorded, by the header or by what is there: stacks, shapes, memory; on Ascend the level, too."""
    trace = context.trace
    stated = trace.options
    seen = {
        "with_stack": bool((context.kind == EventKind.PYTHON).any()),
        "record_shapes": "shapes" in trace.events.fields,
        "profile_memory": "bytes" in trace.instants.fields,
    }
    found = {name: "on" if stated.get(name, False) or there else "off" for name, there in seen.items()}
    return found | ({"level": trace.origin.level} if trace.origin.level else {})


def environment(context: Context) -> dict[str, str] | None:
    """Variables of the libraries that should be equal on all ranks; None where the profile states none."""
    stated = context.trace.environment
    return None if stated is None else {name: value for name, value in stated.items() if not _OWN.search(name)}
