"""Names of sheets: readable, unique, and such that Excel accepts them."""

from __future__ import annotations

from traceanalyze.model.patterns import regex

LONGEST = 31
_FORBIDDEN = regex(r"[\[\]:*?/\\]|[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RESERVED = "history"


class SheetNames:
    """Gives out names, each once; Excel compares them without case."""

    def __init__(self) -> None:
        self._taken = {_RESERVED}

    def take(self, wanted: str) -> str:
        """The wanted name, or the nearest to it that is free."""
        base = _FORBIDDEN.sub("_", wanted).strip("' ") or "Sheet"
        name, number = base[:LONGEST], 1
        while name.lower() in self._taken:
            number += 1
            ending = f" ({number})"
            name = base[: LONGEST - len(ending)] + ending
        self._taken.add(name.lower())
        return name


def readable(key: str) -> str:
    """A table's key as a name: the same in every language, so that programs find it."""
    return key.replace("_", " ").capitalize()


def link(name: str, cell: str = "A1") -> str:
    """Address of a cell in another sheet as hyperlinks have it."""
    return f"internal:'{name.replace(chr(39), chr(39) * 2)}'!{cell}"
