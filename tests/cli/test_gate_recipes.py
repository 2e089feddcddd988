"""The recipes of the README and of `docs/ci.md`, run as a CI system runs them."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.documents import text
from tests.regression.test_measure import training

ROOT = Path(__file__).parents[2]
README = text()
SECTION = README.partition("## Gate a pull request")[2].partition("\n## ")[0]
(INTERLEAVED,) = re.findall(r"^```bash\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
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
        "python3": f'exec {sys.executable} "$@"',
        "pip": "exit 0",
    }
    for name, script in shims.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
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


@pytest.mark.parametrize(("language", "command"), [("yaml", r"^    - (.*)"), ("groovy", r"^    sh '(.*)'")])
def test_the_recipes_for_other_systems(shell, tmp_path, language, command):
    text = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    block = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[-1]
    write_recorder(tmp_path, count=3)
    assert shell(baseline(tmp_path)).returncode == 0
    for each in re.findall(command, block, re.MULTILINE):
        done = shell(each)
        assert done.returncode == 0, (each, done.stderr)
    assert "PASS" in done.stdout
    assert {"gate.xml", "gate.html"} <= {path.name for path in tmp_path.iterdir()}


def test_the_action_has_the_inputs_that_are_described():
    text = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    table = text.partition("| input | meaning |")[2].partition("\n\n")[0]
    described = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(described) == sorted(["candidate", *defaults()])


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.5, 1)])
def test_base_and_head_interleaved_on_one_node(shell, tmp_path, factor, code):
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        slow = 0 if side == "base" else 2000 * (factor - 1)
        write_recorder(tmp_path / side, count=1, slow=slow)
    (tmp_path / "profile_more.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "profile_more.sh").chmod(0o755)
    done = shell(INTERLEAVED)
    assert done.returncode == code, done.stderr
    assert ("FAIL" if code else "PASS") in done.stdout


ACTION = ROOT / ".github/actions/gate"


def action_steps():
    """The steps of the action: their keys, `env` as a mapping, `run` as a script."""
    text = (ACTION / "action.yml").read_text(encoding="utf-8").partition("\n  steps:\n")[2]
    for step in re.split(r"^    - ", text, flags=re.MULTILINE)[1:]:
        keys = dict(re.findall(r"^(?: {6})?([a-z-]+): ?(.*)$", step, re.MULTILINE))
        keys["env"] = dict(re.findall(r"^ {8}([A-Z]+): (.*)$", step.partition("env:\n")[2], re.MULTILINE))
        if "run" in keys:
            keys["run"] = textwrap.dedent(step.partition("run: |\n")[2])
        yield keys


def defaults():
    text = (ACTION / "action.yml").read_text(encoding="utf-8").partition("\noutputs:")[0]
    return dict(re.findall(r'^  (\w+):\n    .*\n    default: "?(.*?)"?$', text, re.MULTILINE))


class Comments(BaseHTTPRequestHandler):
    """As much of the service as the action asks for: a list of comments, one more, one changed."""

    def do_GET(self):
        page = int(self.path.partition("&page=")[2])
        self.answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        self.server.comments.append({"id": len(self.server.comments) + 1, "body": self.body()})
        self.answer({})

    def do_PATCH(self):
        self.server.comments[int(self.path.rpartition("/")[2]) - 1]["body"] = self.body()
        self.answer({})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def answer(self, value):
        self.server.asked.append(self.command)
        content = json.dumps(value).encode()
        self.send_response(200 if self.server.open else 403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    """101 comments of others, two of which quote the marker."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Comments) as server:
        quoted = "> ### traceanalyze gate\n> <!-- traceanalyze gate: candidate -->"
        server.comments = [{"id": n + 1, "body": quoted if n < 2 else "words"} for n in range(101)]
        server.asked, server.open = [], True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def repository(shell, tmp_path, service, monkeypatch):
    """A repository of somebody who begins, and the action as the service runs it there."""
    monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{service.server_port}")
    for name, value in {"GITHUB_REPOSITORY": "a/b", "GITHUB_ACTION_PATH": str(ACTION)}.items():
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_OUTPUT", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for key in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{key}_NAME", "a")
        monkeypatch.setenv(f"GIT_{key}_EMAIL", "a@b")
    (tmp_path / ".gitignore").write_text("runs/\nbin/\nsummary.md\noutput\ntemp/\n")
    clock = itertools.count(1_700_000_000, 100)

    def act(*, event="pull_request", slow=0.0, **inputs):
        """Train, then every step of the action; its answer and what it printed."""
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        at = next(clock)
        for number in range(3):
            folder = tmp_path / "runs" / str(number)
            folder.mkdir(parents=True)
            training(slow=slow, base=(at + number) * 10**9).write(folder / "trace.json")
        given = {**defaults(), "candidate": "runs/*", "install": "", "token": "t", **inputs}
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {"runner.temp": str(tmp_path / "temp"), "github.event_name": event}
        known["github.event.pull_request.number"] = "7"

        def filled(expression):
            return known[expression[1]]

        def holds(condition):
            found = re.fullmatch(r"(\S+) (==|!=) '(.*)'", condition)
            return found is None or (known[found[1]] == found[3]) == (found[2] == "==")

        printed = ""
        for step in action_steps():
            if "run" not in step or not all(map(holds, step.get("if", "").split(" && "))):
                continue
            for name, value in {**step["env"], "GITHUB_OUTPUT": str(tmp_path / "output")}.items():
                monkeypatch.setenv(name, re.sub(r"\$\{\{ (.*?) \}\}", filled, value).strip('"'))
            (tmp_path / "output").write_text("")
            done = shell(step["run"])
            printed += done.stdout + done.stderr
            assert done.returncode == 0 or step["name"] == "Answer", printed
            written = (tmp_path / "output").read_text()
            known |= {
                f"steps.{step.get('id')}.outputs.{name}": value for name, value in re.findall("(.*)=(.*)", written)
            }
        return done.returncode, printed

    assert shell("git init -q -b main . && git add -A && git commit -qm first").returncode == 0
    return act


