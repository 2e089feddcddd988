"""`traceanalyze mcp`, asked by the client of the protocol's SDK over standard input and output."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import traceanalyze
from tests.needs import need
from traceanalyze.cli import mcp as module
from traceanalyze.cli.mcp import _chosen, answer, given
from traceanalyze.errors import UsageError
from traceanalyze.readers.ascend.folder import reads_above

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
PAGES = [(ROOT / "docs" / place / "assistants.md").read_text(encoding="utf-8") for place in ("", "zh")]
CALLS = re.findall(r"^→ (\w+) (\{.*\})\n((?:[← ] .*\n)+)", PAGES[0], re.MULTILINE)


def ask(calls, *folders, lang="en"):
    """Answers of a server to calls, each a name and arguments: (text, whether it is an error)."""
    need("mcp")
    from mcp import Client, StdioServerParameters

    arguments = ["-m", "traceanalyze", "mcp", *map(str, folders or [SAMPLES]), "--lang", lang]
    started = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)

    async def talk():
        found = []
        async with Client(started) as client:
            found.append((await client.list_tools()).tools)
            for name, given_ in calls:
                result = await client.call_tool(name, given_)
                (content,) = result.content
                found.append((content.text, result.is_error))
        return found

    return asyncio.run(talk())


@pytest.mark.filterwarnings("ignore")
def test_the_transcript_of_the_page():
    assert [name for name, _, _ in CALLS] == ["analyze", "findings"]
    _, *answers = ask([(name, json.loads(arguments)) for name, arguments, _ in CALLS])
    for (_, _, told), (text, wrong) in zip(CALLS, answers, strict=True):
        assert not wrong
        at = 0
        for piece in re.split(r"\s*…\s*|^[← ] ", told, flags=re.MULTILINE):
            if piece.strip():
                at = text.index(piece.strip(), at)
    assert all(each[2] in PAGES[1] for each in CALLS)


@pytest.mark.filterwarnings("ignore")
def test_every_tool_answers_within_8_kb_with_units():
    calls = [
        ("analyze", {"path": "gpu_two_ranks"}),
        ("findings", {"path": "gpu_two_ranks", "rank": 1}),
        ("findings", {"path": "gpu_two_ranks", "rule": "com"}),
        ("table", {"path": "gpu_data_loading", "name": "gaps", "limit": 10_000}),
        (
            "table",
            {
                "path": "gpu_data_loading",
                "name": "split",
                "columns": ["part", "mean_ns"],
                "sort": "-mean_ns",
                "where": ["mean_ns > 1e5", "part ~ o"],
            },
        ),
        ("table", {"path": "gpu_data_loading", "name": "collectives"}),
        ("events", {"path": "gpu_data_loading", "start_ns": 173705580, "end_ns": 193710000, "cat": "gpu_memcpy"}),
        ("compare", {"base": "gpu_npu_pair/gpu", "candidate": "gpu_npu_pair/npu"}),
        ("memory", {"path": "memory/leak"}),
        ("whatif", {"path": "gpu_data_loading", "without": ["DAT101"]}),
        ("rule", {"rule": "loader-wait"}),
    ]
    tools, *answers = ask(calls)
    assert [tool.name for tool in tools] == [each.__name__ for each in module.TOOLS]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert {name for name, _ in calls} == {tool.name for tool in tools}
    for text, wrong in answers:
        assert not wrong, text
        assert len(text.encode()) <= 8_000
    found = [json.loads(text) for text, _ in answers]
    assert "left_out" in found[3]
    assert found[3]["matching"] == 780
    assert found[3]["columns"]["length_ns"].startswith("ns · length of the idle interval")
    # 18,331,839, 13,111,061, 135,161 and 116,747 ns, of which "idle" has no o.
    assert [row["part"] for row in found[4]["rows"]] == ["data_loading", "compute", "memory_ops"]
    assert [*found[4]["columns"]] == ["part", "mean_ns"]
    assert found[5] == {"table": "collectives", "rows": None, "not_measured": "no communication"}
    assert {one["rule"][:3] for one in found[2]["findings"]} == {"COM"}
    # The copy that ends the longest wait for data.
    assert [(row["start_ns"], row["dur_ns"]) for row in found[6]["events"]] == [(193702119, 105062)]
    assert found[9]["rows"][0]["gain_ns"] > 16_000_000


@pytest.mark.filterwarnings("ignore")
def test_wrong_questions_are_answered_in_one_line():
    wrong = [
        ("analyze", {"path": "none"}, "no such file or folder; there is cpu_slow_loader"),
        ("analyze", {"path": "../README.md"}, "lies outside of"),
        ("analyze", {"path": "/etc/passwd"}, "lies outside of"),
        ("analyze", {"path": "s3://bucket/a"}, "give a file or folder"),
        ("analyze", {"path": "gpu*"}, "no such file or folder"),
        ("analyze", {"path": "."}, "name one of them"),
        ("table", {"path": "gpu_sync", "name": "kernel"}, "did you mean 'kernels'"),
        ("table", {"path": "gpu_sync", "name": "gaps", "where": ["length_ns"]}, "write COLUMN OP VALUE"),
        ("table", {"path": "gpu_sync", "name": "gaps", "where": ["a > 1"]}, "no such column; there is step, at_ns"),
        ("table", {"path": "gpu_sync", "name": "gaps", "where": ["at_ns > b"]}, "is no number"),
        ("findings", {"path": "gpu_two_ranks", "rank": 7}, "no rank 7; there is 0, 1"),
        ("events", {"path": "gpu_two_ranks", "rank": 7}, "no rank 7; there is 0, 1"),
        ("rule", {"rule": "NONE"}, "NONE"),
        ("whatif", {"path": "gpu_sync"}, "say what would be different"),
    ]
    _, *answers = ask([each[:2] for each in wrong])
    for (text, failed), (_, _, said) in zip(answers, wrong, strict=True):
        assert failed
        assert said in text
        assert "Traceback" not in text
        assert "\n" not in text.strip()


@pytest.mark.filterwarnings("ignore")
def test_chinese():
    _, (text, _), (error, _) = ask([("analyze", {"path": "gpu_sync"}), ("analyze", {"path": "/etc"})], lang="zh")
    assert "单步 12.83 ms" in json.loads(text)["summary"]
    assert "不在" in error, error


def test_no_link_leads_out(tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "run" / "deep").mkdir(parents=True)
    other.mkdir()
    for place in (root / "run", other):
        (place / "trace.json").write_text("{}")
    roots = (root,)
    assert given("run", roots).path == str(root / "run")
    assert given(str(root / "run" / "trace.json"), roots).path == str(root / "run" / "trace.json")
    (root / "run" / "again.json").symlink_to(root / "run" / "trace.json")
    before = given("run", roots)
    assert given("run", roots) == before
    (root / "run" / "trace.json").write_text('{"a": 1}')
    assert given("run", roots) != before
    for link, target in (
        ("file.json", other / "trace.json"),
        ("deep/file.json", other / "trace.json"),
        ("folder", other),
        ("deep/folder", Path("../../../other")),
        ("chain", root / "hop"),
    ):
        (root / "hop").symlink_to(other)
        (root / "run" / link).symlink_to(target)
        for path in ("run", "run/trace.json", f"run/{link}") if "/" not in link else ("run", f"run/{link}"):
            with pytest.raises(UsageError, match=r"outside of|leads out of"):
                given(path, roots)
        (root / "run" / link).unlink()
        (root / "hop").unlink()
    for path in ("run/../../other", "..", "", "run\0", str(other), f"{root}-other"):
        with pytest.raises(UsageError):
            given(path, roots)


def test_a_part_of_a_profile_is_not_served_alone(run, tmp_path):
    """Ascend's reader looks for what was recorded above it, which would lie outside."""
    need("mcp")
    output = tmp_path / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    timeline, summary = tmp_path / "device_0" / "timeline", tmp_path / "device_0" / "summary"
    for folder in (output, timeline, summary):
        folder.mkdir(parents=True)
    (timeline / "msprof_0_1_1.json").write_text("[]")
    assert not reads_above(timeline)
    (summary / "op_summary_0_1_1.csv").write_text("")
    for folder in (output, timeline):
        done = run("mcp", folder)
        assert (done.code, f"give the folder of all of it, {folder.parent}" in done.err) == (2, True)
    # Tables of kernels are read from beside a timeline.
    (tmp_path / "elsewhere").mkdir()
    (summary / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="leads out of"):
        given("timeline", (timeline.parent,))


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SLOW = """
import sys, time
from traceanalyze.cli import main, mcp
def analyze(path: str) -> str:
    print("not for the assistant")
    sys.stderr.write("begun\\n")
    sys.stderr.flush()
    time.sleep(60)
mcp.TOOLS = (analyze, mcp.rule)
main.main()
"""


