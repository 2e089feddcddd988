"""What a trace says of itself beside its events: every member on its own, whatever is wrong with the others."""

from __future__ import annotations

import json

import pytest

from tests.report.make import trace
from traceanalyze.model.trace import Device
from traceanalyze.readers.header import process_names, ranks_of, thread_names, with_header
from traceanalyze.readers.runs import names_apart, profile_path, short_name
from traceanalyze.readers.scan.grammar import canonical_integer, decoded, integer
from traceanalyze.readers.scan.result import Metadata


def headed(**members):
    return with_header(trace(), {key.encode(): json.dumps(value).encode() for key, value in members.items()})


def test_a_rank_of_a_job():
    found = headed(distributedInfo={"rank": "3", "world_size": 8, "backend": "nccl", "nccl_version": "2.21"}).origin
    assert (found.rank, found.rank_source, found.world_size, found.backend) == (3, "distributedInfo", 8, "nccl")
    assert headed(distributedInfo={"nccl_version": "2.21"}).versions["nccl"] == "2.21"
    none = headed(distributedInfo=[1]).origin
    assert (none.rank, none.rank_source, none.world_size) == (None, "", None)


@pytest.mark.parametrize("rank", [-1, "x", 1.0e300, None, [], 2**63])
def test_what_is_no_rank_is_none(rank):
    assert headed(distributedInfo={"rank": rank}).origin.rank is None
    assert ranks_of([0, rank, "2"]) == (0, 2)


def test_the_first_rank_and_the_zero_of_the_clock():
    assert headed(distributedInfo={"rank": 0}).origin.rank == 0
    assert headed(baseTimeNanoseconds=5).base_ns == 5
    assert headed(baseTimeNanoseconds=2**63 - 1).base_ns == 2**63 - 1
    assert headed(baseTimeNanoseconds=2**63).base_ns == 0
    assert headed().base_ns == 0


def test_devices_are_numbered_where_they_do_not_say():
    whole = {"id": 4, "name": "H100", "totalGlobalMem": 80, "numSms": 132, "computeMajor": 9, "computeMinor": 0}
    found = headed(deviceProperties=[{"name": "A"}, whole, {"id": -1, "computeMajor": 9}, 7, {"id": 0, "name": 5}])
    assert found.devices == (
        Device(0, "A"),
        Device(4, "H100", 80, 132, "9.0"),
        Device(2, ""),
        Device(3, ""),
        Device(0, ""),
    )


def test_groups_options_and_damage():
    found = headed(
        distributedInfo={"pg_config": [{"pg_name": 0, "ranks": [0, "1", "x"]}, {"ranks": [3]}, 5]},
        record_shapes=1,
        with_stack="0",
        profile_memory=True,
        with_flops="true",
        with_modules=2,
    )
    assert found.groups == {"0": (0, 1)}
    assert found.options == {
        "record_shapes": True, "with_stack": False, "profile_memory": True, "with_flops": True, "with_modules": False,
    }  # fmt: skip
    damaged = with_header(trace(), {b"traceName": b'"a', b"other": b"{", b"baseTimeNanoseconds": b"7"})
    assert damaged.base_ns == 7
    assert damaged.read.notes == ('header member "traceName" is damaged and was left out',)


def test_a_part_of_the_ranks_of_a_group_is_not_taken_for_all():
    listed = [0, 1, 2, "...", 39]
    sizes = {"cut": 40, "whole": 4, "untold": None}
    config = [{"pg_name": name, "ranks": listed, **({"pg_size": size} if size else {})} for name, size in sizes.items()]
    found = headed(distributedInfo={"world_size": 40, "pg_config": config})
    assert found.groups == {"cut": (), "whole": (0, 1, 2, 39), "untold": (0, 1, 2, 39)}


def named(name, pid, tid, args):
    return Metadata(name=name, pid=pid, tid=tid, args=json.dumps(args).encode())


def test_processes_have_their_labels_in_brackets():
    told = [
        named(b"process_name", b"1", b"", {"name": " python "}),
        named(b"process_labels", b"1", b"", {"labels": "GPU 0"}),
        named(b"process_labels", b"2", b"", {"labels": "CPU"}),
        named(b"process_name", b"3", b"", {"name": "x"}),
        named(b"process_labels", b"3", b"", {"labels": ""}),
        named(b"process_name", b"4", b"", [1]),
        named(b"thread_name", b"1", b"9", {"name": "main"}),
    ]
    assert process_names(told) == {"1": "python [GPU 0]", "3": "x", "4": "", "2": "[CPU]"}
    assert thread_names(told) == {("1", "9"): "main"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (rb'"\ud7ff"', "\ud7ff"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\udfff"', "\ufffd"),
        (rb'"\ue000"', "\ue000"),
        (rb'"\ud800\udc00"', "\U00010000"),
        (rb'"\udbff\udfff"', "\U0010ffff"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\udc00\ud800"', "\ufffd\ufffd"),
        (rb'"\n\t\q"', "\n\t\\q"),
        (rb"plain\n", "plain\\n"),
    ],
)
def test_escapes_of_json(text, meant):
    assert decoded(text) == meant.encode()


def test_a_recording_is_named_after_its_file_or_its_profile():
    assert short_name("/a/run.pt.trace.json.gz") == "run"
    assert short_name("/a/host_ascend_pt/ASCEND_PROFILER_OUTPUT") == "host_ascend_pt"
    assert profile_path("ASCEND_PROFILER_OUTPUT") == "ASCEND_PROFILER_OUTPUT"
    assert profile_path("/a/b.json") == "/a/b.json"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/x", "/b/x"], ["a/x", "b/x"]),
        (["/a/c/x", "/b/c/x"], ["a/c/x", "b/c/x"]),
        (["/a/x", "/a/c/x"], ["a/x", "c/x"]),
        (["/a/x.json", "/a/x.gz"], ["x.json", "x.gz"]),
        (["/a/x", "/a/x"], ["x", "x"]),
    ],
)
def test_names_that_are_alike_get_as_many_folders_as_tell_them_apart(paths, names):
    assert names_apart(["x"] * len(paths) + ["y"], [*paths, "/q/y"]) == [*names, "y"]


@pytest.mark.parametrize(
    ("text", "number", "canonical"),
    [
        (b"-9223372036854775808", -(2**63), -(2**63)),
        (b"-9223372036854775809", None, None),
        (b"9223372036854775807", 2**63 - 1, 2**63 - 1),
        (b"9223372036854775808", -(2**63), None),
        (b"18446744073709551615", -1, None),
        (b"18446744073709551616", None, None),
        (b"007", 7, None),
        (b"+7", 7, None),
        (b"-0", 0, None),
        (b"0", 0, 0),
    ],
)
def test_whole_numbers_at_the_ends_of_their_range(text, number, canonical):
    assert (integer(text), canonical_integer(text)) == (number, canonical)
