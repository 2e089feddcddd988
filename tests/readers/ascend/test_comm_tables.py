"""The profile's own tables of collectives: read in both forms and held against the timeline."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import traceanalyze
from tests.ascend_builder import AscendBuilder
from tests.simulate.simulate import simulate
from tests.simulate.truth.tables import transfers
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.locales import texts
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.readers.ascend import comm_tables
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT, Texts
from traceanalyze.report.console import render
from traceanalyze.report.console.style import Style
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceanalyze.analyses.results import Check
    from traceanalyze.model.trace import Trace

RANKS = simulate(TWO_NPUS)
DIFFERENCES = {"collectives_missing", "collectives_differ", "link_bytes_differ"}


def written(folder: Path, layout: AscendLayout | None = None, form: str = "text") -> Path:
    return write_ascend(folder, RANKS[0], layout or AscendLayout("8.3"), form)


def load(home: Path) -> Trace:
    (trace,) = traceanalyze.load(home).traces
    return trace


def checks(home: Path) -> dict[str, Check]:
    return {check.message: check for check in analyze_trace(load(home)).checks}


def change(home: Path, name: str, edit: Callable[[Any], Any]) -> None:
    path = home / OUTPUT / name
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))


@pytest.mark.parametrize("form", ["text", "db"])
@pytest.mark.parametrize("layout", every_era(), ids=lambda layout: layout.era)
def test_the_tables_of_a_sound_profile_agree_with_its_timeline(tmp_path: Path, layout: AscendLayout, form: str) -> None:
    """But for waiting: of the schedule's waits the tables know those of one plane."""
    home = written(tmp_path, layout, form)
    told = load(home).vendor_collectives
    assert told is not None
    works = [work for work in RANKS[0].works if work.collective is not None]
    assert [one.elapsed for one in told.collectives] == pytest.approx([w.end - w.start for w in works], abs=2)
    sent = sum(part.bytes for work in works for part in work.tasks if part.moves and part.peer != RANKS[0].rank)
    assert sum(size for one in told.collectives for _, size, _ in one.links) == sent
    assert {link for one in told.collectives for link, _, _ in one.links} == {"HCCS"}
    assert sum(one.bytes for one in told.links if one.source != one.target) == sent
    found = checks(home)
    assert not DIFFERENCES & set(found)
    wait = dict(found["wait_of_one_plane"].values)
    assert wait["ours_ns"] == sum(each.wait for each in transfers(RANKS[0]))
    assert wait["theirs_ns"] == sum(one.wait or 0 for one in told.collectives) < wait["ours_ns"]


def test_text_and_database_say_the_same(tmp_path: Path) -> None:
    text, base = (load(written(tmp_path / form, form=form)).vendor_collectives for form in ("text", "db"))
    assert text is not None
    assert base is not None
    assert text.collectives == base.collectives
    assert text.links == base.links


def scaled(factor: float) -> Callable[[Any], Any]:
    def edit(found: Any) -> Any:
        first = next(iter(next(iter(found.values()))["collective"].values()))
        first["Communication Time Info"]["Elapse Time(ms)"] *= factor
        return found

    return edit


def test_ranks_of_a_database_may_be_numbers(tmp_path: Path) -> None:
    home = written(tmp_path, form="db")
    before = load(home).vendor_collectives
    assert before is not None
    assert 0 in {one.source for one in before.links}
    with closing(sqlite3.connect(home / OUTPUT / "analysis.db")) as base:
        base.execute("ALTER TABLE CommAnalyzerMatrix RENAME TO written")
        base.execute(
            "CREATE TABLE CommAnalyzerMatrix AS SELECT hccl_op_name, group_name, transport_type, transit_size, "
            "transit_time, op_name, CAST(src_rank AS INTEGER) AS src_rank, CAST(dst_rank AS INTEGER) AS dst_rank "
            "FROM written"
        )
        base.commit()
    assert load(home).vendor_collectives == before