@pytest.mark.parametrize("way", ["input", "both", "SIGTERM", "SIGINT"])
def test_it_ends_with_its_assistant_whatever_it_is_doing(way):
    need("mcp")
    command = [sys.executable, "-c", SLOW, "mcp", str(SAMPLES)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as server:

        def tell(method, **more):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}) + "\n")
            server.stdin.flush()

        tell("initialize", id=0, params=HELLO)
        assert json.loads(server.stdout.readline())["id"] == 0
        tell("notifications/initialized")
        tell("tools/call", id=1, params={"name": "analyze", "arguments": {"path": "gpu_sync"}})
        while server.stderr.readline() not in {"begun\n", ""}:
            pass
        if way.startswith("SIG"):
            server.send_signal(getattr(signal, way))
        else:
            if way == "both":
                server.stdout.close()
            server.stdin.close()
        began = time.monotonic()
        try:
            server.wait(20)
        finally:
            server.kill()
        assert time.monotonic() - began < 2
        # Nothing but the protocol's lines.
        assert all("jsonrpc" in json.loads(line) for line in ([] if way == "both" else server.stdout))


@pytest.mark.filterwarnings("ignore")
def test_errors_repeat_no_book():
    _, (text, wrong) = ask([("table", {"path": "gpu_sync", "name": "x" * 50_000})])
    assert wrong
    assert len(text) < 2_100


