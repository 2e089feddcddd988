from __future__ import annotations

import pytest

from tests.report.make_compare import build_compare, comparison, contribution, itself
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, render, render_all
from traceanalyze.report.view import View


def page(found=None, *, width=80, detail=Detail.NORMAL, colour=False, top=5):
    report = build_compare(found or comparison(), version="0")
    return render(report, texts(), Style(width=width, colour=colour), View(detail, top))


def test_the_page():
    assert (
        page(width=80)
        == """\
The candidate is 20.00 ms (20 %) faster per step, 80.00 ms instead of 100.0 ms:
data loading -30.00 ms, dispatch +5.000 ms, untraced +3.000 ms, compute
+2.000 ms. 85 % of the difference is explained; +3.000 ms is time of unknown
cause.

base       before.json · rank 0 · Tesla V100 · 100.0 ms, mean of 2 complete
           steps (median 100.0 ms)
candidate  after.json · rank 0 · Tesla V100 · 80.00 ms, mean of 4 complete steps
           (median 80.00 ms)

Where the steps' time went (per step)
part                 base  candidate    diff  ratio  of change
                       ms         ms      ms                 %
──────────────────────────────────────────────────────────────
compute             60.00      62.00   +2.00   1.03      -10.0
  matrix products   60.00      60.00    0.00   1.00        0.0
  elementwise        0.00       2.00   +2.00             -10.0
communication        0.00       0.00    0.00   1.00        0.0
memory ops           2.00       2.00    0.00   1.00        0.0
idle                38.00      16.00  -22.00   0.42      110.0
  data loading      30.00       0.00  -30.00   0.00      150.0
  dispatch           5.00      10.00   +5.00   2.00      -25.0
  untraced           3.00       6.00   +3.00   2.00      -15.0
──────────────────────────────────────────────────────────────
step               100.00      80.00  -20.00   0.80      100.0

Peak memory
part                              base  candidate     diff  ratio
─────────────────────────────────────────────────────────────────
PyTorch's allocator: allocated  3.0 GB     2.0 GB  -1.0 GB   0.67

Slower in the candidate (per step)
cause         part            base  candidate   diff  of change  how
                                ms         ms     ms          %
─────────────────────────────────────────────────────────────────────────────
aten::conv2d  host operators  5.00      10.00  +5.00      -25.0  more of them
rest          untraced        3.00       6.00  +3.00      -15.0  each longer
aten::add_    compute         0.00       2.00  +2.00      -10.0  new

Faster in the candidate (per step)
cause       part           base  candidate    diff  of change  how
                             ms         ms      ms          %
───────────────────────────────────────────────────────────────────
DataLoader  data loading  30.00       0.00  -30.00      150.0  gone

Where to look
- dispatch +5.000 ms (largest: aten::conv2d +5.000 ms): look at the Python code
  around these operators and at load, clock rate and binding of the CPU; see
  that both sides were recorded with the same options.
- untraced +3.000 ms: see what the host does there: record both sides with
  stacks (with_stack=True), if they were not.
- compute +2.000 ms (largest: aten::add_ +2.000 ms): compare shapes, data types
  and implementations of these kernels; on equal devices, the same kernels that
  each take longer point to a lower clock or to other work on the device.

Before you conclude
- The two profiles have different levels.

How far to trust these numbers
- Device time whose launch or operator is known: base 98 %, candidate 98 %.
- Matched kernels: 100 % of the base's time, 97 % of the candidate's.
- Steps recorded but not compared: base 0, candidate 1.
- Clock resolution: base 1 µs, candidate 1 µs.
"""
    )


@pytest.mark.parametrize("width", [60, 80, 110, 160])
@pytest.mark.parametrize("detail", [Detail.NORMAL, Detail.VERBOSE])
def test_no_line_is_wider_than_the_terminal(width, detail):
    assert max(map(len, page(width=width, detail=detail).splitlines())) <= width


def test_quiet_is_the_verdict_on_one_line():
    text = render_all([build_compare(comparison(), version="0")], texts(), Style(), View(Detail.QUIET))
    assert text.startswith("The candidate is 20.00 ms")
    assert text.index("\n") == len(text) - 1


