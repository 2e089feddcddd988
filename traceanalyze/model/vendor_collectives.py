"""What an Ascend profile's own tables say of its collectives: shown and compared, never used in our numbers."""

from __future__ import annotations

from traceanalyze.frozen import frozen


@frozen
class VendorCollective:
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


@frozen
class VendorLink:
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


@frozen
class VendorCollectives:
    """Both tables, each with the file it is from; a missing one is empty."""

    source: str = ""
    collectives: tuple[VendorCollective, ...] = ()
    links_source: str = ""
    links: tuple[VendorLink, ...] = ()
