from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.make_compare import MS, Contribution, build_compare, comparison, itself, side, swapped
from traceanalyze.comparison.pairs import PARTS_CANCEL, PerStep
from traceanalyze.comparison.reasons import effects
from traceanalyze.comparison.results import Part
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.report.contents.changed import Beside
from traceanalyze.report.format import Formatter

WORDS = texts()


def built(found=None):
    return build_compare(found or comparison(), version="0", options={"--base-step": "5"})


def rows(report, key):
    """Rows of a table by their first named column."""
    table = report.tables[key]
    return [dict(zip([column.key for column in table.columns], row, strict=True)) for row in table.rows]


def said(report):
    return " ".join(Formatter(WORDS, report.resolution_ns).message(item) for item in report.verdict_messages)


def test_the_verdict_says_how_much_and_what_of():
    assert said(built()) == (
        "The candidate is 20.00 ms (20 %) faster per step, 80.00 ms instead of 100.0 ms: data loading -30.00 ms, "
        "dispatch +5.000 ms, untraced +3.000 ms, compute +2.000 ms. "
        "85 % of the difference is explained; +3.000 ms is time of unknown cause."
    )


def test_the_verdict_of_the_other_direction():
    assert said(built(swapped())).startswith(
        "The candidate is 20.00 ms (25 %) slower per step, 100.0 ms instead of 80.00 ms: data loading +30.00 ms"
    )


def test_nothing_differs_from_itself():
    report = built(itself())
    assert said(report) == "No difference: both sides take 100.0 ms per step, part by part."
    assert report.tables["causes"].rows == ()
    for table in report.summary:
        for index, column in enumerate(table.columns):
            if column.kind in {Kind.CHANGE, Kind.BYTES_CHANGE}:
                assert {row[index] for row in table.rows} <= {0}, (table.key, column.key)


def test_equal_steps_of_other_parts_are_said():
    found = itself()
    parts = {part.key: part for part in found.parts}
    moved = [
        parts["compute"]._replace(candidate=parts["compute"].base + 8 * MS),
        parts["data_loading"]._replace(candidate=parts["data_loading"].base - 8 * MS),
    ]
    assert said(built(found._replace(parts=tuple(moved)))) == (
        "Both sides take 100.0 ms per step (0 ms), made up differently: compute +4.000 ms, data loading -4.000 ms."
    )


def test_steps_that_are_as_good_as_equal():
    found = itself()
    nearly = found._replace(candidate=replace(found.candidate, step_time=found.base.step_time + 2 * 50_000))
    parts = tuple(part._replace(candidate=part.base + 100_000 * (part.key == "compute")) for part in found.parts)
    report = built(nearly._replace(parts=parts))
    assert said(report) == "No difference that matters: 100.0 ms instead of 100.0 ms per step (+50 µs)."
    assert set(report.tables["step_difference"].column("step_change_share")) == {PARTS_CANCEL}


def test_a_difference_of_which_only_the_length_is_known():
    found = comparison()._replace(parts=(Part("step", 200 * MS, 320 * MS),), contributions=())
    assert said(built(found)) == (
        "The candidate is 20.00 ms (20 %) faster per step: 80.00 ms instead of 100.0 ms. "
        "What it is made of cannot be told from these profiles."
    )


def test_the_largest_single_cause_is_the_one_that_makes_the_step_shorter_and_much_of_a_part():
    found = comparison()

    def with_one(base, candidate):
        more = Contribution("compute", "operator", "aten::bmm", base * MS, candidate * MS, 2, 4)
        return said(built(found._replace(contributions=(*found.contributions, more))))

    assert with_one(200, 0).endswith("Largest single cause: aten::bmm (compute), -100.0 ms.")
    # What makes it longer is none, nor is the loader, of which the part tells as much, nor a fifth of a part.
    assert "Largest" not in with_one(0, 400) + with_one(12, 0) + said(built())


def test_parts_are_per_step_and_sum_to_the_step():
    report = built()
    parts = {row["part"]: row for row in rows(report, "step_difference")}
    assert parts["data_loading"]["base_time_ns"] == 30 * MS
    assert parts["data_loading"]["candidate_time_ns"] == 0
    assert parts["data_loading"]["diff_ns"] == -30 * MS
    assert parts["data_loading"]["step_change_share"] == pytest.approx(1.5)
    assert parts["dispatch"]["ratio"] == 2.0
    assert parts["communication"]["ratio"] == 1.0
    total = dict(
        zip(
            [column.key for column in report.tables["step_difference"].columns],
            report.tables["step_difference"].total,
            strict=True,
        )
    )
    assert (total["base_time_ns"], total["candidate_time_ns"], total["diff_ns"]) == (100 * MS, 80 * MS, -20 * MS)
    assert sum(row["diff_ns"] for row in parts.values()) == total["diff_ns"]
    assert sum(row["step_change_share"] for row in parts.values()) == pytest.approx(1)


