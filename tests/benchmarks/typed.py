"""The columns the scanner keeps, as structures for msgspec."""

from __future__ import annotations

from typing import Any

import msgspec

from traceanalyze.readers.header import EVENT_FIELDS
from traceanalyze.readers.scan.result import Kind

Number = int | float | str | None


def _member(index: int, key: str, kind: Kind) -> tuple[str, Any, Any]:
    if kind is Kind.TEXT:
        return f"f{index}", msgspec.Raw, msgspec.field(default=msgspec.Raw(b"null"), name=key)
    return f"f{index}", Number, msgspec.field(default=None, name=key)


_MEMBERS = [_member(index, field.keys[0], field.kind) for index, field in enumerate(EVENT_FIELDS)]
Args = msgspec.defstruct("Args", _MEMBERS, gc=False)
"""One member for each field, under the first of its keys; texts stay undecoded."""


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
