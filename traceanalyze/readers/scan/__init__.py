"""One pass over the text of a Chrome trace into columns: a native scanner, and the pure-Python twin that specifies it.

The native scanner does the work wherever its library was built; the twin stands in elsewhere, slowly.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Phrase
from traceanalyze.model.columns import Sparse, occurs
from traceanalyze.model.trace import Events
from traceanalyze.readers.scan.result import BEGIN, END, Field, Part, Read, Scan, Watch, unwatched


def backend() -> str:
    """Which scanner `scan` uses: "native", or "python" for the slow twin."""
    from traceanalyze.readers.scan import native

    return "native" if native.available() else "python"


SLOW = Phrase(
    "the native scanner was not built, so reading is far slower; with a C++ compiler "
    "`pip install --force-reinstall --no-cache-dir --no-deps traceanalyze` builds it"
)


@cache
def warn_if_slow() -> None:
    """Warn who called a function of the API, once a process, where the native scanner is missing."""
    if backend() == "python":
        warnings.warn(SLOW, RuntimeWarning, stacklevel=4)


def scan(
    readinto: Read,
    *,
    event_fields: Sequence[Field],
    instant_fields: Sequence[Field],
    split: Callable[[], Sequence[Part]] = tuple,
    watch: Watch = unwatched,
) -> Scan:
    """Read the text of a Chrome trace into columns, with the fastest scanner there is.

    The fields are the members of `args` to keep of complete and of instant events. `split` gives parts of the text to
    be read at the same time, and makes `readinto` end before them. `watch` may end it.
    """
    if backend() == "native":
        from traceanalyze.readers.scan import native

        found = native.scan(
            readinto, event_fields=event_fields, instant_fields=instant_fields, parts=split(), watch=watch
        )
        return whole_events(found)
    # Imported only when needed: its expressions take time to compile.
    from traceanalyze.readers.scan import twin

    def read(buffer: memoryview) -> int:
        watch(0)
        return readinto(buffer)

    return whole_events(twin.scan(read, event_fields=event_fields, instant_fields=instant_fields))


def whole_events(found: Scan) -> Scan:
    """With events that were written as a beginning and an end (`B`, `E`) as one, where the beginning stands.

    An end belongs to the last open beginning of its thread; with a name, to the last of that name. What is open inside
    ends with it, as what never ends does with the event around it, else with its thread.
    """
    events = found.events
    if not {"B", "E"} & found.phases.keys():
        return found
    dur, (unended, unbegun) = events.dur.copy(), (0, 0)
    rows = np.flatnonzero(occurs(events.track, events.track[dur < 0]))
    rows = rows[np.lexsort((events.ts[rows], events.track[rows]))]
    for thread in np.split(rows, np.flatnonzero(np.diff(events.track[rows])) + 1) if len(rows) else ():
        more = _join(events, thread, dur)
        unended, unbegun = unended + more[0], unbegun + more[1]
    keep = events.dur != END
    place = np.cumsum(keep, dtype=np.int64) - 1
    fields = {
        name: Sparse(place[one.row[keep[one.row]]].astype(np.uint32), one.value[keep[one.row]])
        for name, one in events.fields.items()
    }
    ts, length, name, cat, track = (column[keep] for column in (events.ts, dur, events.name, events.cat, events.track))
    counts = {**found.counts, "no_end": unended, "no_begin": unbegun}
    return replace(found, events=Events(ts, length, name, cat, track, fields), counts=counts)


def _join(events: Events, rows: NDArray[np.int64], dur: NDArray[np.int64]) -> tuple[int, int]:
    """Set the durations of the beginnings on one thread, whose rows are in the order of time.

    How many never end, and how many ends have no beginning.
    """
    last = int((events.ts[rows] + np.maximum(events.dur[rows], 0)).max())
    around: list[int] = []  # ends of the complete events that are open
    begun: list[tuple[int, int, int, int]] = []  # row, name, begin, and when the complete event around it ends
    names: Counter[int] = Counter()
    unended = unbegun = 0

    def close(depth: int, end: int) -> None:
        """Of open beginnings those from `depth` on."""
        for row, _, begin, limit in begun[depth:]:
            dur[row] = min(end, limit) - begin
        del begun[depth:]

    columns = (rows, events.ts[rows], events.dur[rows], events.name[rows])
    for row, at, length, name in zip(*(column.tolist() for column in columns), strict=True):
        while around and around[-1] <= at:
            around.pop()
        if length >= 0:
            around.append(at + length)
        elif length == BEGIN:
            begun.append((row, name, at, around[-1] if around else last))
            names[name] += 1
        elif not (names[name] if name else begun):
            unbegun += 1
        else:
            depth = next(i for i in reversed(range(len(begun))) if name in {0, begun[i][1]})
            unended += len(begun) - depth - 1
            names.subtract(each[1] for each in begun[depth:])
            close(depth + 1, at)
            own, _, begin, _ = begun.pop()
            dur[own] = at - begin
    unended += len(begun)
    close(0, last)
    return unended, unbegun