@pytest.mark.parametrize(("size", "time"), [(0, "?"), (1.5, 0), (-1.5, 1), (1.5, -1)])
def test_a_link_without_a_size_and_time_that_can_be_is_counted(tmp_path: Path, size: float, time: object) -> None:
    """Nothing moves in no time; in a damaged file the same key of another link may follow."""
    home = written(tmp_path)

    def damage(table: Any) -> Any:
        for step in table.values():
            for kind in step.values():
                for operation in kind.values():
                    links = operation["Communication Bandwidth Info"]
                    next(iter(links.values())).update({"Transit Size(MB)": size, "Transit Time(ms)": time})
                    return table
        raise AssertionError

    change(home, "communication.json", damage)
    assert "communication.json: 1 row(s) without a readable size or time were left out" in load(home).read.notes


@pytest.mark.parametrize("key", ["Transit Size(MB)", "Transit Time(ms)"])
def test_a_pair_whose_number_cannot_be_read_is_counted_and_is_no_pair_of_0(tmp_path: Path, key: str) -> None:
    sound = load(written(tmp_path / "sound")).vendor_collectives
    home = written(tmp_path / "damaged")

    def damage(table: Any) -> Any:
        for step in table.values():
            for kind in step.values():
                for name, pairs in kind.items():
                    if "-total@" in name:
                        next(iter(pairs.values()))[key] = "?"
                        return table
        raise AssertionError

    change(home, "communication_matrix.json", damage)
    trace = load(home)
    assert sound is not None
    assert trace.vendor_collectives is not None
    assert sum(link.time for link in trace.vendor_collectives.links) < sum(link.time for link in sound.links)
    assert all(link.bytes > 0 and link.time > 0 for link in trace.vendor_collectives.links)
    assert "communication_matrix.json: 1 row(s) without a readable size or time were left out" in trace.read.notes


def test_another_duration_is_told_with_both_numbers(tmp_path: Path) -> None:
    home = written(tmp_path)
    change(home, "communication.json", scaled(1.05))
    found = dict(checks(home)["collectives_differ"].values)
    work = next(work for work in RANKS[0].works if work.collective is not None)
    assert found["ours_ns"] == work.end - work.start
    assert found["theirs_ns"] == pytest.approx(1.05 * (work.end - work.start), abs=2)
    assert (found["count"], found["source"]) == (1, "communication.json")
    assert found["of"] == sum(work.collective is not None for work in RANKS[0].works)


def test_half_a_percent_is_none(tmp_path: Path) -> None:
    home = written(tmp_path)
    change(home, "communication.json", scaled(1.005))
    assert not DIFFERENCES & set(checks(home))


def test_a_collective_that_the_timeline_lacks(tmp_path: Path) -> None:
    home = written(tmp_path)

    def edit(found: Any) -> Any:
        times = {"Communication Time Info": {"Elapse Time(ms)": 7.5}, "Communication Bandwidth Info": {}}
        next(iter(found.values()))["collective"]["hcom_allGather__111_9_1@17111"] = times
        return found

    change(home, "communication.json", edit)
    found = dict(checks(home)["collectives_missing"].values)
    assert (found["count"], found["time_ns"]) == (1, 7_500_000)


def test_a_collective_whose_name_lost_its_group_is_no_silent_loss(tmp_path: Path) -> None:
    def cut(found: Any) -> Any:
        (kinds, *_) = (step["collective"] for step in found.values())
        key = next(key for key in kinds if key.startswith("hcom"))
        kinds[key.partition("@")[0] + "x"] = kinds.pop(key)
        return found

    home = written(tmp_path)
    change(home, "communication.json", cut)
    assert any(check.message == "collectives_missing" for check in checks(home).values())


def test_other_bytes_are_told(tmp_path: Path) -> None:
    home = written(tmp_path)

    def edit(found: Any) -> Any:
        for step in found.values():
            for one in step["collective"].values():
                one["Communication Bandwidth Info"]["HCCS"]["Transit Size(MB)"] *= 2
        return found

    change(home, "communication.json", edit)
    found = dict(checks(home)["link_bytes_differ"].values)
    assert found["link"] == "HCCS"
    assert found["theirs_bytes"] == 2 * found["ours_bytes"] > 0