def test_an_answer_holds_what_was_asked_for():
    rows = [{"text": "é" * 50}] * 1000
    assert len(answer({"rows": list(rows)}, "rows").encode()) <= 8_000
    assert 25_000 < len(answer({"rows": list(rows)}, "rows", 30_000).encode()) <= 30_000
    kept = json.loads(answer({"rows": list(rows)}, "rows"))
    assert kept["left_out"].startswith(f"{len(kept['rows'])} of 1,000 rows are here")
    assert "larger limit" in json.loads(answer({"matching": 40, "rows": rows[:3]}, "rows"))["left_out"]
    assert "left_out" not in json.loads(answer({"rows": rows[:3]}, "rows"))


def test_nothing_is_cut_without_a_word(monkeypatch):
    monkeypatch.setattr(module, "_SERVED", [module.Served((SAMPLES,), "en")])
    found = {
        name: json.loads(getattr(module, name)(limit=2, **arguments))
        for name, arguments in {
            "table": {"path": "gpu_two_ranks", "name": "kernels"},
            "events": {"path": "gpu_two_ranks"},
            "compare": {"base": "gpu_npu_pair/gpu", "candidate": "gpu_npu_pair/npu"},
            "memory": {"path": "memory/leak"},
        }.items()
    }
    for name, one in found.items():
        rows = one["events" if name == "events" else "rows"]
        assert len(rows) == 2
        assert one["left_out"].startswith(f"2 of {one['matching']:,} ")
    report = traceanalyze.analyze(SAMPLES / "gpu_two_ranks")
    detail = report.ranks[report.focus[0]].rank
    assert (found["table"]["rank"], found["table"]["ranks"]) == (detail, 2)
    assert (found["events"]["rank"], found["events"]["ranks"]) == (0, 2)
    assert "rank" not in json.loads(module.table("gpu_two_ranks", "ranks"))


def test_a_chosen_column_keeps_why_it_was_not_measured():
    rows = [{"a": 1, "b": None, "b_reason": "no_device_events"}]
    assert _chosen(rows, ["b"], (), "") == ([{"b": None, "b_reason": "no_device_events"}], 0)
    assert _chosen(rows, (), ["b > 1"], "") == ([], 1)


def test_without_the_sdk(run, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = run("mcp", tmp_path)
    assert (done.code, done.err) == (2, "error: mcp: needs the SDK of the protocol: pip install 'traceanalyze[mcp]'\n")


def test_what_is_no_folder(run, tmp_path):
    need("mcp")
    assert "is no folder" in run("mcp", tmp_path / "none").err
