"""How far the numbers can be trusted: checks, and what to record to measure more (definitions §§14, 15)."""

from collections.abc import Iterable

from traceanalyze.analyses.host.computes import HOST_COMPUTES
from traceanalyze.analyses.results import Check
from traceanalyze.model.table import Kind, Message, NotMeasured, Table, Value
from traceanalyze.report.model import Doubt

_OF_DEVICES = {"no_device_events", "no_api"}
"""What cannot be recorded of a program that uses no device."""


def doubts(checks: tuple[Check, ...]) -> tuple[Doubt, ...]:
    """Checks with typed values, worst first."""
    ordered = sorted(checks, key=lambda check: (-check.level, check.id))
    return tuple(
        Doubt(check.id, check.level, Message(check.message, tuple(typed(*item) for item in check.values)))
        for check in ordered
    )


def typed(name: str, value: float | str) -> tuple[str, Kind, Value]:
    """The kind of a check's value, by its name: units are in names at the edges."""
    if isinstance(value, str):
        return name, Kind.TEXT, value
    if name == "ratio":
        return name, Kind.RATIO, float(value)
    if name.endswith("_ns"):
        return name, Kind.DURATION, int(value)
    if name.endswith("bytes"):
        return name, Kind.BYTES, int(value)
    if name.endswith("share"):
        return name, Kind.SHARE, float(value)
    return name, Kind.COUNT, value


def hints(tables: Iterable[Table], checks: tuple[Check, ...], *, ascend: bool = False) -> tuple[str, ...]:
    """Why tables were not measured and what checks missed, each once: what advice on recording is keyed by.

    Keys end in `.ascend` for a profile of torch_npu, whose options have names of their own.
    """
    missing = (table.rows.reason for table in tables if isinstance(table.rows, NotMeasured))
    keys = dict.fromkeys((*missing, *(check.message for check in checks)))
    if HOST_COMPUTES in keys:
        keys = dict.fromkeys(key for key in keys if key not in _OF_DEVICES)
    return tuple(f"{key}.ascend" if ascend else key for key in keys)
