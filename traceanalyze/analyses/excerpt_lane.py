"""One line of a picture of the trace."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt_boxes import Box


class LaneKind(StrEnum):
    """What the boxes of a lane are."""

    STEPS = "steps"
    OPS = "ops"
    """Operators and annotations of a thread that lie equally deep."""
    CALLS = "calls"
    """Runtime calls of a thread."""
    STREAM = "stream"
    IDLE = "idle"
    """When the headline device runs nothing, by cause."""


@frozen
class Lane:
    """Boxes in time order; they overlap only where events of one stream do."""

    kind: LaneKind
    name: str
    """Name of the thread, else its number; number of the stream."""
    boxes: tuple[Box, ...]
    track: int = -1
    """Thread, as in the trace."""
    depth: int = 0
    """Operators around those of this lane."""
    hidden: int = 0
    """Events below the last lane of a thread, which are not drawn."""
