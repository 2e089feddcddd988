"""What the allocator's history shows of how the program asks for memory, and of how complete the history is."""

from __future__ import annotations

from traceanalyze.frozen import frozen


@frozen
class GrowingSizes:
    """Memory taken from the device because one line asked for more than ever before, step after step."""

    line: str
    """Of the largest part of it; empty where there is none."""
    steps: int
    """Steps after the first with such growth."""
    smallest: int
    """The first of the line's requests that were larger than all before, in a step after the first."""
    largest: int
    """The last of them."""
    grown: int
    """Bytes taken from the device for them, all lines."""
    retries: int
    """Calls among them that found the device full."""
    flagged: bool


@frozen
class OversizedBlocks:
    """Growth although a free block was large enough, but by too much for the allocator to give it away whole."""

    line: str
    """Of the largest such request; empty where there is none."""
    growths: int
    request: int
    """The largest such request."""
    unused: int
    """The free block that it could not have."""
    grown: int
    """Bytes taken from the device, all such growths."""


@frozen
class SmallBlocks:
    """Small blocks that live nearly throughout, at the peak."""

    count: int
    share: float
    """Of the live blocks."""
    segments: int
    """Segments that nothing else keeps."""
    held: int
    """Free bytes in these segments."""
    line: str
    """That most of them are from."""
    flagged: bool


@frozen
class Truncation:
    """Whether the history lacks its beginning."""

    kind: str
    """full (the file says that the ring forgot events), round (as many events as rings are long), late (the peak was
    before the first event), or empty."""
    before: int
    """Requested bytes that were in use before the first event."""
