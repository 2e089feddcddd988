"""`traceanalyze convert`: what it writes, and what it says."""

from __future__ import annotations

import gzip
import json


def test_it_writes_the_trace_with_tracks_over_it(run, sample):
    out = sample.parent / "out.json.gz"
    result = run("convert", sample, "--annotate", out)
    assert result.code == 0
    assert result.out == ""
    assert f"Wrote {out}" in result.err
    assert "Not drawn: memory (not measured: no memory records)" in result.err
    before, after = json.loads(sample.read_text()), json.loads(gzip.decompress(out.read_bytes()))
    assert after["traceEvents"][: len(before["traceEvents"])] == before["traceEvents"]
    assert len(after["traceEvents"]) > len(before["traceEvents"])


def test_quiet_says_nothing(run, sample):
    result = run("convert", sample, "--annotate", sample.parent / "out.json", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_the_tracks_alone(run, sample):
    out = sample.parent / "out.json"
    assert run("convert", sample, "--annotate", out, "--overlay-only").code == 0
    events = json.loads(out.read_text())["traceEvents"]
    assert {event["cat"] for event in events} == {"traceanalyze_overlay"}


def test_an_input_is_not_written_over(run, sample):
    before = sample.read_bytes()
    result = run("convert", sample, "--annotate", sample)
    assert result.code == 2
    assert "this is an input" in result.err
    assert sample.read_bytes() == before


def test_without_a_target_it_is_wrong_usage(run, sample):
    assert run("convert", sample).code == 2


def test_help_needs_nothing_heavy(run_process):
    code = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    code += "from traceanalyze.cli.main import main; main()"
    for command in ("convert", "open"):
        loaded = run_process(command, "--help", code=code).stderr.split()
        assert "traceanalyze.cli.viewing" in loaded
        assert {"numpy", "http.server", "webbrowser"} & set(loaded) == set()