def test_part_of_a_recording_is_not_held_against_the_tables_of_all(tmp_path: Path) -> None:
    trace = load(written(tmp_path))
    kept = Options(keep=Filter(name=re.compile(r"^hcom_\w+__\d+_0_")))
    analysis = analyze_trace(trace, kept)
    assert sum(row.count for row in analysis.records("kernels")) == 1
    assert not {check.message for check in analysis.checks} & DIFFERENCES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ('{"step3": {"collective": {', "cannot be read"),
        ("[1, 2]", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"step3": 5, "x": {"collective": [], "p2p": {"a@1": 7, "b@2": {"Communication Time Info": []}}}}', ""),
        ('{"s": {"c": {"hcom_x__1_2@5": {"Communication Time Info": {"Elapse Time(ms)": "NaN"}}}}}', ""),
        ('{"s": {"c": {"hcom_x__1_2@5": {"Communication Time Info": {"Elapse Time(ms)": NaN}}}}}', ""),
        ('{"s": {"c": {"hcom_x__1_2@5": {"Communication Time Info": {"Elapse Time(ms)": 1e300}}}}}', ""),
        ('{"s": {"c": {"hcom_x__1_2@5": {"Communication Time Info": {"Elapse Time(ms)": 1%s}}}}}' % ("0" * 400), ""),
    ],
)
@pytest.mark.parametrize("name", ["communication.json", "communication_matrix.json"])
def test_a_damaged_table_costs_nothing_else(tmp_path: Path, name: str, text: str, said: str) -> None:
    home = written(tmp_path)
    before = load(home)
    (home / OUTPUT / name).write_text(text)
    analysis = analyze_trace(load(home))
    notes = [note for note in analysis.trace.read.notes if note.startswith(name)]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)
    assert len(analysis.trace.events) == len(before.events)
    assert not DIFFERENCES & {check.message for check in analysis.checks}


def test_without_the_tables_nothing_is_said(tmp_path: Path) -> None:
    home = written(tmp_path)
    for name in ("communication.json", "communication_matrix.json"):
        (home / OUTPUT / name).unlink()
    assert load(home).vendor_collectives is None
    assert not {*DIFFERENCES, "wait_of_one_plane"} & set(checks(home))


def test_a_table_that_is_too_large_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = written(tmp_path)
    monkeypatch.setattr(comm_tables, "MOST_BYTES", 100)
    trace = load(home)
    assert trace.vendor_collectives is None
    assert sum("more than 100" in note for note in trace.read.notes) == 2


def test_they_stand_in_where_the_timeline_has_no_tasks(tmp_path: Path) -> None:
    """Level 1 and 2 write the tasks; without them the tables are all that tells waiting from transfer."""
    reports = {
        planes: traceanalyze.analyze(written(tmp_path / str(planes), AscendLayout("8.3", planes=planes)))
        for planes in (True, False)
    }
    shown = {
        planes: render(report, texts(), Style(width=80), View(Detail.NORMAL)) for planes, report in reports.items()
    }
    title = texts().title(reports[False].tables["vendor_collectives"])
    assert title in shown[False]
    assert "most waiting stands under" in " ".join(shown[False].split())
    assert title not in shown[True]


def test_waiting_is_bounded_by_the_tables_alone(tmp_path: Path) -> None:
    """The true time without a transfer between ranks, of the schedule, lies between; both forms tell the same."""
    found, rank = {}, RANKS[1]
    for form in ("text", "db"):
        report = traceanalyze.analyze(write_ascend(tmp_path / form, rank, AscendLayout("8.3"), form))
        found[form] = list(report.tables["vendor_collectives"].records())
    assert found["text"] == found["db"]
    works = [work for work in rank.works if work.collective is not None]
    moving = [
        intervals.total(intervals.merge(*np.array([(one.start, one.end) for one in parts], np.int64).reshape(-1, 2).T))
        for parts in ([one for one in work.tasks if one.moves and one.peer != rank.rank] for work in works)
    ]
    waited = sum(work.end - work.start for work in works) - sum(moving)
    least, most = (sum(getattr(row, key) for row in found["text"]) for key in ("least_wait_ns", "most_wait_ns"))
    assert least <= waited <= most < sum(row.elapsed_ns for row in found["text"])


def listed(*links: tuple[str, float, float], elapsed: float = 10, transit: float = 2) -> dict[str, Any]:
    """A collective in the file's words: of each link MB and ms."""
    times = {"Elapse": elapsed, "Transit": transit, "Wait": 1, "Idle": elapsed - transit - 1}
    return {
        "Communication Time Info": {f"{what} Time(ms)": time for what, time in times.items()},
        "Communication Bandwidth Info": {
            link: {"Transit Size(MB)": size, "Transit Time(ms)": time} for link, size, time in links
        },
    }


