"""The recipes of the README, run as a CI system runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.regression.test_measure import training

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Gate a pull request")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(yaml|bash)\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
RECORD = """
import sys
from pathlib import Path
for number, text in enumerate({texts!r}):
    folder = Path(sys.argv[sys.argv.index("--profile-dir") + 1]) / str(number)
    folder.mkdir(parents=True)
    (folder / "trace.json").write_text(text)
"""


def write_recorder(folder, *, count, slow=0):
    """A `train.py` that leaves so many recordings behind."""
    texts = [training(slow=slow, base=(1700000000 + number) * 10**9).text() for number in range(count)]
    (folder / "train.py").write_text(RECORD.format(texts=texts))


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A shell in which `traceanalyze` is this one and `python train.py` records runs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    shims = {
        "traceanalyze": f'PYTHONPATH={ROOT} exec {sys.executable} -m traceanalyze "$@"',
        "python": f'exec {sys.executable} "$@"',
        "pip": "exit 0",
    }
    for name, text in shims.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))

    def run(command):
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def baseline(folder):
    (folder / "perf").mkdir()
    for number in range(3):
        run = folder / "main" / str(number)
        run.mkdir(parents=True)
        training(base=(1600000000 + number) * 10**9).write(run / "trace.json")
    return "traceanalyze baseline update perf/baseline.json main/*"


def steps(text):
    """Commands of a workflow, folded lines joined."""
    folded = re.sub(r">\n((?: {4,}.*\n)+)", lambda lines: " ".join(lines[1].split()) + "\n", text)
    return [command.split(" #")[0].strip() for command in re.findall(r"run: (.*)", folded)]


def test_the_github_workflow(shell, tmp_path):
    write_recorder(tmp_path, count=3)
    assert shell(baseline(tmp_path)).returncode == 0
    commands = steps(BLOCKS[0][1])
    assert [command.split()[0] for command in commands] == ["pip", "python", "traceanalyze", "traceanalyze"]
    for command in commands:
        done = shell(command)
        assert done.returncode == 0, (command, done.stderr)
    assert (tmp_path / "summary.md").read_text().startswith("### ✅ traceanalyze gate: PASS")
    assert (tmp_path / "gate.xml").read_text().startswith("<?xml")
    assert "3 runs added, 6 in it" in done.stderr


def test_the_github_workflow_begins_without_a_baseline(shell, tmp_path):
    write_recorder(tmp_path, count=3)
    assert "if: hashFiles('perf/baseline.json') != ''" in BLOCKS[0][1]
    _, record, gate, update = steps(BLOCKS[0][1])
    assert shell(record).returncode == 0
    done = shell(update)
    assert (done.returncode, done.stderr) == (0, "Wrote perf/baseline.json: 3 runs added, 3 in it\n")
    assert shell(gate).returncode == 0


def test_the_gitlab_job(shell, tmp_path):
    write_recorder(tmp_path, count=3)
    assert shell(baseline(tmp_path)).returncode == 0
    for command in re.findall(r"^    - (.*)", BLOCKS[1][1], re.MULTILINE):
        done = shell(command)
        assert done.returncode == 0, (command, done.stderr)
    assert "PASS" in done.stdout
    assert (tmp_path / "gate.xml").is_file()


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.5, 1)])
def test_base_and_head_interleaved_on_one_node(shell, tmp_path, factor, code):
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        slow = 0 if side == "base" else 2000 * (factor - 1)
        write_recorder(tmp_path / side, count=1, slow=slow)
    (tmp_path / "profile_more.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "profile_more.sh").chmod(0o755)
    done = shell(BLOCKS[2][1])
    assert done.returncode == code, done.stderr
    assert ("FAIL" if code else "PASS") in done.stdout
