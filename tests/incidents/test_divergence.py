"""Flight recorders side by side, worked out on paper: a few collectives a rank, rings cut at different places."""

# ruff: noqa: E501  a table of collectives

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.incident.divergence import breaks_routine, divergences, lateness, progress, root
from traceanalyze.incident.evidence import UNKNOWN, Collectives, Flight, Group, Source

MS = 1_000_000


def flight(rank, calls, groups=None, *, open_from=None, library="nccl", last=None, duration=None):
    """A dump: `calls` are (group, number, operation, size), one a second; those from `open_from` on did not end."""
    groups = groups or {"world": (0, 1, 2)}
    names, codes = list(groups), {"": 0}
    code = lambda text: codes.setdefault(text, len(codes))  # noqa: E731
    ends = len(calls) if open_from is None else open_from
    column = lambda values: np.array(values, np.int64)  # noqa: E731
    created = column([at * 1000 * MS for at in range(len(calls))])
    entries = Collectives(
        names=(),
        record=column(range(len(calls))),
        group=column([names.index(one[0]) for one in calls]),
        seq=column([one[1] for one in calls]),
        p2p_seq=column([0] * len(calls)),
        op=column([code(one[2]) for one in calls]),
        sizes=column([code(f"[[{one[3]}]]") for one in calls]),
        dtypes=column([code("Float")] * len(calls)),
        state=column([code("completed" if at < ends else "started") for at in range(len(calls))]),
        stack=column([0] * len(calls)),
        created=created,
        started=created,
        completed=np.where(np.arange(len(calls)) < ends, created + 5 * MS, UNKNOWN),
        duration=np.array(duration if duration is not None else [5.0] * len(calls)),
        timeout=column([600000] * len(calls)),
        p2p=np.zeros(len(calls), bool),
        retired=np.arange(len(calls)) < ends,
    )  # fmt: skip
    told = tuple(Group(name, "", ranks, enqueued=last, library=library) for name, ranks in groups.items())
    return Flight(rank, "2.10", told, entries._replace(names=tuple(codes)), Source(f"rank{rank}"), timed=True)


def reduces(first, last, size=4):
    return [("world", seq, "all_reduce", size) for seq in range(first, last + 1)]


def test_the_rank_that_did_not_come_is_named_however_the_rings_are_cut():
    flights = [
        flight(0, reduces(90, 100), open_from=10),
        flight(1, reduces(50, 99)),
        flight(2, reduces(98, 100), open_from=2),
    ]
    (one,) = divergences(flights)
    assert (one.kind, one.seq, one.culprits, one.waiting) == ("missing", 100, (1,), (0, 2))
    assert root((one,), flights) == one


def test_rings_that_end_at_other_places_are_no_divergence():
    """Dumps of a running job: who is ahead is out of what the other has not entered, so nobody waits for it there."""
    assert divergences([flight(0, reduces(1, 9)), flight(1, reduces(4, 9)), flight(2, reduces(7, 9))]) == ()


def test_the_status_tells_what_the_ring_has_lost():
    flights = [
        flight(0, reduces(7, 8), last=8),
        flight(1, reduces(7, 7), last=7),
        flight(2, reduces(8, 8), open_from=0),
    ]
    (one,) = divergences([each._replace(groups=(each.groups[0]._replace(completed=7),)) for each in flights][1:])
    assert (one.culprits, one.seq) == ((1,), 8)


@pytest.mark.parametrize(
    ("call", "kind", "other"),
    [
        (("world", 3, "broadcast", 4), "operation", "broadcast"),
        (("world", 3, "all_reduce", 2), "size", "all_reduce [[2]]"),
    ],
)
def test_the_odd_one_out_is_who_few_agree_with_not_who_is_not_rank_0(call, kind, other):
    flights = [
        flight(rank, [*reduces(1, 2), call if rank == 0 else reduces(3, 3)[0]], open_from=2) for rank in range(3)
    ]
    (one,) = divergences(flights)
    assert (one.kind, one.culprits, one.seq) == (kind, (0,), 3)
    assert one.other.startswith(other)


def test_sizes_may_differ_where_the_collective_allows_it():
    calls = [[("world", 1, "all_to_all", size)] for size in (1, 2, 3)]
    (one,) = divergences([flight(rank, each, open_from=0) for rank, each in enumerate(calls)])
    assert (one.kind, one.culprits) == ("stuck", ())


