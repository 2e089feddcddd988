"""Dumps of the flight recorder: every version, pickle and JSON, whole and torn."""

# ruff: noqa: E501  messages as they are printed

from __future__ import annotations

import json
import pickle
import time

import pytest

import traceanalyze
from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import UNKNOWN, What


def entry(seq, *, version="2.10", op="all_reduce", lib="nccl", state="completed", group=("4", "mesh_dp"), pg=2, **more):
    counters = {"seq_id": seq} if version == "1" else {"collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq}
    made = {
        "frames": [{"name": "all_reduce", "filename": "/v/site-packages/torch/distributed/c.py", "line": 7}],
        "record_id": seq - 1,
        "pg_id": pg,
        "process_group": group,
        "profiling_name": f"{lib}:{op}",
        "time_created_ns": 1_769_800_000 * 10**9 + seq,
        "time_discovered_started_ns": None if state == "scheduled" else 1_769_800_001 * 10**9,
        "time_discovered_completed_ns": 1_769_800_002 * 10**9 if state == "completed" else None,
        "input_sizes": [[4, 2]],
        "output_sizes": [[4, 2]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": state,
        "retired": state == "completed",
        "is_p2p": False,
        "timeout_ms": 600000,
        **counters,
        **more,
    }
    return {key: value for key, value in made.items() if version != "1" or key not in {"is_p2p", "timeout_ms"}}


def dump(version="2.10"):
    entries = [entry(at, version=version) for at in (17, 18)]
    entries += [
        entry(19, version=version, state="started", duration_ms=1.5),
        entry(20, version=version, state="scheduled"),
    ]
    if version == "1":
        return entries
    made = {
        "version": version,
        "pg_config": {"4": {"name": "4", "desc": "mesh_dp", "ranks": "[1, 5]"}},
        "entries": entries,
    }
    if version != "2.0":
        counts = {"last_enqueued_collective": 20, "last_started_collective": 19, "last_completed_collective": 18}
        made["pg_status"] = {"2": counts, "0": dict.fromkeys(counts, -1)}
    made["comm_lib_version" if version == "2.10" else "nccl_version"] = "2.28.8"
    return made


def as_json(value):
    """As the JSON dump has it: no tuples, no frames, 0 for no time, counts as texts."""
    value = json.loads(json.dumps(value))
    for one in value["entries"]:
        del one["frames"]
        for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            one[key] = one[key] or 0
    value["pg_status"] = {
        key: {name: str(number) for name, number in each.items()} for key, each in value["pg_status"].items()
    }
    return json.dumps(value).encode()


def read(folder, content, name="nccl_trace_rank_5"):
    path = folder / name
    path.write_bytes(content)
    found = read_evidence([str(path)])
    return found, found.flights[0] if found.flights else None


@pytest.mark.parametrize("version", ["1", "2.0", "2.3", "2.4", "2.7", "2.10"])
def test_every_version(tmp_path, version):
    found, flight = read(tmp_path, pickle.dumps(dump(version), 2))
    entries = flight.entries
    assert (flight.rank, flight.version, flight.timed) == (5, "" if version == "1" else version, True)
    assert entries.seq.tolist() == [17, 18, 19, 20]
    assert [entries.names[code] for code in entries.op.tolist()] == ["all_reduce"] * 4
    assert [entries.names[code] for code in entries.state.tolist()] == ["completed"] * 2 + ["started", "scheduled"]
    assert entries.names[entries.sizes[0]] == "[[4, 2]] -> [[4, 2]]"
    assert entries.names[entries.dtypes[0]] == "Float -> Float"
    assert entries.names[entries.stack[0]] == "all_reduce (torch/distributed/c.py:7)"
    assert entries.started.tolist()[-1] == UNKNOWN
    assert entries.duration.tolist()[2] == 1.5
    group = flight.groups[0]
    assert (group.name, group.desc, group.id, group.library) == ("4", "mesh_dp", 2, "nccl")
    assert (group.enqueued, group.started, group.completed) == (20, 19, 18)
    assert group.ranks == (() if version == "1" else (1, 5))
    assert found.files[0].understood == 4


def test_json_is_the_same_without_stacks(tmp_path):
    _, one = read(tmp_path, as_json(dump()), "fr_dump_5.json")
    _, other = read(tmp_path, pickle.dumps(dump(), 2))
    assert not one.entries.stack.any()
    assert one.groups == other.groups
    for column in ("seq", "created", "started", "completed", "timeout", "retired"):
        assert getattr(one.entries, column).tolist() == getattr(other.entries, column).tolist()


def test_a_json_without_entries_has_the_counts(tmp_path):
    value = json.loads(as_json(dump()))
    del value["entries"]
    _, flight = read(tmp_path, json.dumps(value).encode(), "rank_3.json")
    assert (flight.rank, len(flight.entries.seq)) == (3, 0)
    assert {group.id: group.enqueued for group in flight.groups} == {-1: None, 2: 20, 0: -1}


def test_of_pickle_and_json_the_one_with_stacks_is_kept(tmp_path):
    (tmp_path / "rank_5").write_bytes(pickle.dumps(dump(), 2))
    (tmp_path / "rank_5.json").write_bytes(as_json(dump()))
    (flight,) = read_evidence([str(tmp_path)]).flights
    assert flight.source.path.endswith("rank_5")


def test_the_empty_configuration_of_gloo(tmp_path):
    value = dump()
    value["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[]"}}
    value["entries"] = [entry(at, lib="gloo", state="scheduled", group=("0", "default_pg"), pg=0) for at in (1, 2)]
    value["pg_status"] = {
        "0": {"last_enqueued_collective": 2, "last_started_collective": -1, "last_completed_collective": 1}
    }
    _, flight = read(tmp_path, pickle.dumps(value, 2))
    (group,) = flight.groups
    assert (group.name, group.library, group.enqueued, group.completed) == ("0", "gloo", 2, 1)


def test_two_groups_have_counters_of_their_own(tmp_path):
    value = dump("2.0")
    value["entries"] += [entry(at, group=("7", "mesh_tp"), pg=3) for at in (100, 101)]
    _, flight = read(tmp_path, pickle.dumps(value, 2))
    assert [(group.name, group.enqueued) for group in flight.groups] == [("4", 20), ("7", 101)]
    assert flight.entries.group.tolist() == [0] * 4 + [1] * 2


@pytest.mark.parametrize("name", ["nccl_trace_rank_13", "trace_13", "_dump_13", "comm_lib_trace_rank_13.json"])
def test_the_rank_is_the_number_at_the_end_of_any_name(tmp_path, name):
    content = as_json(dump()) if name.endswith("json") else pickle.dumps(dump(), 2)
    assert read(tmp_path, content, name)[1].rank == 13


@pytest.mark.parametrize("keep", [200, 400, 1100])
def test_a_torn_dump_says_so(tmp_path, keep):
    found, flight = read(tmp_path, pickle.dumps(dump(), 2)[:keep])
    assert (flight, found.files[0].kind) == (None, "flight_recorder")
    assert "ends early" in found.files[0].fault or "truncated" in found.files[0].fault


def test_code_in_a_dump_does_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    found, flight = read(tmp_path, pickle.dumps({"version": "2.10", "pg_status": {}, "entries": [Evil()]}, 2))
    assert flight is None
    assert "refused" in found.files[0].fault
    assert not (tmp_path / "made").exists()


ODD = [
    {"version": 2.1, "pg_config": [], "pg_status": 7, "entries": [entry(1), 7, None]},
    {"version": "2.10", "pg_config": {"a": 1}, "pg_status": {"x": {}, "1": 3}, "entries": [{"pg_status": 1}]},
    {"pg_status": {}, "entries": [entry(1, time_created_ns=1 << 70, collective_seq_id=-(1 << 90), input_sizes="x")]},
    {
        "pg_status": {},
        "entries": [entry(1, input_sizes=[[1 << 80, "a"], 3], frames=[3, {"name": 4}], process_group=None)],
    },
    {"pg_status": {}, "entries": [entry(True, duration_ms="x", profiling_name=3, state=[], pg_id="q")]},
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_odd_values_are_unknown(tmp_path, value):
    found, flight = read(tmp_path, pickle.dumps(value, 2))
    assert flight is not None, found.files
    assert len(flight.entries.seq) == 1


def test_nested_references_take_no_time(tmp_path):
    knot = [1]
    for _ in range(60):
        knot = [knot, knot]
    _, flight = read(tmp_path, pickle.dumps({"pg_status": {}, "entries": [entry(1, input_sizes=knot)]}, 2))
    assert len(flight.entries.names) < 20


def test_the_zone_of_logs_by_a_timeout_that_a_dump_has_too(tmp_path):
    # Enqueued at 01:12:44.42 UTC; the watchdog's line is of 12:00 h later by a clock that is 5:30 h ahead.
    begun = 1_769_821_964_420_441_120
    value = dump()
    value["entries"] = [entry(18230, state="scheduled", time_created_ns=begun)]
    (tmp_path / "nccl_trace_rank_5").write_bytes(pickle.dumps(value, 2))
    line = (
        "[rank5]:[E131 06:52:44.420441120 ProcessGroupNCCL.cpp:757] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=18230, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds "
        "before timing out.\n"
    )
    (tmp_path / "job.log").write_text(line)
    found = read_evidence([str(tmp_path)])
    assert (found.zone.offset_ns, found.zone.known) == (19_800 * 10**9, True)
    (event,) = found.of(What.TIMEOUT)
    assert event.time_ns == begun + 600 * 10**9


def test_a_dump_of_thousands_of_groups_takes_time_by_their_number(tmp_path):
    """It took time by the square: 10 MB of them more than three minutes."""
    entries = [entry(at, group=(f"g{at}", ""), pg=at, input_sizes=[[at]]) for at in range(1, 6001)]
    (tmp_path / "dump_0").write_bytes(pickle.dumps({"version": "2.10", "entries": entries}))
    begun = time.process_time()
    traceanalyze.postmortem(tmp_path / "dump_0")
    assert time.process_time() - begun < 8
