"""What the rules say of both sides of a comparison, and the ranks of both, against simulated programs."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

import traceanalyze
from tests.comparison.make import side_of
from tests.pipeline.test_whatif import LIGHT, files, mean_step
from tests.ranks.simulated import workload
from tests.simulate.workload import MS, Fault, Loader, Script
from traceanalyze.comparison import apis
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.errors import UsageError
from traceanalyze.locales import texts
from traceanalyze.pipeline import compare as pipeline
from traceanalyze.report.console import render as console
from traceanalyze.report.console.style import Style
from traceanalyze.report.contents.changed import Beside, changed, changed_table, in_verdict
from traceanalyze.report.view import View
from traceanalyze.rules.finding import Finding, Outcome, Severity

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
    assert (found.comparison.base.rank, found.comparison.candidate.rank) == (3, 3)
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
    # Causes are ranked only where that is asked for.
    assert "what makes the difference is not ranked" in found.verdict
    assert (len(found.tables["causes"]), found.advice) == (0, ())
    anyway = traceanalyze.compare(sides["base"], sides["larger"], rank_anyway=True)
    assert anyway.verdict.startswith(found.verdict.split(" A step takes")[0] + " The candidate is ")
    assert next(anyway.tables["causes"].records()).contribution == "aten::mm (backward)"
    assert "--rank-anyway" in anyway.tables["compare_options"].column("option")
    # A cause that one side has is no other work.
    assert "same work" not in traceanalyze.compare(sides["base"], sides["slow"]).verdict


def test_fewer_bytes_are_said_before_what_they_cost(tmp_path):
    plain = workload(ranks=2)
    fewer = [(tmp_path / name, files(tmp_path / name, plain)) for name in ("base", "candidate")]
    for path in fewer[1][0].glob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(r'"(In|Out) msg nelems": ?(\d+)', lambda it: f'"{it[1]} msg nelems": {int(it[2]) // 8}', text)
        )
    found = traceanalyze.compare(fewer[0][1], fewer[1][1])
    said = "Not the same work: the collectives of the candidate move 0.12 times as much, "
    assert found.verdict.startswith(said)
    assert not any(said in each for each in found.caveats)


LONGER = replace(LIGHT, steps=6)
UNEVEN = replace(LONGER, steps=7, script=Script(compile_again=60 * MS))
GEMM, OTHER = (
    b"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_kernel",
    b"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8",
)


def both(folder, base, candidate):
    """Files of two programs compared."""
    return traceanalyze.compare(files(folder / "base", base), files(folder / "candidate", candidate))


def changes(found):
    """Rows that differ by more than chance, by part and name: ns per step."""
    rows = found.tables["causes"].records()
    return {(row.part, str(row.contribution)): row.diff_ns for row in rows if row.change != "change_noise"}


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        (LONGER, replace(LONGER, seed=99), ()),
        (LONGER, replace(LONGER, script=Script(compile_once=400 * MS)), ("Of the start of the candidate",)),
        (UNEVEN, replace(UNEVEN, steps=8, seed=3), ("so that long and short ones are whole cycles",)),
    ],
    ids=["noise", "warm-up", "alternating steps"],
)
def test_runs_of_one_program_do_not_differ(tmp_path, base, candidate, said):
    found = both(tmp_path, base, candidate)
    assert found.verdict.startswith("No difference ")
    assert found.advice == ()
    assert all(any(text in each for each in found.caveats) for text in said)
    # Single operators may by accident; none by 1 µs in 1 ms of its step.
    assert all(abs(diff) < mean_step(base) / 1000 for diff in changes(found).values())


def test_a_pause_is_found_among_steps_that_alternate(tmp_path):
    found = both(tmp_path, UNEVEN, replace(UNEVEN, steps=8, seed=3, script=replace(UNEVEN.script, pause=10 * MS)))
    first, diff = next(iter(changes(found).items()))
    assert first == ("untraced", "aten::nll_loss (backward)")
    assert diff == pytest.approx(10 * MS, rel=0.1)
    assert "per step, 4" in found.verdict
    assert "untraced +9." in found.verdict


def test_renamed_kernels_are_the_same_work(tmp_path):
    sides = files(tmp_path / "base", LONGER), files(tmp_path / "candidate", LONGER)
    (path,) = sides[1].glob("*.json")
    text = path.read_bytes()
    assert GEMM in text
    path.write_bytes(text.replace(GEMM, OTHER))
    found = traceanalyze.compare(*sides)
    assert found.verdict.startswith("No difference: both sides take")
    (row,) = (row for row in found.tables["kernel_compare"].records() if row.match == "renamed")
    assert row.base_total_ns == row.candidate_total_ns > 0


def test_a_sync_that_was_added_is_named_with_its_line_and_costs_what_it_makes_the_step_longer(tmp_path):
    added = replace(LONGER, script=Script(items=1))
    found = both(tmp_path, LONGER, added)
    first = next(found.tables["sync_compare"].records())
    assert (first.op, first.change, first.base_calls, first.candidate_calls) == (
        "aten::_local_scalar_dense",
        "finding_new",
        None,
        1,
    )
    assert first.candidate_frame == "train.py(22): log_loss"
    assert first.diff_ns == pytest.approx(mean_step(added) - mean_step(LONGER), rel=0.05)
    assert "New in the candidate: the host waits for the device (train.py(22): log_loss, " in found.verdict
    # What the host does after the wait is no time of unknown cause, and called after the wait, not after what comes.
    assert "All of the difference is explained." in found.verdict
    assert "after it has waited in aten::local_scalar_dense (untraced), +" in found.verdict
    # Waits that both sides have are no change.
    assert {row.change for row in both(tmp_path, added, added).tables["sync_compare"].records()} == {"finding_same"}


@pytest.mark.parametrize(("elsewhere", "told"), [(0, True), (-2, True), (-6, False)], ids=["alone", "more", "less"])
def test_a_wait_is_behind_a_longer_step_where_all_waiting_grew(elsewhere, told):
    """A step 9 ms longer, 5 ms of it idle; one wait takes 4 ms more, and all the others together another time."""
    sums = (("aten::item", 1, 5), ("aten::copy_", 7, 7 + elsewhere))
    rows = [
        {"op": op, "change": "finding_grown", "base_idle_ns": old * MS, "candidate_idle_ns": new * MS}
        | {"diff_ns": (new - old) * MS}
        for op, old, new in sums
    ]
    empty = dict.fromkeys(apis._SYNCS.keys)
    table = apis._SYNCS.fill_records([empty | row for row in rows])
    said = [each.key for each in in_verdict((), table, {"idle": 5 * MS}, 9 * MS, 100 * MS)]
    assert said == ["compare_finding_changed"] * told
    # Idle time as a whole fell: something else made the step longer.
    assert not [*in_verdict((), table, {"idle": -5 * MS}, 9 * MS, 100 * MS)]


HIDDEN = Finding(cost=14 * MS, draws="comm_exposed", rule="COM101", severity=Severity.HIGH)


@pytest.mark.parametrize(
    ("communication", "of_ranks", "how", "told"),
    [
        ((15, 1), False, "finding_gone", True),
        ((15, 10), False, "finding_base", False),
        ((15, 98), False, "finding_base", False),
        ((150, 151), False, "finding_base", False),
        ((150, 144), False, "finding_base", False),
        ((150, 142), False, "finding_gone", True),
        ((15, 98), True, "finding_gone", True),
    ],
    ids=[
        "all of it",
        "a third of it",
        "it grew",
        "a small part that stayed",
        "less than half of it",
        "more",
        "of other ranks",
    ],
)
def test_a_finding_of_one_side_is_gone_only_with_half_of_its_time(communication, of_ranks, how, told):
    old, new = (each * MS for each in communication)
    rules = frozenset({HIDDEN.rule} if of_ranks else ())
    sides = Beside(Outcome((HIDDEN,)), of_ranks=rules), Beside()
    found = changed(*sides, {"communication": (old, new)})
    (row,) = changed_table(found).records()
    assert (row.change, row.base_time_ns, row.candidate_time_ns) == (how, 14 * MS, None)
    assert row.diff_ns == (-14 * MS if how == "finding_gone" else None)
    said = [*in_verdict(found, None, {"communication": new - old, "idle": 0}, -14 * MS, 100 * MS)]
    assert [each.key for each in said] == ["compare_finding_gone"] * told
    # The same the other way round.
    (row,) = changed_table(changed(*sides[::-1], {"communication": (new, old)})).records()
    assert row.change == {"finding_gone": "finding_new", "finding_base": "finding_candidate"}[how]


@pytest.mark.parametrize(
    ("draws", "change"),
    [
        ("idle.untraced", "finding_gone"),
        ("idle.data_loading", "finding_base"),
        ("idle.dispatch", "finding_base"),
        ("idle", "finding_base"),
        ("idle.sync", "finding_base"),
        ("host", "finding_gone"),
    ],
)
def test_idle_time_is_held_against_its_own_cause(draws, change):
    """10 ms of pauses gave way to 9 of launches; waiting for data stayed."""
    parts = {"untraced": (12, 2), "dispatch_launch": (1, 10), "data_loading": (20, 20), "compute": (50, 50)}
    one = Finding(cost=10 * MS, draws=draws, rule="HST113", severity=Severity.HIGH)
    means = {key: (old * MS, new * MS) for key, (old, new) in parts.items()}
    assert [each.how for each in changed(Beside(Outcome((one,))), Beside(), means)] == [change]


def test_what_the_last_wait_of_a_recording_holds_up_is_no_zero():
    rows = traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_healthy").tables["sync_compare"].records()
    (last,) = (row for row in rows if row.op == "cudaDeviceSynchronize")
    assert (last.change, last.base_idle_ns, last.candidate_idle_ns, last.diff_ns) == ("finding_same", None, None, None)


def test_layout_kernels_that_were_added_are_the_first_cause(tmp_path):
    added = replace(LONGER, model=replace(LONGER.model, relayouts=1))
    found = both(tmp_path, LONGER, added)
    first, diff = next(iter(changes(found).items()))
    assert first == ("compute", "aten::copy")
    (more,) = (row.diff_ns for row in found.tables["step_difference"].records() if row.part == "compute")
    assert diff == pytest.approx(more, rel=0.01)
    assert "Largest single cause: aten::copy (compute), +" in found.verdict
    (row,) = (row for row in found.tables["causes"].records() if row.contribution == "aten::copy" and row.place == 1)
    assert (row.change, row.base_number) == ("change_new", 0)


@pytest.mark.parametrize("gone", [False, True], ids=["new", "gone"])
def test_of_four_ranks_the_one_that_comes_late_is_named(tmp_path, gone):
    equal = workload(ranks=4)
    late = replace(equal, ranks=replace(equal.ranks, slow_rank=2, slow_pause=10 * MS))
    found = both(tmp_path, *((late, equal) if gone else (equal, late)))
    word = "Gone" if gone else "New"
    assert f"{word} in the candidate: one rank makes the others wait (rank 2, 10." in found.verdict
    (part, _), diff = next(iter(changes(found).items()))
    assert part == "untraced"
    assert abs(diff) == pytest.approx(10 * MS, rel=0.01)
    rows = {row.rank: row for row in found.tables["rank_compare"].records()}
    assert list(rows) == ["0", "1", "2", "3"]
    # The late rank hardly waits: its communication is transfer, as all ranks tell.
    (communication, wait, transfer) = (
        next(row for row in found.tables["overall_metrics"].records() if row.index == index)
        for index in ("communication", "comm_wait", "comm_transfer")
    )
    for side in ("base", "candidate"):
        rank = str(getattr(found.comparison, side).rank)
        assert getattr(wait, f"{side}_time_ns") == pytest.approx(getattr(rows[rank], f"{side}_wait_ns"), abs=1)
        parts = [getattr(row, f"{side}_time_ns") for row in (wait, transfer)]
        assert sum(parts) == pytest.approx(getattr(communication, f"{side}_time_ns"), abs=1)
    side = "base" if gone else "candidate"
    assert min(rows, key=lambda rank: getattr(rows[rank], f"{side}_wait_ns")) == "2"


def test_rows_within_noise_are_grey_and_come_last(tmp_path):
    found = both(tmp_path, LONGER, replace(LONGER, seed=99))
    told = list(found.tables["causes"].column("change"))
    assert 0 < told.count("change_noise") < len(told)
    assert set(told[told.index("change_noise") :]) == {"change_noise"}
    screen = console(found, texts(), Style(width=160, colour=True), View(top=99))
    grey = [line for line in screen.splitlines() if "within noise" in line]
    assert grey
    assert not any("\033[31m" in line or "\033[32m" in line for line in grey)
    found.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    # The first rows of each table; the others are drawn when they are asked for.
    assert page.count('<tr class="faint">') > 0
    found.write(tmp_path / "book.xlsx")
    rules = openpyxl.load_workbook(tmp_path / "book.xlsx")["Causes"].conditional_formatting
    first = min((rule for area in rules for rule in area.rules), key=lambda rule: rule.priority)
    assert (first.stopIfTrue, first.formula[0].endswith('="within noise"')) == (True, True)


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


def test_ranks_have_their_parts_on_both_sides():
    sample = Path(__file__).parents[2] / "sample_traces" / "gpu_two_ranks"
    rows = traceanalyze.compare(sample, sample).tables["rank_compare"].records()
    truth = tomllib.loads((sample / "case.toml").read_text())["trace"]
    for row, one in zip(rows, truth, strict=True):
        parts, steps = one["parts"], len(one["steps"])
        for side in ("base", "candidate"):
            found = [getattr(row, f"{side}_{key}_ns") for key in ("compute", "exposed", "free")]
            assert found == [parts[key] // steps for key in ("compute", "comm_exposed", "idle")]
