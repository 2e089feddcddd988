"""What process groups are for, and which of their ranks were recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.cluster.results import Group, RankSummary

_ROLES = {
    "tensor": r"tp|tensor|mp|model_parallel",
    "pipeline": r"pp|pipe|pipeline",
    "data": r"dp|data|ddp|fsdp|replicate|shard",
    "expert": r"ep|expert|moe",
    "context": r"cp|sp|context|sequence",
}
_WORDS = {role: re.compile(rf"(?:^|[^a-z])(?:{words})(?:[^a-z]|$)") for role, words in _ROLES.items()}


def role_of(label: str, ranks: Sequence[RankSummary], listed: tuple[int, ...]) -> str | None:
    """What a group is for, by its own name or by that of a group of the same ranks; None where names do not say."""
    named = [name for rank in ranks for name, members in rank.group_names.items() if listed and members == listed]
    for name in dict.fromkeys((label, *named)):
        found = [role for role, words in _WORDS.items() if words.search(name.lower())]
        if len(found) == 1:
            return found[0]
    return None


def missing_ranks(ranks: Sequence[RankSummary]) -> tuple[int, ...]:
    """Ranks of the run that were not recorded, as far as the recordings tell how many there are."""
    size = max((rank.world_size or 0 for rank in ranks), default=0)
    here = {rank.rank for rank in ranks}
    return tuple(number for number in range(size) if number not in here)


def presence(
    known: Sequence[Group], members: Sequence[int], ranks: Sequence[RankSummary]
) -> tuple[tuple[int, ...], bool]:
    """Ranks of a group that were not recorded, and whether all are known to be here.

    A group that nothing describes counts as that of all ranks of the run.
    """
    here = {ranks[position].rank for position in members}
    listed = next((one.ranks for one in known if one.ranks), ())
    if not listed:
        size = max(max((one.size for one in known), default=0), 0)
        world = max((rank.world_size or 0 for rank in ranks), default=0)
        unnamed = not any(one.label for one in known)
        size = max(size, world) if unnamed else size
        if not size:
            return (), False
        # Ranks inside a group are those of the run only if it is the group of all.
        told = size == world or not world
        absent = tuple(number for number in range(size) if number not in here) if told else ()
        return absent, len(members) >= size
    return tuple(number for number in listed if number not in here), all(number in here for number in listed)