def test_pull_requests_in_a_repository_from_the_first_baseline_on(repository, shell, tmp_path, service):
    code, told = repository()
    assert (code, "There is no baseline perf/baseline.json yet." in told) == (0, True)
    assert len(service.comments) == 101, "nothing to say"

    code, told = repository(event="push", update="true")
    assert (code, "3 runs added, 3 in it" in told) == (0, True)
    assert shell("git status --porcelain -uall").stdout == "?? perf/baseline.json\n", "no lock, nothing else"
    first = shell("git rev-parse --short=10 HEAD").stdout.strip()
    assert shell("traceanalyze baseline show perf/baseline.json").stdout.count(first) == 3
    shell("git add -A && git commit -qm baseline && git checkout -qb feature")

    code, told = repository(slow=300.0)
    assert (code, "::error title=traceanalyze gate%3A regression::step.time: +30.3 %25" in told) == (1, True)
    assert service.comments[-1]["body"].startswith("### ❌ traceanalyze gate: FAIL: step.time +30.3 %.\n")
    assert "FAIL" in (tmp_path / "temp/traceanalyze-gate/gate.html").read_text()
    assert (tmp_path / "summary.md").read_text() == service.comments[-1]["body"]

    code, _ = repository(slow=2.0)
    assert code == 0
    assert len(service.comments) == 102, "one comment, updated"
    assert service.comments[-1]["body"].startswith("### ✅ traceanalyze gate: PASS")
    repository(name="H100")
    assert len(service.comments) == 103, "another gate of the same pull request"

    (tmp_path / "traceanalyze.toml").write_text("[gate.metrics.'kernel[\"gemm*\"].count']\nmax_increase = 0\n")
    code, told = repository()
    assert (code, "`traceanalyze baseline update` adds runs that have it" in " ".join(told.split())) == (0, True)
    shell("git add -A && git commit -qm feature && git checkout -q main && git merge -q feature")
    assert repository(event="push", update="true")[0] == 0
    code, told = repository()
    assert re.search(r'kernel\["gemm\*"\]\.count +2 +2 +0 +exact +0 +pass', told)

    assert repository(event="push", slow=300.0, update="true")[0] == 1, "a regression enters only if accepted"
    assert repository(event="push", slow=300.0, update="accept")[0] == 0
    assert repository(slow=300.0)[0] == 0


@pytest.mark.parametrize("update", ["true", "accept"])
def test_a_baseline_that_cannot_be_updated_fails_the_job_after_its_report(repository, shell, tmp_path, update):
    (tmp_path / "base").mkdir()
    training().write(tmp_path / "base/trace.json")
    # Runs as a baseline can be compared with, but not added to.
    code, told = repository(event="push", update=update, baseline="base")
    assert (code, "PASS" in told, "error: base" in told) == (2, True, True)


def test_a_pull_request_that_may_not_be_commented_is_judged_all_the_same(repository, service):
    repository(event="push", update="true")
    service.open = False
    code, told = repository(slow=300.0)
    assert (code, service.asked[-1]) == (1, "GET")
    assert "::warning title=traceanalyze gate::No comment was written (HTTP Error 403" in told
