from __future__ import annotations

import io
import time

import pytest

from tests.builder import TraceBuilder
from traceanalyze.cli import output as module
from traceanalyze.cli.output import Progress
from traceanalyze.locales import texts
from traceanalyze.pipeline import Choices, reports, results


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)


def test_it_is_shown_on_a_terminal_after_a_while_and_covers_the_analysis(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(module.sys, "stderr", terminal)
    with Progress(wanted=True) as progress:
        progress("trace[1].json", 10, 100)
        assert terminal.getvalue() == ""
        time.sleep(1)
        assert "trace[1].json" in terminal.getvalue()
        assert "10%" in terminal.getvalue()
        assert "10 B / 100 B" in terminal.getvalue()
        progress("trace[1].json", 100, 100)
        time.sleep(0.5)
    assert "trace[1].json: analysis" in terminal.getvalue()


def test_its_words_are_those_of_the_language(monkeypatch):
    monkeypatch.setattr(module.sys, "stderr", Terminal())
    words = texts("zh")
    words = words._replace(messages={**words.messages, "analysing": "{name}：分析"})
    progress = Progress(words, wanted=True)
    progress("trace.json", 100, 100)
    assert progress._state["description"] == "trace.json：分析"


def test_how_long_the_analysis_takes_is_not_known(monkeypatch):
    monkeypatch.setattr(module.sys, "stderr", Terminal())
    progress = Progress(wanted=True)
    progress("trace.json", 50, 100)
    assert (progress._state["completed"], progress._state["total"], progress._state["size"]) == (
        50,
        100,
        "50 B / 100 B",
    )
    progress("trace.json", 100, 100)
    assert (progress._state["total"], progress._state["size"]) == (None, "")
    progress("a pipe", 5000, None)
    assert (progress._state["total"], progress._state["size"]) == (None, "5.0 kB")


@pytest.mark.parametrize("parallel", [False, True])
def test_of_several_files_it_says_how_many_there_are(monkeypatch, tmp_path, parallel):
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    for path in paths:
        b = TraceBuilder()
        b.launch(0, 1, 0, 50)
        b.write(path)
    sizes = [path.stat().st_size for path in paths]
    told = []
    monkeypatch.setattr(results, "workers_for", lambda *_: 2 if parallel else 1)
    reports(list(map(str, paths)), Choices(), progress=lambda *state: told.append(state))
    last = dict.fromkeys(name for name, _, _ in told) | {name: state for name, *state in told}
    whole = sum(sizes)
    assert [(name, *state) for name, state in last.items()] == [
        ("1/2 rank0.json", sizes[0], whole if parallel else sizes[0]),
        ("2/2 rank1.json", *((whole, whole) if parallel else (sizes[1], sizes[1]))),
    ]


def test_what_is_quick_shows_nothing(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(module.sys, "stderr", terminal)
    with Progress(wanted=True) as progress:
        progress("trace.json", 100, 100)
    time.sleep(0.2)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO(), True), (Terminal(), False)])
def test_it_is_for_terminals_and_not_for_the_quiet(monkeypatch, stream, wanted):
    monkeypatch.setattr(module.sys, "stderr", stream)
    with Progress(wanted=wanted) as progress:
        progress("trace.json", 10, None)
        time.sleep(0.3)
    assert stream.getvalue() == ""
