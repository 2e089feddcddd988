"""Text as a cell may hold it, how much room it takes, and names of sheets."""

import unicodedata

from traceanalyze.model.patterns import regex

LONGEST = 32_767
"""Characters of a cell; Excel repairs, that is cuts, a file with longer ones."""

# All that XML 1.0 forbids, lone surrogates among it, which cannot be encoded either.
_ILLEGAL = regex("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FIRST_WIDE = "\u1100"
"""No character before it is wide."""
_BREAKS = regex("[\t\n\r]+")
_WORDS = regex(f"[{_FIRST_WIDE}-\U0010ffff]|[^\\s{_FIRST_WIDE}-\U0010ffff]+")


def clean(text: str) -> str:
    """Text of a trace in one line, without characters that a workbook must not contain."""
    if not text.isprintable():
        text = _BREAKS.sub(" ", _ILLEGAL.sub("", text))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def width(text: str) -> int:
    """Columns the text takes: East Asian characters take two."""
    if text.isascii() or max(text) < _FIRST_WIDE:
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def lines(text: str, room: int) -> int:
    """Lines that text wrapped in a cell of this width takes, at the most; East Asian text breaks between any two."""
    taken, used = 1, 0
    words = text.split() if width(text) == len(text) else _WORDS.findall(text)
    for word in words:
        size, space = width(word), int(bool(used) and word[0] < _FIRST_WIDE)
        if used and used + space + size > room:
            taken, used, space = taken + 1, 0, 0
        used += size + space
        full = max(used - 1, 0) // room
        taken, used = taken + full, used - full * room
    return taken


LONGEST_NAME = 31
_FORBIDDEN = regex(r"[\[\]:*?/\\]|[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RESERVED = "history"


class SheetNames:
    """Gives out names, each once; Excel compares them without case."""

    def __init__(self) -> None:
        self._taken = {_RESERVED}

    def take(self, wanted: str) -> str:
        """The wanted name, or the nearest to it that is free."""
        base = _FORBIDDEN.sub("_", wanted).strip("' ") or "Sheet"
        name, number = base[:LONGEST_NAME], 1
        while name.lower() in self._taken:
            number += 1
            ending = f" ({number})"
            name = base[: LONGEST_NAME - len(ending)] + ending
        self._taken.add(name.lower())
        return name


def readable(key: str) -> str:
    """A table's key as a name: the same in every language, so that programs find it."""
    return key.replace("_", " ").capitalize()


def link(name: str, cell: str = "A1") -> str:
    """Address of a cell in another sheet as hyperlinks have it."""
    return f"internal:'{name.replace(chr(39), chr(39) * 2)}'!{cell}"
