"""Public pairs of traces against the figures of definitions §16; skipped where the traces are not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.comparison.make import compared
from tests.comparison.real_pairs import comparison, sides
from traceanalyze.comparison.attribution import headline
from traceanalyze.comparison.side import side
from traceanalyze.model.vocabulary import DISPATCH_CALLS
from traceanalyze.pipeline import load
from traceanalyze.report.contents.compare import build_compare

PAIRS = ("resnet50", "hta", "qwen")


def milliseconds(found, parts):
    """Change of each part per step, in ms."""
    return {
        part.key: (Fraction(part.candidate, found.candidate.count) - Fraction(part.base, found.base.count)) / 10**6
        for part in parts
    }


def rounded(changes):
    return {key: round(float(value), 2) for key, value in changes.items()}


def test_resnet50_more_loader_workers_buy_less_than_the_loader_cost():
    found = comparison("resnet50")
    changes = milliseconds(found, headline(found.parts))
    assert round(float(sum(changes.values())), 2) == -36.52
    ranked = sorted((key for key in changes if changes[key]), key=lambda key: -abs(changes[key]))
    assert [(key, rounded(changes)[key]) for key in ranked] == [
        ("data_loading", -57.55),
        ("dispatch", 9.59),
        ("sync", 6.09),
        ("untraced", 3.53),
        ("memory_ops", 1.25),
        ("compute", 0.56),
        ("device_side", 0.01),
    ]
    single = rounded(milliseconds(found, found.parts))
    assert single["host_op"] == 8.11
    assert round(sum(single[cause.key] for cause in DISPATCH_CALLS), 2) == 1.48
    first = found.contributions[0]
    assert (first.part, first.name, first.base, first.candidate) == ("data_loading", "DataLoader", 352401000, 7101000)


def test_resnet50_convolutions_have_a_backward_pass():
    """Time of kernels under `CudnnConvolutionBackward` is not lost in matmul and other work (compare-parity M4)."""
    rows = {row.key: row for row in comparison("resnet50").overall if row.level == 1}
    assert rows["convolution_backward"].base > rows["convolution_forward"].base > 100_000_000


@pytest.mark.parametrize(
    ("pair", "step", "expected"),
    [
        ("hta", 46.58, {"compute": 44.44, "memory_ops": 12.81, "communication": -2.44, "idle": -8.22}),
        ("qwen", -1.43, {"compute": -2.02, "memory_ops": -0.14, "communication": 0.0, "idle": 0.73}),
    ],
)
def test_busy_parts_and_idle_time(pair, step, expected):
    found = comparison(pair)
    changes = milliseconds(found, found.parts)
    busy = {key: changes.pop(key) for key in ("compute", "memory_ops", "communication")}
    assert round(float(sum(busy.values()) + sum(changes.values())), 2) == step
    assert rounded({**busy, "idle": sum(changes.values())}) == expected


def test_hta_shows_no_matmul_gain_that_is_none():
    """Matrix products that lost their operator still are matrix products (compare-parity M5)."""
    found = comparison("hta")
    assert "coverage_differs" in {caveat.key for caveat in found.caveats}
    matmul = next(row for row in found.overall if row.key == "matmul")
    assert matmul.candidate > 2 * matmul.base
    assert {row.what for row in found.contributions if row.part == "compute"} == {"kernels"}
    assert found.contributions[0].name == "matmul"
    assert found.contributions[0].candidate > found.contributions[0].base


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_sum_to_parts_and_parts_to_the_step(pair):
    found = comparison(pair)
    assert sum(part.base for part in found.parts) == found.base.step_time
    assert sum(part.candidate for part in found.parts) == found.candidate.step_time
    for part in found.parts:
        rows = [row for row in found.contributions if row.part == part.key]
        assert sum(row.base for row in rows) == part.base
        assert sum(row.candidate for row in rows) == part.candidate
    check_levels(found.overall)


def check_levels(rows):
    """Rows sum to the row above; the first level sums to the step."""
    times = [row for row in rows if row.key not in {"comm_wait", "comm_transfer"}]
    step = next(index for index, row in enumerate(times) if row.key == "step")
    assert sum(row.base for row in times[:step] if row.level == 0) == times[step].base
    for index, above in enumerate(times[:step]):
        inside = []
        for row in times[index + 1 : step]:
            if row.level <= above.level:
                break
            if row.level == above.level + 1:
                inside.append(row)
        if inside:
            assert sum(row.base for row in inside) == above.base
            assert sum(row.candidate for row in inside) == above.candidate
            if above.counts is not None:
                assert sum(row.counts[0] for row in inside) == above.counts[0]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_side_against_itself_shows_no_difference(pair):
    one, _ = sides(pair)
    found = compared(one, one)
    assert all(part.base == part.candidate for part in found.parts)
    assert all((row.base, row.base_count) == (row.candidate, row.candidate_count) for row in found.contributions)
    assert all(row.base == row.candidate for row in found.overall)
    assert all(row.counts[0] == row.counts[1] for row in found.overall if row.counts is not None)
    assert found.caveats == ()


@pytest.mark.parametrize("pair", PAIRS)
def test_swapping_the_sides_swaps_every_row(pair):
    there, back = comparison(pair), comparison(pair, swapped=True)
    assert [(p.key, p.base, p.candidate) for p in there.parts] == [(p.key, p.candidate, p.base) for p in back.parts]

    def keyed(row, old, new):
        return row.part, row.what, row.name, old, new

    assert {keyed(r, (r.base, r.base_count), (r.candidate, r.candidate_count)) for r in there.contributions} == {
        keyed(r, (r.candidate, r.candidate_count), (r.base, r.base_count)) for r in back.contributions
    }
    assert [(r.key, r.level, r.base, r.candidate) for r in there.overall] == [
        (r.key, r.level, r.candidate, r.base) for r in back.overall
    ]


@pytest.mark.parametrize(
    ("form", "wait"),
    [("text", (98.03, 92.41)), ("db", (94.01, 90.45))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_two_ascend_ranks_that_wait_for_others(shared_traces, form, wait):
    """Both wait for a rank that was not recorded: the time is waiting, not moving data (compare-parity M9)."""
    folder = shared_traces / "ascend" / "msinsight_2rank_torch" / form / "level1"
    if not folder.exists():
        pytest.skip("not among the shared traces")
    traces = load(folder).traces
    found = compared(side(traces[0], ranks=2), side(traces[1], ranks=2))
    rows = {row.key: row for row in found.overall}
    waited = rows["comm_wait"]
    assert (round(waited.base / 1e6, 2), round(waited.candidate / 1e6, 2)) == wait
    both = (
        rows["comm_wait"].base + rows["comm_transfer"].base,
        rows["comm_wait"].candidate + rows["comm_transfer"].candidate,
    )
    assert both == (rows["communication"].base, rows["communication"].candidate)
    assert found.base.vendor == "ascend"
    if form == "text":
        times = [round(rows[key].base / 1e6, 3) for key in ("compute", "communication")]
        times += [round(rows[key].candidate / 1e6, 3) for key in ("compute", "communication")]
        assert times == [8.874, 101.963, 8.878, 96.359]


def test_of_steps_that_alternate_whole_cycles_are_compared_and_their_difference_is_noise():
    """Both sides alternate between 58.6 and 61.8 ms; of five steps the first is left out (diagnosis §6)."""
    found = comparison("nanogpt")
    assert [(each.count, each.cycle) for each in (found.base, found.candidate)] == [(4, 2), (4, 2)]
    report = build_compare(found, version="")
    assert [message.key for message in report.verdict_messages] == ["compare_noise"]
    assert report.advice == ()
    assert "compare_noise" not in {
        message.key for message in build_compare(comparison("resnet50"), version="").verdict_messages
    }


def test_parts_that_differ_beyond_noise_make_no_step_slower_that_does_not():
    """Rank 1 of a run makes rank 0 wait: 2.5 ms of communication are host time, the steps are equally long."""
    report = build_compare(comparison("torchrec"), version="")
    said = {name: value for name, _, value in report.verdict_messages[0].values}
    assert report.verdict_messages[0].key == "compare_made_3"
    assert [said[f"part{place}"] for place in (1, 2, 3)] == ["communication", "dispatch", "untraced"]
    assert abs(said["diff"]) < said["noise"] < said["diff2"]


@pytest.mark.parametrize(
    ("pair", "cause", "diff"),
    [
        # One kernel of 800 µs instead of 120, 480, 480 and 80.
        ("unit 01", "aiter::ck_moe_stage1 + 3 → triton::fused_moe_kernel", -360_000),
        # 10 and 170 µs, of which 15 are beside the softmax, became 10 and 70.
        ("unit 02", "aten::bmm", -85_000),
        # 10, 260 and 510 µs instead of one kernel of 350.
        ("unit 03", "aten::scaled_dot_product_attention", 430_000),
        # 480 µs instead of 80 for a transposition and 650.
        ("unit 04", "aten::mm → aten::addmm", -250_000),
        ("unit 06", "aten::convolution", -1_960_000),
    ],
)
def test_what_the_unit_pairs_were_made_for_is_named(pair, cause, diff):
    """The rest of their steps is empty: of unknown cause, and never named before what is known."""
    report = build_compare(comparison(pair), version="")
    (largest,) = (
        {name: value for name, _, value in one.values}
        for one in report.verdict_messages
        if one.key == "compare_largest"
    )
    assert (largest["name"], largest["part"], largest["diff"]) == (cause, "compute", diff)
    assert {name: value for name, _, value in report.verdict_messages[0].values}["part1"] == "compute"
