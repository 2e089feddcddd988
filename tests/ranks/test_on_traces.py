"""Real recordings of several ranks; expected figures are counted by hand from the durations in the files."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

import traceanalyze


def kernels(path, pattern):
    """Durations, ns, of kernels in order of time, straight from the JSON."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    mine = [one for one in events if one.get("cat") == "kernel" and pattern in one["name"].lower()]
    return [round(1000 * one["dur"]) for one in sorted(mine, key=lambda one: one["ts"])]


def test_dlrm_waits_are_durations_beyond_the_shortest(shared_traces):
    folder = shared_traces / "kineto" / "param" / "dlrm_8rank"
    files = sorted(folder.glob("worker*.json.gz"))
    if len(files) != 8:
        pytest.skip("not all ranks are here")
    durations = [kernels(path, "nccl") for path in files]
    assert {len(one) for one in durations} == {8}
    least = [min(column) for column in zip(*durations, strict=True)]
    waits = [sum(one) - sum(least) for one in durations]
    last = Counter(rank for column in zip(*durations, strict=True) for rank in range(8) if column[rank] == min(column))
    table = traceanalyze.analyze(folder).tables["rank_waits"].to_pandas(words=False)
    assert list(table["wait_ns"]) == waits
    assert list(table["times_last"]) == [last[rank] for rank in range(8)]
    assert table["straggler"].isna().all()


def test_dlrm_ranks_wait_for_each_other(shared_traces):
    found = traceanalyze.analyze(shared_traces / "kineto" / "param" / "dlrm_8rank")
    assert found.tables["rank_findings"].column("rule_id") == ("RNK106",)


def test_torchrec_names_the_rank_the_others_wait_for(shared_traces):
    found = traceanalyze.analyze(shared_traces / "pairs" / "torchrec_ladder" / "sst_long_a2a_optimizer_3")
    table = found.tables["rank_waits"].to_pandas(words=False)
    assert list(table["straggler"]) == [False, False, True, False]
    assert table["wait_ns"].idxmin() == 2
    # Step 4, the first, takes 406 ms instead of 155: its 30 collectives, of which two ranks recorded one more, are out.
    assert list(table["step_ns"] // 1_000_000) == [154] * 4
    assert [note.key for note in found.tables["collective_waits"].notes] == ["collectives_outside_steps"]


def test_two_of_eight_npus_give_bounds_and_name_whom_they_wait_for(shared_traces):
    found = traceanalyze.analyze(shared_traces / "ascend" / "msinsight_2rank_torch" / "text" / "level1")
    table = found.tables["rank_waits"].to_pandas(words=False)
    assert table["straggler"].isna().all()
    assert list(table["waited_for"]) == [5, 5]
    assert [note.values[0][2] for note in found.tables["rank_waits"].notes] == ["2–7"]
    said = {message.key: {name: value for name, _, value in message.values} for message in found.verdict_messages}
    assert said["waited_for_absent"]["rank"] == 5
    links = found.tables["links"].to_pandas(words=False)
    assert set(links["source_rank"]) == {0, 1}
    assert set(links["target_rank"]) == set(range(8))
