"""Pipelines of Ascend profiles: sends and receives of HCCL, told apart or in one batch, with and without marks."""

from __future__ import annotations

import json

import pytest

import traceanalyze
from tests import ascend_db_builder as made_db
from tests.ascend_builder import NEW, PID, QUEUE_THREAD, AscendBuilder
from traceanalyze.model.table import NotMeasured

PLANS = (
    """F 0 1000 2000, send 0 2000 2100, F 1 2100 3100, send 1 3100 3200, recv 0 3300 5300, B 0 5300 7300,
    recv 1 7300 7400, B 1 7400 9400""",
    """recv 0 900 2100, F 0 2100 3100, B 0 3200 5200, send 0 5200 5300, recv 1 5300 5350, F 1 5350 6350,
    B 1 6400 8400, send 1 8400 8500""",
)
"""Of both stages what they do: part, micro-batch, begin and end, µs."""
LEAST = {"send": 100, "recv": 50}
"""The shortest of each kind, µs: what of one is no waiting."""


def spans(rank: int) -> list[tuple[str, int, int, int]]:
    rows = (each.split() for each in PLANS[rank].split(","))
    return [(part, int(batch), int(begin), int(end)) for part, batch, begin, end in rows]


def written(folder, rank: int, *, one_kind: bool, marked: bool) -> None:
    made = AscendBuilder(NEW, device=rank)
    made.step(1, 0, 10000)
    names = {"send": "hcom_send_", "recv": "hcom_receive_"}
    for place, (part, batch, begin, end) in enumerate(spans(rank)):
        at = 20 + place * 30
        if part in names:
            made.op("HcclSend" if part == "send" else "HcclRecv", at, 20)
            made.queued("Hccl", at + 1, at + 3, 10)
            name = "hcom_batchSendRecv_" if one_kind else names[part]
            made.collective(f"{name}_586_{place}_1", begin, end - begin)
            # The call that launched it, by the number that both have.
            made.call("Communication@launch", at + 4, 1, tid=QUEUE_THREAD, connection=made.number)
            continue
        if marked:
            made.event(f"{'forward' if part == 'F' else 'backward'}_step_{batch}", PID, PID, at - 2, 25, "cpu_op")
        made.op("aten::mm" if part == "F" else "autograd::engine::evaluate_function: MmBackward0", at, 20)
        made.queued("aclnnMm", at + 1, at + 3, 10)
        made.kernel("aclnnMm_MatMulV2", begin, end - begin, op_type="MatMulV2", launch=at + 4)
    made.write(folder / f"rank{rank}_ascend_pt", rank=rank)


@pytest.mark.parametrize("one_kind", [False, True])
def test_sends_and_receives_of_hccl_are_bubbles_and_transfers(tmp_path, one_kind):
    for rank in (0, 1):
        written(tmp_path, rank, one_kind=one_kind, marked=True)
    tables = traceanalyze.analyze(tmp_path).tables
    for rank in (0, 1):
        own = [one for one in spans(rank) if one[0] in LEAST]
        least = {part: min(LEAST.values()) if one_kind else LEAST[part] for part in LEAST}
        moved = sum(least[part] for part, *_ in own)
        (row,) = (row for row in tables["pipeline_stages"].records() if row.rank == str(rank))
        # The first receive, before any kernel, belongs to the step as well.
        assert row.step_ns == 10_000_000
        assert row.batches == 2
        assert (row.forward_ns, row.backward_ns) == (2_000_000, 4_000_000)
        assert row.transfer_ns == moved * 1000
        assert row.bubble_ns == sum(end - begin for *_, begin, end in own) * 1000 - row.transfer_ns
    parts = {row.part for row in tables["pipeline"].records()}
    assert ("send_recv" in parts, "recv" in parts) == (one_kind, not one_kind)


def written_db(folder, rank: int) -> None:
    made = made_db.Builder()
    operator, launch = 50001, 10000
    made.api(operator, "ProfilerStep#1", 0, 10_000_000)
    for place, (part, batch, begin, end) in enumerate(spans(rank)):
        at, number = 20_000 + place * 30_000, 100 + place
        span = begin * 1000, (end - begin) * 1000
        if part not in LEAST:
            name = made.text(f"{'forward' if part == 'F' else 'backward'}_step_{batch}")
            mark = {"eventType": 0, "message": name, "globalTid": made_db.thread(made_db.MAIN)}
            made.row("MSTX_EVENTS", startNs=made_db.START + at, endNs=made_db.START + at + 25_000, **mark)
        made.api(operator, "HcclSend" if part == "send" else "aten::mm", at + 2000, 20_000, connection=number)
        made.connect(number, number)
        made.call(launch, "launch", at + 4000, 1000, number, tid=made_db.MAIN)
        if part in LEAST:
            name = {"send": "hcom_send_", "recv": "hcom_receive_"}[part]
            made.collective(f"{name}_586_{place}_1", *span, number, number)
            made.part("Memcpy", span[0] + span[1] - 1000, 1000, number, number, plane=0)
        else:
            made.kernel("aclnnMm_MatMulV2", *span, number, core="AI_CORE", op_type="MatMulV2")
    made.write(folder / f"rank{rank}_ascend_pt", f"ascend_pytorch_profiler_{rank}.db")


