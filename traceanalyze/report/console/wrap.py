"""Running text broken at a width in columns, where Chinese may break between any two characters."""

from __future__ import annotations

import re
import textwrap
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def display_width(text: str) -> int:
    """Columns a printable text takes; CJK characters take two."""
    if text.isascii():
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
