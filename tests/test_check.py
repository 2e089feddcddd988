"""What `python -m tests.check` runs for a change, and what the fuzzer runs where Atheris is not installed."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests import check
from tests.fuzz import run as fuzzing

TEXTS = {
    "tests/builder.py": "",
    "tests/rules/make.py": "from tests.builder import TraceBuilder",
    "tests/rules/data/cases.py": "from tests.rules.make import program",
    "tests/rules/test_cases.py": "every rule",
    "tests/report/test_html.py": "from traceanalyze.report.html import curve",
    "tests/report/test_json.py": "GAPS of gap_table",
    "tests/ranks/test_waits.py": "from tests.builder import TraceBuilder",
    "tests/ranks/test_run.py": "sample_traces / 'gpu_sync'",
    "tests/analyses/test_idle.py": "from traceanalyze.analyses.idle.idle import idle_gaps",
    "tests/analyses/test_phases.py": "",
    "tests/test_units.py": "from traceanalyze.model import units, table",
    "tests/test_readme.py": "ROOT / 'README.md', and zh.po",
}
NONE = []


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ("tests/report/test_json.py", ["report/test_json"]),
        ("tests/report/test_gone.py", NONE),
        ("traceanalyze/rules/data/new_rule.py", ["rules/test_cases"]),
        ("tests/rules/data/cases.py", ["rules/test_cases"]),
        ("traceanalyze/report/console/style.py", ["report/test_html", "report/test_json"]),
        ("traceanalyze/analyses/idle/gaps.py", ["analyses/test_idle"]),
        ("traceanalyze/analyses/idle/gap_table.py", ["report/test_json", "analyses/test_idle"]),
        ("traceanalyze/analyses/phases.py", ["analyses/test_idle", "analyses/test_phases"]),
        ("traceanalyze/model/units.py", ["test_units"]),
        ("traceanalyze/model/table.py", ["test_units"]),
        ("traceanalyze/report/html/__init__.py", ["report/test_html"]),
        ("traceanalyze/locales/zh.po", ["test_readme"]),
        ("README.md", ["test_readme"]),
        ("sample_traces/gpu_sync/trace.json.gz", ["ranks/test_run"]),
        ("sample_traces/gpu/trace.json.gz", NONE),
        ("LICENSE", NONE),
        ("tests/report/conftest.py", ["report/test_html", "report/test_json"]),
    ],
)
def test_a_changed_file_chooses_its_tests(changed, chosen):
    assert check.tests_of([changed], TEXTS) == [f"tests/{name}.py" for name in chosen]


def test_what_tests_share_chooses_those_that_share_it_directly_or_not():
    assert check.tests_of(["tests/builder.py"], TEXTS) == ["tests/rules/test_cases.py", "tests/ranks/test_waits.py"]


@pytest.mark.parametrize("changed", [["pyproject.toml"], [path for path in TEXTS if check.is_test(path)][:5]])
def test_more_than_half_of_the_tests_are_all(changed):
    every = [path for path in TEXTS if check.is_test(path)]
    assert check.tests_of(changed, TEXTS) == every
    assert check.tests_of(every[:4], TEXTS) == every[:4]


def test_a_rule_chooses_the_tests_that_name_its_id():
    texts = check.sources()
    assert "DAT101" in texts["tests/report/test_findings.py"]
    chosen = check.tests_of(["traceanalyze/rules/data/loader_wait.py"], texts)
    assert {"tests/report/test_findings.py", "tests/rules/test_cases.py"} <= set(chosen)
    assert "tests/readers/test_kineto.py" not in chosen


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A branch with one commit beyond `main`."""

    def git(*arguments):
        name = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def write(name):
        (tmp_path / name).write_text("x")

    monkeypatch.setattr(check, "ROOT", tmp_path)
    git("init", "-b", "main")
    write("old.py"), write(".gitignore"), write("gone.py")
    git("add", "."), git("commit", "-m", "first")
    git("switch", "-c", "mine")
    write("committed ü.py")
    git("add", "."), git("commit", "-m", "second")
    return tmp_path


def test_what_differs_from_main_has_changed(checkout):
    (checkout / "gone.py").unlink()
    (checkout / "old.py").write_text("y")
    (checkout / "new.py").write_text("z")
    assert check.changed_since(None) == {"committed ü.py", "gone.py", "old.py", "new.py"}
    assert check.changed_since("HEAD") == {"gone.py", "old.py", "new.py"}
    with pytest.raises(LookupError, match="no_such_commit"):
        check.changed_since("no_such_commit")


def test_without_git_nothing_is_known_to_have_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", tmp_path)
    with pytest.raises(LookupError):
        check.changed_since(None)


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have run; those with a name in `failing` fail."""
    commands, failing = [], set()

    def run(*command):
        commands.append(command)
        return command[0] not in failing

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "changed_since", lambda base: {"tests/model/test_units.py"})
    return commands, failing


def test_lint_types_contracts_and_tests_run(ran, capsys):
    assert check.main(["--jobs", "3"]) == 0
    assert ran[0] == [*check.LINT, ("pytest", "-q", "-n", "3", "tests/model/test_units.py")]
    assert "  tests/model/test_units.py\n" in capsys.readouterr().out


def test_all_tests_run_on_request(ran):
    assert check.main(["--all"]) == 0
    assert ran[0][-1][-1] == "tests"


def test_tests_are_listed_only(ran, capsys):
    assert check.main(["--list"]) == 0
    assert ran[0] == []
    assert capsys.readouterr().out.splitlines()[1:] == ["  tests/model/test_units.py"]


def test_everything_runs_whatever_fails(ran):
    ran[1].update({"ruff", "mypy"})
    assert check.main([]) == 1
    assert len(ran[0]) == len(check.LINT) + 1


def test_nothing_is_tested_where_no_test_is_concerned(ran, monkeypatch):
    monkeypatch.setattr(check, "sources", lambda: TEXTS)
    monkeypatch.setattr(check, "changed_since", lambda base: {"LICENSE"})
    assert check.main([]) == 0
    assert ran[0] == [*check.LINT]


@pytest.mark.parametrize(
    ("command", "passed", "said"),
    [(("true",), True, "passed"), (("false",), False, "FAILED"), (("no-such-tool",), False, "NOT INSTALLED")],
)
def test_a_command_is_told_with_how_it_ended(command, passed, said, capsys):
    assert check.run(*command) is passed
    lines = capsys.readouterr().out.split("\n")
    assert lines[1] == f"$ {command[0]}"
    assert lines[2] == f"{said} in 0 s"


@pytest.mark.parametrize("atheris", [False, True])
def test_without_atheris_the_native_targets_are_fuzzed_and_it_is_said(monkeypatch, capsys, tmp_path, atheris):
    ran = set()

    def run(command, *, env, check):
        ran.add(env["FUZZ_TARGET"])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(fuzzing, "find_spec", lambda name: atheris or None)
    monkeypatch.setattr(fuzzing, "build", lambda folder, libfuzzer: tmp_path)
    monkeypatch.setattr(fuzzing, "subprocess", SimpleNamespace(run=run))
    assert fuzzing.main() == 0
    assert ran == {*fuzzing.NATIVE, *(fuzzing.PYTHON if atheris else ())}
    assert ("Atheris is not installed: fuzzing scan" in capsys.readouterr().out) is not atheris