def test_worse_is_red_and_better_green():
    text = page(colour=True)
    assert "\033[31m+5.00\033[0m" in text
    assert "\033[32m-30.00\033[0m" in text
    assert "\033[31m2.00\033[0m" in page(colour=True, width=160)
    assert "\033[32m0.42\033[0m" in text
    assert "\033[" not in page()


def test_colours_do_not_move_columns():
    import re

    assert re.sub(r"\033\[\d+m", "", page(colour=True)) == page()


def test_itself_has_no_causes():
    text = page(itself())
    assert text.startswith("No difference: both sides take 100.0 ms per step, part by part.\n")
    assert "Slower" not in text
    assert "Faster" not in text


def test_a_direction_without_causes_says_so():
    found = comparison()
    only_faster = found._replace(contributions=found.contributions[:1])
    assert "\nNothing of weight is slower in the candidate.\n" in page(only_faster)


def test_verbose_shows_every_section_and_normal_does_not():
    everything = page(detail=Detail.VERBOSE, width=160)
    for title in (
        "Collectives",
        "Modules",
        "Operators",
        "Host operators and runtime calls",
        "Kernels",
        "Types of kernels",
    ):
        assert f"\n{title} (per step)\n" in everything
        assert f"\n{title} (per step)\n" not in page()


def test_what_cannot_be_compared_is_said_once_with_its_reason():
    why = NotMeasured("no_memory_records")
    text = page(comparison()._replace(memory=why, collectives=NotMeasured("no_communication")))
    assert "Not compared\n- Collectives (per step): no communication\n- Device memory allocated by operators" in text
    assert text.count("no memory records") == 1


def test_top_limits_the_causes():
    text = page(top=1)
    assert "\naten::add_" not in text
    assert "and 2 more; --top 3 shows them" in text


def test_without_the_overall_table_the_parts_are_shown():
    text = page(comparison()._replace(overall=None))
    assert "What the difference is made of (per step)" in text
    assert "Where the steps' time went" not in text


def test_names_cannot_steer_the_terminal():
    text = page(detail=Detail.VERBOSE, width=160)
    assert "\r" not in text


def test_causes_without_weight_are_shown_when_more_are_asked_for():
    light = tuple(contribution("compute", "operator", f"aten::op{n}", 0, 4_000, (0, 4)) for n in range(9))
    found = comparison()._replace(contributions=(*comparison().contributions, *light))
    assert "and 9 more; --top 12 shows them" in page(found)
    shown = page(found, top=12)
    assert all(f"aten::op{n} " in shown for n in range(9))
    assert "shows them" not in shown


@pytest.mark.parametrize("width", [110, 120, 160, 200])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_columns_that_matter_less_do_not_push_out_difference_ratio_and_share(width, language):
    words = texts(language)
    report = build_compare(comparison(), version="0")
    text = render(report, words, Style(width=width), View(Detail.NORMAL, 5))
    overall = report.tables["overall_metrics"]
    table = text[text.index(words.title(overall)) :].splitlines()
    for key in ("diff_ns", "ratio", "step_change_share"):
        assert words.heading(overall, overall[key]) in table[1]
    causes = text[text.index(words.tables["slower"]) :].splitlines()
    assert words.heading(report.tables["causes"], report.tables["causes"]["change"]) in causes[1]


def test_a_wide_table_names_the_side_above_what_its_columns_hold():
    lines = page(width=120).splitlines()
    start = lines.index("Where the steps' time went (per step)")
    assert lines[start + 1 : start + 5] == [
        "part                 base       base    base  candidate  candidate  candidate    diff  ratio  of change",
        "                       ms  of step %  number         ms  of step %     number      ms                 %",
        "─" * 103,
        "compute             60.00       60.0      15      62.00       77.5         17   +2.00   1.03      -10.0",
    ]


def test_names_are_whole_where_minor_columns_could_be_left_out():
    name = "aten::scaled_dot_product_attn"
    found = comparison()
    row = contribution("compute", "operator", name, 0, 90_000_000, (0, 4))
    for width in (110, 120, 140):
        assert name in page(found._replace(contributions=(row, *found.contributions)), width=width)
