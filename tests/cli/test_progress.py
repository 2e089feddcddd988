from __future__ import annotations

import io

import pytest

from traceanalyze.cli import progress as module
from traceanalyze.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_it_is_shown_on_a_terminal_after_a_while(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr(module.sys, "stderr", terminal)
    with Progress(wanted=True) as progress:
        progress("trace.json", 10, 100)
        assert terminal.getvalue() == ""
        clock[0] = 1.0
        progress("trace[1].json", 50, 100)
    assert "trace[1].json" in terminal.getvalue()


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO(), True), (Terminal(), False)])
def test_it_is_for_terminals_and_not_for_the_quiet(monkeypatch, clock, stream, wanted):
    monkeypatch.setattr(module.sys, "stderr", stream)
    with Progress(wanted=wanted) as progress:
        clock[0] = 9.0
        progress("trace.json", 10, None)
    assert stream.getvalue() == ""
