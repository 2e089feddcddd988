from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import traceanalyze
from tests.report.make import analysis, empty, host_only, whole_trace
from traceanalyze.locales import texts
from traceanalyze.report.contents import build_report
from traceanalyze.report.markdown import MAX_ROWS, brief, plain, render


def page(*analyses, name="run"):
    return render([build_report(name, analyses, version="0")], texts())


def tables_of(text):
    """Lines of each table."""
    found = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


@pytest.mark.parametrize("one", [analysis(), whole_trace(), host_only(1.0, 2.0), empty()])
def test_every_table_is_one_to_github(one):
    text = page(one)
    assert text.startswith("# run\n\n**")
    for lines in tables_of(text):
        assert set(lines[1]) <= set("|-: ")
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_the_step_is_told_with_its_unit():
    # Three steps of 533 ms together.
    assert "| step | 177.67 | 100.0 |" in page(analysis())


def test_long_tables_stop_and_say_so():
    text = page(analysis(times=tuple(float(n + 1) for n in range(40))))
    assert max(len(lines) for lines in tables_of(text)) <= MAX_ROWS + 3


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", "a\\|b"),
        ("[x](javascript:1)", "\\[x\\](javascript:1)"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("https://x.org", "https:<!-- -->//x.org"),
        ("www.x.org", "www<!-- -->.x.org"),
        ("ping @all", "ping @<!-- -->all"),
        ("see #12", "see \\#<!-- -->12"),
        ("two\nlines", "two lines"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("2) item", "2\\) item"),
        ("---", "\\---"),
        ("===", "\\==="),
        ("1.25", "1.25"),
        ("-3.5 ms", "-3.5 ms"),
        ("__init__", "\\_\\_init\\_\\_"),
    ],
)
def test_names_stay_text(name, shown):
    assert plain(name) == shown


def test_the_name_of_a_run_cannot_become_markup():
    assert page(analysis(), name="<b>|x").startswith("# \\<b\\>\\|x\n")


SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.name.startswith(("gpu_", "npu_", "cpu_")))


def readable(text):
    """What a page shows of it."""
    return re.sub(r"\\(?=[^A-Za-z0-9\s])|<!-- -->", "", text)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gpu_npu_pair"])
def test_a_brief_has_the_verdict_and_what_to_do_first_in_2_kb(name, language, tmp_path):
    report = traceanalyze.analyze(SAMPLES / name, language=language)
    text = brief([report], texts(language))
    assert len(text.encode()) <= 1950
    shown = readable(text)
    assert report.verdict[:40] in shown
    told = [one for one in report.findings if one.severity in {"high", "medium"} and not one.rule.startswith("CAP")]
    for one in told[:1]:
        for piece in (one.rule, one.sentence, one.advice[0], one.grade):
            assert piece in shown


def test_a_brief_says_what_the_sample_is_about():
    shown = readable(brief([traceanalyze.analyze(SAMPLES / "gpu_data_loading")], texts()))
    for piece in ("data loading 18.33 ms", "saves 16–18 ms a step (58 %) · train.py:41 step · DAT101"):
        assert piece in shown
    assert "Not measured: Where the host waited" in shown


def test_a_brief_counts_what_has_no_room():
    report = traceanalyze.analyze(SAMPLES / "gpu_two_ranks")
    one = report.said[0]
    many = replace(report, ranks=(replace(report.ranks[0], said=(one,) * 50),), focus=(0,), said=(one,) * 50)
    text = brief([many], texts())
    kept = text.count("\n- ")
    assert 0 < kept < 50
    # A paragraph of its own: without a blank line it would go on the last point of the list.
    assert f"\n\nand {50 - kept} more\n\n" in text
    runs = brief([report] * 30, texts())
    assert len(runs.encode()) <= 1950
    assert runs.endswith("and 26 more\n")


def test_a_brief_counts_parts_and_reasons_that_have_no_room():
    text = readable(brief([traceanalyze.analyze(SAMPLES / "npu_training")] * 4, texts()))
    told = re.findall(r"^Not measured: (.*)$", text, re.MULTILINE)
    assert len(told) == 4
    assert all(re.search(r"and (\d+) more$", each) for each in told)


def test_a_brief_of_endless_names_ends():
    text = brief([build_report("]`*" * 3000, [analysis()], version="0")], texts())
    assert len(text.encode()) <= 1950
    assert "…" in text


def test_paragraphs_of_a_brief_are_one_blank_line_apart():
    found = traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_sync")
    assert re.fullmatch(
        r"\*\*.*No difference.*\*\*\n\nWhere the steps.*\n\nNot measured.*\n\n\*\*.*\n\nWhere.*\n\nNot.*\n",
        brief([found] * 2, texts()),
    )


def test_a_brief_of_two_sides_has_both():
    found = traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_data_loading")
    assert "idle 3.102 ms → 18.47 ms" in brief([found], texts())


def test_a_brief_replaces_the_one_before(tmp_path):
    from typer.testing import CliRunner

    from traceanalyze.cli.app import app

    for _ in range(2):
        done = CliRunner().invoke(
            app, ["analyze", str(SAMPLES / "gpu_sync"), "-q", "--format", "brief", "-o", str(tmp_path / "x.md")]
        )
        assert done.exit_code == 0, done.output
    assert (tmp_path / "x.md").stat().st_size <= 2000
