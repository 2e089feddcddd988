"""The stages of a pipeline over a step, against schedules whose times are worked out one by one."""

from __future__ import annotations

import re
import zipfile
from itertools import pairwise

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks import pipeline
from traceanalyze.report.html import render

FORWARD, BACKWARD, TRANSFER = 1000, 2000, 100
"""µs."""
LEAD = 500
"""µs by which the host is ahead."""
STAGES, BATCHES = 4, 6


def order(stage: int, kind: str) -> list[tuple[str, int]]:
    """What a stage computes in turn: all forward passes first, or one forward and one backward pass in turn."""
    ahead = BATCHES if kind == "gpipe" else min(STAGES - 1 - stage, BATCHES)
    passes = [("F", batch) for batch in range(ahead)]
    for batch in range(BATCHES):
        passes += [("F", ahead + batch)] if ahead + batch < BATCHES else []
        passes += [("B", batch)]
    return passes


def even(_before: int, _batch: int) -> int:
    """How long a transfer takes."""
    return TRANSFER


def uneven(before: int, batch: int) -> int:
    """From each stage, and of each micro-batch, another time."""
    return 50 + 70 * before + 20 * batch


def schedule(kind: str, transfer=even) -> list[list[tuple[str, int, int, int, int]]]:
    """Of each stage what it does from when to when, µs: (F, B, recv or send, micro-batch, begin, end, other stage).

    A stage sends what it has computed beside what it goes on with, and receives when it wants to go on; both are done
    when both have come and the data has moved.
    """
    todo = [order(stage, kind) for stage in range(STAGES)]
    now, done, found = [0] * STAGES, {}, [[] for _ in range(STAGES)]
    while any(todo):
        for stage in range(STAGES):
            while todo[stage]:
                what, batch = todo[stage][0]
                before = stage - 1 if what == "F" else stage + 1
                if 0 <= before < STAGES:
                    if (what, before, batch) not in done:
                        break
                    sent, ready = done[what, before, batch], now[stage]
                    now[stage] = max(sent, ready) + transfer(before, batch)
                    found[stage].append(("recv", batch, ready, now[stage], before))
                    found[before].append(("send", batch, sent, now[stage], stage))
                end = now[stage] + (FORWARD if what == "F" else BACKWARD)
                found[stage].append((what, batch, now[stage], end, stage))
                now[stage] = done[what, stage, batch] = end
                todo[stage].pop(0)
    return found