def test_of_two_ranks_who_breaks_its_routine_is_the_odd_one():
    groups = {"world": (0, 1)}
    usual = [("world", seq, ("all_gather", "all_reduce")[seq % 2], 4) for seq in range(8)]
    other = [*usual[:7], ("world", 7, "all_gather", 4)]
    flights = [flight(0, usual, groups, open_from=7), flight(1, other, groups, open_from=7)]
    (one,) = divergences(flights)
    assert (one.kind, one.culprits, one.other) == ("operation", (1,), "all_gather")
    assert breaks_routine(flights[1], 7) == "all_reduce"
    assert breaks_routine(flights[0], 7) == ""


def test_who_waits_itself_is_not_to_blame():
    """0 waits for 1 in a pair, 1 for 2 in the world: 2 is the one that did not come."""
    groups = {"world": (0, 1, 2), "pair": (0, 1)}
    flights = [
        flight(0, [("world", 1, "all_reduce", 4), ("pair", 1, "all_reduce", 4), ("pair", 2, "all_reduce", 4)], groups, open_from=2),
        flight(1, [("world", 1, "all_reduce", 4), ("pair", 1, "all_reduce", 4), ("world", 2, "all_reduce", 4)], groups, open_from=2),
        flight(2, [("world", 1, "all_reduce", 4)], {"world": (0, 1, 2)}),
    ]  # fmt: skip
    found = divergences(flights)
    assert {(one.group.name, one.culprits) for one in found} == {("pair", (1,)), ("world", (0, 2))}
    first = root(found, flights)
    assert (first.group.name, first.culprits) == ("world", (2,))


def test_a_member_without_a_dump_is_named():
    flights = [flight(rank, reduces(1, 5), open_from=4) for rank in (0, 2)]
    (one,) = divergences(flights)
    assert (one.kind, one.culprits, one.waiting) == ("unrecorded", (1,), (0, 2))


def test_gloo_says_nothing_of_states():
    """All are retired, also what timed out; without a member none can have ended."""
    flights = [
        flight(rank, reduces(1, 3 - (rank == 1)), {"0": ()} | {"world": ()}, library="gloo") for rank in range(3)
    ]
    (one,) = divergences(flights)
    assert (one.kind, one.culprits, one.seq) == ("missing", (1,), 3)


def test_progress_of_each_rank():
    one, two = progress([flight(0, reduces(1, 5), open_from=4), flight(1, reduces(1, 4))])
    assert (one.enqueued, one.completed) == (5, 4)
    assert (two.enqueued, two.completed) == (4, 4)


@pytest.mark.parametrize(("short", "named"), [(10.0, True), (450.0, False)])
def test_who_waits_least_is_waited_for(short, named):
    """The others are 500 ms of each second in a collective, rank 1 for 10 or 450 ms: 49 or 5 % are waited for it."""
    flights = [flight(rank, reduces(1, 100), duration=[short if rank == 1 else 500.0] * 100) for rank in range(3)]
    found = lateness(flights)
    assert (found is not None) == named
    if found is not None:
        assert (found.ranks, found.steady, found.op, found.each_ns) == ((1,), True, "all_reduce", 490 * MS)
        assert found.share == pytest.approx(0.49, abs=0.01)


def test_a_rank_whose_waits_were_not_recorded_is_not_late():
    """Nobody knows how long rank 1 waited: it is no 0 ms, which would be least. Of the others rank 2 waits 10 ms."""

    def untimed(one):
        entries = one.entries
        lost = entries._replace(completed=np.full_like(entries.completed, UNKNOWN), duration=entries.duration * np.nan)
        return one._replace(entries=lost)

    calls = reduces(1, 100)
    known = [flight(rank, calls, duration=[each] * 100) for rank, each in ((0, 500.0), (2, 10.0), (3, 500.0))]
    equal = [flight(rank, calls, duration=[500.0] * 100) for rank in (0, 2, 3)]
    assert lateness([*equal, untimed(flight(1, calls))]) is None
    found = lateness([*known, untimed(flight(1, calls))])
    assert found is not None
    assert found.ranks == (2,)
    assert lateness([known[0], untimed(flight(1, calls))]) is None
