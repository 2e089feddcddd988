"""The columns the scanner keeps, as structures for msgspec."""

from __future__ import annotations

import msgspec

Number = int | float | str | None


class Args(msgspec.Struct, gc=False):
    correlation: Number = None
    external_id: Number = msgspec.field(default=None, name="External id")
    device: Number = None
    stream: Number = None
    bytes: Number = None
    collective: str | None = msgspec.field(default=None, name="Collective name")


class Event(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Number = None
    tid: Number = None
    ts: Number = None
    dur: Number = None
    id: Number = None
    args: Args | None = None


class Document(msgspec.Struct):
    events: list[Event] = msgspec.field(name="traceEvents")


DECODER = msgspec.json.Decoder(Document)
