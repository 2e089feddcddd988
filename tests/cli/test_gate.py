"""The gate on the command line: every exit code, every error path, every format."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from importlib import import_module
from xml.etree import ElementTree as ET

import pytest

from tests.regression.test_measure import training
from traceanalyze.pipeline import gate_runs
from traceanalyze.pipeline.gate import _in_checkout
from traceanalyze.regression.samples import Place
from traceanalyze.rules.finding import Finding

ROOT = gate_runs.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """No budget file, no CI variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def runs(tmp_path):
    """Makes a folder of runs, each in a folder of its own and a second after the one before."""

    def make(name, *kinds):
        for number, kind in enumerate(kinds):
            folder = tmp_path / name / f"run{number}"
            folder.mkdir(parents=True)
            training(base=1_700_000_000 * 10**9 + number * 10**9, **kind).write(folder / "trace.json")
        return tmp_path / name

    return make


@pytest.fixture
def same(runs):
    return runs("base", {}, {}, {}), runs("head", {}, {}, {})


@pytest.fixture
def slower(runs):
    """Steps of 1 ms, then of 1.6 ms of which 0.6 ms are data loading: above 5 % and above 0.5 ms."""
    return runs("base", {}, {}, {}), runs("head", *[{"wait": 600, "slow": 600}] * 3)


def stretched(path, factor):
    """The steps of a run made longer."""
    trace = json.loads(path.read_text())
    for event in trace["traceEvents"]:
        event["ts"], event["dur"] = event["ts"] * factor, event["dur"] * factor
    path.write_text(json.dumps(trace))


@pytest.fixture
def pair(tmp_path):
    """One run a side, of 100 ms steps; the second by a factor slower."""

    def make(factor):
        paths = []
        for name, more in (("old", 100), ("new", 100 * factor)):
            path = tmp_path / f"{name}.json"
            training().write(path)
            stretched(path, more)
            paths.append(path)
        return paths

    return make


def gate(run, base, head, *more):
    return run("gate", head, "--baseline", base, *more)


def test_no_change_passes(run, same):
    result = gate(run, *same)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("PASS: nothing is worse than its budget allows.\n")
    assert "3 runs of 3 steps · Example GPU" in result.out


def test_a_regression_exits_1_and_is_explained(run, slower):
    result = gate(run, *slower)
    assert result.code == 1
    assert result.err == "traceanalyze gate: fail: step.time (regression)\n"
    assert result.out.startswith("FAIL: step.time +")
    assert re.search(r"^DataLoader +data loading +0\.0+ +\d", result.out, re.MULTILINE)
    assert re.search(r"^data loading +0\.0+ +\d", result.out, re.MULTILINE)
    assert max(map(len, result.out.splitlines())) <= 80


def test_inconclusive_exits_0_or_3(run, pair):
    old, new = pair(1.04)
    result = gate(run, old, new)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("INCONCLUSIVE: the data cannot tell whether step.time")
    assert "3 runs a side would tell a change of half the budget" in result.out
    strict = gate(run, old, new, "--strict")
    assert (strict.code, strict.err) == (3, "traceanalyze gate: inconclusive: step.time (inconclusive, ± assumed)\n")


def test_inconclusive_as_the_budget_says(run, pair, tmp_path):
    old, new = pair(1.04)
    for setting, code in (("fail", 3), ("warn", 0), ("pass", 0)):
        (tmp_path / "traceanalyze.toml").write_text(f'[gate]\non_inconclusive = "{setting}"\n')
        assert gate(run, old, new).code == code


def test_exit_zero_reports_only(run, slower):
    result = gate(run, *slower, "--exit-zero")
    assert result.code == 0
    assert result.out.startswith("FAIL")
    assert run("gate", "nowhere.json", "--baseline", slower[0], "--exit-zero").code == 2