def test_parts_are_exact_where_a_step_does_not_divide():
    found = comparison()
    thirds = found._replace(
        base=side("a", steps=3, step_time=100),
        candidate=side("b", steps=7, step_time=100),
        parts=(Part("compute", 50, 51), Part("untraced", 50, 49)),
        contributions=(),
    )
    (compute, untraced) = rows(built(thirds), "step_difference")
    assert (compute["base_sum_ns"], compute["candidate_sum_ns"]) == (50, 51)
    # 51/7 - 50/3 = -9.38, 49/7 - 50/3 = -9.67, 100/7 - 100/3 = -19.05
    assert (compute["diff_ns"], untraced["diff_ns"]) == (-9, -10)
    assert compute["step_change_share"] + untraced["step_change_share"] == pytest.approx(1)


def test_what_one_side_cannot_tell_has_no_difference():
    found = comparison()
    why = NotMeasured("no_api")
    row = rows(built(found._replace(parts=(Part("sync", why, 3 * MS),))), "step_difference")[0]
    assert (row["base_time_ns"], row["diff_ns"], row["ratio"]) == (why, why, why)
    assert row["candidate_time_ns"] == 750_000


def test_causes_are_ranked_by_size_and_sum_to_the_difference():
    report = built()
    causes = rows(report, "causes")
    assert [(row["place"], row["contribution"], row["diff_ns"]) for row in causes] == [
        (1, "DataLoader", -30 * MS),
        (2, "aten::conv2d", 5 * MS),
        (3, "rest", 3 * MS),
        (4, "aten::add_", 2 * MS),
    ]
    assert [row["change"] for row in causes] == ["change_vanished", "change_more", "change_longer", "change_new"]
    assert sum(row["diff_ns"] for row in causes) == -20 * MS


@pytest.mark.parametrize(
    ("counts", "base", "candidate", "by_number", "by_each"),
    [
        ((10, 20), 100, 200, 100, 0),
        ((10, 10), 100, 150, 0, 50),
        ((10, 20), 100, 400, 150, 150),
        ((0, 5), 0, 70, 70, 0),
        ((5, 0), 70, 0, -70, 0),
    ],
)
def test_more_calls_are_told_from_longer_ones(counts, base, candidate, by_number, by_each):
    assert effects(base, candidate, counts, PerStep(1, 1, 1)) == (by_number, by_each)
    assert effects(candidate, base, counts[::-1], PerStep(1, 1, 1)) == (-by_number, -by_each)


def test_swapping_the_sides_negates_every_difference():
    here, there = built(), built(swapped())
    for table in here.summary:
        other = there.tables[table.key]
        for index, column in enumerate(table.columns):
            if column.kind in {Kind.CHANGE, Kind.BYTES_CHANGE}:
                values = [row[index] for row in table.rows]
                assert any(isinstance(value, int) and value for value in values) or table.key == "module_compare", (
                    column
                )
                mirrored = [value if isinstance(value, NotMeasured) else -value for value in values]
                assert sorted(map(str, mirrored)) == sorted(str(row[index]) for row in other.rows), (
                    table.key,
                    column.key,
                )


def test_overall_rows_hide_what_is_nothing_and_indent_the_rest():
    found = rows(built(), "overall_metrics")
    assert [(row["index"], row["level"]) for row in found] == [
        ("compute", 0),
        ("matmul", 1),
        ("elementwise", 1),
        ("communication", 0),
        ("memory_ops", 0),
        ("free", 0),
        ("data_loading", 1),
        ("dispatch", 1),
        ("host_op", 2),
        ("untraced", 1),
    ]
    assert (found[0]["base_share"], found[0]["base_number"], found[0]["candidate_number"]) == (0.6, 15, 17)


def test_memory_peaks_are_sizes():
    assert rows(built(), "memory_peak") == [
        {
            "index": "peak_allocated",
            "base_peak_bytes": 3_000_000_000,
            "candidate_peak_bytes": 2_000_000_000,
            "diff_bytes": -1_000_000_000,
            "ratio": pytest.approx(2 / 3),
        }
    ]


def test_a_base_of_nothing_has_no_ratio():
    new = next(row for row in rows(built(), "operator_compare_statistic") if row["op"] == "aten::add_")
    assert new["ratio"] is None
    assert new["match"] == "only_candidate"
    assert (new["base_device_ns"], new["candidate_device_ns"], new["diff_ns"]) == (None, 2 * MS, 2 * MS)


def test_operators_sum_to_all_device_time():
    table = built().tables["operator_compare_statistic"]
    assert sum(table.column("base_sum_ns")) == 120 * MS
    assert table.total[[column.key for column in table.columns].index("candidate_sum_ns")] == 248 * MS


def test_calls_are_sorted_by_impact_and_know_their_order():
    found = rows(built(), "operator_compare")
    assert [(row["order"], row["place"], row["diff_ns"], row["match"]) for row in found] == [
        (2, 1, 5 * MS, "only_candidate"),
        (1, 2, MS, "both_sides"),
    ]
    assert found[1]["base_kernels"].endswith("_kernel [2000.000 µs, 2 times]")


