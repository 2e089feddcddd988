"""Why a text holds no event, from what the scanner counted: one sentence, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.ascend.strays import stray
from traceanalyze.readers.detect import Kind, explain
from traceanalyze.readers.scan import REASONS

if TYPE_CHECKING:
    from traceanalyze.readers.scan import Scan

_DROPPED = ("no_phase", "no_ts", "bad_ts", "no_dur", "bad_dur", "negative_dur")
_MEMBERS_SHOWN = 4
_WANTED = "give the file export_chrome_trace wrote"
_ACTIVE = "was the profiler stopped, or its schedule not yet active, while the program worked?"


def no_events(found: Scan, kind: Kind, name: str) -> InputError:
    """The error for a text without any event that can be used.

    Args:
        found: What the scanner returned.
        kind: What the first bytes looked like.
        name: What the user calls the text.
    """
    if found.root == "none":
        return explain(kind if kind is Kind.BLANK else Kind.TEXT, name)
    reasons = (
        (_dropped(found), f"no event could be used: {_dropped(found)}; record the trace again"),
        (found.counts["malformed"] or (found.truncated and not found.phases), _broken(found)),
        (found.counts["not_object"], f"a list of {found.counts['not_object']:,} values that are no events; {_WANTED}"),
        (found.phases, f"nothing was recorded, only metadata or counters ({_phases(found)}); {_ACTIVE}"),
        (kind is Kind.JSON and stray(name), str(stray(name))),
        (kind is Kind.JSON, f'JSON without "traceEvents", not a trace (its members: {_members(found)}); {_WANTED}'),
        (True, f"the trace has no events; {_ACTIVE}"),
    )
    return InputError(f"{name}: " + next(text for applies, text in reasons if applies))


def _dropped(found: Scan) -> str:
    return "; ".join(f"{found.counts[key]:,} {REASONS[key]}" for key in _DROPPED if found.counts[key])


def _broken(found: Scan) -> str:
    place = "at its end" if found.fault is None else f"at byte {found.fault:,}"
    return f"broken {place}, and no event can be read; copy the file again, or record the trace again"


def _phases(found: Scan) -> str:
    return ", ".join(f'{count:,} of phase "{phase}"' for phase, count in found.phases.items())


def _members(found: Scan) -> str:
    names = [key.decode("utf-8", "replace") for key in found.header]
    return (", ".join(names[:_MEMBERS_SHOWN]) + (", …" if len(names) > _MEMBERS_SHOWN else "")) or "none"
