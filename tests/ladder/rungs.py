"""The rungs of the ladder, and what each adds to the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One more optimisation than the rung below."""

    name: str
    adds: tuple[str, ...]


SPEED = (
    Rung("baseline", ()),
    Rung("batch", ("--batch", "16")),
    Rung("workers", ("--workers", "4")),
    Rung("non_blocking", ("--pin",)),
    Rung("no_item", ("--no-item",)),
    Rung("fused_optimizer", ("--optimizer", "fused")),
    Rung("bf16", ("--precision", "bf16")),
    Rung("sdpa", ("--sdpa",)),
    Rung("compile", ("--compile",)),
)
MEMORY = (
    Rung("baseline", ("--batch", "16", "--optimizer", "foreach")),
    Rung("accumulation", ("--batch", "8", "--accumulate", "2")),
    Rung("checkpointing", ("--checkpoint",)),
    Rung("for_loop", ("--optimizer", "for-loop")),
)
FAULTS = (
    Rung("empty_cache", ("--empty-cache",)),
    Rung("varying_length", ("--vary-length",)),
    Rung("leak", ("--leak",)),
    Rung("device_sync", ("--device-sync",)),
)
"""Not a ladder: each alone, on the baseline."""


def switches(ladder: tuple[Rung, ...], name: str) -> list[str]:
    """The command line of a rung: its own switches after those of all rungs below; the last of a kind counts."""
    names = [rung.name for rung in ladder]
    return [word for rung in ladder[: names.index(name) + 1] for word in rung.adds]
