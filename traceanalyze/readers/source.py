"""One text to read, and what a user calls it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from traceanalyze.errors import InputError, Phrase, some
from traceanalyze.readers.ascend.folder import stray_of
from traceanalyze.readers.remote import shown

STDIN = "-"
ARCHIVE_MARK = "!"
"""Between an archive and its member in a name."""


class Source(NamedTuple):
    """A file, a member of an archive, or standard input."""

    path: str
    """File to open, "-" for standard input; an address (`s3://…`) of one elsewhere."""
    member: str = ""
    """Name inside the archive `path`; empty for a plain file."""
    folder: str = ""
    """Folder of the profile that `path` is the main file of, when a profile is more than one file (Ascend)."""
    size: int | None = None
    """Bytes that reading it takes from the file (of an archive: the unpacked member); None if unknown, as of a pipe."""
    more: tuple[str, ...] = ()
    """Files that go on with its list of events: msprof writes one an iteration."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        if self.path == STDIN:
            return "standard input"
        if self.folder:
            return shown(self.folder)
        path = shown(self.path)
        return f"{path}{ARCHIVE_MARK}{self.member}" if self.member else path


_ASCEND = Phrase(
    "an Ascend profile has ASCEND_PROFILER_OUTPUT with trace_view.json, a database or kernel_details.csv; "
    "torch_npu.profiler.profiler.analyse makes them"
)


def not_found(path: Path) -> InputError:
    """A path that does not exist: names the nearest one that does."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return InputError("{path}: no such file, nor is there a folder {parent}", path, path.parent)
    # Imported here: most inputs are there.
    from difflib import get_close_matches

    # Endings first (`trace.json` of `trace.json.gz`); what differs in a number is another file.
    longer = [name for name in names if path.name and name.startswith(f"{path.name}.")]
    alike = [name for name in names if _digits(name) == _digits(path.name)]
    near = longer or get_close_matches(path.name, alike, 1, 0.75)
    hint = Phrase("; did you mean {path}?", path.with_name(near[0])) if near else ""
    return InputError("{path}: no such file or folder{hint}", path, hint)


def _digits(name: str) -> list[str]:
    return [each for each in name if each.isdigit()]


def no_permission(name: str) -> InputError:
    """A path that may not be read."""
    return InputError("{name}: no permission to read it; run `chmod u+rX` or ask its owner", name)


def nothing_found(place: str, what: str, ignored: Sequence[str]) -> InputError:
    """A folder, archive or glob without a trace: says what it holds instead."""
    if not ignored:
        found = Phrase("no file matches") if what == "glob" else Phrase("there is no file in this {what}", what)
        return InputError("{place}: {found}; give the trace export_chrome_trace wrote", place, found)
    names = some(ignored)
    many = Phrase("{count:,} files, none of them a trace", len(ignored))
    count = Phrase("1 file, not a trace") if len(ignored) == 1 else many
    profile = any("ascend_p" in name.lower() for name in (place, *ignored))
    advice = _ASCEND if profile else stray_of(name.partition(" (")[0] for name in ignored)
    after = Phrase("; {advice}", advice) if advice else ""
    return InputError("{place}: no trace in this {what}: {count}: {names}{after}", place, what, count, names, after)
