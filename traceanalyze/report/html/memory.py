"""The memory of a device block by block and event by event: packed for the script, which draws it."""

import json
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import Domain
from traceanalyze.analyses.memory.composition import AT_PEAK
from traceanalyze.analyses.memory.history import CallStack, MemoryHistory
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Kind, Message, sentences
from traceanalyze.report.format import Formatter, printable
from traceanalyze.report.html.frame import data, element, sentence

_SAY = sentences(
    memory_picture="Memory, block by block",
    memory_picture_help=(
        "Each area is a block, those of longest life are below. Drag to move; Ctrl and the wheel, + and - zoom; arrow "
        "keys move, Home shows everything; a click, Enter, or , and . choose the event whose layout stands below. "
        "There the arrow keys go from block to block."
    ),
    memory_picture_help_layout="A click or the arrow keys choose a block.",
    memory_picture_highest="Where several events share a pixel, the one with most in blocks is drawn.",
    memory_picture_window=(
        "The page has room for the blocks of {count} of {all} events, from event {event} on: those around the moment "
        "that counts."
    ),
    memory_picture_hidden="Not marked: {count} of the shorter ranges, later steps and smaller releases.",
    memory_picture_deep="Without a bar of their own: {count} range(s) within others.",
    memory_picture_inexact="Sizes of blocks are the least that their requests need, so holes are not shown.",
    memory_picture_old_browser="This browser cannot unpack the blocks; a newer one can.",
    memory_picture_search="Search blocks",
    memory_picture_search_help="line, address, > 10 MiB",
    memory_picture_found="{count} block(s), {bytes} at this event",
    memory_picture_event="event {event} of {count}",
    memory_picture_begin="before the first event",
    memory_picture_earlier="before what is shown",
    memory_picture_reserved="{reserved} reserved, {used} in blocks",
    memory_picture_small="smaller blocks",
    memory_picture_free="free",
    memory_picture_domain="{name}: {reserved} reserved, {used} in {blocks} block(s)",
    memory_picture_holes=", {free} free in {holes} hole(s), the largest {largest}",
    memory_picture_large="large blocks, stream {stream}",
    memory_picture_little="small blocks, stream {stream}",
    memory_picture_pool="pool {pool}, {name}",
    memory_picture_hole="Free: {bytes}",
    memory_picture_segment="in a segment of {bytes}",
    memory_picture_life="allocated {begin}; {end}",
    memory_picture_at="at event {event}",
    memory_picture_gone="freed {end}",
    memory_picture_until_dump="alive at the dump",
    memory_picture_later="freed later than shown",
    memory_picture_asked="{bytes} requested",
    memory_picture_to_begin="Go to its allocation",
    memory_picture_to_end="Go to its end",
    memory_picture_frames="All {count} frames",
    memory_picture_back="Event before",
    memory_picture_on="Event after",
    memory_picture_scrub="Event",
    memory_picture_holders="Who holds it at this event",
    memory_picture_none="No block chosen: click one.",
    memory_picture_request="{bytes} asked for",
    memory_picture_rest="all others",
)
TITLE = _SAY["memory_picture"]
_NOTES = ("help", "help_layout", "highest", "window", "hidden", "deep")
_HELP = frozenset({"memory_picture", *(f"memory_picture_{key}" for key in _NOTES)})
_HEADS = ("source_line", "memory_category", "blocks", "block_bytes")
BUDGET = 2_400_000
"""Characters that the histories of a page have together."""
_LEAST = 60_000
"""Characters of each, however many there are."""
LANES = 3
"""Of ranges that go on at the same time."""


