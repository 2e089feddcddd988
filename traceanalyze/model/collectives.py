"""Collectives of every library in one vocabulary: type, element size, factor of bus bandwidth (definitions §12)."""

from functools import lru_cache
from typing import NamedTuple

from traceanalyze.model.patterns import regex

_PATTERNS = (
    ("all_to_all", regex(r"alltoall|a2a|::dispatch|::combine|::ep::")),
    ("reduce_scatter", regex(r"reducescatter")),
    ("all_reduce", regex(r"allreduce|crossdevicereduce|quickreduce|oneshot|twoshot|lamport.*reduce")),
    ("all_gather", regex(r"allgather|gatherinto")),
    ("broadcast", regex(r"broadcast|bcast")),
    ("send_recv", regex(r"sendrecv|pointtopoint|batchisend")),
    ("barrier", regex(r"barrier")),
    ("gather", regex(r"gather")),
    ("scatter", regex(r"scatter")),
    ("reduce", regex(r"reduce")),
    ("recv", regex(r"recv|receive")),
    ("send", regex(r"send")),
)
TYPES = (*(kind for kind, _ in _PATTERNS), "other")
"""The canonical types."""
SENDS = frozenset({"send", "recv", "send_recv"})
"""Those between two ranks."""


@lru_cache(4096)
def collective_type(name: str) -> str | None:
    """Canonical type of a collective's name, an operator's or a kernel's; None where it does not tell."""
    text = name.lower().replace("_", "")
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), None)


_ELEMENT_BYTES = {
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("half", "bf16", "bfloat16", "short", "int16", "float16", "short int", "uint16"), 2),
    **dict.fromkeys(("float", "int", "int32", "float32", "uint32", "complexhalf"), 4),
    **dict.fromkeys(("double", "long", "int64", "float64", "long int", "complexfloat", "uint64"), 8),
    "complexdouble": 16,
}


def element_bytes(dtype: str) -> int | None:
    """Size of one element of a type as PyTorch names it (`BFloat16`, `c10::Half`, `long int`); None if unknown."""
    name = dtype.removeprefix("c10::").removeprefix("at::").lower()
    if name.startswith("float8"):
        return 1
    if name.startswith("complex<"):
        inner = element_bytes(name[len("complex<") : -1])
        return None if inner is None else 2 * inner
    return _ELEMENT_BYTES.get(name)


def counts_output(kind: str) -> bool:
    """Whether the size of a collective is that of its output: an all_gather; otherwise it is the input's."""
    return kind == "all_gather"


_ONE_WAY = frozenset({"broadcast", "reduce", "send", "recv", "send_recv"})
_SHARED = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})


def bus_factor(kind: str, ranks: int) -> float | None:
    """Bus bandwidth per algorithm bandwidth; None where it has no meaning (barrier, one rank)."""
    if ranks <= 1:
        return None
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in _SHARED:
        return (ranks - 1) / ranks
    return 1.0 if kind in _ONE_WAY else None


class VendorCollective(NamedTuple):
    """One collective of `communication.json` or CommAnalyzerTime; ns, None where it does not say.

    `wait` and `transit` are those of one plane of links only, so that waiting on the others is in `idle`, which is
    the rest of `elapsed` and no idle time.
    """

    name: str
    group: str
    """What reports call the group: its name in the program or `group` with three digits."""
    step: int | None
    elapsed: int | None
    transit: int | None
    wait: int | None
    idle: int | None
    links: tuple[tuple[str, int, int], ...] = ()
    """Kind of link (HCCS, PCIE, RDMA, SIO), bytes moved, ns summed over transfers that ran at the same time."""


class VendorLink(NamedTuple):
    """What moved between two ranks in all collectives of one type and group, of `communication_matrix.json`."""

    collective: str
    """Canonical type (`model/collectives.py`), or as written."""
    group: str
    source: int
    """Rank inside the group."""
    target: int
    link: str
    bytes: int
    time: int
    """ns, summed over transfers."""


class VendorCollectives(NamedTuple):
    """Both tables, each with the file it is from; a missing one is empty."""

    source: str = ""
    collectives: tuple[VendorCollective, ...] = ()
    links_source: str = ""
    links: tuple[VendorLink, ...] = ()
