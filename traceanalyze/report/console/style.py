"""What the terminal can show: width, colour, characters beyond ASCII."""

import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import takewhile
from typing import NamedTuple, TextIO

from traceanalyze.model.patterns import regex

HARD_SPACE = "\N{NO-BREAK SPACE}"
_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_OPENING = "（《「『【〈“‘"
_CLOSING = "，。、；：！？）》」』】〉”’"
_MARKS = _OPENING + _CLOSING


# Compiled when first needed, as English never does: it takes 7 ms.
@cache
def _piece() -> re.Pattern[str]:
    """No line begins with a closing mark or ends with an opening one; Latin words stay whole."""
    word = f"[^ {_WIDE}{_OPENING}]+(?:(?<={HARD_SPACE})[{_WIDE}])?"
    return re.compile(f" +|[{_OPENING}]*(?:[{_WIDE}]|{word})[{_CLOSING}]*|[{_OPENING}]+")


@cache
def _spaceless() -> re.Pattern[str]:
    return re.compile(f"(?<=[{_MARKS}])\n|\n(?=[{_MARKS}])|(?<=[{_WIDE}])\n(?=[{_WIDE}])")


@cache
def _number_and_word() -> re.Pattern[str]:
    return re.compile(f"(?<=\\d) (?=[{_WIDE}])")


NARROW = regex("[ -~\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u22ff\u2500-\u259f]*")
"""Characters of one column: those that the tool itself uses, and Latin ones."""
_COLOURS = regex(r"\033\[[0-9;]*m")


def display_width(text: str) -> int:
    """Columns a printable text takes; CJK characters take two, colours none."""
    if "\033" in text:
        text = _COLOURS.sub("", text)
    if NARROW.fullmatch(text):
        return len(text)
    from wcwidth import wcswidth

    return max(int(wcswidth(text)), 0)


def padded(text: str, width: int) -> str:
    """Text followed by as many spaces as it takes to fill a width in columns."""
    return text + " " * (width - display_width(text))


def joined(lines: Iterable[str]) -> str:
    """Lines of a paragraph as one: a space between words, none between Chinese characters or at their marks."""
    return _spaceless().sub("", "\n".join(lines)).replace("\n", " ")


def filled(text: str, width: int, first: str, indent: str) -> str:
    """Lines of a text, none wider than the width: the first begins with `first`, the others with `indent`.

    Where every character takes one column this is `textwrap.fill`.
    """
    if all(display_width(part) == len(part) for part in (text, first)):
        return textwrap.fill(text, width, initial_indent=first, subsequent_indent=indent)
    lines, empty = [first], True
    for piece in _pieces(text, max(width - max(display_width(first), display_width(indent)), 2)):
        if piece.isspace() and piece != HARD_SPACE:
            lines[-1] += "" if empty else piece
        elif empty or display_width(lines[-1] + piece) <= width:
            lines[-1] += piece
            empty = False
        else:
            lines.append(indent + piece)
    return "\n".join(line.rstrip(" ") for line in lines)


def _pieces(text: str, most: int) -> list[str]:
    """Parts between which a line may end, spaces among them; no part is wider than `most`."""
    pieces: list[str] = []
    for found in _piece().finditer(_number_and_word().sub(HARD_SPACE, text)):
        piece = found[0]
        while display_width(piece) > most:
            fitting = next((at for at in range(len(piece), 1, -1) if display_width(piece[:at]) <= most), 1)
            pieces.append(piece[:fitting])
            piece = piece[fitting:]
        pieces.append(piece)
    return pieces


def _same(texts: Sequence[str]) -> int:
    """Letters with which all of them begin."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NUMBER_AND_UNIT = regex(r"(?<=\d) (?=(?:%|s|ms|µs|ns|[kKMGT]?i?B)\b|%)")
_WITHIN_WORD = regex("[!-~]{2}")
MIN_WIDTH, MAX_WIDTH = 60, 200


class Style(NamedTuple):
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

    def shorten(self, text: str, width: int, *, start: bool = False) -> str:
        """Text cut in the middle, as both ends of kernel names and paths tell them apart; or at its start."""
        if display_width(text) <= width:
            return text
        mark = "…" if self.unicode else "..."
        room = max(width - len(mark), 2)
        while True:
            head = 0 if start else room - room // 2
            short = text[:head] + mark + text[len(text) - (room - head) :]
            if room <= 2 or display_width(short) <= width:
                return short
            room -= 1

    def apart(self, names: Sequence[str], width: int) -> list[str]:
        """Names cut in the middle; those that would look alike, to where they differ."""
        short, mark = {name: self.shorten(name, width) for name in names}, "…" if self.unicode else "..."
        for text in [each for each, count in Counter(short.values()).items() if count > 1]:
            alike = [name for name in short if short[name] == text]
            first = _same(alike)
            last = _same([name[first:][::-1] for name in alike])
            room = width - 2 * len(mark)
            for name in alike:
                start = max(first - max(room - (len(name) - first - last), 0) // 2, 0)
                ends = mark if start else "", mark if start + room < len(name) else ""
                short[name] = self.shorten(name[start : start + room].join(ends), width)
        return [short[name] for name in names]

    def clip(self, text: str, lines: int, indent: str = "", first: str | None = None) -> tuple[str, ...]:
        """So many lines of a text at most; what is missing then ends in a mark."""
        found = self.wrap(text, indent, first).splitlines()
        if len(found) <= lines:
            return tuple(found)
        mark = "…" if self.unicode else "..."
        last = line = found[lines - 1]
        while display_width(last) + len(mark) > self.width:
            last = last[:-1]
        if _WITHIN_WORD.match(line, len(last) - 1):
            # After a whole word, unless that would take most of the line.
            whole = last.rpartition(" ")[0]
            last = whole if 2 * display_width(whole) > self.width else last
        return (*found[: lines - 1], last.rstrip(" ,;:.，；：、。") + mark)

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> str:
        """Text broken at the width, never between a number and its unit."""
        joined = _NUMBER_AND_UNIT.sub(HARD_SPACE, text)
        lines = filled(joined, self.width, first=indent if first is None else first, indent=indent)
        return lines.replace(HARD_SPACE, " ")


def _columns() -> int:
    """`COLUMNS` or the width of the terminal; `shutil.get_terminal_size` would bring all of its compressors."""
    with suppress(ValueError):
        if (wanted := int(os.environ.get("COLUMNS", ""))) > 0:
            return wanted
    if sys.__stdout__ is not None:
        with suppress(ValueError, OSError):
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80
    return 80


def style_for(stream: TextIO) -> Style:
    """Style of an output stream: `COLUMNS` or the terminal's width, colour on terminals.

    `FORCE_COLOR` has colour in a pipe, too, and `NO_COLOR` nowhere, whatever they are set to.
    """
    wanted = os.environ.get("FORCE_COLOR") or (stream.isatty() and os.environ.get("TERM") != "dumb")
    width = _columns()
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    return Style(
        width=min(max(width, MIN_WIDTH), MAX_WIDTH),
        colour=bool(wanted) and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
    )


def file_style() -> Style:
    """Style of a text file: no colour, the width a page has."""
    return Style(width=100)
