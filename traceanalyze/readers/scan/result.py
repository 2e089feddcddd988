"""What a scan returns: the columns of a Chrome trace, before any profiler meaning is given to them.

Both scanners (the native one and its pure-Python twin) return a `Scan`; everything above them sees nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Phrase
from traceanalyze.model.columns import Strings
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.trace import Events, Flows, Instants


class Kind(IntEnum):
    """How the value of an `args` member is read."""

    INT = 0
    """Decimal integer, bare or quoted, in [-2^63, 2^64); values from 2^63 on wrap to negative (so 2^64-1 is -1)."""
    REAL = 1
    """Finite decimal number, bare or quoted, as float64."""
    TEXT = 2
    """Decoded string, or the JSON text as written of anything else (such as lists of shapes); a code into `strings`."""


class Field(NamedTuple):
    """A member of `args` worth keeping: column name, how to read it, and the keys it goes by in the file.

    Of several keys that an event has the first here counts.
    """

    name: str
    kind: Kind
    keys: tuple[str, ...]


Read = Callable[[memoryview], int]
"""Fills a buffer and returns the number of bytes written, 0 at the end, as `io.RawIOBase.readinto` does."""


Watch = Callable[[int], None]
"""Told after each block how many bytes of memory it may take to analyse what was found so far, 0 if that is not known;
raises where that is too much."""


def unwatched(_: int) -> None:
    """Whatever it takes."""


class Part(NamedTuple):
    """A later part of a text, that may be scanned beside what is before it: it seems to begin with an event."""

    begin: int
    """Bytes of the text before it."""
    root: str
    """What the text is, as of `Scan`."""
    open: Callable[[], Read]
    """Reads the part, and ends where the next one begins."""


class Metadata(NamedTuple):
    """A metadata event (`"ph": "M"`): texts as written, `args` as the JSON text of the object (b"" if absent)."""

    name: bytes
    pid: bytes
    tid: bytes
    args: bytes


@dataclass(frozen=True, eq=False)
class Scan:
    """Everything one pass over the text found, and everything it had to leave out.

    `tracks` is an (n, 2) int32 array of string codes: the text of `pid` and of `tid`.
    `header` holds the JSON text of the root's members other than `traceEvents`.
    `phases` counts the events accepted, by `ph`. `counts` holds what was skipped, by reason (see `REASONS`).
    `fault` is the byte offset of the first malformed place, None when there is none.
    """

    strings: Strings
    tracks: NDArray[np.int32]
    events: Events
    instants: Instants
    flows: Flows
    metadata: Sequence[Metadata]
    header: Mapping[bytes, bytes]
    phases: Mapping[str, int]
    counts: Mapping[str, int]
    fault: int | None
    root: str
    """`object`, `list`, or `none` when the text does not begin with `{` or `[` (nothing is read then)."""
    truncated: bool
    """The text ended before the root was closed."""
    size: int
    """Bytes of JSON text scanned."""
    fractional: bool = field(default=False)
    """Some `ts` or `dur` of an event is not a whole number of microseconds: the clock is finer than 1 µs."""


REASONS = {
    "malformed": Phrase("places where the text broke the JSON grammar; reading went on at the next event"),
    "skipped_bytes": Phrase("bytes passed over to reach the next event"),
    "trailing_bytes": Phrase("bytes after the end of the JSON document"),
    "not_object": Phrase("members of the event list that are not objects"),
    "no_phase": Phrase('events without a "ph" string'),
    "no_ts": Phrase("events without a timestamp"),
    "bad_ts": Phrase("events whose timestamp is not a finite number that fits"),
    "no_dur": Phrase("complete events without a duration"),
    "bad_dur": Phrase("complete events whose duration is not a finite number that fits"),
    "negative_dur": Phrase("complete events with a negative duration"),
    "no_pid": Phrase("complete events without a process id (kept)"),
    "bad_value": Phrase("argument values that are not of the kind their column holds (dropped, the event is kept)"),
}
"""Why something was left out: key of `Scan.counts` and its meaning."""

BEGIN, END = -1, -2
"""In place of the duration of events that were written as two (`B`, `E`), until `whole_events` makes one of them."""

MAX_VALUE_BYTES = 1 << 26
"""A single event or header value longer than this (64 MiB) is treated as malformed."""

MAX_DEPTH = 64
"""Deepest nesting inside an event or a header value; the event itself is level 1."""
