"""Kernels of an operator or a module as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED = 20
"""Kernels named in one text."""


def kernel_details(kernels: Sequence[tuple[str, int]]) -> str | None:
    """Names and microseconds in their order, equal neighbours once; None without any."""
    if not kernels:
        return None
    runs: list[tuple[str, int, int]] = []
    for name, ns in kernels:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + ns, runs[-1][2] + 1)
        else:
            runs.append((name, ns, 1))
    shown = [
        f"{name} [{ns / 1000:.3f} µs{f', {count} times' if count > 1 else ''}]" for name, ns, count in runs[:NAMED]
    ]
    return "; ".join(shown) + (f"; … {len(runs) - NAMED} more" if len(runs) > NAMED else "")