def only_tables(home: Path, *collectives: dict[str, Any], group: str = "17522688603477080586") -> Path:
    """A profile whose timeline has no tasks, with these all_reduces of step 1 in the table."""
    b = AscendBuilder()
    b.step(1, 0, 9_000_000)
    b.kernel("Mul1", 100, 50, op_type="Mul", core="AI_VECTOR_CORE", launch=50)
    for at in range(len(collectives)):
        b.collective(f"hcom_allReduce__586_{at}_1", 200 + 100 * at, 90)
    b.write(home)
    entries = {f"hcom_allReduce__586_{at}_1@{group}": each for at, each in enumerate(collectives)}
    (home / OUTPUT / "communication.json").write_text(json.dumps({"step1": {"p2p": {}, "collective": entries}}))
    return home


def test_bounds_and_bandwidths_of_each_kind_of_link(tmp_path: Path) -> None:
    """10 − 4 to 10 − 2 ms; 10 − (3 + 2) to 10 − 2; nothing is known of the third; SDMA is the sum of others."""
    home = only_tables(
        tmp_path / "a_ascend_pt",
        listed(("HCCS", 60, 4), ("SDMA", 60, 4), ("RDMA", 0, 0)),
        listed(("HCCS", 30, 3), ("RDMA", 10, 2), ("SDMA", 30, 3)),
        listed(transit=0),
    )
    (row,) = traceanalyze.analyze(home).tables["vendor_collectives"].records()
    assert (row.least_wait_ns, row.most_wait_ns) == (11_000_000, 26_000_000)
    assert (row.sent_bytes, row.hccs_bandwidth, row.rdma_bandwidth) == (100_000_000, 90 / 7, 5.0)
    assert row.pcie_bandwidth == row.sio_bandwidth == NotMeasured("nothing_moved")


def test_copies_inside_the_device_are_no_waiting(tmp_path: Path) -> None:
    """10 − 4 ms, of which 1.5 ms are a copy that only the table of pairs has."""
    home = only_tables(tmp_path / "a_ascend_pt", listed(("HCCS", 60, 4)))
    pairs = {
        pair: {"Transport Type": link, "Transit Size(MB)": 60, "Transit Time(ms)": time}
        for pair, link, time in (("0-0", "LOCAL", 1.5), ("0-1", "HCCS", 4))
    }
    of_group = {
        "allreduce-total@17522688603477080586": pairs | {"0-1": pairs["0-1"] | {"Op Name": "hcom_allReduce__586_0_1"}}
    }
    (home / OUTPUT / "communication_matrix.json").write_text(json.dumps({"step1": {"collective": of_group}}))
    (row,) = traceanalyze.analyze(home).tables["vendor_collectives"].records()
    assert (row.least_wait_ns, row.most_wait_ns) == (4_500_000, 8_000_000)


@pytest.mark.parametrize(
    ("elapsed", "rdma", "found"), [(5000, 4500, 4500), (4200, 9000, 4200), (3999, 9000, None), (5000, 4000, None)]
)
def test_network_transfers_sent_again_are_told_by_the_table_alone(
    tmp_path: Path, elapsed: float, rdma: float, found: float | None
) -> None:
    home = only_tables(tmp_path / "a_ascend_pt", listed(("RDMA", 10, rdma), elapsed=elapsed), listed(("HCCS", 9, 9000)))
    told = [one for one in traceanalyze.analyze(home).findings if one.rule == "COM111"]
    spent = [each.value for one in told for each in one.evidence if each.unit]
    assert spent == ([] if found is None else [found * 1e6])


