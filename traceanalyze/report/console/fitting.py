"""Parts of a screen, each in as many lines as there are for it."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

_WEIGHT = ("todo", "beside", "parts", "trust", "work")
"""Sections by how much is lost without them."""


class Section(NamedTuple):
    """A part of the screen."""

    name: str
    heads: tuple[str, ...]
    items: Sequence[tuple[str, ...]]
    """Lines of each, in the order in which they are read."""
    more: Callable[[Sequence[int]], str]
    """What is said of items that have no room; of none of them, what is always counted."""
    brief: Sequence[str] = ()
    """One line for each where there is no room for all of its lines."""
    sure: int = 0
    """How many items have a line of their own before any but the first has more."""
    order: Sequence[int] = ()
    """Places of items, the most telling first; as they stand where it is empty."""
    foot: tuple[str, ...] = ()
    """A total."""
    line: str = ""
    """What stands for all of it where there is one line."""
    least: int = 4
    fair: int = 8
    most: int = 99

    @property
    def whole(self) -> list[str]:
        """All of its lines."""
        return [*self.heads, *chain(*self.items), *filter(None, [self.more(())]), *self.foot]

    def within(self, room: int) -> list[str]:
        """At most so many lines of it."""
        if len(self.whole) <= room:
            return self.whole
        if room == 1 and self.line:
            return [self.line]
        heads = self.heads if room > len(self.heads) + 1 else ()
        left = room - len(heads) - len(self.foot) - 1
        order, chosen, short = list(self.order or range(len(self.items))), dict[int, tuple[str, ...]](), False
        for place, index in enumerate(order):
            # Those that follow are at least to be named.
            follow = max(min(len(order) - place - 1, 2), self.sure - place) if self.brief else 0
            short = short or len(self.items[index]) + follow > left
            lines = (self.brief[index],) if short and self.brief else self.items[index]
            if len(lines) > left:
                break
            chosen[index] = lines
            left -= len(lines)
        rest = self.more([index for index in order if index not in chosen])
        return [*heads, *chain(*(chosen[index] for index in sorted(chosen))), *filter(None, [rest]), *self.foot]


def fitted(sections: Sequence[Section], height: int, *, gap: int) -> list[list[str]]:
    """Sections in so many lines: each what it needs at least, then what is fair, then what is left."""
    weights = sorted(range(len(sections)), key=lambda at: _WEIGHT.index(sections[at].name))
    needs = [min(len(each.whole), each.most) for each in sections]
    placed: dict[int, list[str]] = {}
    left = height
    for most in ("least", "fair", "most"):
        for at in weights:
            used = len(placed.get(at, ()))
            room = min(getattr(sections[at], most), needs[at], used + left - (0 if used else gap))
            lines = sections[at].within(room) if room > used else []
            # What its items cannot use is for others; one that does not get what it needs at least is left out.
            if len(lines) > used and (used or room >= min(sections[at].least, needs[at])):
                left -= len(lines) - used + (0 if used else gap)
                placed[at] = lines
    return [placed[at] for at in sorted(placed)]