def written(folder, kind, *, annotated=False, ahead=0, named=True, transfer=even, told="", ranks=range(STAGES)):
    """Recordings of all stages; `ahead` is how far the clock of each is before that of the one before it.

    Partners are `told` in the record around a launch, by the kernel itself, or in the record of a batch before it.
    """
    spans = schedule(kind, transfer)
    length = max(end for one in spans for *_, end, _ in one) + 500
    for stage, own in enumerate(spans):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {
            "rank": ranks[stage],
            "world_size": STAGES,
            "backend": "nccl",
            "pg_config": [{"pg_name": "pp", "pg_desc": "pipeline" if named else "x", "ranks": list(ranks)}],
        }
        shift = stage * ahead
        trace.step(1, shift, LEAD + length)
        for place, (what, batch, begin, end, other) in enumerate(
            sorted(own, key=lambda one: (one[2], one[0] != "send"))
        ):
            # The host is ahead of the device: it asks for all in the order in which it runs.
            at = shift + place * 8 + 1
            if what in {"send", "recv"}:
                record = {"Collective name": what, "In msg nelems": 1024, "dtype": "Float"}
                if told:
                    record["Dst Rank" if what == "send" else "Src Rank"] = ranks[other]
                group = {"Process Group Name": "pp", "Process Group Ranks": str(list(ranks)), "Group size": 4}
                if told != "kernel":
                    trace.op("record_param_comms", at, 2 if told == "batch" else 6, **record, **group)
                trace.launch(
                    at + (3 if told == "batch" else 1),
                    2,
                    shift + LEAD + begin,
                    end - begin,
                    name="ncclDevKernel_SendRecv",
                    stream=20 + (what == "send"),
                    **(record | group if told == "kernel" else {}),
                )
                continue
            if annotated:
                trace.annotation(f"{'forward' if what == 'F' else 'backward'}_step {batch}", at, 7)
            name = "aten::mm" if what == "F" else "autograd::engine::evaluate_function: MmBackward0"
            trace.op(name, at, 6, **({"Sequence number": batch} if what == "F" else {}))
            half = (end - begin) // 2
            # Two kernels with a short gap between them.
            trace.launch(at + 1, 1, shift + LEAD + begin, half - 5, name="gemm")
            trace.launch(at + 3, 1, shift + LEAD + begin + half, half, name="gemm")
        # All meet at the end, which aligns their clocks.
        at = shift + 8 * len(own) + 20
        record = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float"}
        group = {"Process Group Name": "all", "Process Group Ranks": str(list(ranks)), "Group size": 4}
        trace.op("record_param_comms", at, 6, **record, **group)
        trace.launch(at + 1, 2, shift + LEAD + length - 300, 200, name="ncclDevKernel_AllReduce", stream=22)
        trace.write(folder / f"rank{stage}.json")
    return spans


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("ahead", [0, 70_000])
def test_each_stage_has_its_passes_bubbles_and_transfers(tmp_path, kind, annotated, ahead):
    spans = written(tmp_path, kind, annotated=annotated, ahead=ahead)
    report = traceanalyze.analyze(tmp_path)
    rows = list(report.tables["pipeline"].records())
    for stage, own in enumerate(spans):
        mine = [row for row in rows if row.rank == str(stage)]
        assert {row.stage for row in mine} == {stage}
        for what, part in (("F", "phase_forward"), ("B", "phase_backward")):
            truth = sorted(
                (batch, (LEAD + begin) * 1000, (end - begin) * 1000) for w, batch, begin, end, _ in own if w == what
            )
            assert sorted((row.number, row.start_ns, row.time_ns) for row in mine if row.part == part) == truth
            assert all(row.busy_ns == row.time_ns - 5000 for row in mine if row.part == part)
        # Pieces follow each other without gaps or overlap.
        assert all(one.start_ns + one.time_ns == other.start_ns for one, other in pairwise(mine))
        summed = {part: sum(row.time_ns for row in mine if row.part == part) for part in ("bubble", "send", "recv")}
        bubble, moved = instants(own)
        assert summed["bubble"] == bubble * 1000
        assert summed["send"] + summed["recv"] == moved * 1000
        (total,) = (row for row in report.tables["pipeline_stages"].records() if row.rank == str(stage))
        assert (total.bubble_ns, total.transfer_ns, total.batches) == (bubble * 1000, moved * 1000, BATCHES)
        assert total.forward_ns == BATCHES * FORWARD * 1000
        assert total.backward_ns == BATCHES * BACKWARD * 1000
        parts = "forward", "backward", "bubble", "transfer", "communication", "idle", "other"
        assert sum(getattr(total, f"{part}_ns") for part in parts) == total.step_ns


def instants(own, stage=0, transfer=even) -> tuple[int, int]:
    """µs in which sends or receives are all that runs: those in which none moves data, and the rest."""
    waiting = moving = 0
    for at in range(max(end for *_, end, _ in own)):
        running = [one for one in own if one[2] <= at < one[3]]
        if running and not any(one[0] in "FB" for one in running):
            moves = any(at >= one[3] - moving_time(one, stage, transfer) for one in running)
            waiting, moving = waiting + (not moves), moving + moves
    return waiting, moving


def moving_time(one, stage, transfer) -> int:
    what, batch, *_, other = one
    return transfer(stage if what == "send" else other, batch)


