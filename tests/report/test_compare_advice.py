"""Where the reader of a comparison is told to look next."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.report.make_compare import MS, Overall, build_compare, comparison, contribution, itself, swapped
from traceanalyze.comparison.calls import tensors
from traceanalyze.comparison.results import Part


def told(found, language="en"):
    return [*build_compare(found, version="0").in_language(language).advice]


def test_parts_that_take_longer_most_first_each_with_its_largest_cause_and_a_check():
    host, untraced, compute = told(comparison())
    assert host.startswith("dispatch +5.000 ms (largest: aten::conv2d +5.000 ms): look at the Python code around")
    assert untraced.startswith("untraced +3.000 ms: see what the host does there: record both sides with stacks")
    assert compute.startswith("compute +2.000 ms (largest: aten::add_ +2.000 ms): compare shapes, data types")


def test_what_is_a_small_part_of_all_changes_is_not_spoken_of():
    # Compute takes 2 ms longer, of 40 ms that change in all: 5 % exactly; a little less is not enough.
    found = comparison()
    parts = {part.key: part for part in found.parts}
    less = parts["compute"]._replace(candidate=parts["compute"].candidate - 1)
    assert len(told(found)) == 3
    shown = told(found._replace(parts=tuple(less if part.key == "compute" else part for part in found.parts)))
    assert [line.split(" +")[0] for line in shown] == ["dispatch", "untraced"]


def test_the_smallest_change_is_spoken_of_where_it_is_a_large_part_of_all():
    found = comparison()
    base, candidate = (replace(side, steps=("1",), step_time=10) for side in (found.base, found.candidate))
    parts = (Part("sync", 0, 1), Part("dispatch_launch", 3, 3), Part("host_op", 1, 0))
    shown = told(found._replace(base=base, candidate=candidate, parts=parts, contributions=()))
    assert [line.split(" +")[0] for line in shown] == ["sync"]


def test_only_what_takes_longer():
    (loading,) = told(swapped())
    assert loading.startswith("data loading +30.00 ms (largest: DataLoader +30.00 ms): look at num_workers")


def test_nothing_where_nothing_differs():
    assert told(itself()) == []


def test_a_cause_that_makes_hardly_any_of_the_change_is_not_named():
    parts = (Part("sync", 0, 120 * MS),)
    for time, named in ((6 * MS, True), (6 * MS - 1, False)):
        rows = (contribution("sync", "next_op", "aten::mm", 0, time), contribution("sync", "rest", "rest", 0, 114 * MS))
        (line,) = told(comparison()._replace(parts=parts, contributions=rows))
        assert ("(largest: aten::mm" in line) == named


def test_what_comes_of_waiting_is_looked_for_where_the_host_waits():
    parts = (Part("untraced", 0, 120 * MS),)
    for what, says in (("in_op", "look for what makes the host wait"), ("next_op", "see what the host does there")):
        (line,) = told(
            comparison()._replace(parts=parts, contributions=(contribution(parts[0].key, what, "x", 0, 60 * MS),))
        )
        assert says in line


def test_causes_that_became_shorter_are_no_cause_of_more_time():
    parts = (Part("sync", 20 * MS, 120 * MS),)
    rows = (contribution("sync", "next_op", "aten::mm", 20 * MS, 0), contribution("sync", "rest", "rest", 0, 120 * MS))
    (line,) = told(comparison()._replace(parts=parts, contributions=rows))
    assert line.startswith("sync +20.00 ms: look for what makes the host wait")


def test_at_most_three():
    keys = ("compute", "sync", "dispatch_launch", "host_op", "untraced")
    parts = tuple(Part(key, 0, 4 * (10 + at) * MS) for at, key in enumerate(keys))
    shown = told(comparison()._replace(parts=parts, contributions=()))
    assert [line.split(" +")[0] for line in shown] == ["dispatch", "untraced", "sync"]


@pytest.mark.parametrize(
    ("launches", "says"), [(8, "look at the Python code around"), (14, "look for more and smaller")]
)
def test_of_dispatch_is_checked_what_takes_most_of_it(launches, says):
    parts = (Part("dispatch_launch", 0, launches * MS), Part("host_op", 0, 10 * MS))
    (line,) = told(comparison()._replace(parts=parts, contributions=()))
    assert line.startswith(f"dispatch +{(launches + 10) / 4:.3f} ms: {says}")


KEYS = (
    *("compute", "communication", "memory_ops", "data_loading", "sync", "peer_wait", "dispatch_copy", "host_op"),
    *("device_gap", "untraced", "idle", "outside_calls", "host_side", "api", "step"),
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_part_has_a_check(key, language):
    (line,) = told(comparison()._replace(parts=(Part(key, 0, 40 * MS),), contributions=()), language)
    assert "check_" not in line
    assert "+10.00 ms" in line


def test_of_compute_the_tensors_types_and_kernels_of_both_sides_are_told(tmp_path):
    """10 products of 100 µs and then 40 of 200 µs; nothing is left for the reader to look up."""

    def written(name, count, length, size, kernel="volta_sgemm_128x32_nt"):
        trace = TraceBuilder()
        trace.step(0, 0, 20_000)
        args = {"Input Dims": [[size, 8], [8, size], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"]}
        for place in range(count):
            trace.op("aten::mm", 10 + 20 * place, 15, **args)
            trace.launch(12 + 20 * place, 2, 1000 + 250 * place, length, name=kernel)
        return trace.write(tmp_path / f"{name}.json")

    few, many = written("few", 10, 100, 64), written("many", 40, 200, 128, "volta_hgemm_64x64_nn")
    (line,) = (each for each in traceanalyze.compare(few, many, rank_anyway=True).advice if each.startswith("compute"))
    assert line == (
        "compute +7.000 ms (largest: aten::mm +7.000 ms): base 10 a step, the longest: 64×8, 8×64 bf16, gemm f32 "
        "128×32 nt; candidate 40 a step, the longest: 128×8, 8×128 bf16, gemm f16 64×64 nn."
    )
    slower = written("slower", 10, 200, 64)
    (line,) = (each for each in traceanalyze.compare(few, slower).advice if each.startswith("compute"))
    assert line.startswith(
        "compute +1.000 ms (largest: aten::mm +1.000 ms): 10 a step as in the base, each longer on average, the "
        "longest: 64×8, 8×64 bf16"
    )
    assert "a lower clock" in line
    more = written("more", 30, 100, 64)
    (line,) = (each for each in traceanalyze.compare(few, more, rank_anyway=True).advice if each.startswith("compute"))
    assert line == (
        "compute +2.000 ms (largest: aten::mm +2.000 ms): 30 instead of 10 a step, the longest on both sides: "
        "64×8, 8×64 bf16, gemm f32 128×32 nt."
    )


@pytest.mark.parametrize(
    ("unrecorded", "ranks", "says"),
    [
        (
            ((), (0, 2, 3)),
            1,
            "record the other ranks that it communicates with, too (0,2-3), as only they tell waiting",
        ),
        (((), ()), 4, "the table of the ranks tells which one the others wait for"),
        ((None, None), 4, "record the other ranks that it communicates with, too, as only they tell waiting"),
        (((), ()), 1, "record the other ranks that it communicates with, too, as only they tell waiting"),
    ],
)
def test_of_communication_the_ranks_to_record_are_named(unrecorded, ranks, says):
    parts = Part("compute", 60 * MS, 120 * MS), Part("communication", 10 * MS, 60 * MS)
    found = comparison()._replace(parts=parts, contributions=(), overall=())
    sides = {
        name: replace(getattr(found, name), unrecorded=each, ranks=ranks)
        for name, each in zip(("base", "candidate"), unrecorded, strict=True)
    }
    (line,) = told(found._replace(**sides))
    assert line.startswith(f"communication +10.00 ms: {says}")


_MOVES = "moves data: compare sizes and numbers of the collectives, and the links."


@pytest.mark.parametrize(
    ("wait", "transfer", "says"),
    [
        ((4, 40), (6, 20), f"8.000 ms of it waits for other ranks: find what makes them late; 2.000 ms of it {_MOVES}"),
        ((4, 4), (6, 56), f"10.00 ms of it {_MOVES}"),
        ((4, 0), (6, 60), f"10.00 ms of it {_MOVES}"),
        ((4, 56), (6, 4), "10.00 ms of it waits for other ranks: find what makes them late."),
    ],
)
def test_of_communication_that_both_sides_split_the_part_that_is_longer_is_told(wait, transfer, says):
    """In 2 steps of the base and 4 of the candidate; which ranks to record is nothing to say then."""
    parts = Part("compute", 60 * MS, 120 * MS), Part("communication", 10 * MS, 60 * MS)
    rows = [
        Overall(key, 2, "duration", *(MS * each for each in times), None, None)
        for key, times in (("comm_wait", wait), ("comm_transfer", transfer))
    ]
    found = comparison()._replace(parts=parts, contributions=(), overall=rows)
    (line,) = told(found)
    assert line == f"communication +10.00 ms: {says}"
    told_ranks = {name: replace(getattr(found, name), unrecorded=(), ranks=4) for name in ("base", "candidate")}
    (line,) = told(found._replace(**told_ranks))
    assert ("the table of the ranks tells which one the others wait for" in line) == ("waits for" in says)


@pytest.mark.parametrize(
    ("shapes", "dtypes", "says"),
    [
        ("[[3072, 8192], [8192, 1536]]", '["c10::BFloat16", "c10::BFloat16"]', "3072×8192, 8192×1536 bf16"),
        ("3072,8192;8192,1536", "BF16;BF16", "3072×8192, 8192×1536 bf16"),
        ("8192;32,3;;", "FLOAT;FLOAT;;", "8192, 32×3 fp32"),
        ("[[8192], [32, 3], [], []]", '["float", "float", "Scalar", "Int"]', "8192, 32×3 fp32"),
        ("6,512;", "c10::Half;Scalar", "6×512 fp16"),
        ("[[6, 512], [6]]", '["c10::Half", "long int"]', "6×512, 6 fp16, int64"),
        ("6,512;6", "FLOAT16;INT64", "6×512, 6 fp16, int64"),
        ("[[[4, 2], [3]], []]", '["TensorList", "Scalar"]', "4×2, 3"),
        (None, None, ""),
    ],
)
def test_tensors_are_written_in_one_way_whoever_recorded_them(shapes, dtypes, says):
    assert tensors(shapes, dtypes) == says


@pytest.mark.parametrize(
    ("number", "compute", "part", "says"),
    [
        # As many of as long work, or hardly more of it: each takes longer.
        (120, 120, "dispatch_latency", "each call, or its way to the device, takes longer"),
        (132, 132, "dispatch_latency", "each call, or its way to the device, takes longer"),
        # Twice as many, or as many of shorter work.
        (240, 120, "dispatch_latency", "look for more and smaller kernels"),
        (120, 40, "dispatch_latency", "look for more and smaller kernels"),
        (240, 120, "dispatch_alloc", "look at memory that is taken from the device"),
    ],
)
def test_fewer_launches_are_advised_where_there_are_more(number, compute, part, says):
    """In 2 steps of the base 60 pieces of 1 ms, without dispatch; in 4 of the candidate with 40 ms of it."""
    cause = contribution(part, "operator", "aten::addmm", 0, 8 * MS)
    parts = Part("compute", 60 * MS, compute * MS), Part("dispatch_launch", 0, 32 * MS), Part(part, 0, 8 * MS)
    found = comparison()._replace(parts=parts, contributions=(cause,), overall=())
    sides = {
        name: replace(getattr(found, name), work_number=each) for name, each in (("base", 60), ("candidate", number))
    }
    (line,) = (each for each in told(found._replace(**sides)) if each.startswith("dispatch"))
    assert line.startswith(f"dispatch +10.00 ms (largest: aten::addmm +2.000 ms): {says}")
