"""What a user may choose about a comparison of two sides."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTIONS = ("profiling", "operator", "memory", "communication", "api", "kernel")
"""Sections that can be chosen; attribution, contributions and caveats are always there."""


@frozen
class CompareOptions:
    """What to compare, and how work of one side is matched with that of the other."""

    sections: frozenset[str] = frozenset(SECTIONS)
    """Names of `SECTIONS`; the others cost nothing."""
    details: bool = True
    """Match single calls too, not only totals by name."""
    modules: bool = True
    """Compare module by module where both sides recorded modules."""
    max_kernel_num: int | None = None
    """A matched pair of calls with more device events than this is shown as the pairs of calls inside it."""
    op_name_map: Mapping[str, str] = field(default_factory=dict)
    """Names of one side → names they are to be matched under; several may map to one."""
    use_input_shape: bool = False
    """Match operators by name and shapes, not by name alone."""
    kernel_types: bool = True
    """Also compare device events by the type of operator they belong to."""