def test_warnings_fail_when_strict(run, runs):
    base, head = runs("base", {"syncs": 1}), runs("head", {"syncs": 2})
    result = gate(run, base, head)
    assert result.code == 0
    assert "PASS, with warnings: sync.count +1" in result.out
    strict = gate(run, base, head, "--strict")
    assert strict.code == 1
    assert "sync.count (regression)" in strict.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give CANDIDATE…"),
        (["--nonsense"], "there is no such option"),
        (["{head}", "--warmup", "x"], "--warmup x: give a whole number"),
        (["nowhere", "--baseline", "{base}"], "nowhere"),
        (["{head}", "--baseline", "nowhere"], "nowhere"),
        (["missing", "--baseline", "nowhere"], "--baseline nowhere: no such file"),
        (["{head}"], "nothing to judge"),
        (["{head}", "--baseline", "{base}", "--format", "pdf"], "--format pdf"),
        (["{head}", "--baseline", "{base}", "--format", "json="], "--format json="),
        (["{head}", "--baseline", "{base}", "-o", "gate.svg"], "gate.svg: end the name in .xlsx"),
        (["{head}", "--baseline", "{base}", "--budget", "none.toml"], "--budget none.toml: there is no such file"),
        (["{head}", "--baseline", "{base}", "--no-match", "devise"], "did you mean device?"),
        (["{head}", "--baseline", "{base}", "--label", "old=elsewhere"], "--label old=elsewhere"),
        (["{head}", "--baseline", "{base}", "--steps", "99"], "99"),
        (["{head}", "--baseline", "{base}", "--steps", "x"], "--steps"),
        (["{head}", "--baseline", "{base}", "--ranks", "0"], "--ranks 0"),
        (["{head}", "--baseline", "{base}", "--warmup", "50"], "no usable step"),
        (["{head}", "--baseline", "{base}", "--step-marker", "("], "not a regular expression"),
        (["{head}", "--baseline", "{base}", "--lang", "xx"], "no texts"),
        (["{head}", "--baseline", "{base}", "--format", "json=no/folder/x.json"], "cannot be written"),
        (["{head}", "--baseline", "{base}", "--write-baseline", "no/folder/x.json"], "cannot be written"),
    ],
)
def test_every_error_exits_2_with_one_line(run, same, arguments, told):
    base, head = same
    result = run("gate", *(text.format(base=base, head=head) for text in arguments))
    assert result.code == 2
    assert told in result.err
    assert result.err.startswith("error: ")
    assert len([line for line in result.err.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in result.err


def test_an_uncaught_exception_exits_2(run, same, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(import_module("traceanalyze.regression.verdict"), "evaluate", broken)
    result = gate(run, *same)
    assert result.code == 2
    assert result.err.startswith("internal error: ZeroDivisionError: oops")


def test_a_reader_that_dies_in_the_middle_exits_2(run, same, monkeypatch):
    reading = import_module("traceanalyze.pipeline.gather")
    real, calls = reading.read_trace, []

    def dies(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise OSError("the reader was killed")
        return real(*arguments)

    monkeypatch.setattr(reading, "read_trace", dies)
    result = gate(run, *same)
    assert (result.code, len(calls)) == (2, 2)
    assert result.err.startswith("internal error: OSError: the reader was killed")


def test_interrupted_exits_130(run, same, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("traceanalyze.pipeline.gather"), "read_trace", interrupted)
    result = gate(run, *same)
    assert (result.code, result.err) == (130, "interrupted\n")


def test_a_damaged_trace_among_good_ones_is_not_passed_over(run, same):
    (same[1] / "run1" / "trace.json").write_bytes(b"")
    assert run("gate", same[1] / "run0/trace.json", same[1] / "run1/trace.json", "--baseline", same[0]).code == 2
    for name in "abc":
        (same[1] / f"run0/{name}.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    told = run("gate", same[1] / "run0", "--baseline", same[0])
    assert told.code == 2
    assert "/a.json: " in told.err
    assert re.search(r"; 2 more cannot be read: \S+/b\.json, \S+/c\.json; or choose", told.err)


@pytest.mark.parametrize(
    ("recorded", "here"),
    [
        ("/root/project/src/train.py", "src/train.py"),
        ("C:\\work\\src\\train.py", "src/train.py"),
        ("train.py", "train.py"),
        ("/opt/lib/site-packages/src/train.py", "/opt/lib/site-packages/src/train.py"),
        ("/elsewhere/" + "x" * 300, "/elsewhere/" + "x" * 300),
    ],
)
def test_lines_are_those_of_files_in_this_folder(tmp_path, recorded, here):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").touch()
    place = Place(Finding("DAT101", "loader-wait", "It waits."), recorded, 3, 1, "cuda")
    assert _in_checkout(place).file == here


def test_the_commit_of_the_ci_system_is_that_of_the_candidate(run, same, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "abc")
    told = json.loads(gate(run, *same, "--format", "json").out)
    assert [{each["commit"] for each in told[side]["runs"]} for side in ("baseline", "candidate")] == [{None}, {"abc"}]


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_cut_trace_is_named_as_the_reason(run, same, keep):
    """Whatever else would be amiss: no usable step, ranks that nobody knows, fewer kernels."""
    path = same[1] / "run1/trace.json"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    result = gate(run, *same)
    assert result.code == 2
    assert re.search(r"head/run1/trace\.json: .*the file is cut short.*; copy or record it again", result.err)
    assert gate(run, *reversed(same)).err.startswith("error: --baseline ")


def test_why_is_not_told_of_a_difference_within_noise(run, pair):
    """3 % of one run a side; 30 % are explained."""
    for factor, told in ((1.03, False), (1.3, True)):
        assert ("Why the step takes" in gate(run, *pair(factor)).out) == told


def test_what_a_run_does_not_count_is_said(run, pair):
    """A pass would not say that work of the candidate is of a category that nobody knows."""
    old, new = pair(1.0)
    trace = json.loads(new.read_text())
    work = {"ph": "X", "cat": "npu_work", "name": "gemm", "pid": 0, "tid": 7, "ts": 1e5, "dur": 9e4}
    trace["traceEvents"] += [work, work | {"args": {"correlation": 3, "stream": 7}}]
    new.write_text(json.dumps(trace))
    notes = " ".join(gate(run, old, new).out.split("Not certain", 1)[1].split())
    assert (
        "new: not counted: 2 events, whose categories are not known (npu_work × 2); --category npu_work=kernel maps "
        "them" in notes
    )


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="pipes as on POSIX")
def test_a_reader_of_the_output_that_has_gone_does_not_change_the_verdict(run_process, slower):
    code = (
        "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1); from traceanalyze.cli.main import main; main()"
    )
    root = str(gate_runs.Path(__file__).parents[2])
    done = run_process(
        "gate", slower[1], "--baseline", slower[0], code=f"import sys; sys.path.insert(0, {root!r}); {code}"
    )
    assert done.returncode == 1, (sys.version, done.stderr)


def test_a_whole_trace_is_no_step_to_compare_with(run, slower):
    base, head = slower
    for path in base.rglob("*.json"):
        trace = json.loads(path.read_text())
        trace["traceEvents"] = [each for each in trace["traceEvents"] if "ProfilerStep" not in each["name"]]
        path.write_text(json.dumps(trace))
    for old, new, told in ((base, head, "unknown / ProfilerStep"), (head, base, "ProfilerStep / unknown")):
        result = gate(run, old, new)
        assert result.code == 2
        assert f"step_marker: {told}" in result.err
    assert "improvement" in gate(run, base, head, "--no-match", "step_marker").out


def test_a_floor_that_decided_is_said_where_the_column_of_budgets_has_no_room(run, runs, tmp_path):
    budgets = (("step.time", '"5%"\nmin_effect = "0.5 ms"'), ('op["aten::mm"].device_time', '"5%"'))
    text = "".join(f"[gate.metrics.'{name}']\nmax_increase = {budget}\n" for name, budget in budgets)
    (tmp_path / "traceanalyze.toml").write_text(text)
    result = gate(run, runs("base", {}, {}, {}), runs("head", *[{"slow": 144}] * 3))
    assert result.code == 0
    assert "- step.time: the change is below 500.0 µs, the least that counts" in result.out
    assert "Δ ≥" not in result.out


def test_environments_that_differ_exit_2_unless_waived(run, same, tmp_path):
    trace = json.loads((same[1] / "run0/trace.json").read_text())
    trace["deviceProperties"][0]["name"] = "Other GPU"
    (tmp_path / "other.json").write_text(json.dumps(trace))
    result = gate(run, same[0], tmp_path / "other.json")
    assert result.code == 2
    assert "device: Example GPU / Other GPU; --no-match KEY waives a key" in result.err
    waived = gate(run, same[0], tmp_path / "other.json", "--no-match", "device")
    assert waived.code == 0
    assert "device was waived by --no-match" in waived.out


def test_overlapping_recordings_in_a_folder_are_ambiguous(run, same, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    training().write(folder / "one.json")
    training(kernels=3).write(folder / "two.json")
    result = gate(run, same[0], folder)
    assert result.code == 2
    assert "it is not clear which files are ranks of one run" in result.err
    assert "one.json" in result.err
    assert "two.json" in result.err
    named = run("gate", folder / "one.json", folder / "two.json", "--baseline", same[0], "--format", "json")
    assert [each["name"] for each in json.loads(named.out)["candidate"]["runs"]] == ["one", "two"]
    for more in (4, 5):
        training(kernels=more).write(folder / f"x{more}.json")
    assert f"two.json, {folder}/x4.json, …; put" in run("gate", folder).err


def test_a_glob_is_several_runs(run, same):
    result = run("gate", same[1], "--baseline", f"{same[0]}/*", "--format", "json")
    assert len(json.loads(result.out)["baseline"]["runs"]) == 3


def test_labels_name_the_sides(run, same):
    result = gate(run, *same, "--label", f"main={same[0]}", "--label", f"feature={same[1]}")
    assert "\nbaseline   main · 3 runs" in result.out
    assert "\ncandidate  feature · 3 runs" in result.out


def test_what_goes_to_stderr_is_chinese(run, slower, tmp_path):
    more = ("--format", "json=gate.json", "--write-baseline", "new.json", "--lang", "zh")
    assert gate(run, *slower, *more).err == (
        "已写入 gate.json\n已写入 new.json\ntraceanalyze gate: 不通过：step.time（劣化）\n"
    )
    (tmp_path / "traceanalyze.toml").write_text(
        "".join(f"[gate.metrics.'{name}.count']\nmax = 0\n" for name in ("kernel", "launch", 'kernel["*"]'))
    )
    assert "以及另外 1 项" in gate(run, *slower, "--lang", "zh").err


def test_the_candidate_has_one_name_in_chinese(run, slower):
    chinese = gate(run, *slower, "--format", "markdown", "--format", "junit", "--lang", "zh").out
    assert "待测" in chinese
    assert "比对" not in chinese
    assert "、基线 " in chinese
    told = json.loads(gate(run, *slower, "--format", "json", "--lang", "zh").out)
    assert {row["side"] for row in told["reports"][0]["tables"]["gate_runs"]["rows"]} == {"baseline", "candidate"}


@pytest.mark.parametrize(
    ("format_", "told"),
    [
        ("xlsx", "--format xlsx: give a file name, --format xlsx=report.xlsx"),
        ("csv", "--format csv: give a folder, --format csv=tables/"),
        ("xlsx=no/x.xlsx", "no/x.xlsx: the folder no does not exist"),
    ],
)
def test_errors_name_the_options_that_there_are(run, same, format_, told):
    assert gate(run, *same, "--format", format_).err == f"error: {told}\n"


def test_absolute_limits_need_no_baseline(run, same, tmp_path):
    (tmp_path / "b.toml").write_text('[gate.metrics."kernel.count"]\nmax = 1\n')
    result = run("gate", same[1], "--budget", "b.toml")
    assert result.code == 1
    assert "kernel.count (regression)" in result.err


def test_the_budget_of_pyproject_is_found(run, same, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyze.gate.metrics."kernel.count"]\nmax = 1\n')
    assert gate(run, *same).code == 1


def test_selectors_of_a_budget(run, runs, tmp_path):
    base, head = runs("base", {"kernels": 2}), runs("head", {"kernels": 3})
    name = 'kernel["gemm*"].count'
    (tmp_path / "traceanalyze.toml").write_text(f"[gate.metrics.'{name}']\nmax_increase = 0\n")
    result = gate(run, base, head)
    assert (result.code, f"{name} (regression)" in result.err) == (1, True)
    (tmp_path / "traceanalyze.toml").write_text("[gate.metrics.'kernel[\"nothing\"].count']\nmax_increase = 0\n")
    assert "no name fits this pattern" in gate(run, base, head).err


def test_several_formats_at_once(run, slower, tmp_path):
    formats = ["console", "json=gate.json", "markdown=gate.md", "junit=gate.xml", "github=gate.txt", "sarif=gate.sarif"]
    result = gate(run, *slower, *(part for name in formats for part in ("--format", name)), "-o", "gate.html")
    assert result.code == 1
    assert result.out.startswith("FAIL")
    assert "FAIL" in (tmp_path / "gate.html").read_text()
    assert json.loads((tmp_path / "gate.json").read_text())["exit_code"] == 1
    assert (tmp_path / "gate.md").read_text().startswith("### ❌ traceanalyze gate: FAIL")
    assert ET.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"
    assert (tmp_path / "gate.txt").read_text().startswith("::error title=traceanalyze gate%3A regression::step.time")
    assert json.loads((tmp_path / "gate.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_tables_as_a_folder(run, slower, tmp_path, format_):
    if format_ == "parquet":
        pytest.importorskip("pyarrow")
    result = gate(run, *slower, "--format", f"{format_}=out/")
    assert result.code == 1
    assert result.err.startswith("Wrote ")
    assert {path.stem for path in (tmp_path / "out").glob(f"*.{format_}")} >= {"gate_metrics", "gate_samples"}


def test_a_format_that_fails_changes_neither_the_verdict_nor_the_others(run, slower, tmp_path, monkeypatch):
    def broken(_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("traceanalyze.report.folder.csv", broken)
    formats = ["--format", "csv=out/", "--format", "json=gate.json"]
    for sides, code in ((slower, 1), ((slower[0], slower[0]), 2)):
        result = gate(run, *sides, *formats)
        assert (result.code, result.err.splitlines()[0][:35]) == (code, "internal error: ZeroDivisionError: ")
        assert json.loads((tmp_path / "gate.json").read_text())["exit_code"] == code % 2
        assert not (tmp_path / "out").exists()


def test_the_summary_of_a_step_is_appended_to(run, same, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = gate(run, *same, "--format", "markdown")
    assert result.out == ""
    assert summary.read_text().startswith("before\n### ✅ traceanalyze gate: PASS")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    assert gate(run, *same, "--format", "markdown").code == 2


def test_an_input_is_never_overwritten(run, same):
    path = same[1] / "run0/trace.json"
    assert run("gate", path, "--baseline", same[0], "--format", f"json={path}").code == 2


def test_only_a_report_is_replaced(run, same, tmp_path):
    base, head = same
    for name in ("json", "junit"):
        path = tmp_path / name
        path.write_text("mine")
        said = run("gate", head, "--baseline", base, "--format", f"{name}={path}")
        assert (said.code, path.read_text()) == (2, "mine")
        assert "--overwrite replaces it" in said.err
        assert run("gate", head, "--baseline", base, "--format", f"{name}={path}", "--overwrite").code == 0
        assert run("gate", head, "--baseline", base, "--format", f"{name}={path}").code == 0


def test_a_baseline_from_the_first_run_to_the_gate(run, runs, same, tmp_path):
    base, head = same
    first = run("baseline", "update", "perf.json", base)
    assert (first.code, first.err) == (0, "Wrote perf.json: 3 runs added, 3 in it\n")
    assert gate(run, "perf.json", head).code == 0
    again = run("baseline", "update", "perf.json", base)
    assert "is in the baseline already, left out" in again.err
    assert "0 runs added, 3 in it" in again.err
    # The runs of head are those of base with the same content.
    more = runs("more", {"kernels": 2, "mallocs": 1}, {"kernels": 2, "mallocs": 1})
    kept = run("baseline", "update", "perf.json", more, "--keep", "4", "--label", "mine")
    assert "2 runs added, 4 in it" in kept.err
    shown = run("baseline", "show", "perf.json")
    assert shown.code == 0
    assert shown.out.count("mine") == 2
    assert "Noise floor per metric" in shown.out
    assert run("baseline", "prune", "perf.json", "--label", "mine").err == "Wrote perf.json: 2 runs removed\n"
    assert (tmp_path / "perf.json").stat().st_size < 20_000


def test_regressions_enter_a_baseline_only_when_accepted(run, slower):
    base, head = slower
    run("baseline", "update", "perf.json", base)
    refused = run("baseline", "update", "perf.json", head)
    assert refused.code == 2
    assert "the runs are a regression against the baseline (step.time)" in refused.err
    run("baseline", "update", "one.json", f"{base}/run0")
    one = run("baseline", "update", "one.json", f"{head}/run0")
    assert "the runs are a regression against the baseline (step.time (± assumed))" in one.err
    accepted = run("baseline", "update", "perf.json", head, "--accept")
    assert (accepted.code, accepted.err) == (0, "Wrote perf.json: 3 runs added, 6 in it\n")
    # The accepted runs are the level now: the same again passes, and the old is an improvement.
    assert gate(run, "perf.json", head).code == 0
    assert "improvement" in gate(run, "perf.json", base).out


@pytest.mark.parametrize("how", ["update", "write"])
def test_an_improvement_is_the_level_of_the_next_gate(run, runs, how):
    """Among slower runs of before, going back to half of what was won would be no regression."""
    before, faster, half = (runs(name, *[{"slow": slow}] * 3) for name, slow in (("a", 400), ("b", 0), ("c", 150)))
    run("baseline", "update", "perf.json", before)
    if how == "update":
        run("baseline", "update", "perf.json", faster)
    else:
        run("gate", faster, "--baseline", "perf.json", "--write-baseline", "perf.json")
    assert [bool(each["accepted"]) for each in baseline_runs()] == [False] * 3 + [True] * 3
    result = gate(run, "perf.json", half)
    assert (result.code, result.err) == (1, "traceanalyze gate: fail: step.time (regression)\n")


def test_a_new_level_on_one_device_is_none_on_another(run, runs):
    first, slower, faster = (runs(name, *[{"slow": slow}] * 3) for name, slow in (("a", 0), ("b", 300), ("c", 10)))
    for folder in (slower, faster):
        for path in folder.rglob("*.json"):
            path.write_text(path.read_text().replace("Example GPU", "Other GPU"))
    for folder in (first, slower, faster):
        assert run("baseline", "update", "perf.json", folder).code == 0
    assert [bool(each["accepted"]) for each in baseline_runs()] == [False] * 6 + [True] * 3
    result = gate(run, "perf.json", first)
    assert (result.code, result.err) == (0, "")
    assert "baseline   3 runs of 3 steps · Example GPU" in result.out


def baseline_runs():
    return json.loads(gate_runs.Path("perf.json").read_text())["runs"]


def test_why_works_from_the_baseline_alone(run, slower):
    base, head = slower
    run("baseline", "update", "perf.json", base)
    shutil.rmtree(base)
    result = gate(run, "perf.json", head)
    assert result.code == 1
    assert re.search(r"^DataLoader +data loading +0\.0+ +\d", result.out, re.MULTILINE)


def test_a_refreshed_baseline_can_be_written(run, same):
    run("baseline", "update", "perf.json", same[0] / "run0")
    result = run("gate", same[1] / "run1", "--baseline", "perf.json", "--write-baseline", "new.json")
    assert result.err == "Wrote new.json\n"
    assert len(json.loads((gate_runs.Path("new.json")).read_text())["runs"]) == 2
    assert len(json.loads((gate_runs.Path("perf.json")).read_text())["runs"]) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "none.json"], "cannot be read"),
        (["prune", "none.json", "--label", "x"], "there is no such file"),
        (["prune", "perf.json"], "say what to remove"),
        (["prune", "perf.json", "--environment", "devise=x"], "did you mean device?"),
        (["update", "perf.json", "nowhere"], "nowhere"),
        (["update", "damaged.json/perf.json", "{base}"], "cannot be locked"),
        (["show", "damaged.json"], "damaged"),
        (["update", "damaged.json", "{base}"], "damaged"),
    ],
)
def test_errors_of_baselines_exit_2(run, same, tmp_path, arguments, told):
    run("baseline", "update", "perf.json", same[0])
    (tmp_path / "damaged.json").write_text('{"baseline":"traceanalyze",\n"runs":')
    result = run("baseline", *(text.format(base=same[0]) for text in arguments))
    assert result.code == 2
    assert told in result.err
    assert result.err.startswith("error: ")


def test_pruning_by_age_and_environment(run, runs, tmp_path):
    run("baseline", "update", "perf.json", runs("base", {}, {}))
    content = (tmp_path / "perf.json").read_text()
    (tmp_path / "perf.json").write_text(content.replace("2023-11-14T22:13:20", "2023-01-01T22:13:20"))
    assert "0 runs removed" in run("baseline", "prune", "perf.json", "--older-than", "400").err
    assert "0 runs removed" in run("baseline", "prune", "perf.json", "--environment", "device=other").err
    assert "1 runs removed" in run("baseline", "prune", "perf.json", "--older-than", "90").err


def test_a_damaged_or_newer_baseline_exits_2(run, same, tmp_path):
    run("baseline", "update", "perf.json", same[0])
    content = (tmp_path / "perf.json").read_text()
    for name, text, told in (
        ("cut.json", content[:500], "damaged"),
        ("newer.json", content.replace('"schema_version":1', '"schema_version":9'), "newer version"),
    ):
        (tmp_path / name).write_text(text)
        result = gate(run, name, same[1])
        assert result.code == 2
        assert told in result.err


def test_a_run_that_is_compared_with_itself_is_told(run, runs):
    base = runs("base", {}, {"slow": 5})
    assert "is a run of the baseline, too" not in gate(run, base / "run0", base / "run1").out
    run("baseline", "update", "perf.json", base)
    assert "- run1/trace: is a run of the baseline, too" in gate(run, "perf.json", base).out


def test_an_empty_baseline_exits_2(run, same):
    run("baseline", "update", "perf.json", same[0])
    run("baseline", "prune", "perf.json", "--environment", "device=Example GPU")
    assert "holds no run" in gate(run, "perf.json", same[1]).err
    assert run("baseline", "show", "perf.json").out == "The baseline holds no run.\n"


def test_ranks_are_one_run_and_can_be_chosen(run):
    folder = ROOT / "sample_traces" / "gpu_two_ranks"
    document = json.loads(run("gate", folder, "--baseline", folder, "--format", "json").out)
    assert [each["ranks"] for each in document["candidate"]["runs"]] == [[0, 1]]
    one = run("gate", folder, "--baseline", folder, "--ranks", "1", "--format", "json")
    assert [each["ranks"] for each in json.loads(one.out)["candidate"]["runs"]] == [[1]]
    missing = run("gate", folder / "rank0.json.gz", "--baseline", folder)
    assert missing.code == 2
    assert "the runs have different ranks (baseline / candidate): 0, 1 / 0; --ranks chooses common ones" in missing.err


def test_a_baseline_file_keeps_ranks_together(run):
    folder = ROOT / "sample_traces" / "gpu_two_ranks"
    run("baseline", "update", "perf.json", folder)
    assert "keeps the ranks of a run together" in gate(run, "perf.json", folder, "--ranks", "1").err


def test_snapshots_alone_give_metrics_of_memory(run):
    folder = ROOT / "sample_traces" / "memory"
    healthy = folder / "healthy" / "snapshot.pickle.gz"
    assert run("gate", folder / "healthy", "--baseline", healthy).code == 0
    result = run("gate", folder / "leak", "--baseline", folder / "healthy", "--format", "json")
    metrics = {each["metric"]: each for each in json.loads(result.out)["metrics"]}
    assert metrics["memory.allocated_peak"]["baseline"] > 0
    assert metrics["alloc.retry.count"]["verdict"] == "pass"
    assert metrics["step.time"]["verdict"] == "not_measured"


def test_snapshots_beside_the_traces_belong_to_the_run(run, same):
    snapshot = ROOT / "sample_traces/memory/healthy/snapshot.pickle.gz"
    for side in same:
        shutil.copy(snapshot, side / "run0" / snapshot.name)
    result = run("gate", same[1] / "run0", "--baseline", same[0] / "run0", "--format", "json")
    metrics = {each["metric"]: each for each in json.loads(result.out)["metrics"]}
    assert metrics["memory.reserved_peak"]["baseline"] > 0
    assert metrics["kernel.count"]["verdict"] == "pass"
