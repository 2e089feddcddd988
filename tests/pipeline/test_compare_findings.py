"""What the rules say of both sides of a comparison, and the ranks of both, against simulated programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import traceanalyze
from tests.comparison.make import side_of
from tests.pipeline.test_whatif import LIGHT, files, mean_step
from tests.ranks.simulated import workload
from tests.simulate.workload import MS, Fault, Loader, Script
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.errors import UsageError
from traceanalyze.pipeline import compare as pipeline

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
CAUSES = {
    "DAT101": replace(LIGHT, loader=Loader(cost=40 * MS, workers=0)),
    "HST113": replace(LIGHT, script=Script(pause=15 * MS)),
    "SYN101": replace(LIGHT, script=Script(items=4)),
}


@pytest.mark.parametrize("rule", CAUSES)
@pytest.mark.parametrize("new", [False, True], ids=["gone", "new"])
def test_the_cause_that_only_one_side_has_comes_first_and_is_in_the_verdict(tmp_path, rule, new):
    sides = files(tmp_path / "with", CAUSES[rule]), files(tmp_path / "without", LIGHT)
    found = traceanalyze.compare(*(reversed(sides) if new else sides))
    first = next(found.tables["finding_compare"].records())
    assert (first.rule_id, first.change) == (rule, "finding_new" if new else "finding_gone")
    true = (mean_step(CAUSES[rule]) - mean_step(LIGHT)) * (1 if new else -1)
    assert first.diff_ns == pytest.approx(true, rel=0.3)
    assert ("New in the candidate: " if new else "Gone in the candidate: ") in found.verdict
    # Time that a finding names is not of unknown cause.
    assert "unknown cause" not in found.verdict or "9" in found.verdict.split(" % of the difference")[0][-4:]


def test_the_job_is_compared_by_the_rank_that_the_others_wait_for(tmp_path):
    late = workload(Fault("straggler", 2), ranks=4)
    found = traceanalyze.compare(files(tmp_path / "base", workload(ranks=4)), files(tmp_path / "late", late))
    assert found.comparison.candidate.rank == 3
    rows = {row.rank: row for row in found.tables["rank_compare"].records()}
    assert list(rows) == ["0", "1", "2", "3"]
    waits = {rank: row.candidate_wait_ns - row.base_wait_ns for rank, row in rows.items()}
    assert waits["3"] < min(waits[rank] for rank in "012")


def test_the_same_program_twice_has_no_finding_in_the_verdict(tmp_path):
    both = (files(tmp_path / name, CAUSES["SYN101"]) for name in ("one", "other"))
    found = traceanalyze.compare(*both)
    assert {row.change for row in found.tables["finding_compare"].records()} == {"finding_same"}
    assert "candidate:" not in found.verdict


@pytest.mark.parametrize("what", ["tensors", "launches"])
def test_another_batch_size_is_other_work_before_any_percentage(tmp_path, what):
    larger = replace(LIGHT, model=replace(LIGHT.model, batch=2 * LIGHT.model.batch))
    works = {"base": LIGHT, "larger": larger, "slow": CAUSES["DAT101"]}
    sides = {name: files(tmp_path / name, work) for name, work in works.items()}
    for path in tmp_path.glob("*/*.json") if what == "launches" else ():
        path.write_bytes(path.read_bytes().replace(b'"Input Dims"', b'"Nothing"'))
    found = traceanalyze.compare(sides["base"], sides["larger"])
    assert found.verdict.startswith(f"Not the same work: the {what}")
    assert any("copies 2.00 times as much to the device" in each for each in found.caveats)
    # A cause that one side has is no other work.
    assert "same work" not in traceanalyze.compare(sides["base"], sides["slow"]).verdict


def test_one_of_several_runs_in_a_folder_is_named_after_a_hash(tmp_path):
    files(tmp_path / "both", LIGHT)
    for run in ("first", "second"):
        files(tmp_path / "both" / run, CAUSES["DAT101"] if run == "second" else LIGHT)
    (tmp_path / "both" / "rank0.json").unlink()
    with pytest.raises(UsageError, match=r"name one of them: .*both#") as error:
        traceanalyze.compare(tmp_path / "both", tmp_path / "both" / "second")
    first = str(error.value).rpartition("#")[2]
    with pytest.raises(UsageError, match="holds no run nosuch; there is"):
        traceanalyze.compare(f"{tmp_path}/both#nosuch", tmp_path / "both" / "second")
    found = traceanalyze.compare(f"{tmp_path}/both#{first}", tmp_path / "both" / "second")
    assert found.comparison.base.path.startswith(str(tmp_path / "both"))


PAIRS = ("gpu_npu_pair/gpu", "gpu_npu_pair/npu"), ("gpu_healthy", "gpu_sync"), ("cpu_training", "gpu_2021_layout")


@pytest.mark.parametrize("names", PAIRS)
def test_a_side_keeps_all_that_is_compared(names):
    """Whatever a side lets go, as ids and arrows, changes no table."""
    paths = [SAMPLES / each for each in names]
    kept = traceanalyze.compare(*paths).comparison.tables
    whole = compare_sides(*(side_of(traceanalyze.load(path).traces) for path in paths)).tables
    assert len(whole) > 10
    assert {key: list(table.records()) for key, table in kept.items()} == {
        key: list(table.records()) for key, table in whole.items()
    }


def test_ranks_of_large_runs_do_not_run_again_together(tmp_path, monkeypatch):
    runs = [files(tmp_path / name, workload(ranks=4)) for name in ("base", "other")]
    programs, judge = [], pipeline.side_by_side

    def seen(ranks, rules):
        programs.append([one.program is not None for one in ranks])
        return judge(ranks, rules)

    monkeypatch.setattr(pipeline, "side_by_side", seen)
    traceanalyze.compare(*runs)
    monkeypatch.setattr(pipeline, "MOST_TOGETHER", 3)
    assert traceanalyze.compare(*runs).tables["rank_compare"]
    assert programs == 2 * [4 * [True]] + 2 * [4 * [False]]
