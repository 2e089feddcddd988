"""Tables about garbage collection, inference and call paths, as the user reads them."""

from __future__ import annotations

from tests.analyses.test_call_paths import model
from tests.analyses.test_gc_pauses import loop
from tests.analyses.test_inference_window import Server, serving
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report
from traceanalyze.report.view import View


def report(trace):
    return build_report("run", [trace.analyze()], version="0")


def shown(trace, detail=Detail.NORMAL):
    return render(report(trace), texts(), Style(width=130), View(detail))


def test_every_word_has_a_text():
    words = texts()
    for made in (report(model()), report(serving()), report(loop(pause=30_000))):
        for key in ("inference_phases", "steady_state", "gc_pauses", "call_paths"):
            table = made.tables[key]
            assert words.title(table)
            for index, column in enumerate(table.columns):
                assert words.meaning(table, column)
                rows = () if isinstance(table.rows, NotMeasured) else table.rows
                if column.kind == Kind.TERM:
                    assert {row[index] for row in rows} <= set(words.terms)


def test_suspected_pauses_are_called_so():
    text = shown(loop(pause=30_000))
    assert "Garbage collection: recorded or suspected pauses" in text
    assert "Garbage collection itself was not recorded" in text
    assert "1 suspected pause, 30.00 ms in all, the longest 30.00 ms" in text


def test_recorded_pauses_and_short_ones():
    trace = loop(pause=30_000)
    trace.annotation("gc", 41_000, 2_000)
    trace.annotation("gc", 44_000, 500)
    text = shown(trace)
    assert "1 pause of 1 ms or more, 2.000 ms in all, the longest 2.000 ms; the device is idle for 2.000 ms" in text
    assert "Collections shorter than 1 ms: 1, 500 µs in all." in text
    assert "not recorded" not in text


def test_no_pauses_are_no_news():
    table = report(loop(pause=1)).tables["gc_pauses"]
    assert table.rows == ()
    assert [note.key for note in table.notes] == ["gc_source_nothing"]
    assert "arbage" not in shown(loop(pause=1))


def test_prefill_and_decode():
    made = report(serving())
    rows = {row[0]: row for row in made.tables["inference_phases"].rows}
    assert list(rows) == ["inference_prefill", "inference_decode", "inference_mixed"]
    assert [row[2] for row in rows.values()] == [4 / 16, 9 / 16, 3 / 16]
    text = shown(serving())
    assert "Steady state: the longest run of like iterations" in text
    assert "requests at once" in text


def test_tokens_per_second():
    server = Server()
    for _ in range(4):
        server.run("execute_context_0(0)_generation_8(8)", 1000)
    assert report(server).tables["steady_state"].rows[0][-3:] == (32, 32 / 0.004, False)


def test_call_paths_show_a_few_and_hold_all():
    made = report(model())
    assert len(made.tables["call_paths"].rows) == 10
    assert sum(made.tables["call_paths"].column("device_share")) == 1
    assert "Call paths" not in shown(model())
    assert "and 5 more; --top 10 shows them" in shown(model(), Detail.VERBOSE)
