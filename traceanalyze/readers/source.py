"""One text to read, and what a user calls it."""

from __future__ import annotations

from traceanalyze.frozen import frozen

STDIN = "-"
ARCHIVE_MARK = "!"
"""Between an archive and its member in a name."""


@frozen
class Source:
    """A file, a member of an archive, or standard input."""

    path: str
    """File to open, "-" for standard input."""
    member: str = ""
    """Name inside the archive `path`; empty for a plain file."""
    folder: str = ""
    """Folder of the profile that `path` is the main file of, when a profile is more than one file (Ascend)."""
    size: int | None = None
    """Bytes that reading it takes from the file (of an archive: the unpacked member); None if unknown, as of a pipe."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        if self.path == STDIN:
            return "standard input"
        if self.folder:
            return self.folder
        return f"{self.path}{ARCHIVE_MARK}{self.member}" if self.member else self.path
