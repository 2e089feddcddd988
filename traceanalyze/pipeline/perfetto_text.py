"""The text of annotated traces: one with its tracks, or several put together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import Kind as ValueKind
from traceanalyze.model.table import Message
from traceanalyze.model.trace import Trace
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import open_stream
from traceanalyze.report.format import Formatter
from traceanalyze.report.perfetto.events import (
    PROCESS,
    Clock,
    Overlay,
    Process,
    alone,
    free_pid,
    overlay_events,
    sections,
)
from traceanalyze.report.perfetto.merge import Pids, RankText, appended, process_titles, read_blocks

_ROOM = 1_000
"""Places for the processes of one rank in the order in which processes are shown."""
_SPEED_LEVEL = 1
"""Of compression: the file is made to be looked at once, not to be kept."""


class Rank(NamedTuple):
    """What is kept of one recording once it was analysed."""

    trace: Trace
    """A sample: origin, names, bases."""
    source: Source
    tracks: Overlay
    worst: tuple[int, int] | None = None
    """From where to where its first finding is worth a look, ns."""
    ahead_ns: int = 0
    """By how much its clock is ahead of that of the first rank; taken out where ranks are drawn together."""
    begin: int = 0
    """When its first event begins, ns."""

    @property
    def text_base_ns(self) -> int:
        """Absolute time of the zero of the times in the text; those of Ascend profiles are absolute themselves."""
        return (0 if self.trace.origin.format == "ascend" else self.trace.base_ns) - self.ahead_ns

    def place(self, ranks: "Sequence[Rank]") -> tuple[int, int] | None:
        """`worst` on the clock of the text that these ranks are written into."""
        zero = min(rank.text_base_ns for rank in ranks)
        offset = self.clock(zero).offset_ns
        return None if self.worst is None else (self.worst[0] + offset, self.worst[1] + offset)

    def clock(self, zero_ns: int) -> Clock:
        """How its times are written in a text whose zero is an absolute time."""
        absolute = self.trace.base_ns - self.ahead_ns - zero_ns
        return Clock(absolute, quoted=self.trace.origin.format == "ascend")


def write(file: IO[bytes], target: Path, ranks: list[Rank], words: Texts, *, overlay_only: bool) -> list[str]:
    """Write the output; remarks on recordings whose text could not be taken over."""
    notes: list[str] = []
    if len(ranks) == 1:
        text = _single(ranks[0], words, notes, overlay_only=overlay_only)
    else:
        moved = max(abs(rank.ahead_ns) for rank in ranks)
        notes.append(
            said(words, "overlay_aligned", count=len(ranks), most=(moved, ValueKind.DURATION))
            if moved
            else said(words, "overlay_merged", count=len(ranks))
        )
        text = _merged(ranks, words, notes, overlay_only=overlay_only)
    with packed(file, target) as write:
        for piece in text:
            write(piece)
    return notes


@contextmanager
def packed(file: IO[bytes], target: Path) -> Iterator[Callable[[bytes], object]]:
    """Where to write text to: compressed if the name says so. The same text gives the same bytes."""
    if target.suffix.lower() != ".gz":
        yield file.write
        return
    from isal import isal_zlib

    packer = isal_zlib.compressobj(_SPEED_LEVEL, isal_zlib.DEFLATED, 31)
    yield lambda piece: file.write(packer.compress(piece))
    file.write(packer.flush())


def _single(rank: Rank, words: Texts, notes: list[str], *, overlay_only: bool) -> Iterator[bytes]:
    zero = rank.text_base_ns
    process = Process(free_pid(rank.trace.process_names), PROCESS)
    events = overlay_events(rank.tracks, process, rank.clock(zero))
    if overlay_only or not _usable(rank, words, notes):
        yield from alone(events, zero)
        return
    with open_stream(rank.source) as stream:
        yield from appended(read_blocks(stream.readinto), events)


def _merged(ranks: list[Rank], words: Texts, notes: list[str], *, overlay_only: bool) -> Iterator[bytes]:
    zero, pids = min(rank.text_base_ns for rank in ranks), Pids()

    def every() -> Iterator[Iterator[bytes]]:
        for index, rank in enumerate(ranks):
            number = rank.trace.origin.rank
            title = f"rank {index if number is None else number}"
            sort = index * _ROOM
            process = Process(pids.new(), f"{title} · {PROCESS}", sort)
            if not overlay_only and _usable(rank, words, notes):
                text = RankText(index, pids, rank.text_base_ns - zero)
                names = rank.trace.process_names
                yield process_titles(text, title, names, sort)
                with open_stream(rank.source) as stream:
                    yield text.events(read_blocks(stream.readinto))
                yield process_titles(text, title, names, sort, at=rank.clock(zero).text(_end(rank.trace)))
            yield overlay_events(rank.tracks, process, rank.clock(zero))

    return alone(sections(every()), zero)


def _end(trace: Trace) -> int:
    """Time of its last event."""
    events = trace.events
    return int((events.ts + events.dur).max()) if len(events) else 0


def _usable(rank: Rank, words: Texts, notes: list[str]) -> bool:
    """Whether the text of a recording can be passed on; if not, that is remarked."""
    path, read = rank.trace.origin.path, rank.trace.read
    damaged = not read.whole or read.counts.get("malformed", 0) > 0
    if rank.trace.origin.form == "db" or rank.trace.origin.plugin or not _is_json(rank.source):
        notes.append(said(words, "overlay_alone_not_json", path=path))
    elif damaged:
        notes.append(said(words, "overlay_alone_damaged", path=path))
    else:
        return True
    return False


def _is_json(source: Source) -> bool:
    with open_stream(source) as stream:
        return sniff(stream.head, source.name) in {Kind.TRACE, Kind.JSON, Kind.BLANK}


def said(words: Texts, key: str, **values: str | int | tuple[int, ValueKind]) -> str:
    """A remark in words; a value may come with its kind."""
    kinds = tuple(
        (name, value[1], value[0]) if isinstance(value, tuple) else (name, ValueKind.TEXT, value)
        for name, value in values.items()
    )
    return Formatter(words).message(Message(key, kinds))
