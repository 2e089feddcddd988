from __future__ import annotations

import io
import time

import pytest

from traceanalyze.cli import progress as module
from traceanalyze.cli.progress import Progress
from traceanalyze.locales import texts


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
        progress("trace[1].json", 100, 100)
        time.sleep(0.5)
    assert "trace[1].json: analysis" in terminal.getvalue()


def test_its_words_are_those_of_the_language():
    words = texts("zh")
    words = words._replace(messages={**words.messages, "analysing": "{name}：分析"})
    progress = Progress(words, wanted=False)
    progress("trace.json", 100, 100)
    assert progress._state["description"] == "trace.json：分析"


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
