"""Small traces as text, and a way to scan them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from traceanalyze.readers.scan import twin
from traceanalyze.readers.scan.result import Field, Kind, Scan

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT_FIELDS = (
    Field("correlation", Kind.INT, ("correlation",)),
    Field("external_id", Kind.INT, ("External id", "external id")),
    Field("bandwidth", Kind.REAL, ("memory bandwidth (GB/s)",)),
    Field("shapes", Kind.TEXT, ("Input Dims",)),
)
INSTANT_FIELDS = (Field("bytes", Kind.INT, ("Bytes",)),)


def scan_text(text: bytes | str, *, block: int = 1 << 20, **options: int) -> Scan:
    """Scan a whole text with the twin, handed over in blocks of at most `block` bytes."""
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    return twin.scan(
        lambda buffer: stream.readinto(buffer[:block]),
        event_fields=EVENT_FIELDS,
        instant_fields=INSTANT_FIELDS,
        **options,
    )


def names(scan: Scan) -> list[str]:
    """Names of the complete events."""
    return [scan.strings.text(code) for code in scan.events.name]


def reasons(scan: Scan) -> dict[str, int]:
    """What was left out."""
    return {reason: count for reason, count in scan.counts.items() if count}


def document(events: Sequence[str]) -> str:
    """A trace as Kineto writes it, with members before and after the events."""
    return '{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(events) + '\n], "traceName": "t.json"}'


def kernel(index: int) -> str:
    """A complete event of 2 µs at `index` × 10 µs."""
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "k{index}", "pid": 0, "tid": 7, "ts": {index * 10}, "dur": 2, '
        f'"args": {{"correlation": {index}, "Input Dims": [[2, 3], []]}}}}'
    )