def memory_html(history: MemoryHistory, formatter: Formatter, share: int = 1) -> str:
    """The picture and what it leaves out; `share` histories stand in the page."""
    words = formatter.texts.messages
    packed, first, last = _fitting(history, formatter, max(BUDGET // share, _LEAST))
    told = {key.removeprefix("memory_picture_"): words[said] for key, said in _SAY.items() if key not in _HELP}
    value = {"data": b64encode(packed).decode(), "words": told, "resolution": formatter.resolution_ns}
    help_ = ("help", "highest") if last - first > 1 else ("help_layout",)
    notes = [Message(_SAY[f"memory_picture_{key}"]) for key in help_]
    if history.events > 1 and last - first < history.events + 1:
        # The state before the first event is that of none.
        begin = max(first, 0)
        counts = (("count", last - begin), ("all", history.events), ("event", begin))
        notes.append(Message(_SAY["memory_picture_window"], tuple((key, Kind.COUNT, each) for key, each in counts)))
    if history.hidden:
        notes.append(Message(_SAY["memory_picture_hidden"], (("count", Kind.COUNT, history.hidden),)))
    if deep := sum(lane == -1 for *_, lane in _spans(history, first, last)):
        notes.append(Message(_SAY["memory_picture_deep"], (("count", Kind.COUNT, deep),)))
    if history.lost:
        notes.append(Message(_SAY["memory_picture_inexact"]))
    said = element("p", sentence(formatter.sentences(notes)), class_="aside")
    return element("figure", data(value) + said, class_="memory")


def _fitting(history: MemoryHistory, formatter: Formatter, budget: int) -> tuple[bytes, int, int]:
    """As many states as there is room for, around the first failure, else the peak: packed, the first, behind the last.

    State k is that after event k; -1 is that before the first.
    """
    first, last = -1 if history.events > 1 else history.events - 1, history.events
    failed = [mark.event for mark in history.marks if mark.kind == "moment_oom"]
    middle = failed[0] if failed else next((mark.event for mark in history.marks), -1)
    while True:
        packed = _packed(history, formatter, first, last)
        room = 0.9 * budget / (4 / 3 * len(packed))
        if room >= 0.9 or last - first < 64:
            return packed, first, last
        size = int((last - first) * room)
        first = min(max(middle - size * 3 // 4, -1), history.events - size)
        last = first + size


def _packed(history: MemoryHistory, formatter: Formatter, first: int, last: int) -> bytes:
    """Texts as JSON, then columns of numbers, all of it deflated."""
    lives, states = history.lives, last - first
    begin, end = np.maximum(lives.begin - first, 0), np.minimum(lives.end - first, states)
    rows = np.flatnonzero(begin < end)
    rows = rows[np.lexsort((lives.address[rows], begin[rows]))]
    begin, end = begin[rows], end[rows]
    stack, category = lives.stack[rows], history.category[rows]
    kind, one_of = _kinds(history.size[rows], lives.requested[rows], stack, category)
    ranges = [*history.segments, *(change.range for change in history.changes)]
    domains = list(dict.fromkeys(each.domain for each in ranges))
    start = np.array([each.start for each in ranges], np.int64)
    length = np.array([each.end - each.start for each in ranges], np.int64)
    base = min(lives.address[rows].min(initial=np.iinfo(np.int64).max), start.min(initial=np.iinfo(np.int64).max))
    place, where = np.unique(lives.address[rows] - base, return_inverse=True)
    unit = int(np.gcd.reduce(np.concatenate((place, start - base, length)))) or 1
    flags = [4 * domains.index(each.domain) + each.expandable for each in ranges]
    changed = np.array([max(change.event - first, 0) for change in history.changes], np.int64)
    grows = np.array([0] * len(history.segments) + [2 * change.grows for change in history.changes], np.int64)
    chosen = rows[one_of]
    known = distinct(stack[one_of])
    times = _times(history, first, last)
    columns = (
        *(np.diff(begin, prepend=0), end - begin, kind, where, np.diff(place, prepend=0) // unit),
        *(history.size[chosen], lives.requested[chosen], np.searchsorted(known, stack[one_of]), category[one_of]),
        *((start - base) // unit, length // unit, np.array(flags, np.int64) + grows, np.diff(changed, prepend=0)),
        *times,
    )
    frames: dict[str, int] = {}
    named = {span.name for span in history.spans}
    texts = {
        "counts": [len(each) for each in columns],
        "first": first,
        "states": states,
        "all": history.events,
        "segments": len(history.segments),
        "base": f"{int(base) % (1 << 64):x}",
        "unit": unit,
        "exact": not history.lost,
        "domains": [_domain(each, history, formatter) for each in domains],
        "terms": [[_css(term), formatter.value(Kind.TERM, term)] for term in history.terms],
        "stacks": [_stack(history.stacks[at], frames) for at in known.tolist()],
        "frames": list(frames),
        "marks": [
            [mark.kind, formatter.value(Kind.TERM, mark.kind), mark.event - first, mark.bytes]
            for mark in history.marks
            if first <= mark.event < last
        ],
        "spans": _spans(history, first, last),
        "steps": [
            [event - first, "" if name in named else printable(name)]
            for event, name in history.steps
            if first <= event < last
        ],
        "heads": [formatter.texts.heading(AT_PEAK, AT_PEAK[key]) for key in _HEADS],
    }
    head = json.dumps(texts, separators=(",", ":")).encode()
    whole = len(head).to_bytes(4, "little") + head + b"".join(map(_varints, columns))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(whole) + packer.flush()


def _kinds(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of the combination in each row, and a row of each."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        _, one, key = np.unique(key * max(len(values), 1) + code, return_index=True, return_inverse=True)
    return key, one


def _spans(history: MemoryHistory, first: int, last: int) -> list[list[str | int]]:
    """Name, begin, end and lane of the ranges; where `LANES` have begun and go on there is no lane for one more: -1."""
    ends: list[int] = []
    found: list[list[str | int]] = []
    for span in history.spans:
        begin, end = max(span.begin, first), min(span.end, last)
        if begin < end:
            free = [at for at, until in enumerate(ends) if until <= begin]
            lane = free[0] if free else len(ends) if len(ends) < LANES else -1
            if lane >= 0:
                ends[lane : lane + 1] = [end]
            found.append([printable(span.name.replace("ProfilerStep#", "#"))[:200], begin - first, end - first, lane])
    return found


def _times(history: MemoryHistory, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """States and their ns, each as the distance from the one before."""
    if history.time is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    event, time = history.time
    shown = np.unique(np.clip(event, max(first, 0), last - 1))
    far = np.diff(np.interp(shown, event, time).astype(np.int64), prepend=0)
    # The recorder's clock may have gone back: the lowest bit is the sign.
    return np.diff(shown - first, prepend=0), 2 * np.abs(far) + (far < 0)


def _varints(values: NDArray[np.int64]) -> bytes:
    """Seven bits a byte, the lowest first; all but the last byte of a number have the highest bit."""
    rest = values.astype(np.uint64)
    bits = np.ones(len(rest), np.int64)
    for power in range(7, 64, 7):
        bits += rest >= np.uint64(1) << np.uint64(power)
    ends = np.cumsum(bits)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    at = ends - bits
    for number in range(int(bits.max(initial=0))):
        more = bits > number
        found[at[more] + number] = (rest[more] & np.uint64(127)) | np.where(bits[more] > number + 1, 128, 0).astype(
            np.uint64
        )
        rest >>= np.uint64(7)
    return found.tobytes()


def _domain(one: Domain, history: MemoryHistory, formatter: Formatter) -> str:
    words = formatter.texts.messages
    name = words[_SAY["memory_picture_large" if one.large else "memory_picture_little"]].format(stream=one.stream)
    pool = history.pools[one.pool] if one.pool < len(history.pools) else (one.pool, 0)
    return name if pool == (0, 0) else words[_SAY["memory_picture_pool"]].format(pool=f"{pool[0]}.{pool[1]}", name=name)


def _css(term: str) -> str:
    return term.removeprefix("category_") if term.startswith("category_") else "own"


def _stack(stack: CallStack, frames: dict[str, int]) -> list[object]:
    """Line, the user's frames, and all of them where these are more."""
    own, whole = (
        [frames.setdefault(printable(each), len(frames)) for each in part] for part in (stack.own, stack.whole)
    )
    return [printable(stack.line), own, *([whole] if whole != own else [])]
