"""Operators of a program that computes on the host as a text of one letter each, as `op_chains` has it of a device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.rules.common.host_ops import HostOps, host_ops
from traceanalyze.rules.common.op_chains import OTHER, letter_of
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

_NO_WORK = re.compile(
    r"^autograd::|^\w+Backward\d*$|^(aten::)?(_unsafe_view|_reshape_alias|alias|as_strided_?|chunk|detach_?|diagonal|empty\w*|expand\w*|flatten"
    r"|lift_fresh|narrow|permute|reshape|resize_|resolve_(conj|neg)|result_type|select|slice|split\w*|squeeze_?|t|to"
    r"|transpose_?|unbind|unflatten|unsafe_split|unsqueeze_?|view\w*)$"
)
"""Operators that give memory or another view of it, and steps of autograd: they compute nothing themselves."""


@frozen
class HostChains:
    """Operators that compute, in order; what runs inside an operator with a letter of its own belongs to that."""

    text: str
    ops: HostOps
    at: NDArray[np.int64]
    """Place in `ops` of each letter."""

    def inside(self, pattern: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each match: (n, 2) time between the operators around the pattern's first group, and of the whole match."""
        found = [(match.span(1), match.span()) for match in re.finditer(pattern, self.text)]
        inner, whole = (np.array([each[part] for each in found], np.int64).reshape(-1, 2) for part in (0, 1))
        start, end = self.ops.start[self.at], self.ops.end[self.at]
        return (
            intervals_of(end[inner[:, 0] - 1], start[inner[:, 1]]),
            intervals_of(start[whole[:, 0]], end[whole[:, 1] - 1]),
        )


def host_chains(facts: Facts) -> HostChains:
    """The operators of the steps' thread as letters; use with `Facts.once`."""
    ops, strings = facts.once(host_ops), facts.context.trace.strings
    letter = strings.lookup(ops.name, letter_of).astype(np.uint8)
    works = ops.leaf & ~strings.lookup(ops.name, lambda text: _NO_WORK.match(text) is not None).astype(np.bool_)
    named = letter != ord(OTHER)
    reach = np.maximum.accumulate(np.where(named, ops.end, np.iinfo(np.int64).min))
    hidden = np.zeros(len(reach), np.bool_)
    hidden[1:] = reach[:-1] > ops.start[1:]
    at = np.flatnonzero((named | works) & ~hidden)
    return HostChains(letter[at].tobytes().decode("latin-1"), ops, at)