@pytest.mark.parametrize("told", ["record", "kernel", "batch"])
@pytest.mark.parametrize("ranks", [range(STAGES), (3, 5, 8, 9)])
def test_told_partners_make_every_transfer_and_bubble_exact(tmp_path, told, ranks):
    """Each takes another time, so that no other of its kind and size tells it; without partners it is a bound."""
    for at, (which, folder) in enumerate((("", tmp_path / "untold"), (told, tmp_path / "told"))):
        folder.mkdir()
        spans = written(folder, "1f1b", transfer=uneven, told=which, ranks=ranks)
        tables = traceanalyze.analyze(folder).tables
        totals = {row.rank: row for row in tables["pipeline_stages"].records()}
        for stage, own in enumerate(spans):
            row, (bubble, moved) = totals[str(ranks[stage])], instants(own, stage, uneven)
            assert row.stage == stage
            assert (row.bubble_ns >= bubble * 1000, row.transfer_ns <= moved * 1000) == (True, True)
            assert (row.bubble_ns == bubble * 1000) or at == 0
            assert (row.transfer_ns == moved * 1000) or at == 0
    rows = {(row.sender, row.receiver): row for row in tables["sends"].records()}
    assert rows.keys() == {(str(ranks[a]), str(ranks[b])) for a in range(STAGES) for b in (a - 1, a + 1) if 0 <= b < 4}
    for (sender, receiver), row in rows.items():
        source, target = ranks.index(int(sender)), ranks.index(int(receiver))
        sent = [one for one in spans[source] if one[0] == "send" and one[4] == target]
        received = [one for one in spans[target] if one[0] == "recv" and one[4] == source]
        moved = sum(uneven(source, batch) for batch in range(BATCHES)) * 1000
        assert (row.sends, row.receives, row.paired, row.unpaired) == (BATCHES, BATCHES, BATCHES, 0)
        assert (row.bytes, row.transfer_ns) == (BATCHES * 4096, moved)
        waits = (sum(end - begin for *_, begin, end, _ in each) * 1000 - moved for each in (sent, received))
        assert (row.sender_wait_ns, row.receiver_wait_ns) == tuple(waits)


def test_of_pairs_all_that_a_receive_takes_beyond_its_send_is_waiting(tmp_path):
    """Stage 1 asks 1, 2 and 3 ms before stage 0 sends, which takes 0.1, 0.2 and 0.3 ms: none of them comes in time."""
    early, moved = (1000, 2000, 3000), (100, 200, 300)
    for rank in (0, 1):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        trace.step(1, 0, 20_000)
        for place, (wait, time) in enumerate(zip(early, moved, strict=True)):
            told = {"Collective name": "recv" if rank else "send", "In msg nelems": 1024, "dtype": "Float"}
            group = {"Process Group Name": "pp", "Process Group Ranks": "[0, 1]", "Group size": 2}
            trace.op("record_param_comms", 10 * place + 1, 6, **told, **group)
            end = 5000 * (place + 1)
            begin = end - time - wait * rank
            trace.launch(10 * place + 2, 2, begin, end - begin, name="ncclDevKernel_SendRecv", stream=20)
            trace.op("aten::mm", 10 * place + 7, 2)
            trace.launch(10 * place + 8, 1, end + 10, 500, name="gemm")
        trace.write(tmp_path / f"rank{rank}.json")
    tables = traceanalyze.analyze(tmp_path).tables
    (pair,) = tables["sends"].records()
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    assert pair.receiver_wait_ns == stages["1"].bubble_ns == sum(early) * 1000
    assert pair.transfer_ns == stages["0"].transfer_ns == stages["1"].transfer_ns == sum(moved) * 1000
    assert pair.sender_wait_ns == stages["0"].bubble_ns == 0


