"""Defects of `msprof-analyze compare` that must not come back: what its users do, and what they must be told.

Numbers in names are those of the list of such defects; the others have their tests beside what they are about.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.cli.compared import compared as report_of
from tests.cli.conftest import training_loop
from tests.simulate.simulate import simulate
from tests.simulate.workload import Device, Model, Ranks, Script, Workload
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from traceanalyze.locales import texts

NPU = Workload(
    model=Model(layers=1, hidden=256, sequence=128, batch=4, vocabulary=1000),
    device=Device(vendor="ascend"),
    ranks=Ranks(2, bucket=2**20),
    script=Script(items=1),
    steps=2,
    tick=10,
)


@pytest.fixture(scope="module")
def npu():
    """Rank 0 of a simulated run."""
    return simulate(NPU)[0]


@pytest.fixture
def compared(run):
    """The comparison of two paths as a document."""

    def call(base, candidate, *more):
        result = run("compare", base, candidate, "--format", "json", *more)
        assert (result.code, result.err) == (0, "")
        return report_of(result.out)

    return call


def differences(document):
    """Rows of any table whose candidate differs from the base, by table."""
    return {
        name: rows
        for name, table in document["tables"].items()
        for rows in [[row for row in table["rows"] or () if row.get("diff_ns") or row.get("diff_bytes")]]
        if rows
    }


@pytest.mark.parametrize("layout", every_era(), ids=lambda layout: layout.era)
def test_m11_text_and_database_of_one_run_do_not_differ(compared, npu, tmp_path, layout):
    text = write_ascend(tmp_path / "text", npu, layout, "text")
    database = write_ascend(tmp_path / "db", npu, layout, "db")
    found = compared(text, database)
    assert found["verdict"][0]["text"].startswith("No difference: both sides take ")
    assert differences(found) == {}
    for name in ("operator_compare_statistic", "module_compare_statistic", "api_compare", "memory_compare_statistic"):
        rows = found["tables"][name]["rows"]
        assert rows, name
        assert {row["match"] for row in rows} == {"both_sides"}, name
    assert found["tables"]["unmatched"]["rows"]
    assert {row["unmatched_ns"] for row in found["tables"]["unmatched"]["rows"]} == {0}


def test_m14_levels_that_record_less_make_no_difference_and_say_what_is_not_comparable(compared, npu, tmp_path):
    low = write_ascend(tmp_path / "low", npu, AscendLayout(level=0))
    high = write_ascend(tmp_path / "high", npu, AscendLayout(level=1))
    found = compared(low, high)
    assert found["verdict"][0]["text"].startswith("No difference: both sides take ")
    assert set(differences(found)) <= {"api_compare"}
    parts = {
        row["part"]: (row["base_time_ns"], row["candidate_time_ns"])
        for row in found["tables"]["step_difference"]["rows"]
    }
    assert parts["host_side"][0] == parts["host_side"][1] > 0
    assert "sync" not in parts
    told = " ".join(caveat["text"] for caveat in found["caveats"])
    assert "Different profiler levels: base Level0, candidate Level1." in told
    assert "runtime calls and waiting for other ranks are not comparable" in told
    rows = {row["index"]: row for row in found["tables"]["overall_metrics"]["rows"]}
    assert rows["comm_wait"]["base_time_ns"] is None
    assert rows["comm_wait"]["diff_ns"] is None


def test_m14_equal_levels_tell_the_causes_apart(compared, npu, tmp_path):
    one, other = (write_ascend(tmp_path / name, npu, AscendLayout(level=0)) for name in ("one", "other"))
    tables = compared(one, other)["tables"]
    parts = {row["part"] for row in tables["step_difference"]["rows"]}
    assert "host_side" not in parts
    assert "dispatch" in parts
    assert "host_op" in {row["index"] for row in tables["overall_metrics"]["rows"]}


def test_m17_the_level_of_a_module_is_the_same_in_both_tables(compared, npu, tmp_path):
    profile = write_ascend(tmp_path, npu)
    tables = compared(profile, profile)["tables"]
    levels = [
        {(row["module"], row["module_level"]) for row in tables[name]["rows"]}
        for name in ("module_compare_statistic", "module_compare")
    ]
    assert levels[1]
    assert levels[1] <= levels[0]
    names = [name for name, _ in levels[0]]
    assert len(names) == len(set(names)), "one level a module"
    known = {name: level for name, level in levels[0] if not name.startswith("<")}
    assert known == {name: name.count("/") for name in known}


def test_m17_help_says_of_each_option_which_side_it_is_for_and_no_flag_is_on_by_itself(run):
    text = " ".join(run("compare", "--help").out.replace("│", " ").split())
    assert "[default: on]" not in text
    base, candidate = text.index("--base-step"), text.index("--comparison-step")
    assert base < text.index("Steps of the base", base) < candidate
    assert text.index("Steps of the candidate", candidate) > candidate


def test_m18_a_list_of_gpu_events_is_a_gpu_profile(compared, tmp_path):
    whole = training_loop().write(tmp_path / "whole.json")
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(json.loads(whole.read_text())["traceEvents"]))
    found = compared(whole, bare)
    assert found["verdict"][0]["text"].startswith("No difference: both sides take 100 µs per step")
    assert (found["base"]["vendor"], found["candidate"]["vendor"]) == ("cuda", "cuda")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.json", b""),
        ("text.json", b"this is no trace"),
        ("broken.json.gz", b"\x1f\x8b\x08\x00broken"),
        ("other.json", b'{"a": 1}'),
    ],
)
@pytest.mark.parametrize("as_base", [True, False])
def test_m19_a_profile_that_cannot_be_read_is_an_error_of_one_line(run, sample, tmp_path, name, content, as_base):
    bad = tmp_path / name
    bad.write_bytes(content)
    result = run("compare", *((bad, sample) if as_base else (sample, bad)))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert name in result.err


def test_m19_a_profile_that_is_cut_short_is_compared_as_far_as_it_goes_and_said_to_be(compared, sample, tmp_path):
    cut = tmp_path / "cut.json"
    text = sample.read_bytes()
    cut.write_bytes(text[: text.rindex(b"{")])
    told = [caveat["text"] for caveat in compared(sample, cut)["caveats"]]
    assert "The file of the candidate is cut short: later work is missing." in told


def host_only(path, loader=60):
    trace = TraceBuilder()
    for number in range(3):
        at = 1000.0 + 200 * number
        trace.step(number + 5, at, 40 + loader)
        trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, loader)
        trace.op("aten::mm", at + loader + 1, 10)
    return trace.write(path)


def test_m19_profiles_without_a_device_are_compared_on_the_host_and_said_to_be(compared, tmp_path):
    found = compared(host_only(tmp_path / "a.json"), host_only(tmp_path / "b.json", loader=90))
    assert found["verdict"][0]["text"].startswith("The candidate is 30 µs (30 %) slower per step")
    assert "No device was recorded: host time is compared." in [caveat["text"] for caveat in found["caveats"]]
    assert found["tables"]["step_difference"]["rows"][0]["part"] == "data_loading"


def test_m20_compressed_files_and_folders_of_several_gpu_ranks(compared, tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.mkdir()
    packed.mkdir()
    for rank in range(2):
        trace = training_loop(slow=10 * rank, where=range(3))
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        file = trace.write(plain / f"rank{rank}.pt.trace.json")
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    found = compared(plain, packed)
    assert found["verdict"][0]["text"].startswith("No difference: both sides take 110 µs per step")
    assert (found["base"]["rank"], found["base"]["ranks_in_run"]) == (1, 2)
    assert found["base"]["rank_choice"] == "rank_decides"
    other = compared(plain, packed, "--base-rank", "0", "--comparison-rank", "1")
    assert other["verdict"][0]["text"].startswith("The candidate is 10 µs (10 %) slower per step")


OF_RANK = "--base-rank", "--comparison-rank"


@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
@pytest.mark.parametrize(
    ("base", "candidate", "asked", "expected"),
    [
        # One rank is slow on both sides, or on one of them: it is the one that changed.
        ({0: 100, 1: 130}, {0: 100, 1: 103}, {}, [(1, "decides", None), (1, "decides", None)]),
        ({0: 100, 1: 101}, {0: 140, 1: 101}, {}, [(0, "same", None), (0, "decides", None)]),
        # The slowest moved.
        ({0: 100, 1: 110}, {0: 140, 1: 110}, {}, [(0, "same", 1), (0, "decides", None)]),
        ({0: 100, 1: 140, 2: 90}, {0: 110, 1: 100, 2: 90}, {}, [(1, "decides", None), (1, "same", 0)]),
        # Only one rank is on both sides, none is, or one was asked for.
        ({0: 100}, {0: 100, 1: 150}, {}, [(0, "only", None), (0, "same", 1)]),
        ({2: 100, 3: 90}, {0: 100, 1: 150}, {}, [(2, "decides", None), (1, "decides", None)]),
        ({0: 100, 1: 90}, {0: 100, 1: 90}, {"base": 1}, [(1, "asked", None), (1, "same", 0)]),
        ({0: 100, 1: 90}, {0: 100, 1: 90}, {"base": 0, "candidate": 1}, [(0, "asked", None), (1, "asked", None)]),
    ],
)
def test_one_rank_is_compared_with_itself(compared, tmp_path, base, candidate, asked, expected, swapped):
    """Lengths of its steps by rank, µs; what is said of each side: the rank, why it, and which works longest."""
    sides = {"base": base, "candidate": candidate}
    for name, lengths in sides.items():
        (tmp_path / name).mkdir()
        for rank, length in lengths.items():
            trace = training_loop(slow=length - 100, where=range(3))
            trace.header["distributedInfo"] = {"rank": rank, "world_size": 4, "backend": "nccl"}
            trace.write(tmp_path / name / f"rank{rank}.pt.trace.json")
    named = [*sides][:: -1 if swapped else 1]
    ranks = [(option, asked.get(name)) for option, name in zip(OF_RANK, named, strict=True)]
    more = [str(each) for chosen in ranks if chosen[1] is not None for each in chosen]
    found = compared(*(tmp_path / name for name in named), *more)
    rows = found["tables"]["compare_sides"]["rows"]
    told = [(row["rank"], row["rank_choice"].removeprefix("rank_"), row["slowest_rank"]) for row in rows]
    assert told == expected[:: -1 if swapped else 1]


def test_m20_an_npu_timeline_inside_an_object_is_an_npu_profile(compared, npu, tmp_path):
    listed = write_ascend(tmp_path / "listed", npu)
    wrapped = tmp_path / "wrapped" / listed.name
    shutil.copytree(listed, wrapped)
    timeline = wrapped / OUTPUT / "trace_view.json"
    events = json.loads(timeline.read_text())
    assert isinstance(events, list)
    timeline.write_text(json.dumps({"traceEvents": events}))
    found = compared(listed, wrapped)
    assert found["candidate"]["vendor"] == "ascend"
    assert found["verdict"][0]["text"].startswith("No difference")
    assert differences(found) == {}


def test_m22_small_steps_keep_their_digits(run, tmp_path):
    """Steps of 0.3 ms that differ by 2 µs are neither 0.000 s nor equal."""
    paths = []
    for name, more in (("a", 0), ("b", 2)):
        trace = TraceBuilder()
        for number in range(3):
            at = 1000.0 + 500 * number
            trace.step(number, at, 300 + more)
            trace.op("aten::mm", at + 1, 10)
            trace.launch(at + 2, 4, at + 10, 280 + more)
        paths.append(trace.write(tmp_path / f"{name}.json"))
    text = run("compare", *paths).out
    assert "The candidate is 2 µs (0.7 %) slower per step, 302 µs instead of 300 µs: compute +2 µs." in " ".join(
        text.split()
    )
    line = next(line.split() for line in text.splitlines() if line.startswith("compute "))
    assert line == ["compute", "280", "282", "+2", "1.01", "100.0"]


def test_m23_cells_without_a_value_are_no_warnings(run, npu, tmp_path):
    profile = write_ascend(tmp_path, npu)
    table = profile / OUTPUT / "kernel_details.csv"
    head, *rows = table.read_text().splitlines()
    last = head.split(",").index("Wait Time(us)")
    cells = [row.split(",") for row in rows]
    for row in cells:
        row[last] = "N/A"
    table.write_text("\n".join([head, *(",".join(row) for row in cells)]) + "\n")
    assert len(rows) > 50
    result = run("compare", profile, profile)
    assert (result.code, result.err) == (0, "")
    assert "N/A" not in result.out


def test_m24_profiles_are_left_as_they_are(run, npu, tmp_path):
    folders = [write_ascend(tmp_path / form, npu, AscendLayout(), form) for form in ("text", "db")]
    files = [path for folder in folders for path in sorted(folder.rglob("*"))]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in files}
    out = tmp_path / "out"
    for name in ("x.xlsx", "x.html", "x.md", "x.json"):
        out.mkdir(exist_ok=True)
        assert run("compare", *folders, "-o", out / name, "-q").code == 0
    assert [path for folder in folders for path in sorted(folder.rglob("*"))] == files
    assert {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in files} == before


def test_m25_what_was_not_recorded_has_a_reason_instead_of_zeros(run, sample):
    text = " ".join(run("compare", sample, sample).out.split())
    reasons = texts().reasons
    tables = report_of(run("compare", sample, sample, "--format", "json").out)["tables"]
    memory = tables["memory_compare_statistic"]
    assert memory["rows"] is None
    assert reasons[memory["reason"]] in text


def test_the_workload_of_these_tests_differs_when_something_is_slower(compared, npu, tmp_path):
    """What says "no difference" above can say that there is one."""
    slow = simulate(replace(NPU, script=Script(items=3)))[0]
    found = compared(write_ascend(tmp_path / "a", npu), write_ascend(tmp_path / "b", slow))
    assert not found["verdict"][0]["text"].startswith("No difference")
    assert differences(found)


def test_m16_steps_of_a_gpu_profile_are_chosen_for_every_section(compared, tmp_path):
    trace = TraceBuilder()
    for number, length in enumerate((20, 30, 60)):
        at = 1000.0 + 300 * number
        trace.step(number, at, 100 + length)
        trace.op("aten::mm", at + 1, 10)
        trace.launch(at + 2, 4, at + 10, length, name="volta_sgemm_128x64_nn")
    file = trace.write(tmp_path / "trace.json")
    found = compared(file, file, "--base-step", "0", "--comparison-step", "2")["tables"]
    times = [
        {row["index"]: (row["base_time_ns"], row["candidate_time_ns"]) for row in found["overall_metrics"]["rows"]}[
            "compute"
        ],
        *((row["base_device_ns"], row["candidate_device_ns"]) for row in found["operator_compare_statistic"]["rows"]),
        *((row["base_device_ns"], row["candidate_device_ns"]) for row in found["operator_compare"]["rows"]),
        *((row["base_total_ns"], row["candidate_total_ns"]) for row in found["kernel_compare"]["rows"]),
        *((row["base_total_ns"], row["candidate_total_ns"]) for row in found["kernel_type_compare"]["rows"]),
    ]
    assert times == [(20_000, 60_000)] * 5
    means = compared(file, file, "--base-step", "0-1", "--comparison-step", "2")["tables"]["kernel_compare"]["rows"]
    assert [(row["base_total_ns"], row["base_calls"]) for row in means] == [(25_000, 1)]


def test_m15_a_clock_of_nanoseconds_is_not_rounded(shared_traces):
    name = "gaunernst_bert-small-uncased__1016001.json.gz"
    base, candidate = (shared_traces / "kineto" / "tracelens" / device / name for device in ("h100", "mi300"))
    if not (base.is_file() and candidate.is_file()):
        pytest.skip("the pair is not here")
    busy = set()
    for event in json.loads(gzip.decompress(base.read_bytes()))["traceEvents"]:
        if event.get("cat") == "kernel":
            start = round(1000 * event["ts"])
            busy.update(range(start, start + round(1000 * event["dur"])))
    found = traceanalyze.compare(base, candidate)
    compute = found.tables["overall_metrics"].to_pandas(words=False).set_index("index").loc["compute", "base_time_ns"]
    assert compute == len(busy)
    assert round(compute / 1e6, 3) == 0.307


def test_remarks_on_a_side_are_in_the_language_of_the_report(run, tmp_path):
    trace = training_loop()
    trace.header["distributedInfo"] = {"rank": 1, "world_size": 2, "backend": "nccl"}
    file = trace.write(tmp_path / "trace.json")
    assert "base: no recording of 1 of 2 ranks: 0\n" in run("compare", file, file).out
    chinese = run("compare", file, file, "--lang", "zh").out
    assert "基准：共 2 个 Rank，缺少 1 个：Rank 0\n" in chinese
    assert "missing" not in chinese
