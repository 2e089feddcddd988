"""The report on one screen: never more than 40 lines, in one order, and what has no room is counted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyze
from tests.declared import said
from tests.pinned import workloads
from tests.real import FILES
from tests.report.make import LONG_KERNEL, analysis, host_only, whole_trace
from tests.report.make_compare import MS, build_compare, comparison, contribution
from tests.simulate.judge import _trace
from tests.simulate.simulate import simulate
from tests.simulate.writers.layouts import TODAY
from traceanalyze.comparison.results import Caveat
from traceanalyze.locales import LANGUAGES, texts
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Detail, Level
from traceanalyze.pipeline import Choices, reports
from traceanalyze.report.console import HEIGHT, Style, render_all
from traceanalyze.report.console.fitting import Section, fitted
from traceanalyze.report.console.sections import Sections
from traceanalyze.report.console.style import display_width
from traceanalyze.report.console.tables import Field, fit, telling
from traceanalyze.report.contents import build_report
from traceanalyze.report.finding import Finding, Link, Saving, Scope
from traceanalyze.report.model import Doubt, remark
from traceanalyze.report.view import View

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
SHARED = ROOT.parent / "shared"
TRACES = sorted(
    {str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("trace.json.gz")}
    | {"gpu_two_ranks", "npu_training"}
)
MEMORY = sorted(path.name for path in (SAMPLES / "memory").iterdir())
OTHERS = {
    "compare": lambda: traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_healthy"),
    "compare vendors": lambda: traceanalyze.compare(SAMPLES / "gpu_npu_pair/gpu", SAMPLES / "gpu_npu_pair/npu"),
    "compare itself": lambda: traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_sync"),
    "gate": lambda: traceanalyze.gate(SAMPLES / "gpu_launch_bound", SAMPLES / "gpu_healthy"),
    "postmortem": lambda: traceanalyze.postmortem(SAMPLES / "gpu_two_ranks"),
    "postmortem of memory": lambda: traceanalyze.postmortem(SAMPLES / "memory/out_of_memory"),
    "whatif": lambda: traceanalyze.whatif(SAMPLES / "gpu_data_loading", without=["data_loading"]),
}
IN_ORDER = ("Ranks (", "What would change", "What was judged", "Where the ", "What to do", "Where to look", "Kernels, ")
LAST = ("Not certain, or not measured", "--all: ")
COLOUR = re.compile(r"\033\[[0-9;]*m")


def screens(*found):
    """In every language and two widths, after what all have in common was looked at; the first is plain English."""
    shown = []
    for language in LANGUAGES:
        for width in (80, 140):
            text = render_all(found, texts(language), Style(width), View())
            assert len(text.splitlines()) <= HEIGHT, text
            assert max(map(display_width, text.splitlines())) <= width, text
            coloured = render_all(found, texts(language), Style(width, colour=True), View())
            assert COLOUR.sub("", coloured) == text
            shown.append(text)
    return shown[0]


class Fake(NamedTuple):
    """A finding that is in words already."""

    found: Finding
    order: tuple[int, ...] = ()

    def in_words(self, texts):
        return self.found


def finding(
    rule="HST101", *, title="slow thing", sentence="It is slow.", saving=10, severity="high", advice=("Mend it.",)
):
    return Fake(
        Finding(
            id=rule,
            rule=rule,
            title=title,
            sentence=sentence,
            price="",
            advice=advice,
            saving=Saving(saving * 1_000_000, saving * 900_000, saving * 1_100_000) if saving else None,
            cost_ns=saving * 1_000_000,
            once=False,
            share=saving / 100,
            severity=severity,
            confidence="high",
            grade=severity,
            scope=Scope(source_lines=("train.py(41): step",)),
            evidence=(),
            link=Link("", "", ""),
            count=1,
            intervals=np.empty((0, 2), np.int64),
        )
    )


def report_of(*found, checks=None, notes=(), verdict=None, one=None):
    """A report that has these findings, and nothing else of its own where that is given."""
    made = build_report("run", [one or analysis()], version="0")
    rank = replace(made.ranks[0], said=found)
    rank = rank if checks is None else replace(rank, checks=tuple(checks))
    return replace(
        made,
        ranks=(rank,),
        said=found,
        note_messages=tuple(map(remark, notes)),
        verdict_messages=made.verdict_messages if verdict is None else verdict,
    )


def counted(text, what):
    """What a line says of what is left out: `3 more warnings`."""
    return sum(int(each.replace(",", "")) for each in re.findall(rf"([\d,]+) {what}", text))


@pytest.mark.parametrize("name", TRACES)
def test_a_sample_is_one_screen(name):
    found = reports([str(SAMPLES / name)], Choices(detail=Detail.NORMAL))
    text = screens(*found)
    if len(found) == 1:
        at = [text.index(title) for title in (*IN_ORDER, *LAST) if title in text]
        assert at == sorted(at)
        assert len(at) >= 3
        assert text.startswith(
            " ".join(texts().messages[found[0].verdict_messages[0].key].split()[:1]).partition("{")[0]
        )


@pytest.mark.parametrize("name", MEMORY)
def test_a_snapshot_is_one_screen(name):
    text = screens(traceanalyze.memory(SAMPLES / "memory" / name))
    assert "What the peak consists of, in the allocator's blocks: " in text
    assert "MEM" in text or name in {"healthy", "fragmentation"}


@pytest.mark.parametrize("name", OTHERS)
def test_so_is_every_command(name):
    text = screens(OTHERS[name]())
    at = [text.index(title) for title in (*IN_ORDER, *LAST) if title in text]
    assert at == sorted(at)


@pytest.mark.parametrize("name", sorted(workloads()))
def test_so_is_a_simulated_program(name):
    from traceanalyze.analyses.analyze import analyze_context
    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.options import Options

    found = [analyze_context(Context(_trace(each, TODAY.name), Options())) for each in simulate(workloads()[name])]
    screens(build_report("run", found, version="0"))


@pytest.mark.parametrize("name", FILES)
def test_so_is_a_real_trace(name):
    try:
        found = reports([str(SHARED / "traces" / name)], Choices(detail=Detail.NORMAL))
    except traceanalyze.TraceAnalyzeError:
        pytest.skip("no trace")
    screens(*found)


@pytest.mark.parametrize(
    "name", ["kineto/param/dlrm_8rank", "pairs/torchrec_ladder/resnet18", "ascend/msinsight_2rank_torch/text"]
)
def test_so_are_real_ranks(shared_traces, name):
    (found,) = reports([str(shared_traces / name)], Choices(detail=Detail.NORMAL))
    text = screens(found)
    assert re.search(rf"^{found.ranks[found.focus[0]].rank} ", text, re.MULTILINE), "the rank of the details is shown"


def test_so_are_real_snapshots(shared_snapshots):
    for path in sorted(shared_snapshots.glob("*.pickle")):
        screens(traceanalyze.memory(path))


def test_of_several_ranks_one_is_meant_throughout_and_findings_name_theirs():
    (found,) = reports([str(SAMPLES / "gpu_two_ranks")], Choices(ranks="0,1", detail=Detail.NORMAL))
    text = screens(found)
    assert text.startswith("Rank 1 of 2 works longest")
    assert "rank1.json.gz · rank 1" in text
    assert "(21 %) · rank 0 · train.py:41 step · COM101" in text
    assert "and 1 more: kernels slower than on other ranks" in text, "its lines are those of the kernels"
    assert "compute        15.08 ms  46.9 %" in text, "the split is that of rank 1"
    assert found.focus == (1, 0)


def test_a_snapshot_says_that_memory_ran_out_and_tells_category_and_holder_apart():
    def said(name):
        return screens(traceanalyze.memory(str(SAMPLES / "memory" / name))).replace("\n", " ")

    assert said("out_of_memory").startswith("The run ran out of memory. Peak 1.04 GiB in use")
    assert "ran out" not in said("leak")
    assert "category is left behind (82 %), the largest holder train.py:31 train (82 %)" in said("leak")


@pytest.mark.parametrize("option", ["name_regex", "step_marker", "comm_regex", "not_comm_regex", "data_regex"])
def test_a_pattern_that_matches_nothing_is_told_beside_the_verdict(option):
    path, name = str(SAMPLES / "gpu_healthy"), f"--{option.replace('_', '-')}"
    (none,) = reports([path], Choices(detail=Detail.NORMAL, **{option: "zzz"}))
    (some,) = reports([path], Choices(detail=Detail.NORMAL, **{option: "."}))
    assert f"! {name} zzz matches nothing." in screens(none)
    assert "matches nothing" not in screens(some)
    assert "No device was recorded" not in screens(none)


def test_of_a_comparison_the_difference_stays_whatever_has_no_room():
    heading = Field("name", "", ("x" * 40,), 40, flexible=True, least=40)
    amounts = [Field(name, "ms", ("1.00",), 20, right=True, kept=name == "diff") for name in ("base", "diff", "ratio")]
    assert [each.heading for each in fit((heading, *amounts), 80).fields] == ["name", "diff"]


def test_of_parts_without_room_those_stay_that_changed_most():
    """Per step idle time takes 4.82 ms longer, compute 2.87 ms and communication 1.83 ms, copies as long."""
    table = traceanalyze.compare(SAMPLES / "gpu_npu_pair/gpu", SAMPLES / "gpu_npu_pair/npu").tables["overall_metrics"]
    upper = [table.known_rows[at][0] for at in telling(table, "") if not table.depth(table.known_rows[at])]
    assert upper == ["free", "compute", "communication", "memory_ops"]


def test_causes_of_one_direction_stand_once_where_the_other_has_none():
    whole = comparison()
    text = screens(build_compare(whole._replace(contributions=whole.contributions[:1]), version="0"))
    assert text.count("Faster in the candidate (per step)") == 1
    assert "Slower" not in text


def test_every_supposition_names_its_subject_on_a_narrow_screen():
    found = traceanalyze.whatif(str(SAMPLES / "gpu_two_ranks"), without="sync", faster={"communication": 2})
    assert re.search(r"^without +sync .*\n^faster +communication ", screens(found), re.MULTILINE)


def test_what_saves_nothing_is_no_saving_in_the_heading():
    saves = finding()
    costs = saves._replace(found=replace(saves.found, saving=None))
    assert "What to do, by what it saves or costs" in screens(report_of(saves, costs))
    assert "What to do, by what it saves\n" in screens(report_of(saves))


def test_several_runs_share_it():
    found = [traceanalyze.memory(SAMPLES / "memory" / name) for name in MEMORY]
    text = screens(*found)
    assert text.count("\n══ ") + text.startswith("══ ") == len(MEMORY)
    assert "The largest in detail: " in text
    at = [text.index(each) for each in ("in detail: ", "What the peak consists of", "Who holds the memory at the peak")]
    assert at == sorted(at)
    assert screens(*found[:2]).count("\n\n══ ") == 1, "few are set apart"
    assert "And 4 more runs." in screens(*found, *found[:6][: 12 - len(found)])
    assert "And 1 more run." in screens(*found, *found[:6][: 9 - len(found)])


def test_a_doubt_of_several_runs_is_told_once():
    check = next(each for each in build_report("run", [analysis()], version="0").ranks[0].checks)
    clock = Doubt("Q04", Level.WARN, check.message)
    made = [
        replace(report_of(checks=[clock] * (at < 2), notes=["odd"] * (at == 2)), name=f"run{at}") for at in range(3)
    ]
    text = screens(*made)
    assert text.count("Q04") == 1
    assert "! Q04 (run0, run1): " in text
    assert "! (run2): odd" in text


LONG = {
    "short": "short",
    "words": "a name of some words",
    "kernel": LONG_KERNEL,
    "wide": "很长的名字" * 40,
    "x": "x" * 300,
}
NAMES = st.sampled_from(sorted(LONG))
MADE = {"device": analysis(), "host": host_only(100, 80), "whole": whole_trace()}


@given(
    st.lists(
        st.tuples(NAMES, NAMES, st.integers(0, 40), st.sampled_from(["high", "medium", "low", "note"])), max_size=40
    ),
    st.lists(NAMES, max_size=30),
    st.lists(NAMES, max_size=12),
    st.sampled_from(sorted(MADE)),
)
def test_whatever_was_found_fits(told, notes, verdict, name):
    found = [
        finding(f"HST{at:03}", title=LONG[title], sentence=LONG[text], saving=saving, severity=severity)
        for at, (title, text, saving, severity) in enumerate(told)
    ]
    sentences = tuple(Message("run_note", (("text", Kind.TEXT, LONG[each]),)) for each in verdict)
    one = MADE[name]
    text = screens(report_of(*found, notes=[LONG[each] for each in notes], verdict=sentences, one=one))
    lines = text.splitlines()
    assert sum(line.startswith("● ") for line in lines) + counted(text, "more: ") == len(found)
    warned = sum(line.startswith("! ") for line in lines) + counted(text, "more warning")
    checks = report_of(one=one).ranks[0].checks
    assert warned == len(set(notes)) + sum(each.level > Level.INFO for each in checks)


@given(st.integers(0, 40), st.sampled_from([Level.WARN, Level.ERROR, Level.INFO]))
def test_no_warning_is_lost(count, level):
    check = next(each for each in build_report("run", [analysis()], version="0").ranks[0].checks)
    text = screens(report_of(checks=[Doubt(f"Q{at:02}", level, check.message) for at in range(count)]))
    shown = len(re.findall(r"^! Q\d\d: ", text, re.MULTILINE))
    if level == Level.INFO:
        assert (shown, counted(text, "note")) == (0, count)
    else:
        assert shown + counted(text, "more warning") == count
        assert shown or not count


@pytest.mark.parametrize("name", ["gpu_data_loading", "gpu_2021_layout", "cpu_training", "npu_training"])
def test_every_reason_of_the_whole_report_is_told_or_counted(name):
    (found,) = reports([str(SAMPLES / name)], Choices(detail=Detail.NORMAL))
    rank = found.ranks[found.focus[0]]
    whole = {each.absent.reason for each in rank.tables if each.absent and not each.detail}
    text = screens(found)
    told = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(told) + counted(text, "more not measured") >= len(whole)


def test_a_finding_is_told_once_with_all_that_belongs_to_it():
    text = screens(report_of(finding(sentence="The host is slow."), finding("DAT101", saving=2, severity="low")))
    assert (
        "● The host is slow.\n  high · saves 9–11 ms a step (10 %) · train.py:41 step · HST101\n  → Mend it.\n" in text
    )
    assert text.count("The host is slow") == 1
    assert text.index("HST101") < text.index("DAT101")


def test_where_there_is_no_room_a_finding_keeps_its_saving_and_its_rule():
    many = [finding(f"HST{at:03}", title=LONG_KERNEL, sentence="It is slow. " * 20) for at in range(30)]
    text = screens(report_of(*many))
    assert re.search(r"^● void at.*…[^\n]*: saves 9–11 ms a step \(10 %\) · HST\d\d\d$", text, re.MULTILINE)
    assert re.search(r"and \d+ more: void at", text), "by their titles"


def test_findings_of_one_title_without_room_are_told_apart_by_their_places():
    shapes = [f"aten::mm with {size}×1024, 1024×{size}, as often as not" for size in (8, 16, 32, 64)]
    one = finding("KRN119", title="operators far from their roofline", sentence="Slow. " * 99).found
    many = [Fake(replace(one, scope=Scope(operators=(shape,)))) for shape in shapes]
    lines = [each for each in screens(report_of(*many)).splitlines() if " ms a step (" in each]
    assert len(set(lines)) == len(lines) == 4
    assert all(len(each) <= 80 for each in lines)


def test_lesser_findings_are_told_where_there_is_nothing_else():
    text = screens(report_of(finding(severity="note", saving=0)))
    assert "Only lesser findings\n● It is slow." in text
    assert "found nothing" not in text


def test_all_that_matters_has_a_line_of_its_own():
    many = [finding(f"HST{at:03}", title=f"thing {at}", severity="medium" if at < 8 else "low") for at in range(12)]
    text = screens(report_of(*many))
    assert all(f"HST00{at}" in text for at in range(8))


def test_what_matters_keeps_its_advice_once_and_the_first_its_sentence():
    many = [finding(f"HST{at:03}", title=f"thing {at}", saving=9 - at, severity="medium") for at in range(6)]
    lines = screens(report_of(*many)).splitlines()
    assert sum(line == "  → Mend it." for line in lines) == 1, "others say the same"
    assert lines[lines.index("  → Mend it.") - 2] == "● It is slow."


def test_advice_is_whole_where_there_is_room():
    advice = "Do this, and then do that. " * 8 + "The end."
    assert "The end." in " ".join(screens(report_of(finding(advice=[advice]))).split())


def test_of_a_comparison_a_warning_that_touches_numbers_is_told_however_little_room_there_is():
    names = (("base", "NVIDIA A100"), ("candidate", "Tesla V100"))
    others = [Caveat("devices_differ", names), Caveat("ranks_differ", (("base", 3), ("candidate", 1)))] * 3
    touching = Caveat("coverage_differs", (("base_share", 0.97), ("candidate_share", 0.92)))
    causes = [contribution("compute", "operator", f"aten::op{at}", at * MS, 0) for at in range(1, 40)]
    whole = comparison()._replace(caveats=(*others, touching), contributions=tuple(causes))
    text = screens(build_compare(whole, version="0"))
    assert "! The operator is known for 97 % of compute time in the base, 92 %" in text
    assert counted(text, "more warning") >= 1


def test_warnings_are_told_whole_before_lesser_findings_are():
    minor = [finding(f"HST{at:03}", sentence="It is slow. " * 15, severity="low") for at in range(9)]
    warning = "This was lost, and that, as " + "the reason is long, " * 8 + "as is known."
    text = screens(report_of(*minor, notes=[warning, warning[5:]]))
    assert " ".join(text.split()).count("as is known.") == 2


def test_warnings_without_room_are_told_by_name():
    check = next(each for each in build_report("run", [analysis()], version="0").ranks[0].checks)
    text = screens(report_of(checks=[Doubt(f"Q{at:02}", Level.WARN, check.message) for at in range(40)]))
    assert re.search(r"\d+ more warnings \(Q\d\d, Q\d\d, Q\d\d", text)


@pytest.mark.parametrize("height", range(2, 40))
def test_what_is_not_certain_is_counted_however_much_else_there_is(height):
    todo = Section("todo", ("head",), [((f"{at}",),) for at in range(50)], str, least=30)
    trust = Section("trust", ("doubts",), [(("a doubt",),)] * 3, lambda left: f"{len(left)} more", kept=1, least=5)
    told = fitted([todo, trust], height, gap=1)[-1]
    assert told[-1] == f"{3 - told.count('a doubt')} more"
    assert ("a doubt" in told) == ("doubts" in told), "nothing without its heading"


@pytest.mark.parametrize("height", range(2, 60))
def test_what_takes_most_is_shown_or_named_however_much_was_found(height):
    todo = Section("todo", ("head",), [(("short",), ("told",) * 6)] * 9, str, sure=9, kept=5, least=16, fair=16)
    work = Section("work", ("names",), [(("row",),)] * 9, str, line="no room for it", kept=4, least=4)
    told = fitted([todo, work], height, gap=1)
    assert sum(map(len, told)) + len(told) <= height
    if height >= 8:
        assert told[-1] == ["no room for it"] or told[-1].count("row") >= 2
    if height >= 11:
        assert "names" in told[-1]
        assert "head" in told[0]


def test_kernels_have_two_rows_beside_many_ranks_and_findings(shared_traces):
    found = traceanalyze.postmortem(shared_traces / "pairs/torchrec_ladder/sst_long_a2a_optimizer_3")
    lines = screens(found).splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("Kernels"))
    assert "" not in lines[head : head + 5], "title, headings, two rows and how many more"


def test_what_is_cut_ends_before_its_bracket():
    made = Sections(report_of(), texts("zh"), Style(80))
    label = "Kernel、拷贝与填充（占用率、每 SM 的线程块、寄存器）"
    line = made._one_line([label], "需要带有硬件指标的采集，而这一份采集里没有")
    assert line.startswith("Kernel、拷贝与填充…：")


def test_a_line_without_room_for_all_keeps_the_reason():
    (found,) = reports([str(SAMPLES / "gpu_data_loading")], Choices(detail=Detail.NORMAL))
    text = screens(found, replace(found, name="b"), replace(found, name="c"), replace(found, name="d"))
    reasons = [line for line in text.splitlines() if line.startswith("- ")]
    assert reasons
    assert not any(line.endswith("…") for line in reasons)
    assert not any(";" in line.partition(":")[0] for line in reasons), "a run's name is no matter of its own"


def test_steps_that_are_left_out_are_told_whatever_else_is_said():
    left_out = Message(
        said("start_step"),
        (
            ("step", Kind.TEXT, "7"),
            ("time", Kind.DURATION, 9),
            ("factor", Kind.RATIO, 3.0),
            ("part", Kind.TERM, "compute"),
            ("excess", Kind.DURATION, 6),
        ),
    )
    others = [Message("run_note", (("text", Kind.TEXT, "words " * 60),))] * 5
    assert "Left out of every number as the start of the run: step 7" in screens(report_of(verdict=(*others, left_out)))


def test_no_sentence_ends_within_a_word():
    (line,) = Style(30).clip("Every sentence that is too long ends after a word", 1)
    assert line == "Every sentence that is too…"


def test_lost_data_comes_with_the_verdict():
    lost = Message(said("cut_short"))
    verdict = (*build_report("run", [analysis()], version="0").verdict_messages, lost)
    lines = render_all([report_of(verdict=verdict)], texts(), Style(colour=True), View()).splitlines()
    (place,) = [at for at, line in enumerate(lines) if "cut short" in line]
    assert place < next(at for at, line in enumerate(lines) if "sample.pt.trace" in line)
    assert lines[place].startswith("\033[33m! ")


def test_colours_are_those_of_severity_and_advice():
    text = render_all(
        [report_of(*(finding(severity=each) for each in ("high", "medium", "low")))],
        texts(),
        Style(colour=True),
        View(),
    )
    for colour in (31, 33, 36):
        assert f"\033[{colour}m●\033[0m" in text
    assert "\033[32m  → Mend it.\033[0m" in text


def test_terminals_without_unicode_get_none():
    text = render_all([report_of(finding())], texts(), Style(unicode=False), View())
    assert "* It is slow." in text
    assert text.replace("·", "").replace("–", "").replace("µ", "").isascii()


@pytest.mark.parametrize("name", OTHERS)
def test_quiet_is_one_line(name):
    text = render_all([OTHERS[name]()], texts(), Style(), View(Detail.QUIET))
    assert text.index("\n") == len(text) - 1


def test_who_wants_all_of_it_gets_it():
    (found,) = reports([str(SAMPLES / "gpu_data_loading")], Choices(detail=Detail.NORMAL))
    whole = render_all([found], texts(), Style(), View.of(5, quiet=False, verbose=False, whole=True))
    assert len(whole.splitlines()) > 100
    assert whole == render_all([found], texts(), Style(), View(whole=True))
    more = View.of(12, quiet=False, verbose=False)
    (bound,) = reports([str(SAMPLES / "gpu_launch_bound")], Choices(detail=Detail.NORMAL))
    usual, asked = (render_all([bound], texts(), Style(), view) for view in (View(), more))
    assert len(asked.splitlines()) <= 40, "rows that are asked for are no reason to leave the screen"
    assert "layer_norm bwd" in asked
    assert "layer_norm bwd" not in usual


def test_names_without_room_are_shortened_so_that_they_differ():
    names = [
        f"experiment_of_a_model_with_a_very_long_name_run_{at}_and_an_ending_that_is_as_long_as_that" for at in "ab"
    ]
    text = screens(*(replace(report_of(finding()), name=name) for name in names))
    assert all(re.search(f"^══ .*run_{at}.* · ", text, re.MULTILINE) for at in "ab")
    for width in (20, 40):
        short = Style().apart([*names, "other"], width)
        assert len(set(short)) == 3
        assert max(map(len, short)) <= width
    assert Style().apart(["a" * 50, "a" * 51], 10) != ["aaaa…aaaaa"] * 2


def test_rows_that_have_no_room_need_none_for_their_names():
    report = traceanalyze.gate(SAMPLES / "gpu_launch_bound", SAMPLES / "gpu_sync")
    tables = {each.key: each for each in report.summary}
    reasons = tables["gate_reasons"]
    values = [*reasons.column("changed_work")[:20], *("x" * 70 for _ in reasons.column("changed_work")[20:])]
    wide = replace(reasons, columns=(reasons.columns[0].of(values), *reasons.columns[1:]))
    text = screens(replace(report, summary=tuple(wide if each is reasons else each for each in report.summary)))
    (head,) = (line for line in text.splitlines() if line.startswith("work "))
    assert "baseline ms  candidate ms  diff ms  of change %" in head


def test_the_verdict_of_a_metric_is_shown_however_long_its_name_is():
    report = traceanalyze.gate(SAMPLES / "gpu_sync", SAMPLES / "gpu_sync")
    judged = next(each for each in report.summary if each.key == "gate_metrics")
    long = replace(
        judged, columns=(judged["metric"].of([f"{'x' * 30}{at}" for at in range(len(judged))]), *judged.columns[1:])
    )
    text = screens(replace(report, summary=tuple(long if each is judged else each for each in report.summary)))
    assert re.search("^metric .* verdict$", text, re.MULTILINE)
