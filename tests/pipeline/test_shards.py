"""A run that was shared out has the report of one run, byte by byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.pipeline.test_cache import write
from tests.pipeline.test_parts import stored
from tests.ranks.simulated import workload
from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault
from tests.simulate.writers.kineto import write as as_kineto
from traceanalyze import plugins
from traceanalyze.analyses.analyze import context_of
from traceanalyze.analyses.options import Options
from traceanalyze.cli.app import app
from traceanalyze.errors import InputError, UsageError
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, parts, postmortem, reports, results, run_report, shards
from traceanalyze.pipeline.postmortem import postmortem_reports
from traceanalyze.pipeline.recordings import analysed
from traceanalyze.pipeline.results import ALONE, Work
from traceanalyze.pipeline.shards import Shard, merged_reports, shard_of, write_shard
from traceanalyze.ranks import compare
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand
from traceanalyze.report.console import Style
from traceanalyze.report.console import render as on_screen
from traceanalyze.report.json import render
from traceanalyze.rules.evaluate import plan

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SLURM = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_STEP": "2"}


@pytest.mark.parametrize(
    ("text", "stated", "expected"),
    [
        ("0/1", {}, (0, 1)),
        ("2/8", SLURM, (2, 8)),
        ("/8", {"SLURM_ARRAY_TASK_ID": "5"}, (5, 8)),
        ("/8", SLURM, (2, 8)),
        ("/4", {**SLURM, "SLURM_ARRAY_TASK_COUNT": "4"}, (2, 4)),
        # `sbatch --array=3,7`, for the shares that failed.
        ("/8", {**SLURM, "SLURM_ARRAY_TASK_STEP": "1", "SLURM_ARRAY_TASK_COUNT": "2"}, (7, 8)),
        ("/8", {"JOB_COMPLETION_INDEX": "5"}, (5, 8)),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_COUNT": "4"}, (2, 4)),
    ],
)
def test_which_share_is_meant(text, stated, expected):
    assert shard_of(text, stated) == Shard(*expected)


@pytest.mark.parametrize("text", ["8/8", "-1/8", "1", "", "/", "/8", "auto", "a/b", "1/0", "1/2/3", "1.5/2"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(UsageError, match="write 0/8 for the first of 8 shares"):
        shard_of(text, {})


def shared_out(paths, folder, count, choices=None, order=None):
    choices = choices or Choices()
    for number in order or range(count):
        write_shard([str(path) for path in paths], choices, Shard(number, count), folder, ALONE, None)
    return folder


def as_text(found):
    return render(found, texts())


def ranks_of(path, count=3):
    path.mkdir()
    for rank in range(count):
        write(path / f"rank{rank}.json", rank, late=10 * rank)
    return path


def with_others(path):
    """Ranks, of which one is cut and one no trace, and a file that is passed over."""
    ranks_of(path, 4)
    (path / "rank1.json").write_text('{"traceEvents": [')
    whole = (path / "rank2.json").read_text()
    (path / "rank2.json").write_text(whole[: len(whole) * 3 // 4])
    (path / "other.json").write_text("{}")
    return path


def simulated(path):
    path.mkdir()
    for rank, schedule in enumerate(simulate(workload(Fault("straggler", 1.5), ranks=4, strategy="sharded"))):
        (path / f"rank{rank}.json").write_bytes(as_kineto(schedule))
    return path


def disagreeing(path):
    """One rank has a long first step, which the others then leave out as well."""
    path.mkdir()
    for rank in range(3):
        write(path / f"rank{rank}.json", rank, steps=5)
    content = json.loads((path / "rank0.json").read_text())
    for event in content["traceEvents"]:
        if event["name"] == "ProfilerStep#0":
            event["ts"], event["dur"] = event["ts"] - 9000, event["dur"] + 9000
    (path / "rank0.json").write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("made", [ranks_of, with_others, simulated, disagreeing])
def test_shares_put_together_are_the_report_of_one_run(tmp_path, made, count):
    path = made(tmp_path / "run")
    folder = shared_out([path], tmp_path / "parts", count, order=reversed(range(count)))
    for options in ([], ["-q"], ["--all", "--lang", "zh"], ["--format", "json", "--all"]):
        merged, whole = (
            CliRunner().invoke(app, [*command, *options])
            for command in (["merge", str(folder)], ["analyze", str(path)])
        )
        assert merged.exit_code == whole.exit_code == 0
        assert merged.stdout == whole.stdout


@pytest.mark.parametrize(
    "choices",
    [Choices(ranks="0,2"), Choices(steps="1:"), Choices(select=("SYN",), streams="7"), Choices(step_marker="kernel")],
)
def test_what_was_asked_of_the_shares_holds_for_the_report(tmp_path, choices):
    path = ranks_of(tmp_path / "run")
    folder = shared_out([path], tmp_path / "parts", 2, choices)
    whole = reports([str(path)], choices)
    assert as_text(merged_reports(str(folder), Detail.VERBOSE, ALONE)) == as_text(whole)


@pytest.mark.parametrize(
    "name", ["kineto/param/dlrm_8rank", "kineto/modded_nanogpt", "ascend/msinsight_2rank_torch/text/level1"]
)
def test_shared_traces_put_together_are_the_report_of_one_run(shared_traces, tmp_path, name):
    path = shared_traces / name
    folder = shared_out([path], tmp_path / "parts", 3)
    assert as_text(merged_reports(str(folder), Detail.VERBOSE, ALONE)) == as_text(reports([str(path)], Choices()))
    for part in folder.glob("*-*.part"):
        found = stored(part.read_bytes())
        if "summary" in found:
            assert found["summary"] <= 40_000
            assert sum(size for name, size in found.items() if name != "summary") <= 200_000


def test_of_many_ranks_those_that_are_worth_it_are_analysed_in_full_when_they_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MANY", 3)
    path = ranks_of(tmp_path / "run", 6)
    folder = shared_out([path], tmp_path / "parts", 4)
    merged = merged_reports(str(folder), Detail.VERBOSE, ALONE)
    assert as_text(merged) == as_text(reports([str(path)], Choices()))
    cached = Work(cache=str(tmp_path / "cache"))
    for _ in range(2):
        assert as_text(reports([str(path)], Choices(), work=cached)) == as_text(merged)


def test_many_ranks_are_compared_once_and_the_report_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MANY", 3)
    path, sizes, again, twice = ranks_of(tmp_path / "run", 6), [], compare.compare_ranks, run_report.report_of_ranks
    monkeypatch.setattr(
        compare, "compare_ranks", lambda ranks, places: sizes.append(len(ranks)) or again(ranks, places)
    )
    once = as_text(reports([str(path)], Choices()))
    assert sizes == [6]
    monkeypatch.setattr(run_report, "report_of_ranks", lambda run, ranks, choices, _: twice(run, ranks, choices))
    assert as_text(reports([str(path)], Choices())) == once
    assert sizes == [6] * 3


def test_many_ranks_are_compared_once_for_a_post_mortem(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MANY", 3)
    path, sizes, again = ranks_of(tmp_path / "run", 6), [], compare.compare_ranks
    for module in (compare, postmortem):
        monkeypatch.setattr(
            module, "compare_ranks", lambda ranks, *places: sizes.append(len(ranks)) or again(ranks, *places)
        )
    once = as_text(postmortem_reports([str(path)], Choices()))
    assert sizes == [6]
    side_by_side = postmortem.side_by_side
    monkeypatch.setattr(postmortem, "side_by_side", lambda ranks, rules, *_: side_by_side(ranks, rules))
    assert as_text(postmortem_reports([str(path)], Choices())) == once
    assert sizes == [6] * 3


def test_recordings_that_are_gone_when_they_are_wanted_again_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MANY", 3)
    path = ranks_of(tmp_path / "run", 6)
    folder = shared_out([path], tmp_path / "parts", 2)
    (whole,) = merged_reports(str(folder), Detail.VERBOSE, ALONE)
    shutil.rmtree(path)
    (merged,) = merged_reports(str(folder), Detail.VERBOSE, ALONE)
    gone = set(merged.notes) - set(whole.notes)
    assert gone
    assert all("No such file" in note for note in gone)


def test_a_share_that_is_run_again_forgets_what_failed(tmp_path, monkeypatch):
    path, folder = ranks_of(tmp_path / "run"), tmp_path / "parts"
    monkeypatch.setattr(plugins, "faults", lambda: (plugins.Fault("one", "rules", "error"),))
    shared_out([path], folder, 1)
    assert len([*folder.glob("faults-*")]) == 1
    monkeypatch.undo()
    shared_out([path], folder, 1)
    assert not [*folder.glob("faults-*")]


@pytest.mark.parametrize("readable", [True, False])
def test_a_part_of_another_rank_is_none_of_its_own(tmp_path, readable):
    path = ranks_of(tmp_path / "run")
    if not readable:
        (path / "rank0.json").write_text('{"traceEvents": []}')
    folder = shared_out([path], tmp_path / "parts", 1)
    (other,), (own,) = folder.glob("*-0.part"), folder.glob("*-2.part")
    shutil.copy(other, own)
    with pytest.raises(InputError, match=r"1 of 3 recordings are missing or damaged \(.*rank2.json\); run their"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)
    shared_out([path], folder, 1)
    assert merged_reports(str(folder), Detail.NORMAL, ALONE)


def test_shares_that_are_missing_or_damaged_are_named(tmp_path):
    path, folder = ranks_of(tmp_path / "run"), tmp_path / "parts"
    with pytest.raises(InputError, match="no parts"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)
    shared_out([path], folder, 2, order=[0])
    with pytest.raises(InputError, match=r"1 of 3 recordings are missing or damaged \(.*rank1.json\); run their"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)
    shared_out([path], folder, 2, order=[1])
    assert merged_reports(str(folder), Detail.NORMAL, ALONE)
    (last,) = folder.glob("*-2.part")
    last.write_bytes(last.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"1 of 3 .*rank2.json"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)


def test_shares_of_two_runs_are_not_mixed(tmp_path):
    path, folder = ranks_of(tmp_path / "run"), tmp_path / "parts"
    shared_out([path], folder, 2, order=[0])
    write(path / "rank3.json", 3)
    shared_out([path], folder, 2, order=[1])
    with pytest.raises(UsageError, match="parts of 2 different runs"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)


def test_shares_of_another_version_are_refused(tmp_path, monkeypatch):
    folder = shared_out([ranks_of(tmp_path / "run")], tmp_path / "parts", 1)
    monkeypatch.setattr(shards, "__version__", "0")
    with pytest.raises(InputError, match="another version"):
        merged_reports(str(folder), Detail.NORMAL, ALONE)
    # One share of each version.
    shared_out([tmp_path / "run"], folder, 2, order=[1])
    for version in ("0", "1"):
        monkeypatch.setattr(shards, "__version__", version)
        with pytest.raises(InputError, match="another version"):
            merged_reports(str(folder), Detail.NORMAL, ALONE)


def test_snapshots_are_refused(tmp_path):
    for paths in ([str(SAMPLES / "memory")], ["-"]):
        with pytest.raises(UsageError, match="in one run"):
            write_shard(paths, Choices(), Shard(0, 2), tmp_path / "parts", ALONE, None)


def test_a_folder_that_cannot_be_is_told(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        write_shard([str(ranks_of(tmp_path / "run"))], Choices(), Shard(0, 2), Path("/dev/null/x"), ALONE, None)


def test_on_the_command_line(tmp_path):
    run, folder = str(ranks_of(tmp_path / "run")), str(tmp_path / "parts")
    for number in range(2):
        said = CliRunner().invoke(app, ["analyze", run, "--shard", f"{number}/2", "-o", folder])
        assert said.exit_code == 0
        assert said.stdout == ""
        assert said.stderr == f"Wrote {2 - number} of 3 recordings to {folder}\n"
    formats = (["--format", name] for name in ("json", "markdown", "svg"))
    for options in ([], ["-q"], ["-v"], ["--all", "--lang", "zh"], *formats):
        merged = CliRunner().invoke(app, ["merge", folder, *options])
        assert merged.exit_code == 0
        assert merged.stdout == CliRunner().invoke(app, ["analyze", run, *options]).stdout
    for wrong in ([], ["-o", "a", "-o", "b"], ["--format", "json", "-o", "a"]):
        refused = CliRunner().invoke(app, ["analyze", run, "--shard", "0/2", *wrong])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "give the folder of the parts, -o DIR/" in refused.stderr


@pytest.mark.parametrize("name", ["gpu_two_ranks", "gpu_data_loading", "gpu_sync", "npu_training", "cpu_training"])
def test_rules_find_the_same_in_a_rank_that_is_not_shown(name):
    for source in expand([str(SAMPLES / name)]).sources:
        (one, other) = (
            analysed(context_of(read_trace(source), Options()), plan(), detail=Detail.NORMAL, shown=shown)
            for shown in (True, False)
        )
        assert one.outcome.findings
        assert parts.dumps(one.outcome) == parts.dumps(other.outcome)
        assert one.analysis.backward == other.analysis.backward
        assert other.analysis.tables.keys() <= one.analysis.tables.keys()


def test_a_short_report_makes_the_tables_of_the_one_rank_that_it_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MANY", 3)
    path, choices = str(ranks_of(tmp_path / "run", 6)), Choices(detail=Detail.NORMAL)
    (short,) = reports([path], choices)
    (every,) = reports([path], choices._replace(ranks="0-5"))
    worth_full = results._worth_full
    monkeypatch.setattr(
        results, "_worth_full", lambda *given: ((found := worth_full(*given))[0], {*found[0]}, found[2])
    )
    (whole,) = reports([path], choices)
    sizes = [len(rank.tables) for rank in short.ranks]
    (lead,) = short.focus
    assert sizes[lead] > max(size for at, size in enumerate(sizes) if at != lead)
    assert len({len(rank.tables) for rank in every.ranks}) == len({len(rank.tables) for rank in whole.ranks}) == 1
    assert on_screen(short, texts(), Style(width=100)) == on_screen(whole, texts(), Style(width=100))
