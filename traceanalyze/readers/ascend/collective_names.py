"""Group-level collectives of HCCL in the model's words: type, group, element type, sizes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.model.collectives import collective_type
from traceanalyze.readers.ascend.shared import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.info import About
    from traceanalyze.readers.ascend.shared import Texts

_HCOM = re.compile(r"(?P<name>\w+?)_*__(?P<digits>\d{1,3})_\d+(_\d+)*$")
_COUNTS_INPUT = frozenset({"all_gather"})
_COUNTS_OUTPUT = frozenset({"reduce_scatter"})
_DTYPES = {
    "INT8": "Char",
    "UINT8": "Byte",
    "INT16": "Short",
    "INT32": "Int",
    "INT64": "Long",
    "UINT16": "UInt16",
    "UINT32": "UInt32",
    "UINT64": "UInt64",
    "FP16": "Half",
    "FP32": "Float",
    "FP64": "Double",
    "BFP16": "BFloat16",
    "BF16": "BFloat16",
}


def element_type(hccl: str) -> str | None:
    """Element type of a collective in PyTorch's words; None for "invalid" and the like."""
    found = _DTYPES.get(hccl.strip().upper())
    return found or (hccl if hccl.upper().startswith("FP8") or hccl.upper().startswith("HIF8") else None)


def collective_fields(
    texts: Texts,
    about: About,
    names: Sequence[str],
    groups: Sequence[str],
    dtypes: Sequence[str | None],
    count: NDArray[np.int64],
    ranks: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """Fields of group-level collectives for a `Block`: collective, group, group_size, in_elements, out_elements, dtype.

    Args:
        texts: Dictionary of the trace.
        about: What the profile says of itself.
        names: Of the operations, `hcom_allReduce__586_0_1`.
        groups: Of each operation what its group goes by in the profile: a name, an address, a hash, or empty.
        dtypes: Element types in HCCL's words (`FP32`).
        count: Elements that the operation counts, `ABSENT` where unknown. HCCL counts what each rank gives to an
            all_gather and what each one gets of a reduce_scatter.
        ranks: Ranks of the group where the profile says so, else `ABSENT`.
    """
    plain = [_HCOM.match(name) for name in names]
    label = [group_label(name, group, about) for name, group in zip(names, groups, strict=True)]
    size = np.array([len(about.groups.get(text, ())) or ABSENT for text in label], np.int64)
    if ranks is not None:
        size = np.where(ranks > 0, ranks, size)
    kinds = [collective_type(found["name"] if found else name) for found, name in zip(plain, names, strict=True)]
    known = count >= 0
    whole = np.where(known & (size > 0), count * size, ABSENT)
    output = np.array([kind in _COUNTS_OUTPUT for kind in kinds], np.bool_)
    gathers = np.array([kind in _COUNTS_INPUT for kind in kinds], np.bool_)
    return {
        "collective": texts.codes(found["name"] if found else name for found, name in zip(plain, names, strict=True)),
        "group": texts.codes(text or None for text in label),
        "group_size": size,
        "in_elements": np.where(output, whole, np.where(known, count, ABSENT)),
        "out_elements": np.where(gathers, whole, np.where(known, count, ABSENT)),
        "dtype": texts.codes(None if text is None else element_type(text) for text in dtypes),
    }


def group_label(name: str, group: str, about: About) -> str:
    """What reports call the group of a collective: its name in the program, else the number in its operations' names.

    That number (three digits of a hash) is the same in both forms of a profile; addresses are never shown.
    """
    if group in about.group_names:
        return about.group_names[group]
    found = _HCOM.match(name)
    return f"group {found['digits']}" if found else ""