def test_marks_of_mstx_tell_passes_and_micro_batches(tmp_path):
    for rank in (0, 1):
        written_db(tmp_path, rank)
    rows = list(traceanalyze.analyze(tmp_path).tables["pipeline"].records())
    for rank in (0, 1):
        for part, what in (("F", "phase_forward"), ("B", "phase_backward")):
            truth = [(batch, (end - begin) * 1000) for p, batch, begin, end in spans(rank) if p == part]
            own = [row for row in rows if row.rank == str(rank) and row.part == what]
            assert [(row.number, row.time_ns) for row in own] == truth


CHAIN = (
    "F 100 1000, send 1 1000 1180, F 1200 2200, send 1 2200 2390, recv 1 2400 7360, B 7400 9300",
    "recv 0 900 1180, F 1180 1800, send 2 1800 1970, recv 0 2000 2390, F 2390 3000, recv 2 3000 5310, send 0 7200 7360",
    "recv 1 1000 1970, F 1970 4000, B 4000 5100, send 1 5100 5310",
)
"""Of three stages of one group what they do: a pass from when to when, µs, or with which rank of the group."""


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("ranks", [None, (0, 1, 2), (4, 5, 9)])
def test_tasks_tell_the_partner_inside_a_group_of_three(tmp_path, batch, ranks):
    """Each moves as long as the shorter of both, whichever is the shortest of its kind; numbers are of the group."""
    plans = [[each.split() for each in one.split(", ")] for one in CHAIN]
    for rank, plan in enumerate(plans):
        made = AscendBuilder(NEW, device=rank)
        made.step(1, 0, 10000)
        for place, (part, *numbers) in enumerate(plan):
            at, (*peer, begin, end) = 20 + place * 30, map(int, numbers)
            if peer:
                made.op("HcclSend" if part == "send" else "HcclRecv", at, 20)
                made.queued("Hccl", at + 1, at + 3, 10)
                name = "batchSendRecv_" if batch else "send_" if part == "send" else "receive_"
                # The data moves in the last 30 µs, over the plane of its peer; the source is the rank itself.
                waits = (
                    (0, "Notify_Wait", begin, 5, *peer),
                    (1, "Memcpy", end - 30, 30, *peer),
                    (2, "Memcpy", end - 1, 1, rank),
                )
                made.call("Communication@launch", at + 4, 1, tid=QUEUE_THREAD, connection=made.number + 1)
                made.collective(f"hcom_{name}_586_{place}_1", begin, end - begin, waits, own=rank, rank_size=3)
                continue
            made.op("aten::mm" if part == "F" else "autograd::engine::evaluate_function: MmBackward0", at, 20)
            made.queued("aclnnMm", at + 1, at + 3, 10)
            made.kernel("aclnnMm_MatMulV2", begin, end - begin, op_type="MatMulV2", launch=at + 4)
        number = rank if ranks is None else ranks[rank]
        folder = made.write(tmp_path / f"rank{rank}_ascend_pt", rank=number)
        if ranks is not None:
            group = {"group_name": "x", "group_rank": rank, "global_ranks": list(ranks)}
            (folder / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": {"group_name_7": group}}))
    tables = traceanalyze.analyze(tmp_path).tables
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    for rank, plan in enumerate(plans):
        row = stages[str(rank if ranks is None else ranks[rank])]
        spans = [(int(end) - int(begin), int(peer[0])) for _, *peer, begin, end in plan if peer]
        own, moved = sum(time for time, _ in spans), 0
        for peer in {peer for _, peer in spans}:
            there = [int(end) - int(begin) for _, *other, begin, end in plans[peer] if other == [str(rank)]]
            here = [time for time, each in spans if each == peer]
            moved += sum(map(min, here, there))
        assert (row.stage, row.transfer_ns, row.bubble_ns) == (rank, moved * 1000, (own - moved) * 1000)
    rows = list(tables["sends"].records())
    assert sum(row.paired for row in rows) == 5
    assert not any(isinstance(row.receiver, NotMeasured) or row.unpaired for row in rows)