@cache
def raw(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("rank", [0, 1])
def test_real_tables_against_a_sum_over_the_raw_text(shared_traces: Path, rank: int) -> None:
    home = shared_traces / f"ascend/msinsight_2rank_torch/text/level1/rank{rank}_ascend_pt"
    told = load(home).vendor_collectives
    assert told is not None
    listed = raw(home / OUTPUT / "communication.json")["step50"]["collective"]
    total = listed["Total Op Info"]
    times = total["Communication Time Info"]
    for name, field in (("Elapse", "elapsed"), ("Transit", "transit"), ("Wait", "wait"), ("Idle", "idle")):
        assert sum(getattr(one, field) for one in told.collectives) == pytest.approx(
            1e6 * times[f"{name} Time(ms)"], abs=4
        )
    moved = total["Communication Bandwidth Info"]["HCCS"]
    assert sum(size for one in told.collectives for _, size, _ in one.links) == round(1e6 * moved["Transit Size(MB)"])
    assert not DIFFERENCES & set(checks(home))
    report = traceanalyze.analyze(home)
    (row,) = report.tables["vendor_collectives"].records()
    assert (row.collective, row.group, row.count) == ("all_reduce", "group 586", 4)
    assert row.hccs_bandwidth == pytest.approx(moved["Transit Size(MB)"] / moved["Transit Time(ms)"], rel=1e-6)
    waited = sum(each.wait_ns for each in report.tables["collectives"].records())
    assert row.least_wait_ns <= waited <= row.most_wait_ns


@pytest.mark.parametrize("rank", [0, 1])
def test_a_real_database_against_its_own_sums(shared_traces: Path, rank: int) -> None:
    home = shared_traces / f"ascend/msinsight_2rank_torch/db/level1/rank{rank}_ascend_pt"
    told = load(home).vendor_collectives
    assert told is not None
    path = home / OUTPUT / "analysis.db"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        ((elapsed, wait),) = base.execute("SELECT SUM(elapse_time), SUM(wait_time) FROM CommAnalyzerTime").fetchall()
        query = "SELECT SUM(transit_size) FROM CommAnalyzerMatrix WHERE hccl_op_name LIKE '%-total' AND "
        ((sent,),) = base.execute(query + "src_rank != dst_rank").fetchall()
    assert sum(one.elapsed or 0 for one in told.collectives) == pytest.approx(1e6 * elapsed, abs=4)
    assert sum(one.wait or 0 for one in told.collectives) == pytest.approx(1e6 * wait, abs=4)
    assert sum(one.bytes for one in told.links if one.source != one.target) == round(1e6 * sent)
    assert not DIFFERENCES & set(checks(home))


def test_a_table_of_more_than_32_mib_is_not_read(tmp_path: Path) -> None:
    home = written(tmp_path)
    os.truncate(home / OUTPUT / "communication.json", (1 << 25) + 1)
    (note,) = (note for note in load(home).read.notes if "communication.json" in note)
    assert "has 33,554,433 bytes, more than 33,554,432" in note


@pytest.mark.parametrize(
    ("kind", "count", "ranks", "elements"),
    [
        ("allReduce", 10, 4, (10, 10)),
        ("allGather", 10, 4, (10, 40)),
        ("reduceScatter", 10, 4, (40, 10)),
        ("allGather", 10, 1, (10, 10)),
        ("allReduce", 0, 4, (0, 0)),
        ("allGather", 0, 4, (0, 0)),
        ("reduceScatter", 0, 4, (0, 0)),
        ("allReduce", ABSENT, 4, (ABSENT, ABSENT)),
        ("allGather", 10, 0, (10, ABSENT)),
        ("reduceScatter", 10, 0, (ABSENT, 10)),
    ],
)
def test_elements_that_a_rank_gives_and_gets_follow_from_what_hccl_counts(
    kind: str, count: int, ranks: int, elements: tuple[int, int]
) -> None:
    name = f"hcom_{kind}__586_0_1"
    counted = np.array([count]), np.array([ranks])
    found = comm_tables.collective_fields(Texts(), About(), [name], [""], ["FP32"], *counted)
    assert (found["in_elements"].tolist(), found["out_elements"].tolist()) == ([elements[0]], [elements[1]])
    assert found["group_size"].tolist() == [ranks or ABSENT]


def test_the_group_of_a_collective_goes_by_its_name_in_the_program_else_by_its_number() -> None:
    known, texts_ = About(groups={"dp": (0, 1, 2)}, group_names={"0xff": "dp"}), Texts()
    names = ["hcom_allReduce__586_0_1", "hcom_allReduce__586_1_1", "AllReduce"]
    found = comm_tables.collective_fields(
        texts_, known, names, ["0xff", "0xee", "0xee"], ["FP32", None, "invalid"], np.array([1, 1, 1])
    )
    assert found["group"].tolist() == [texts_.code("dp"), texts_.code("group 586"), -1]
    assert found["group_size"].tolist() == [3, ABSENT, ABSENT]
    assert found["dtype"].tolist() == [texts_.code("Float"), -1, -1]
