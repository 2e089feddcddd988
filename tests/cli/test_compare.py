from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import openpyxl
import pytest

from tests.cli.compared import compared
from tests.cli.conftest import training_loop
from traceanalyze.cli.compare import sides
from traceanalyze.errors import UsageError

WORKBOOK = re.compile(r"performance_comparison_result_\d{14}\.xlsx")


@pytest.fixture
def pair(tmp_path):
    """Three steps of 100 µs, and the same with a third step of 130 µs."""
    return written(tmp_path, slow=30)


@pytest.fixture
def slower(tmp_path):
    """Three steps of 100 µs, and of 110 µs."""
    return written(tmp_path, slow=10, where=range(3))


def written(folder, **candidate):
    base, other = folder / "base.json", folder / "candidate.json"
    training_loop().write(base)
    training_loop(**candidate).write(other)
    return base, other


def opened(path):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(path)


def test_two_paths_are_base_and_candidate(run, slower):
    result = run("compare", *slower)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("The candidate is 10 µs (10 %) slower per step, 110 µs instead of 100 µs:\n")
    assert "\nbase       base.json · " in result.out
    assert "Where the steps' time went (per step)" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["-d", "{candidate}", "-bp", "{base}"],
        ["-bp", "{base}", "-d", "{candidate}"],
        ["--profiling_path", "{candidate}", "--benchmark_profiling_path", "{base}"],
        ["--profiling-path={candidate}", "--benchmark-profiling-path={base}"],
        ["{base}", "-d", "{candidate}"],
        ["{candidate}", "-bp", "{base}"],
    ],
)
def test_the_sides_by_the_options_of_msprof(run, pair, arguments):
    base, candidate = pair
    given = [text.format(base=base, candidate=candidate) for text in arguments]
    assert run("compare", *given) == run("compare", base, candidate)


def test_peak_rates_of_both_devices_can_be_given(run, tmp_path):
    peaks = ("Example GPU", 300, 2000), ("Ascend", 200, 1600)
    lines = (
        f'[[device]]\npattern = "{name}"\nname = "{name}"\nbandwidth_gbs = {speed}\ntflops = {{ bf16 = {rate} }}\n'
        for name, rate, speed in peaks
    )
    (file := tmp_path / "peaks.toml").write_text("".join(lines))
    pair = Path(__file__).resolve().parents[2] / "sample_traces/gpu_npu_pair"
    text = run("compare", pair / "gpu", pair / "npu", "--device-peaks", file, "--all", "--format", "json").out
    report = json.loads(text)["reports"][0]
    allow = {row["op"]: row["peak_ratio"] for row in report["tables"]["migration"]["rows"] if "peak_ratio" in row}
    # Products by what the devices compute, anything else by what they read.
    assert (allow["aten::mm (backward)"], allow["aten::gelu"]) == (1.5, 1.25)


def test_itself_makes_no_difference(run, pair):
    assert run("compare", pair[0], pair[0], "-q").out == (
        "No difference: both sides take 100 µs per step, part by part.\n"
    )


def test_swapping_negates(run, pair):
    there = compared(run("compare", *pair, "--format", "json").out)
    back = compared(run("compare", *reversed(pair), "--format", "json").out)
    diffs = [
        {row["part"]: row["diff_ns"] for row in document["tables"]["step_difference"]["rows"]}
        for document in (there, back)
    ]
    assert any(diffs[0].values())
    assert diffs[0] == {part: value if value is None else -value for part, value in diffs[1].items()}


def test_a_folder_gets_the_workbook_of_msprof_name(run, slower, tmp_path):
    folder = tmp_path / "new" / "results"
    result = run("compare", "-d", slower[1], "-bp", slower[0], "--output_path", folder)
    assert result.code == 0
    assert result.out.startswith("The candidate is 10 µs")
    (name,) = [path.name for path in folder.iterdir()]
    assert WORKBOOK.fullmatch(name)
    assert result.err == f"Wrote {folder / name}\n"
    assert "OverallMetrics" in opened(folder / name).sheetnames


@pytest.mark.parametrize("option", ["-o", "--output", "--output_path", "--output-path"])
def test_a_file_name_is_exactly_that(run, pair, tmp_path, option):
    result = run("compare", *pair, option, tmp_path / "mine.xlsx", "-q")
    assert (result.code, result.err) == (0, f"Wrote {tmp_path / 'mine.xlsx'}\n")
    assert "xl/workbook.xml" in zipfile.ZipFile(tmp_path / "mine.xlsx").namelist()


