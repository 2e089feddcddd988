"""Kernel names that people can read: what a kernel is, in at most 32 characters.

`void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>` is `add f32`. A name is
normalised (`words`), recognised by its family (`families`, `cpp`) and read into parts: operation, direction,
dtype, tile, layout. A label has them in this order, and loses them from the right until it fits. Where names of one
table would have equal labels, each gets the smallest part that tells it from the others, else words of its name that
the others lack, and where none of these tells them apart a number. Labels depend on which names there are, never on
their order.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import NamedTuple

from traceanalyze.model.kernel_names.families import meaning
from traceanalyze.model.kernel_names.words import Meaning, normal, pieces
from traceanalyze.model.vocabulary import ARROW, both_ends

LONGEST = 32
"""Characters of a label."""
_LEAST = 16
"""Letters that a name keeps of what it does."""
_SEVERAL = 3
"""Marks in a row: more say less than a number."""


@lru_cache(maxsize=1 << 14)
def meaning_of(name: str) -> Meaning | None:
    """What a name says; None of one that says nothing beyond itself."""
    return meaning(normal(name))


class _Named(NamedTuple):
    name: str
    meant: Meaning | None

    def fitted(self, suffix: str = "", *, parts: int = 5) -> str:
        """The label with what must stand at its end, without as many parts as it takes to fit."""
        said = [part for part in (self.meant or [self.name])[:parts] if isinstance(part, str) and part]
        ends = [end for end in (self.meant.number if self.meant else "", suffix) if end]
        room = LONGEST - sum(len(end) + 1 for end in ends)
        while len(said) > 1 and len(" ".join(said)) > room:
            said.pop()
        text = " ".join(said)
        while len(text) > room and "+" in text:
            text = text.rpartition("+")[0]
        if len(text) > room:
            text = text[: room - 1].rstrip("_ ") + "…"
        return " ".join([text, *ends])

    @property
    def room(self) -> int:
        """Letters for what stands at the end: the layout makes room for it, other parts do not."""
        short = self.fitted(parts=4)
        return LONGEST - 1 - (_LEAST if short.endswith("…") else len(short))

    @property
    def marks(self) -> Mapping[str, str]:
        """What tells it from others."""
        return self.meant.marks if self.meant else {}

    @property
    def words(self) -> Mapping[str, str]:
        """Words of its name, where these are true."""
        return pieces(self.name) if self.meant is None or self.meant.literal else {}


def labels(names: Iterable[str], *, mixed: bool = False, backward: Collection[str] = ()) -> Mapping[str, str]:
    """A label for each distinct name of one table, all of them different.

    Where operators, calls and source lines are among them (`mixed`), names that not only kernels have stay as they are,
    however long, and one that became another has an arrow. Of those in `backward` the backward pass launches all calls.
    """
    names = set(names)
    became = {name: both_ends(name) for name in names if mixed and ARROW in name}
    if became:
        known = labels(names.union(*map(dict, became.values())) - became.keys(), mixed=True, backward=backward)
        return {**known, **{name: ARROW.join(known[end] + more for end, more in ends) for name, ends in became.items()}}
    groups: dict[str, list[_Named]] = {}
    found: dict[str, str] = {}
    for name in sorted(names):
        meant = meaning_of(name)
        if mixed and (meant is None or not meant.sure):
            found[name] = name
            continue
        if meant and name in backward and not meant.direction and "bwd" not in meant.operation:
            meant = meant._replace(direction="bwd")
        one = _Named(name, meant)
        groups.setdefault(one.fitted(), []).append(one)
    taken = {*found}
    marks = [pair for text, alike in groups.items() for pair in zip(alike, _told_apart(text, alike), strict=True)]
    for one, mark in sorted(marks):
        numbered = (f"{mark} ({number})".lstrip() for number in count(2))
        ends = chain([mark], (end if len(end) <= one.room else end.split()[-1] for end in numbered))
        found[one.name] = next(text for end in ends if (text := one.fitted(end)) not in taken)
        taken.add(found[one.name])
    return found


def _told_apart(text: str, alike: Sequence[_Named]) -> list[str]:
    """What follows a label that several names would have: marks that tell most of them apart, then their words."""
    told, said = [""] * len(alike), {"", *text.split()}
    for traits in ("marks", "words") if len(alike) > 1 else ():
        every: list[Mapping[str, str]] = [getattr(one, traits) for one in alike]
        kinds = dict.fromkeys(kind for each in every for kind in each)
        for _ in range(_SEVERAL):
            counts = Counter(told)
            best, most = told, len(counts)
            for kind in kinds if most < len(alike) else ():
                more = [
                    mark
                    if counts[old] > 1 and word not in said and len(mark := f"{old} {word}".strip()) <= one.room
                    else old
                    for one, old, word in zip(alike, told, (each.get(kind, "") for each in every), strict=True)
                ]
                if (apart := len({*more})) > most:
                    best, most = more, apart
            told = best
    return told
