import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.collectives import TYPES, bus_factor
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import (
    Confidence,
    Finding,
    Findings,
    NotApplicable,
    Options,
    Scope,
    UnmeasuredError,
    measured,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster, MatchedGroup

_MB = 1 << 20
_ON_BOARD = 8
"""Ranks that a machine with such links has at most, where machines are unknown."""
_NOMINAL = (
    (r"V100.*SXM", 150.0),
    (r"A100.*SXM", 300.0),
    (r"H100(?!.*(PCIe|NVL))", 450.0),
    (r"H200(?!.*NVL)", 450.0),
    (r"B200", 900.0),
    (r"MI300X", 448.0),
)
"""GB/s out of one device over all its links to others of the board, by its name: half of what makers state for both
directions (NVIDIA NVLink generations 2 to 5; AMD Infinity Fabric, seven links of 64 GB/s)."""


class _Rate(NamedTuple):
    """A group and the bus bandwidth of its large messages."""

    group: "MatchedGroup"
    rows: NDArray[np.int64]
    rate: float
    nominal: float | None

    @property
    def kind(self) -> tuple[str | None, int, bool]:
        """Equal for groups that are alike."""
        return self.group.role, len(self.group.members), self.nominal is None


@rule(
    "COM119",
    "low-bus-bandwidth",
    title="low bandwidth of large messages",
    sentence=(
        "Large messages of group {group} ({count} in all) reach {bandwidth} GB/s, where {expected} GB/s are usual; "
        "they are exposed {exposed} {per}."
    ),
    confidence=Confidence.MEDIUM,
    needs="RC",
    advice_texts={
        "check_topology.cuda": (
            "nvidia-smi topo -m: do all links work, and does NCCL use them (NCCL_DEBUG=INFO)? Between machines look at "
            "NCCL_IB_HCA, NCCL_IB_TC, NCCL_IB_GID_INDEX and GPUDirect; try a newer NCCL."
        ),
        "check_topology.ascend": (
            "npu-smi info -t topo and hccn_tool: do all HCCS links and ports work? Leave HCCL_ALGO unset; between "
            "machines check HCCL_RDMA_TC and HCCL_RDMA_SL against the switches."
        ),
    },
    options={
        "reached": (0.5, "own: of the nominal bandwidth, and of other groups"),
        "large_mb": (16.0, "msprof-analyze advisor: smaller messages inside a machine are limited by latency"),
        "least": (10.0, "own: messages"),
    },
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Large messages are slower than the links, or than in other groups like this one.

    What it finds
        Groups of ranks whose collectives of 16 MB or more reach less than half of the bandwidth of the links between
        the devices, and less than half of what other groups of the same kind and size reach.
    Why it costs time
        Every collective takes twice as long as it could.
    How it is measured
        Bus bandwidth (definitions §12) from the transfer time, which is the shortest duration on any rank; only of
        groups all of whose ranks were recorded, as the time includes waiting otherwise. The bandwidth of the links is
        known for boards of NVIDIA and AMD, inside one machine; other groups are compared where there are two or more.
        One of the two must be known, and both must agree where both are. The estimate brings the transfer time of these
        collectives to half of what is usual; at most, all the way. What that gains is replayed; where that is not
        possible, it is as much less of their exposed transfer time.
    What to do
        Look at the topology (`nvidia-smi topo -m`, `npu-smi info -t topo`), at which links and which algorithm the
        library chooses (`NCCL_DEBUG=INFO`), at its version, and between machines at the settings of the network.

    References
        NCCL; CANN HCCL.
    """
    whole = [one for one in ranks.groups if one.complete]
    if not whole:
        raise UnmeasuredError("ranks_missing" if ranks.groups else "no_matched_collectives")
    if all((one.bytes < 0).all() for one in whole):
        raise UnmeasuredError("no_collective_metadata")
    rates = [rate for one in whole if (rate := _rate(ranks, one, options)) is not None]
    least = options.number("reached")
    # Imported here: most recordings are of one rank.
    from traceanalyze.ranks.links import without

    comparable = False
    same: dict[tuple[str | None, int, bool], list[float]] = {}
    for one in sorted(rates, key=lambda each: each.rate):
        same.setdefault(one.kind, []).append(one.rate)
    for one in rates:
        alike = same[one.kind]
        others = [without(alike, bisect_left(alike, one.rate))] if len(alike) > 2 else []
        usual = [*([one.nominal] if one.nominal else []), *others]
        comparable |= bool(usual)
        if not usual or any(one.rate >= least * each for each in usual):
            continue
        # Not what ranks wait for each other in them.
        moving = np.minimum(one.group.exposed, one.group.transfer[:, None])[one.rows]
        exposed = int(moving.sum()) // (len(one.group.members) * max(len(ranks.steps), 1))
        yield Finding(
            saving=round(exposed * (1 - one.rate / (least * min(usual)))),
            bound=round(exposed * (1 - one.rate / max(usual))),
            between=tuple(_faster(ranks, one, 1 - one.rate / max(usual))),
            draws="comm_exposed.transfer",
            evidence=measured(
                group=one.group.group, bandwidth=one.rate, expected=min(usual), exposed=exposed, count=len(one.rows)
            ),
            scope=Scope(ops=(one.group.group,)),
            count=len(one.rows),
        )
    if rates and not comparable:
        yield NotApplicable("unknown_links")


def _faster(ranks: "Cluster", one: _Rate, part: float) -> Iterator[Change]:
    """By rank the large messages in so much less time; nothing of a rank that is not in the group."""
    columns = {member: column for column, member in enumerate(one.group.members)}
    for position, rank in enumerate(ranks.ranks):
        own, at = rank.collectives, columns.get(position)
        rows = one.rows[:0] if at is None else one.group.row[one.rows, at]
        yield Change(events=own.event[rows], shorter=((own.end - own.start)[rows] * part).astype(np.int64))


def _rate(ranks: "Cluster", one: "MatchedGroup", options: Options) -> _Rate | None:
    """Bus bandwidth of a group's large messages in GB/s; None where there are too few."""
    factor = np.array([bus_factor(kind, len(one.members)) or 0.0 for kind in TYPES])[one.kind]
    rows = np.flatnonzero(
        one.synchronising & (one.bytes >= options.number("large_mb") * _MB) & (factor > 0) & (one.transfer > 0)
    )
    if len(rows) < options.number("least"):
        return None
    rate = float((one.bytes[rows] * factor[rows]).sum() / one.transfer[rows].sum())
    members = [ranks.ranks[position] for position in one.members]
    hosts, devices = {rank.host for rank in members}, {rank.device for rank in members}
    world = max(rank.world_size or 0 for rank in members)
    together = len(hosts) == 1 and (None not in hosts or 0 < world <= _ON_BOARD)
    known = [rate for name, rate in _NOMINAL if len(devices) == 1 and re.search(name, next(iter(devices)))]
    return _Rate(one, rows, rate, known[0] if known and together and len(members) <= _ON_BOARD else None)