def test_without_a_name_the_group_tells_the_stage_and_the_page_has_a_lane_for_each(tmp_path):
    spans = written(tmp_path, "1f1b", named=False)
    report = traceanalyze.analyze(tmp_path)
    assert [row.stage for row in report.tables["pipeline_stages"].records()] == list(range(STAGES))
    page = render([report], texts("en"))
    (picture,) = re.findall(r"One step of the pipeline, rank by rank</figcaption>.*?</svg>", page, re.DOTALL)
    for part in ("forward", "backward"):
        assert picture.count(f"fill:var(--part-phase_{part},") == STAGES * BATCHES
    # The first stage computes from 0.5 to 1.5 ms of a step that is drawn in 820 units.
    longest = max(end for one in spans for *_, end, _ in one) + 1000
    first = re.search(r'<rect x="([\d.]+)" y="0" width="([\d.]+)" height="\d+" style="fill:var\(--part-phase', picture)
    assert first is not None
    assert [float(each) for each in first.groups()] == pytest.approx(
        [60 + 820 * 500 / longest, 820 * 1000 / longest], abs=0.02
    )


def test_ranks_that_do_not_send_have_no_pipeline():
    report = traceanalyze.analyze("sample_traces/gpu_two_ranks")
    for key in ("pipeline", "pipeline_stages"):
        assert report.tables[key].absent == NotMeasured("no_pipeline")


def test_of_many_pieces_one_rank_of_each_stage_is_shown_and_a_note_says_so(tmp_path, monkeypatch):
    written(tmp_path, "1f1b")
    monkeypatch.setattr(pipeline, "_MOST", 100)
    found = traceanalyze.analyze(tmp_path).tables["pipeline"]
    # Each stage has one rank: none is left out, and nothing says so.
    assert {row.stage for row in found.records()} == set(range(STAGES))
    assert "pipeline_some_ranks" not in [note.key for note in found.notes]
    monkeypatch.setattr(pipeline, "_places", lambda *_: [0, 0, 1, 1])
    found = traceanalyze.analyze(tmp_path).tables["pipeline"]
    assert {(row.stage, row.rank) for row in found.records()} == {(0, "0"), (1, "2")}
    assert "pipeline_some_ranks" in [note.key for note in found.notes]


def test_without_stages_more_ranks_than_are_shown_are_said(tmp_path, monkeypatch):
    written(tmp_path, "1f1b")
    monkeypatch.setattr(pipeline, "MANY", 3)
    monkeypatch.setattr(pipeline, "_places", lambda *_: [])
    found = traceanalyze.analyze(tmp_path).tables["pipeline"]
    assert {row.rank for row in found.records()} == {"0", "1", "2"}
    (note,) = (note for note in found.notes if note.key == "pipeline_first_ranks")
    assert [value for *_, value in note.values] == [3, STAGES]


def test_the_workbook_colours_what_a_stage_does(tmp_path):
    written(tmp_path, "1f1b")
    target = tmp_path / "out.xlsx"
    traceanalyze.analyze(tmp_path).write(target)
    with zipfile.ZipFile(target) as book:
        texts_of = [book.read(name).decode() for name in book.namelist() if "worksheets/sheet" in name]
    rules = [re.findall(r'operator="equal"><formula>"([^"]+)"', text) for text in texts_of]
    assert {"forward", "backward", "bubble", "send", "receive"} <= {word for each in rules for word in each}


def test_a_comparison_says_which_ranks_tell_what_a_stage_waits_for(tmp_path):
    for name in ("base", "candidate"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, "1f1b")
    one, *_ = sorted((tmp_path / "base").iterdir())
    found = traceanalyze.compare(one, tmp_path / "candidate").comparison
    assert (found.base.rank, found.candidate.rank) == (0, 0)
    assert (found.base.unrecorded, found.candidate.unrecorded) == (tuple(range(1, STAGES)), ())


def asked(trace: TraceBuilder, at: int, what: str, rank: int, *, size=1024, ranks="[0, 1, 2, 3]") -> None:
    """A record around no launch, as each send and receive of a batch has one."""
    group = {"Process Group Name": "all", "Process Group Ranks": ranks, "Group size": ranks.count(",") + 1}
    key = "Dst Rank" if what == "send" else "Src Rank"
    about = {"Collective name": what, "In msg nelems": size, "dtype": "Float", key: rank}
    trace.op("record_param_comms", at, 2, **about, **group)


