"""What the terminal can show: width, colour, characters beyond ASCII."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.report.console.wrap import HARD_SPACE, display_width, filled

if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|µs|ns|[kKMGT]?i?B)\b|%)")
MIN_WIDTH, MAX_WIDTH = 60, 200


@frozen
class Style:
    """Capabilities of the place the text goes to."""

    width: int = 80
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, colour: str) -> str:
        """Text in a colour or weight, where there is colour."""
        return f"\033[{_CODES[colour]}m{text}\033[0m" if self.colour and colour and text else text

    def bar(self, share: float, cells: int) -> str:
        """A horizontal bar; full length is a share of 1."""
        share = min(max(share, 0.0), 1.0)
        if not self.unicode:
            return "#" * round(share * cells)
        eighths = round(share * cells * 8)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def shorten(self, text: str, width: int) -> str:
        """Text cut in the middle, as both ends of kernel names and paths tell them apart."""
        if display_width(text) <= width:
            return text
        mark = "…" if self.unicode else "..."
        room = max(width - len(mark), 2)
        while True:
            short = text[: room - room // 2] + mark + text[len(text) - room // 2 :]
            if room <= 2 or display_width(short) <= width:
                return short
            room -= 1

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> str:
        """Text broken at the width, never between a number and its unit."""
        joined = _NUMBER_AND_UNIT.sub(HARD_SPACE, text)
        lines = filled(joined, self.width, first=indent if first is None else first, indent=indent)
        return lines.replace(HARD_SPACE, " ")


def printable(text: str) -> str:
    """Text of a trace without characters that could steer the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def style_for(stream: TextIO) -> Style:
    """Style of an output stream: `COLUMNS` or the terminal's width, colour on terminals unless `NO_COLOR` is set."""
    terminal = stream.isatty()
    width = shutil.get_terminal_size(fallback=(80, 24)).columns
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    return Style(
        width=min(max(width, MIN_WIDTH), MAX_WIDTH),
        colour=terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        unicode=encoding.startswith("utf"),
    )


def file_style() -> Style:
    """Style of a text file: no colour, the width a page has."""
    return Style(width=100)
