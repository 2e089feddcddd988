"""How much of a report its reader asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Detail(IntEnum):
    """How much to show."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


@dataclass(frozen=True, slots=True)
class View:
    """What the reader asked for."""

    detail: Detail = Detail.NORMAL
    top: int = 5
    """Rows of ranked tables."""