def batches(folder, *plans: list[tuple[int, int, list[tuple[str, int]]]], ranks="[0, 1, 2, 3]"):
    """Ranks that run batches: begin and end of each, µs, and what it sends and receives."""
    for rank, plan in enumerate(plans):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": len(plans), "backend": "nccl"}
        trace.step(1, 0, 20_000)
        for place, (begin, end, what) in enumerate(plan):
            at = 100 * place + 1
            for each, (kind, peer) in enumerate(what):
                asked(trace, at + 3 * each, kind, peer, ranks=ranks)
            trace.launch(at + 50, 2, begin, end - begin, name="ncclDevKernel_SendRecv", stream=20)
            trace.op("aten::mm", at + 60, 2)
            trace.launch(at + 61, 1, end, 500, name="gemm")
        trace.write(folder / f"rank{rank}.json")
    return traceanalyze.analyze(folder).tables


def test_a_batch_with_two_partners_moves_at_most_as_long_as_both_need(tmp_path):
    """Rank 1 receives from 0 and sends to 2 in one kernel of 10 ms; they take part for 1 and 2 ms, which it needs."""
    tables = batches(
        tmp_path,
        [(9_000, 10_000, [("send", 1)])],
        [(1_000, 11_000, [("recv", 0), ("send", 2)])],
        [(9_000, 11_000, [("recv", 1)])],
        ranks="[0, 1, 2]",
    )
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    assert [stages[rank].stage for rank in "012"] == [0, 1, 2]
    assert [stages[rank].transfer_ns for rank in "012"] == [1_000_000, 3_000_000, 2_000_000]
    assert [stages[rank].bubble_ns for rank in "012"] == [0, 7_000_000, 0]
    rows = {(row.sender, row.receiver): row for row in tables["sends"].records()}
    assert {pair: (row.transfer_ns, row.receiver_wait_ns, row.sender_wait_ns) for pair, row in rows.items()} == {
        ("0", "1"): (1_000_000, 9_000_000, 0),
        ("1", "2"): (2_000_000, 0, 8_000_000),
    }
    assert {row.bytes for row in rows.values()} == {4096}


def test_a_batch_both_ways_with_one_partner_is_one_transfer(tmp_path):
    both = lambda rank: [("send", rank), ("recv", rank)]  # noqa: E731
    tables = batches(tmp_path, [(9_000, 10_000, both(1))], [(4_000, 10_000, both(0))], ranks="[0, 1]")
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    assert [(stages[rank].transfer_ns, stages[rank].bubble_ns) for rank in "01"] == [
        (1_000_000, 0),
        (1_000_000, 5_000_000),
    ]


def test_partners_tell_the_pipelines_of_a_group_of_all_ranks(tmp_path):
    """Ranks 0 → 2 and 1 → 3, in the one group that all four ranks are of."""
    sends = [[(1000, 1100 + 50 * rank, [("send", rank + 2)])] for rank in (0, 1)]
    receives = [[(500, 1100 + 50 * rank, [("recv", rank)])] for rank in (0, 1)]
    tables = batches(tmp_path, *sends, *receives)
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    assert [stages[rank].stage for rank in "0123"] == [0, 0, 1, 1]
    assert [stages[rank].transfer_ns for rank in "0123"] == [100_000, 150_000, 100_000, 150_000]
    assert [stages[rank].bubble_ns for rank in "23"] == [500_000, 500_000]


