"""How much of a report its reader asked for."""

from __future__ import annotations

from enum import IntEnum

from traceanalyze.frozen import frozen


class Detail(IntEnum):
    """How much to show."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


@frozen
class View:
    """What the reader asked for."""

    detail: Detail = Detail.NORMAL
    top: int = 5
    """Rows of ranked tables."""
