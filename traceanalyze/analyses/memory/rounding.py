"""How the caching allocator turns a request into a block: rounding, pools and splitting (PyTorch's own rules)."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.snapshot import Action, Snapshot, State

ALIGN = 512
"""Smallest block, and what blocks are rounded to."""
SMALL = 1 << 20
"""Blocks up to this size live in the small pool; a large block keeps a remainder up to this size."""
SMALL_SEGMENT = 2 << 20
_PADS = {"cuda": (0, 32), "npu": (32, 0)}
"""Bytes added to each request, the likely first: NPU kernels read past the end of their inputs."""
_MB = 1 << 20


class Rules(NamedTuple):
    """What decides the size of a block."""

    pad: int
    max_split: int | None
    """Larger blocks are never split; None: no such limit."""
    divisions: tuple[int, ...]
    """Rounding to parts of powers of two, by log2 of the size in MiB; empty: off."""
    expandable: bool = False
    """Segments grow and shrink by mapping memory; then large blocks are split like small ones."""

    def rounded(self, requested: int) -> int:
        """Size that a request needs."""
        size = requested + self.pad
        if size <= ALIGN:
            return ALIGN
        if self.divisions:
            index = min(max(size // _MB, 1).bit_length() - 1, len(self.divisions) - 1)
            divisions = self.divisions[index]
            if divisions > 1 and size > ALIGN * divisions:
                return _next_division(size, divisions)
        return -(-size // ALIGN) * ALIGN

    def splits(self, size: int, rest: int, *, large: bool) -> bool:
        """Whether a hole that leaves `rest` is split for a block of this size."""
        if self.expandable or not large:
            return rest >= ALIGN
        return rest > SMALL and (self.max_split is None or size < self.max_split)


def rules(snapshot: Snapshot) -> Rules:
    """The rules of a snapshot: its settings as far as it has them, the padding by what fits its live blocks."""
    limit = snapshot.settings.get("max_split_size")
    powers = snapshot.settings.get("roundup_power2_divisions")
    return Rules(
        pad=_pad(snapshot),
        max_split=limit if isinstance(limit, int) and limit > 0 else None,
        divisions=_divisions(powers if isinstance(powers, dict) else {}),
        expandable=snapshot.settings.get("expandable_segments") is True
        or any(
            device.segments.expandable.any() or (device.history.action == Action.SEGMENT_MAP).any()
            for device in snapshot.devices
        ),
    )


def _divisions(powers: Mapping[object, object]) -> tuple[int, ...]:
    values = [value for value in powers.values() if isinstance(value, int)]
    return tuple(values) if any(value > 1 for value in values) else ()


def _pad(snapshot: Snapshot) -> int:
    """The padding under which most live blocks have just the size that their request rounds to."""
    blocks = [device.blocks for device in snapshot.devices]
    size = np.concatenate([one.size[one.state != State.INACTIVE] for one in blocks] or [np.zeros(0, np.int64)])
    requested = np.concatenate(
        [one.requested[one.state != State.INACTIVE] for one in blocks] or [np.zeros(0, np.int64)]
    )

    def fitting(pad: int) -> int:
        needed: NDArray[np.int64] = -(-np.maximum(requested + pad, 1) // ALIGN) * ALIGN
        return int((needed == size).sum())

    return max(_PADS.get(snapshot.vendor, _PADS["cuda"]), key=fitting)


def _next_division(size: int, divisions: int) -> int:
    """The next multiple of a power of two divided into `divisions` parts."""
    floor = 1 << (size.bit_length() - 1)
    if floor == size:
        return size
    part = floor >> (divisions.bit_length() - 1)
    return -(-size // part) * part if part else floor << 1
