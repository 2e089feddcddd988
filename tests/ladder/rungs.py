"""The rungs of the ladders: what each adds to the command line, and which cause it removes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One more optimisation than the rung below."""

    name: str
    adds: tuple[str, ...]
    removes: tuple[str, ...] = ()
    """Rules that tell what it removes: one of them leads at the rung below. Of a fault: one of them names it."""


SPEED = (
    Rung("baseline", ()),
    Rung("batch", ("--batch", "16"), ("HST110", "HST101", "HST102", "CGR104")),
    Rung("workers", ("--workers", "4"), ("DAT101",)),
    Rung("non_blocking", ("--pin",), ("SYN105",)),
    Rung("no_item", ("--no-item",), ("SYN101",)),
    Rung("fused_optimizer", ("--optimizer", "fused"), ("HST111",)),
    Rung("bf16", ("--precision", "bf16"), ("KRN101",)),
    Rung("sdpa", ("--sdpa",), ("KRN104",)),
    Rung("compile", ("--compile",), ("KRN106", "HST101", "CGR104")),
)
"""On a GPU."""
HOST = (
    Rung("baseline", ()),
    Rung("workers", ("--workers", "1"), ("DAT101",)),
    Rung("sdpa", ("--sdpa",), ("KRN104",)),
    Rung("fused_optimizer", ("--optimizer", "fused"), ("HST111",)),
)
"""On the processor, where nothing is launched, copied or waited for."""
MEMORY = (
    Rung("baseline", ("--batch", "16", "--optimizer", "foreach")),
    Rung("accumulation", ("--batch", "8", "--accumulate", "2"), ("MEM107",)),
    Rung("checkpointing", ("--checkpoint",), ("MEM107",)),
    Rung("for_loop", ("--optimizer", "for-loop"), ("MEM118",)),
)
FAULTS = (
    Rung("empty_cache", ("--empty-cache",), ("MEM102",)),
    Rung("varying_length", ("--vary-length",), ("MEM101", "MEM105")),
    Rung("leak", ("--leak",), ("MEM108",)),
    Rung("device_sync", ("--device-sync",), ("SYN103",)),
)
"""Not a ladder: each alone, on the baseline."""


def switches(ladder: tuple[Rung, ...], name: str) -> list[str]:
    """The command line of a rung: its own switches after those of all rungs below; the last of a kind counts."""
    names = [rung.name for rung in ladder]
    return [word for rung in ladder[: names.index(name) + 1] for word in rung.adds]