def test_json_and_text_files(run, slower, tmp_path):
    run("compare", *slower, "-o", tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["schema"] == "traceanalyze.report/2"
    run("compare", *slower, "-o", tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text().startswith("The candidate is 10 µs")


def test_a_page_and_markdown_by_the_ending(run, slower, tmp_path):
    for name, start in (("mine.html", "<!DOCTYPE html>"), ("mine.md", "**The candidate is 10 µs (10 %) slower")):
        result = run("compare", *slower, "-o", tmp_path / name, "-q")
        assert (result.code, result.err) == (0, f"Wrote {tmp_path / name}\n")
        assert result.out.startswith("The candidate is 10 µs")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(("format_", "start"), [("html", "<!DOCTYPE html>"), ("markdown", "**比对侧每步慢 10 µs")])
def test_a_page_and_markdown_on_the_console_stand_alone(run, slower, format_, start):
    result = run("compare", *slower, "--format", format_, "--lang", "zh")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(start)


@pytest.mark.parametrize(("format_", "ending"), [("html", "html"), ("markdown", "md")])
def test_a_page_and_markdown_into_a_folder_are_named_by_the_time(run, pair, tmp_path, format_, ending):
    folder = tmp_path / "new"
    assert run("compare", *pair, "--output_path", folder, "--format", format_).code == 0
    (name,) = [path.name for path in folder.iterdir()]
    assert re.fullmatch(rf"performance_comparison_result_\d{{14}}\.{ending}", name)


def test_tables_as_files(run, pair, tmp_path):
    result = run("compare", *pair, "-o", f"{tmp_path}/tables/", "--format", "csv")
    assert result.code == 0
    assert {"report.json", "causes.csv", "step_difference.csv"} <= {
        path.name for path in (tmp_path / "tables").iterdir()
    }


@pytest.mark.parametrize("spelling", ["--comparison-step", "--comparison_step", "--comparsion_step"])
@pytest.mark.parametrize("base", ["--base-step", "--base_step"])
def test_steps_of_each_side(run, pair, spelling, base):
    result = run("compare", *pair, base, "5", spelling, "7", "--format", "json")
    found = compared(result.out)
    assert (found["base"]["step_labels"], found["candidate"]["step_labels"]) == ("5", "7")
    assert (found["base"]["mean_step_ns"], found["candidate"]["mean_step_ns"]) == (100_000, 130_000)
    assert found["candidate"]["step_choice"] == "steps_asked"


def test_ranges_and_the_median_step(run, pair):
    found = compared(run("compare", *pair, "--base-step", "median", "--comparison-step", "6:", "--format", "json").out)
    assert (found["base"]["steps_compared"], found["base"]["step_choice"]) == (1, "steps_median")
    assert (found["candidate"]["mean_step_ns"], found["candidate"]["steps_compared"]) == (115_000, 2)


@pytest.mark.parametrize(
    ("flag", "tables"),
    [
        ("--enable_profiling_compare", {"overall_metrics"}),
        ("--enable-profiling-compare", {"overall_metrics"}),
        ("--enable_operator_compare", {"operator_compare_statistic"}),
        ("--enable_api_compare", {"api_compare"}),
        ("--enable_kernel_compare", {"kernel_compare"}),
        ("--enable_memory_compare", {"memory_compare_statistic"}),
        ("--enable_communication_compare", {"communication_compare"}),
    ],
)
def test_only_the_sections_named_are_compared(run, pair, flag, tables):
    everything = set(compared(run("compare", *pair, "--format", "json").out)["tables"])
    assert tables <= everything
    found = set(compared(run("compare", *pair, flag, "--format", "json").out)["tables"])
    assert tables <= found
    sections = {
        "overall_metrics",
        "operator_compare_statistic",
        "api_compare",
        "kernel_compare",
        "memory_compare_statistic",
        "communication_compare",
    }
    assert found & sections == tables


@pytest.mark.parametrize(
    "arguments",
    [
        ["--disable_details"],
        ["--disable-module"],
        ["--max_kernel_num", "4"],
        ["--op_name_map", '{"npu::linear": "aten::addmm"}'],
        ["--op-name-map", "{'npu::linear': 'aten::addmm'}"],
        ["--use_input_shape"],
        ["--gpu_flow_cat", "async_gpu"],
        ["--use_kernel_type"],
        ["--force"],
        ["--debug"],
    ],
)
def test_the_other_options_of_msprof_are_understood(run, pair, arguments, monkeypatch):
    monkeypatch.setenv("TRACEANALYZE_DEBUG", "")
    result = run("compare", *pair, *arguments, "-q")
    assert (result.code, result.err) == (0, "")


def test_details_can_be_left_out(run, pair):
    with_them, without = (
        set(compared(run("compare", *pair, "--format", "json", *more).out)["tables"])
        for more in ([], ["--disable_details"])
    )
    assert with_them - without == {"operator_compare", "memory_compare"}


def test_a_name_map_in_a_file(run, pair, tmp_path):
    (tmp_path / "map.json").write_text('{"aten::mm": "matmul"}')
    found = compared(run("compare", *pair, "--op-name-map", tmp_path / "map.json", "--format", "json").out)
    options = {row["option"]: row["option_value"] for row in found["tables"]["compare_options"]["rows"]}
    assert options["--op-name-map"] == str(tmp_path / "map.json")
    assert "matmul" in {row["op"] for row in found["tables"]["operator_compare_statistic"]["rows"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{base}"], "compare: give two profiles, BASE CANDIDATE, or -bp BASE -d CANDIDATE"),
        ([], "compare: give two profiles"),
        (["{base}", "{candidate}", "{base}"], "compare: two profiles at a time"),
        (["{base}", "{folder}/none.json"], "none.json"),
        (["{base}", "{candidate}", "--base-step", "9"], "--base-step 9: there is no step 9; there are 5 to 7"),
        (["{base}", "{candidate}", "--comparison_step", "x"], "--comparison-step x: 'x' is not a number"),
        (["{base}", "{candidate}", "--base-rank", "3"], "--base-rank 3: the profile of base does not tell any rank"),
        (["{base}", "{candidate}", "--op_name_map", "{{1"], "write names in braces"),
        (["{base}", "{candidate}", "--op_name_map", "{folder}/no"], "neither a dictionary nor a file"),
        (["{base}", "{candidate}", "--comm-regex", "("], "--comm-regex (: not a regular expression"),
        (["{base}", "{candidate}", "--lang", "xx"], "no texts in 'xx'"),
        (["{base}", "{candidate}", "-o", "{base}"], "this is an input"),
        (["{base}", "{candidate}", "-o", "{folder}/x.pdf"], "end the name in .xlsx, .html, .md, .json or .txt"),
        (["{base}", "{candidate}", "-o", "{folder}/none/x.xlsx"], "does not exist"),
        (["{base}", "{candidate}", "-o", "{folder}/none/x.html"], "does not exist"),
        (["{base}", "{candidate}", "-o", "{candidate}", "--format", "html"], "this is an input"),
        (["{base}", "{candidate}", "-o", "{folder}/x.xlsx", "--format", "html"], "do not go together"),
        (["{base}", "{candidate}", "-o", "{folder}/x.xlsx", "--format", "json"], "do not go together"),
        (["{base}", "{candidate}", "--format", "csv"], "give a folder"),
    ],
)
def test_errors_are_one_line_and_code_2(run, pair, arguments, message):
    base, candidate = pair
    before = [path.read_bytes() for path in pair]
    texts = [text.format(base=base, candidate=candidate, folder=base.parent) for text in arguments]
    result = run("compare", *texts)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert message in result.err
    assert [path.read_bytes() for path in pair] == before
    assert sorted(path.name for path in base.parent.iterdir()) == ["base.json", "candidate.json"]


def test_nothing_but_the_result_is_written(run, pair, tmp_path):
    before = [path.read_bytes() for path in pair]
    run("compare", *pair, "-o", tmp_path)
    names = {path.name for path in tmp_path.iterdir()} - {"base.json", "candidate.json"}
    assert len(names) == 1
    assert WORKBOOK.fullmatch(names.pop())
    assert [path.read_bytes() for path in pair] == before


def test_an_internal_error_is_one_line_unless_debugged(run, pair, monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("broken")

    monkeypatch.setenv("TRACEANALYZE_DEBUG", "")
    monkeypatch.setattr("traceanalyze.pipeline.compare.compare_sides", broken)
    result = run("compare", *pair)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "Traceback" in run("compare", *pair, "--debug").err


def test_positions_and_options_together():
    assert sides(["b", "c"], base=None, candidate=None) == ("b", "c")
    assert sides(["c"], base="b", candidate=None) == ("b", "c")
    with pytest.raises(UsageError):
        sides(["x"], base="b", candidate="c")


def test_help_tells_what_is_obsolete(run):
    text = " ".join(run("compare", "--help").out.split())
    for words in (
        "obsolete",
        "no checks of owner or size",
        "kernels by type are always compared",
        "Default: the same on both sides",
    ):
        assert words in text
    assert "--debug" not in text
    assert "[default: on]" not in text


def test_what_one_step_of_three_takes_longer_may_be_chance(run, pair):
    """30 µs in one step of three: by Student's t with 2 degrees of freedom 4.303 · 10 µs = 43 µs may be chance."""
    result = run("compare", *pair)
    assert result.out.startswith("No difference beyond noise: 110 µs instead of 100 µs per step (+10 µs; as the")
    assert "±43 µs" in result.out


def test_a_device_takes_what_a_format_names(run, pair):
    base, candidate = pair
    assert run("compare", str(base), str(candidate), "--format", "json", "-o", "/dev/null").code == 0
    assert run("compare", str(base), str(candidate), "-o", "/dev/null").code == 2
