"""Kernel names that people can read: what a kernel is, in at most 32 characters.

`void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>` is `add f32`. A name is
normalised (`words`), recognised by its family (`families`, `cpp`) and read into parts: operation, direction,
dtype, tile, layout. A label has them in this order, and loses them from the right until it fits. Where names of one
table would have equal labels, each gets the smallest part that tells it from the others, else words of its name that
the others lack, and where none of these tells them apart a number. Labels depend on which names there are, never on
their order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count

from traceanalyze.model.kernel_names.families import meaning
from traceanalyze.model.kernel_names.words import Meaning, normal, pieces

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


def labels(names: Iterable[str], *, mixed: bool = False) -> Mapping[str, str]:
    """A label for each distinct name, all of them different.

    Args:
        names: Of one table, in any order.
        mixed: There are operators, calls and source lines among them: names that not only kernels have stay as they
            are, however long.
    """
    groups: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        meant = meaning_of(name)
        if mixed and (meant is None or not meant.sure):
            found[name] = name
        else:
            groups.setdefault(_fitted(name), []).append(name)
    taken = {*found}
    marks = {name: mark for text, alike in groups.items() for name, mark in _told_apart(text, alike).items()}
    for name, mark in sorted(marks.items()):
        numbered = (f"{mark} ({number})".lstrip() for number in count(2))
        ends = chain([mark], (end if len(end) <= _room(name) else end.split()[-1] for end in numbered))
        found[name] = next(text for end in ends if (text := _fitted(name, end)) not in taken)
        taken.add(found[name])
    return found


def _fitted(name: str, suffix: str = "", *, parts: int = 5) -> str:
    """The label with what must stand at its end, without as many parts as it takes to fit."""
    meant = meaning_of(name)
    said = [name] if meant is None else [part for part in meant[:parts] if isinstance(part, str) and part]
    ends = [end for end in (meant.number if meant else "", suffix) if end]
    room = LONGEST - sum(len(end) + 1 for end in ends)
    while len(said) > 1 and len(" ".join(said)) > room:
        said.pop()
    text = " ".join(said)
    while len(text) > room and "+" in text:
        text = text.rpartition("+")[0]
    if len(text) > room:
        text = text[: room - 1].rstrip("_ ") + "…"
    return " ".join([text, *ends])


def _room(name: str) -> int:
    """Letters for what stands at the end: the layout makes room for it, other parts do not."""
    short = _fitted(name, parts=4)
    return LONGEST - 1 - (_LEAST if short.endswith("…") else len(short))


def _told_apart(text: str, alike: Sequence[str]) -> dict[str, str]:
    """What follows a label that several names would have: marks that tell most of them apart, then their words."""
    room = {name: _room(name) for name in alike}
    told, said = dict.fromkeys(alike, ""), {"", *text.split()}
    for traits in (_marks, _words) if len(alike) > 1 else ():
        every = {name: traits(name) for name in alike}
        of = {name: {kind: word for kind, word in each.items() if word not in said} for name, each in every.items()}
        kinds = dict.fromkeys(kind for each in every.values() for kind in each)
        for _ in range(_SEVERAL):
            counts = Counter(told.values())
            unclear = [name for name in alike if counts[told[name]] > 1]
            best, most = {}, len(counts)
            for kind in kinds if unclear else ():
                more = {name: f"{told[name]} {of[name][kind]}".strip() for name in unclear if kind in of[name]}
                more = {name: mark for name, mark in more.items() if len(mark) <= room[name]}
                if (apart := len({*(told | more).values()})) > most:
                    best, most = more, apart
            told |= best
    return told


def _marks(name: str) -> Mapping[str, str]:
    meant = meaning_of(name)
    return meant.marks if meant else {}


def _words(name: str) -> Mapping[str, str]:
    meant = meaning_of(name)
    return pieces(name) if meant is None or meant.literal else {}