def test_operators_stand_below_their_module():
    found = rows(built(), "module_compare_statistic")
    assert [(row["module"], row["op"], row["place"]) for row in found] == [
        ("Net_0/Linear_0", "[ TOTAL ]", 1),
        ("Net_0/Linear_0", "aten::addmm", 1),
        ("Net_0", "[ TOTAL ]", 2),
    ]
    assert (found[0]["total_diff_ns"], found[0]["self_diff_ns"]) == (10 * MS, 10 * MS)
    assert (found[2]["total_diff_ns"], found[2]["self_diff_ns"]) == (10 * MS, 0)


def test_allocations_of_single_calls():
    first, second = rows(built(), "memory_compare")
    assert (first["base_size_bytes"], first["candidate_size_bytes"], first["diff_size_bytes"]) == (1024, 2048, 1024)
    assert first["base_details"] == "512 B, 3.000 µs; 512 B"
    assert (second["order"], second["match"], second["ratio"]) == (2, "only_candidate", None)


def test_collectives_are_ranked_by_what_is_exposed():
    first, second = rows(built(), "communication_compare")
    assert (first["collective"], first["exposed_diff_ns"], first["diff_ns"]) == ("all_reduce", 2 * MS, 2 * MS)
    assert (first["base_calls"], first["base_avg_ns"]) == (2.0, 2 * MS)
    assert first["base_wait_ns"] == NotMeasured("no_communication")
    assert (second["base_total_ns"], second["match"]) == (None, "only_candidate")


def test_sections_not_asked_for_have_no_table_and_those_without_data_a_reason():
    found = comparison()._replace(collectives=None, memory=NotMeasured("no_memory_records"))
    tables = built(found).tables
    assert "communication_compare" not in tables
    assert tables["memory_compare_statistic"].rows == NotMeasured("no_memory_records")


def test_every_text_is_there():
    for found in (comparison(), itself(), swapped()):
        report = built(found)
        formatter = Formatter(WORDS)
        for message in (
            *report.verdict_messages,
            *report.remarks["caveats"],
            *report.remarks["quality"],
            *report.sides[0].about,
            *report.sides[1].about,
        ):
            assert "{" not in formatter.message(message)
        for table in report.summary:
            assert formatter.title(table)
            for index, column in enumerate(table.columns):
                assert WORDS.meaning(table, column), (table.key, column.key)
                if column.kind == Kind.TERM:
                    assert {row[index] for row in table.rows} <= set(WORDS.terms), (table.key, column.key)


def test_headings_of_a_table_differ():
    for table in built().summary:
        shown = [WORDS.heading(table, column) for column in table.columns if not column.machine]
        assert len(shown) == len(set(shown)), table.key


def test_tables_are_data_frames():
    for table in built().summary:
        frame = table.to_pandas()
        assert len(frame) == len(table.rows)


def test_kernels_of_different_vendors_are_not_expected_to_meet_by_name():
    found = comparison()
    other = found._replace(candidate=replace(found.candidate, vendor="ascend"))
    assert [item.key for item in build_compare(found, version="0").remarks["quality"]][1] == "compare_matched"
    assert [item.key for item in build_compare(other, version="0").remarks["quality"]][1] == "compare_matched_by_name"


def test_no_share_is_told_where_more_is_unknown_than_differs():
    parts = (Part("compute", 200 * MS, 80 * MS), Part("untraced", 0, 240 * MS))
    text = said(built(comparison()._replace(parts=parts)))
    assert "compute -80.00 ms, untraced +60.00 ms. +60.00 ms is time of unknown cause." in text
    assert "explained" not in text


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ((0, 0), "85 % of the difference is explained; +3.000 ms is time of unknown cause."),
        ((0, 2), "95 % of the difference is explained; +1.000 ms is time of unknown cause."),
        ((0, 5), "All of the difference is explained."),
        ((5, 0), "85 % of the difference is explained; +3.000 ms is time of unknown cause."),
    ],
)
def test_no_more_is_of_unknown_cause_than_has_changed(named, text):
    """Of both sides findings name so many ms a step of what the trace does not show, which grew by 3 ms."""
    beside = Beside(named=2 * named[0] * MS), Beside(named=4 * named[1] * MS)
    assert said(build_compare(comparison(), version="0", beside=beside)).endswith(text)


def test_a_step_that_is_the_only_part_is_not_summed():
    parts = (Part("step", 200 * MS, 320 * MS),)
    table = build_compare(comparison()._replace(parts=parts), version="0").tables["step_difference"]
    assert (len(table.rows), table.total) == (1, None)


def test_host_time_in_runtime_calls_has_a_name():
    assert texts().terms["api"] == "runtime calls"
    assert texts("zh").terms["api"] == "运行时调用"
