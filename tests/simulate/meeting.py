"""What ranks tell and are told where they need each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meeting:
    """A rank is here; it goes on when all ranks are, and the transfer is done."""

    arrived: int
    transfer: int


@dataclass(frozen=True, slots=True)
class Met:
    """What each rank is told: when all were done, when the last of them had come, and which that was."""

    end: int
    all_here: int
    last: int
