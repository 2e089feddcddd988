"""Kernel names that people can read: what a kernel is, in at most 32 characters.

`void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>` is `add f32`. A name is
normalised (`words`), recognised by its family (`families`, `cpp`) and read into parts: operation, direction,
dtype, tile, layout. A label has them in this order, and loses them from the right until it fits. Where names of one
table would have equal labels, each gets the smallest part that tells it from the others, else `#` and letters of the
hash of its whole name: labels depend on which names there are, never on their order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from traceanalyze.model.kernel_names.families import meaning
from traceanalyze.model.kernel_names.words import Meaning, normal
from traceanalyze.model.vocabulary import ARROW

LONGEST = 32
"""Characters of a label."""
_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"


@lru_cache(maxsize=1 << 14)
def meaning_of(name: str) -> Meaning | None:
    """What a name says; None of one that says nothing beyond itself."""
    return meaning(normal(name))


def labels(names: Iterable[str], *, mixed: bool = False) -> Mapping[str, str]:
    """A label for each distinct name, all of them different.

    Args:
        names: Of one table, in any order.
        mixed: There are operators, calls and source lines among them: names that not only kernels have stay as they
            are, however long, and one that became another has an arrow.
    """
    names = set(names)
    ends = {name: name.split(ARROW) for name in names if mixed and ARROW in name}
    if ends:
        known = labels(names.union(*ends.values()) - ends.keys(), mixed=True)
        return {**known, **{name: ARROW.join(known[end] for end in pair) for name, pair in ends.items()}}
    groups: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for name in sorted(names):
        meant = meaning_of(name)
        if mixed and (meant is None or not meant.sure):
            found[name] = name
        else:
            groups.setdefault(_fitted(name), []).append(name)
    kept = set(found)
    for text, alike in groups.items():
        found |= {alike[0]: text} if len(alike) == 1 else _told_apart(alike)
    for count in range(2, 17):
        holders = Counter(found.values())
        clashing = [name for name, text in found.items() if holders[text] > 1 and name not in kept]
        if not clashing:
            break
        found |= {name: _fitted(name, _hash(name, count)) for name in clashing}
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


def _told_apart(alike: Sequence[str]) -> dict[str, str]:
    """Labels of names that would have the same one: with the first mark that tells all apart, else with several.

    The layout makes room for it, other parts do not: a hash is shorter.
    """
    marks = {name: meant.marks if (meant := meaning_of(name)) else {} for name in alike}
    kinds: list[str] = []
    told: dict[str, str] = dict.fromkeys(alike, "")
    for kind in dict.fromkeys(kind for found in marks.values() for kind in found):
        alone = {name: found.get(kind, "") for name, found in marks.items()}
        if len(set(alone.values())) == len(alike):
            told = alone
            break
        # One more of several only where it tells more.
        both = {name: " ".join(filter(None, (told[name], alone[name]))) for name in alike}
        if len(set(both.values())) > len(set(told.values())) and len(kinds) < _SEVERAL:
            kinds.append(kind)
            told = both
    room = LONGEST - max(len(_fitted(name, parts=4)) for name in alike) - 1
    counts = Counter(told.values())
    return {name: _fitted(name, mark if counts[mark] == 1 and len(mark) <= room else "") for name, mark in told.items()}


_SEVERAL = 3
"""Marks in a row: more say less than a hash."""


def _hash(name: str, count: int) -> str:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return "#" + "".join(_DIGITS[byte % 32] for byte in digest[:count])
