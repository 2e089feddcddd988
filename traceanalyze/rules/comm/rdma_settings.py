from collections.abc import Iterator, Mapping

from traceanalyze.rules.common.communication import Transfers, transfers
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)

_MB = 1 << 20
_NETWORK = "RDMA"
"""What the table of collectives calls it."""


@rule(
    "COM111",
    "rdma-settings",
    title="network settings",
    sentence={
        "": (
            "{count} transfer(s) of 1 MB or more over the network reach {bandwidth} GB/s together, below {expected} "
            "GB/s; they take {time} {per}."
        ),
        "repeated": (
            "{count} transfer(s) over the network took more than 4 s, {time} {per}: they were lost and sent again."
        ),
        "listed": (
            "Transfers over the network of {count} collective(s) took more than 4 s in each, {time} {per}, by the "
            "profile's own table: most likely they were lost and sent again."
        ),
        "invalid": "{variable}={setting} is not a value that the communication library allows.",
    },
    confidence=Confidence.LOW,
    needs="D",
    advice_texts={
        "rdma_settings": (
            "Set HCCL_RDMA_TC (0 to 255, a multiple of 4) and HCCL_RDMA_SL (0 to 7) as the switches are configured "
            "(PFC, DSCP); HCCL_INTRA_ROCE_ENABLE=1 only with HCCL_INTRA_PCIE_ENABLE=0; leave HCCL_ALGO unset."
        )
    },
    options={
        "repeat_s": (4.0, "msprof-analyze advisor: a transfer of so many seconds was sent again"),
        "least_mb": (1.0, "msprof-analyze advisor: smaller packets do not reach the bandwidth of the network"),
        "gbs": (12.5, "own: GB/s of a port of 100 Gbit/s"),
        "reached": (0.5, "own: of that bandwidth"),
        "least": (10.0, "own: transfers"),
    },
    platforms=("ascend",),
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Transfers over the network are slow or repeated, or its settings are not valid.

    What it finds
        RDMA transfers of more than 4 s, which were sent again; many of 1 MB or more that together reach less than half
        of the bandwidth of a port of 100 Gbit/s; values of `HCCL_RDMA_TC`, `HCCL_RDMA_SL` and
        `HCCL_INTRA_ROCE_ENABLE` that are not allowed.
    Why it costs time
        Where the traffic class of the cards does not fit the queues of the switches, packets are dropped and sent
        again.
    How it is measured
        Tasks of the collectives as profiles of level 1 and above record them, without these the profile's own table of
        collectives (`communication.json`): one that takes more than 4 s, as all of its RDMA transfers together do.
        Variables as the profile states them. The time of the transfers beyond that at half of the port's bandwidth is
        the most that can be saved.
    What to do
        Set `HCCL_RDMA_TC` (0 to 255, a multiple of 4, default 132) and `HCCL_RDMA_SL` (0 to 7, default 4) as the
        switches are configured (PFC, DSCP); `HCCL_INTRA_ROCE_ENABLE=1` only where the product supports it and with
        `HCCL_INTRA_PCIE_ENABLE=0`; leave `HCCL_ALGO` unset.

    References
        CANN HCCL environment variables; msprof-analyze advisor, communication retransmission.
    """
    stated = facts.context.trace.environment
    yield from _invalid(stated or {})
    tasks = facts.once(transfers)
    if tasks is None:
        yield from _listed(facts, options)
        return
    repeated = tasks.network & (tasks.time > options.number("repeat_s") * 1e9)
    if repeated.any():
        time = facts.length(tasks.spans(repeated))
        yield Finding(
            bound=time,
            draws="comm_exposed",
            sentence="repeated",
            evidence=(
                Evidence("count", int(repeated.sum()), "COUNT", *tasks.longest(repeated)),
                Evidence("time", time, "DURATION"),
            ),
            scope=Scope(ops=("RDMA",)),
            count=int(repeated.sum()),
            severity=Severity.HIGH,
        )
    else:
        yield from _slow(facts, tasks, options)


def _listed(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same by the profile's own table, in the steps that count."""
    table, steps = facts.context.trace.vendor_collectives, set(facts.context.counted.name)
    if table is None or not table.collectives:
        raise UnmeasuredError("no_collective_tasks")
    counted = (one for one in table.collectives if one.step is None or f"ProfilerStep#{one.step}" in steps)
    sent = [(one.elapsed or 0, sum(time for link, _, time in one.links if link == _NETWORK)) for one in counted]
    slow = [min(each) for each in sent if min(each) > options.number("repeat_s") * 1e9]
    if slow:
        yield Finding(
            bound=facts.mean(sum(slow)),
            draws="comm_exposed",
            sentence="listed",
            evidence=measured(count=len(slow), time=facts.mean(sum(slow))),
            scope=Scope(ops=(_NETWORK,)),
            count=len(slow),
            severity=Severity.MEDIUM,
        )


def _slow(facts: Facts, tasks: Transfers, options: Options) -> Iterator[Finding]:
    large = tasks.network & (tasks.size >= options.number("least_mb") * _MB) & (tasks.time > 0)
    if not large.any() or int(large.sum()) < options.number("least"):
        return
    size, time = int(tasks.size[large].sum()), int(tasks.time[large].sum())
    usual = options.number("gbs") * options.number("reached")
    if size / time >= usual:
        return
    busy = facts.length(tasks.spans(large))
    yield Finding(
        bound=round(busy * (1 - size / time / usual)),
        draws="comm_exposed",
        evidence=(
            Evidence("bandwidth", size / time, "NUMBER", *tasks.longest(large)),
            *measured(expected=usual, time=busy, count=int(large.sum())),
        ),
        scope=Scope(ops=("RDMA",)),
        count=int(large.sum()),
        severity=Severity.LOW,
    )


def _invalid(stated: Mapping[str, str]) -> Iterator[Finding]:
    """Values outside of what the documentation allows."""
    for name, most, multiple in (("HCCL_RDMA_TC", 255, 4), ("HCCL_RDMA_SL", 7, 1)):
        value = stated.get(name, "")
        if value and not (value.isdecimal() and int(value) <= most and int(value) % multiple == 0):
            yield _setting(name, value)
    if stated.get("HCCL_INTRA_ROCE_ENABLE") == "1" and stated.get("HCCL_INTRA_PCIE_ENABLE", "") != "0":
        yield _setting("HCCL_INTRA_ROCE_ENABLE", "1")


def _setting(name: str, value: str) -> Finding:
    return Finding(
        sentence="invalid",
        evidence=measured(variable=name, setting=value),
        scope=Scope(ops=(name,)),
        severity=Severity.LOW,
    )