@pytest.mark.parametrize("wrong", [7, 1])
def test_a_partner_that_is_no_member_or_the_rank_itself_is_not_told(tmp_path, wrong):
    tables = batches(
        tmp_path,
        [(9_000, 10_000, [("send", 1)])],
        [(1_000, 11_000, [("recv", wrong)])],
        [(9_000, 11_000, [("recv", 1)])],
        ranks="[0, 1, 2]",
    )
    rows = {row.sender: row for row in tables["sends"].records() if row.receiver == NotMeasured("no_partner")}
    assert (rows["1"].sends, rows["1"].receives) == (0, 1)
    stages = {row.rank: row for row in tables["pipeline_stages"].records()}
    # The shortest receive of this size on any rank.
    assert stages["1"].transfer_ns == 2_000_000


LONG, SHORT, MOVED, WHOLE = 4000, 2000, 100, 7000
"""µs: compute of the late rank and of the others, a transfer, and a step."""


def of_four(rank):
    """What a rank does in a step, µs: two pipelines of two stages, 0 to 2 and 1 to 3; rank 0 computes longer.

    Ranks of a stage meet, and then all: rank 2 comes last to both, as it waited for rank 0.
    """
    own, sent = (LONG if rank % 2 == 0 else SHORT), []
    if rank < 2:
        sent = [("gemm", 0, own), ("send", own, MOVED)]
        came = own + MOVED
    else:
        sent = [("recv", 0, own + MOVED), ("gemm", own + MOVED, SHORT)]
        came = own + MOVED + SHORT
    met = LONG + MOVED + (SHORT if rank > 1 else 0) + MOVED
    last = LONG + SHORT + 3 * MOVED
    return [*sent, ("stage", came, met - came), ("world", met, last - met)]


def run_of_four(folder):
    for rank in range(4):
        members = {"send": [rank % 2, rank % 2 + 2], "stage": [rank // 2 * 2, rank // 2 * 2 + 1], "world": [0, 1, 2, 3]}
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 4, "backend": "nccl"}
        for step in range(4):
            begin = WHOLE * step
            trace.step(step, begin, WHOLE)
            trace.api("cudaDeviceSynchronize", begin + 20, LONG + SHORT + 3 * MOVED)
            for place, (what, at, time) in enumerate(of_four(rank)):
                if what == "gemm":
                    trace.launch(begin + place, 1, begin + 10 + at, time, name="gemm", grid=[4, 1, 1])
                    continue
                name = "pipe" if what in {"send", "recv"} else what
                ranks = members["send" if name == "pipe" else what]
                about = {"Process Group Name": name, "Process Group Ranks": str(ranks), "Group size": len(ranks)}
                kind = what if name == "pipe" else "allreduce"
                ends = {"send": {"Dst Rank": rank + 2}, "recv": {"Src Rank": rank - 2}}.get(what, {})
                about |= {"Collective name": kind, "In msg nelems": 1024, "dtype": "Float", **ends}
                kernel = "ncclDevKernel_SendRecv" if name == "pipe" else "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
                trace.launch(begin + place, 1, begin + 10 + at, time, name=kernel, **about)
        trace.write(folder / f"rank{rank}.json")
    return traceanalyze.analyze(folder)


def test_a_stage_that_only_passes_on_what_it_waited_for_is_not_blamed(tmp_path):
    """Without its longer compute a step of all would be as much shorter."""
    found = run_of_four(tmp_path)
    (named,) = [one for one in found.run_findings if one.rule == "RNK101"]
    assert named.scope.ranks == (0,)
    assert named.saving == 1000 * (LONG - SHORT)
    waits = {row.rank: row for row in found.tables["rank_waits"].records()}
    assert [waits[rank].straggler for rank in "0123"] == [True, False, False, False]
    head = {name: value for name, _, value in found.verdict_messages[0].values}
    assert (found.verdict_messages[0].key, head["rank"], head["other"]) == ("ranks_own", "0", "1")
    # Of the step rank 0 waits for the stages behind it, and rank 1 for rank 0 as well.
    assert head["own"] == 1000 * (WHOLE - SHORT)
    assert head["least"] == 1000 * (WHOLE - SHORT - LONG + SHORT)
