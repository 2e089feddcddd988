"""Parts of a screen, each in as many lines as there are for it."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

_WEIGHT = ("asked", "todo", "beside", "parts", "trust", "work")
"""Sections by how much is lost without them."""


class Section(NamedTuple):
    """A part of the screen."""

    name: str
    heads: tuple[str, ...]
    items: Sequence[Sequence[tuple[str, ...]]]
    """Of each its lines, in the order in which they are read: first in the fewest, last all of them."""
    more: Callable[[Sequence[int]], str]
    """What is said of items that have no room; of none of them, what is always counted."""
    sure: int = 0
    """How many items have their fewest lines before any has more."""
    order: Sequence[int] = ()
    """Places of items, the most telling first; as they stand where it is empty."""
    foot: tuple[str, ...] = ()
    """A total."""
    line: str = ""
    """What stands for all of it where there is one line, or too few."""
    kept: int = 0
    """Lines that it has before any section has more."""
    least: int = 4
    fair: int = 8
    most: int = 99

    @property
    def whole(self) -> list[str]:
        """All of its lines."""
        return [*self.heads, *chain(*(each[-1] for each in self.items)), *filter(None, [self.more(())]), *self.foot]

    def within(self, room: int) -> list[str]:
        """At most so many lines of it."""
        if len(self.whole) <= room:
            return self.whole
        if room == 1 and self.line:
            return [self.line]
        heads = self.heads if room > len(self.heads) + 1 else ()
        order, found = list(self.order or range(len(self.items))), list[str]()
        # Only where something has no room, a line says so.
        for spare in (0, 1):
            chosen = self._chosen(order, room - len(heads) - len(self.foot) - spare)
            rest = list(filter(None, [self.more([at for at in order if at not in chosen])]))
            found = [*heads, *chain(*(chosen[at] for at in sorted(chosen))), *rest, *self.foot]
            if len(found) <= room:
                break
        return found

    def _chosen(self, order: Sequence[int], left: int) -> dict[int, tuple[str, ...]]:
        """Lines of items, more and more of them as long as there is room: of those that are told surely, of all."""
        form: dict[int, int] = {}
        every, whole = len(order), max(map(len, self.items), default=1) - 1
        for count, most in (
            (self.sure, 0),
            (1, 2),
            (self.sure, 1),
            (self.sure, 2),
            (every, 0),
            (every, 2),
            (every, whole),
        ):
            for at in order[:count]:
                used, forms = len(self.items[at][form[at]]) if at in form else 0, self.items[at]
                better = range(min(most, len(forms) - 1), form.get(at, -1), -1)
                best = next((each for each in better if len(forms[each]) - used <= left), None)
                if best is not None:
                    form[at], left = best, left - len(forms[best]) + used
                elif at not in form:
                    break
        return {at: self.items[at][each] for at, each in form.items()}


def fitted(sections: Sequence[Section], height: int, *, gap: int) -> list[list[str]]:
    """Sections in so many lines: each what it is kept, then what it needs, then what is fair, then what is left."""
    weights = sorted(range(len(sections)), key=lambda at: _WEIGHT.index(sections[at].name))
    needs = [min(len(each.whole), each.most) for each in sections]
    placed: dict[int, list[str]] = {}
    left = height
    for most in ("kept", "least", "fair", "most"):
        for at in weights:
            used = len(placed.get(at, ()))
            room = min(getattr(sections[at], most), needs[at], used + left - (0 if used else gap))
            lines = sections[at].within(room) if room > used else []
            # What its items cannot use is for others; one that does not get what it needs at least is left out, or
            # told in a line. One that has its heading and items can use any line more.
            needed = sections[at].least if max(used, room) > sections[at].kept else sections[at].kept
            if used <= 1 and 0 < room < min(needed, needs[at]) and sections[at].line:
                lines = [sections[at].line]
                room = needed
            if len(lines) > used and (used > 1 or room >= min(needed, needs[at])):
                left -= len(lines) - used + (0 if used else gap)
                placed[at] = lines
    return [placed[at] for at in sorted(placed)]
