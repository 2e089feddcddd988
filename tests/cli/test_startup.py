"""What is not needed is not imported: start-up is most of the time of a run on a small trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceanalyze.rules.rule import FAMILIES as FOLDERS

SAMPLES = Path(__file__).parents[2] / "sample_traces"
FAMILIES = tuple(FOLDERS.values())

HEAVY = {"isal", "msgspec", "numpy", "pandas", "prettytable", "pyarrow", "rich", "torch", "xlsxwriter"}


def imported(run_process, code, *arguments):
    report = f"import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    result = run_process(*arguments, code=report)
    return {name.split(".")[0] for name in result.stderr.split()}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["analyze", "--help"], ["compare", "--help"]])
def test_help_imports_nothing_heavy(run_process, arguments):
    loaded = imported(run_process, "from traceanalyze.cli.main import main; main()", *arguments)
    assert "traceanalyze" in loaded
    assert loaded & HEAVY == set()


def test_importing_the_package_imports_nothing_heavy(run_process):
    loaded = imported(run_process, "import traceanalyze; traceanalyze.__version__; dir(traceanalyze)")
    assert loaded & (HEAVY | {"typer"}) == set()


def test_an_analysis_needs_no_pandas_and_no_rich(run_process, sample):
    loaded = imported(run_process, "from traceanalyze.cli.main import main; main()", sample)
    assert "numpy" in loaded
    assert loaded & {"pandas", "rich", "xlsxwriter", "torch"} == set()


def test_paths_alone_need_no_reader_of_options(run_process, sample):
    loaded = imported(run_process, "from traceanalyze.cli.main import main; main()", sample)
    assert loaded & {"typer", "click", "pydantic"} == set()


def test_an_analysis_needs_no_masked_arrays(run_process, sample):
    code = "import sys, atexit; atexit.register(lambda: print('numpy.ma' in sys.modules, file=sys.stderr))"
    for given in ([sample], ["memory", SAMPLES / "memory"]):
        result = run_process(*given, code=f"{code}; from traceanalyze.cli.main import main; main()")
        assert result.stderr == "False\n"


@pytest.mark.parametrize("options", [["--quiet"], ["--format", "json"]])
def test_a_report_without_tables_needs_no_table_printer(run_process, sample, options):
    loaded = imported(run_process, "from traceanalyze.cli.main import main; main()", sample, *options)
    assert loaded & {"prettytable", "wcwidth", "backports"} == set()


@pytest.mark.parametrize(("target", "needed"), [("report.xlsx", {"xlsxwriter"}), ("tables/", set())])
def test_a_workbook_and_tables_need_only_their_writer(run_process, sample, target, needed):
    code = "from traceanalyze.cli.main import main; main()"
    loaded = imported(run_process, code, sample, "-o", f"{sample.parent}/{target}")
    assert loaded & {"pandas", "prettytable", "pyarrow", "rich", "xlsxwriter"} == needed


def test_a_quiet_run_needs_no_rules(run_process, sample):
    code = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    result = run_process(sample, "-q", code=f"{code}; from traceanalyze.cli.main import main; main()")
    loaded = result.stderr.split()
    assert "traceanalyze.analyses.context" in loaded
    assert not [name for name in loaded if name.startswith(tuple(f"traceanalyze.rules.{each}." for each in FAMILIES))]


@pytest.mark.parametrize("name", ["cpu_training", "gpu_data_loading", "gpu_two_ranks", "npu_training"])
def test_a_quiet_run_says_what_a_full_one_opens_with(run, name):
    path = SAMPLES / name
    quiet, full = run(path, "-q"), run(path)
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out.count("\n") == 1
    assert " ".join(full.out.split()).startswith(quiet.out.strip())
