"""What is said before two sides are compared: everything that makes them unlike, and nothing when they are alike."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.comparison.make import side_from, training
from tests.simulate.simulate import simulate
from tests.simulate.workload import Device, Model, Workload
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from traceanalyze.analyses.options import Options
from traceanalyze.comparison import caveats as caveats_module
from traceanalyze.comparison import same_work
from traceanalyze.comparison.caveats import caveats, recorded
from traceanalyze.comparison.side import median_step, side


def keyed(base, candidate):
    return {caveat.key: dict(caveat.values) for caveat in caveats(base, candidate)}


def test_equal_recordings_need_no_caveat():
    assert caveats(side_from(training()), side_from(training(wait=40, steps=3))) == ()


def test_every_caveat_has_a_sentence_for_its_values():
    """Also the ones that no hand-made pair here has."""
    source = "".join(Path(each.__file__).read_text(encoding="utf-8") for each in (caveats_module, same_work))
    keys = set(re.findall(r'Caveat\("(\w+)"', source))
    keys |= {f"{what}_on_one" for what in recorded(side_from(training()).context)}
    assert len(keys) > 15
    keys |= {f"side{why}_left_out" for why in ("", "_start", "_cycle")}
    keys |= {*same_work.OTHER_WORK, *caveats_module.SAID_FIRST, *caveats_module.OF_NUMBERS}
    keys |= {f"side_{what}" for what in ("truncated", "salvaged", "unknown", "impossible")}
    assert keys | {"levels_differ", "levels_differ_in_calls"} == set(caveats_module.CAVEATS)


def test_what_touches_numbers_is_told_first():
    """Another clock, another device, and only one side's operators: in this order whatever finds it first."""
    one, other = training(), training(ops=False)
    for b, name in ((one, "A100"), (other, "H100")):
        b.header["deviceProperties"] = [{"id": 0, "name": name}]
    keys = [each.key for each in caveats(side_from(one), side_from(other))]
    touching = [key in caveats_module.OF_NUMBERS for key in keys]
    assert touching == sorted(touching, reverse=True)
    assert 0 < sum(touching) < len(touching)
    assert "devices_differ" in keys


def steps_of(count, *, marks=True, again=1):
    """Steps of two operators with device work; the second and its kernel are there `again` times a step."""
    b = TraceBuilder()
    for number in range(count):
        at = 1000 * number
        if marks:
            b.step(number, at, 1000)
        for place, name in enumerate(("aten::mm", *["aten::add"] * again)):
            b.op(name, at + 60 * place, 50, **{"Input Dims": [[64, 64], [64, 64]]})
            b.launch(at + 60 * place + 10, 5, at + 60 * place + 20, 30, name=name[6:], grid=[8, 1, 1], block=[64, 1, 1])
    return side_from(b)


def test_work_that_is_done_more_often_is_not_the_same_work():
    """Two recordings without step markers, of 2 and of 6 steps: the same per step, three times as much in all."""
    (number,) = (each for each in caveats(steps_of(2, marks=False), steps_of(6, marks=False)) if "work" in each.key)
    runs = {"share": 1.0, "base": 4, "candidate": 12, "ratio": 3.0}
    assert (number.key, dict(number.values)) == ("work_number", runs)
    swapped = keyed(steps_of(6, marks=False), steps_of(2, marks=False))
    assert swapped["work_number"]["ratio"] == pytest.approx(1 / 3)
    # With markers both do the same in a step, and one operator more often is a cause, not other work.
    assert not any("work" in key for key in keyed(steps_of(2), steps_of(6)))
    assert not any("work" in key for key in keyed(steps_of(2), steps_of(2, again=4)))


def test_other_models_are_told_by_how_often_they_call_what_both_call_whatever_it_is_named():
    """Of 80 µs 30 are in 10 and 2 convolutions, 20 in 1 and 3 products; relu is called twice on both sides."""

    def model(convolutions, products, relu, more=0):
        calls = [(f"aten::{convolutions[0]}", 64, convolutions[2])] * convolutions[1]
        calls += [("aten::mm", 32, products[1])] * products[0] + [("aten::relu", 16, relu[1])] * relu[0]
        return sized(*calls, graph=more, kernel="ncclDevKernel_AllReduce_Sum_f32_RING")

    base = model(("cudnn_convolution", 10, 2), (1, 5), (2, 10))
    candidate = model(("convolution_overrideable", 2, 5), (3, 5), (2, 5), more=1000)
    found = keyed(base, candidate)
    assert found["work_number"] == {"share": 50 / 80, "base": 11, "candidate": 5, "ratio": 5 / 11}
    assert keyed(candidate, base)["work_number"] == {"share": 50 / 80, "base": 5, "candidate": 11, "ratio": 11 / 5}
    # In four parts of a quarter of the size each: the same work.
    whole, parts = [("aten::mm", 64, 40), ("aten::relu", 64, 8)], [("aten::mm", 16, 10), ("aten::relu", 16, 2)] * 4
    assert not any("work" in key for key in keyed(sized(*whole), sized(*parts)))


def sized(*calls, graph=0, kernel="graph"):
    """A step of operators with one kernel each (name, elements, µs), and a kernel that no operator launched."""
    b = TraceBuilder()
    b.step(0, 0, 5000)
    for place, (name, elements, time) in enumerate(calls):
        b.op(name, 100 * place, 50, **{"Input Dims": [[elements]]})
        b.launch(100 * place + 10, 5, 100 * place + 20, time, name=name[6:])
    if graph:
        b.device(3500, graph, name=kernel)
    return side_from(b)


def test_tensors_of_another_size_are_held_against_all_time_of_the_device():
    """Of 100 µs each side has 10 in `mul`, of twice the size, and 90 in as large `mm`: called as often, or not."""
    small, large = ("aten::mul", 64, 10), ("aten::mul", 128, 10)
    once, twice = [("aten::mm", 64, 90)], [("aten::mm", 64, 45)] * 2
    for products in (once, twice):
        assert "work_shapes" not in keyed(sized(small, *once), sized(large, *products))
    # Most of what both do: 80 of 100 µs, 40 % of the time where a graph takes as much again, little beside a long one.
    small, large, rest = ("aten::mul", 64, 80), ("aten::mul", 128, 80), [("aten::mm", 64, 10)] * 2
    for graph, share in ((0, 0.8), (100, 0.4)):
        found = keyed(sized(small, *rest, graph=graph), sized(large, *rest, graph=graph))["work_shapes"]
        assert found == {"share": share, "ratio": pytest.approx((128 + 2 * 64) / (3 * 64))}
    assert "work_shapes" not in keyed(sized(small, *rest, graph=400), sized(large, *rest, graph=400))


def passes(*, backward=True, again=False, graph=False, lost=0, captured=False, device=True):
    """Two steps of one forward operator and, `backward`, its node, which may run it `again`; of `lost` launches
    one shows no kernel, and a `graph` is launched by no operator."""
    b = TraceBuilder()
    for number in range(2):
        at = 1000 * number
        b.step(number, at, 1000)
        calls = [("aten::mm", at + 10)]
        if backward:
            b.op("autograd::engine::evaluate_function: MmBackward0", at + 200, 200)
            b.op("MmBackward0", at + 260, 130)
            calls += [("aten::mul", at + 300)]
        if again:
            b.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", at + 100, 90)
            b.op("CheckpointFunctionBackward", at + 105, 80)
            calls += [("aten::mm", at + 110)]
        for place, (name, start) in enumerate(calls * 4):
            if not graph:
                b.op(name, start, 8)
            if not device:
                continue
            if lost and place % lost == 0:
                if captured:
                    b.api("cudaStreamBeginCapture", start, 1)
                    b.api("cudaStreamEndCapture", start + 7, 1)
                b.api("cudaLaunchKernel", start + 1, 5, correlation=9000 + 100 * number + place)
            else:
                b.launch(start + 1, 5, at + 400 + 40 * place, 30, name=name[6:])
    return side_from(b)


def test_a_side_without_a_backward_pass_does_other_work_and_one_that_recomputes_says_so():
    train, forward, again = passes(), passes(backward=False), passes(again=True)
    assert keyed(train, forward)["work_backward"] == {"side": "base", "share": 0.5}
    assert keyed(forward, train)["work_backward"]["side"] == "candidate"
    assert keyed(train, again)["recomputes"] == {"side": "candidate", "time_ns": 4 * 30_000}
    assert keyed(again, train)["recomputes"]["side"] == "base"
    assert not {"work_backward", "recomputes"} & keyed(again, passes(again=True)).keys()
    on_host = passes(device=False)
    assert "work_backward" in keyed(on_host, passes(device=False, backward=False))
    assert "recomputes" in keyed(on_host, passes(device=False, again=True))
    # Of what no operator launched (a graph) nobody can tell which pass it is of.
    assert "work_backward" not in keyed(train, passes(backward=False, graph=True))


def test_a_side_that_lost_events_is_told_before_it_seems_to_do_less_work():
    lost = keyed(passes(), passes(lost=4))
    assert lost["launches_lost"] == {"side": "candidate", "share": 0.25, "other_share": 0.0}
    assert not any(key.startswith("work_") for key in lost)
    # What a capture launches runs later, by its graph.
    assert "launches_lost" not in keyed(passes(), passes(lost=4, captured=True))


SGEMM, HALVES = "ampere_sgemm_128x64_tn", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
FLOATS, BRAINS = ["float", "float"], ["c10::BFloat16", "c10::BFloat16"]


def multiplying(*products):
    """A step of operators with one kernel each: operator, types of its tensors, kernel, µs."""
    b = TraceBuilder()
    b.step(0, 0, 1000)
    for place, (op, types, kernel, time) in enumerate(products):
        at = 100 * place
        b.op(op, at, 50, **({"Input Dims": [[64, 64], [64, 64]], "Input type": types} if types else {}))
        b.launch(at + 10, 5, at + 20, time, name=kernel, grid=[8, 1, 1], block=[64, 1, 1])
    return side_from(b)


def test_products_of_another_precision_are_told():
    floats = multiplying(
        ("aten::mm", FLOATS, SGEMM, 60), ("aten::mm", BRAINS, HALVES, 20), ("aten::add", FLOATS, "add", 70)
    )
    brains = multiplying(("aten::mm", BRAINS, HALVES, 30))
    differ = {"base": "fp32", "base_share": 0.75, "candidate": "bf16", "candidate_share": 1.0}
    assert keyed(floats, brains)["precision_differs"] == differ
    assert keyed(brains, floats)["precision_differs"]["base"] == "bf16"
    # What a region is given, and products without types, say less than the names of kernels.
    named = multiplying(("Torch-Compiled Region", FLOATS, HALVES, 30), ("aten::mm", [], HALVES, 10))
    assert keyed(floats, named)["precision_differs"] == differ
    # Float on matrix units is TF32.
    short = multiplying(("aten::mm", FLOATS, "cutlass_80_tensorop_s1688gemm_128x128_32x5_nn_align4", 30))
    assert keyed(floats, short)["precision_differs"]["candidate"] == "tf32"


def test_precision_that_one_side_does_not_tell_is_not_compared():
    floats, unsure = multiplying(("aten::mm", FLOATS, SGEMM, 60)), multiplying(("aten::mm", FLOATS, "my_gemm", 60))
    unknown = multiplying(("aten::mm", [], "my_gemm", 60), ("aten::mm", [], HALVES, 50))
    none = multiplying(("aten::add", FLOATS, "add", 60))
    for other in (floats, unsure, unknown, none):
        assert "precision_differs" not in keyed(floats, other)
        assert "precision_differs" not in keyed(other, floats)
    assert keyed(unsure, multiplying(("aten::mm", BRAINS, HALVES, 9)))["precision_differs"]["base"] == "fp32/tf32"


def test_a_model_that_went_from_float_to_bfloat16(shared_traces):
    """Its causes are ranked all the same, and the verdict begins with the time."""
    folder = shared_traces / "pairs" / "sam_fast_ladder"
    paths = folder / "a73da0_asdf_False.json.gz", folder / "4488ee_asdf_True.json.gz"
    if not folder.exists():
        pytest.skip("not among the shared traces")
    found = traceanalyze.compare(*paths)
    (told,) = (dict(each.values) for each in found.comparison.caveats if each.key == "precision_differs")
    assert (told["base"], told["candidate"], told["candidate_share"]) == ("fp32", "bf16", 1.0)
    # What cuBLAS calls sgemm or gemmSN and cuDNN's conversions, of these and of what has tf32 or s1688 in its name.
    events = json.loads(gzip.decompress(paths[0].read_bytes()))["traceEvents"]
    kernels = [(each["name"], each["dur"]) for each in events if each.get("cat") == "kernel"]
    full, short = (
        sum(time for name, time in kernels if re.search(pattern, name))
        for pattern in ("sgemm|gemmSN|convertTensor", "tf32|s1688|(?i:folded)Nhwc")
    )
    assert told["base_share"] == pytest.approx(full / (full + short), abs=0.001)
    assert found.verdict.startswith("The candidate is 236.6 ms (8.5 %) faster per step")
    assert found.tables["causes"].absent is None


def headed(**header):
    b = training()
    b.header = header
    return side_from(b)


def with_events(*add):
    b = training()
    for each in add:
        each(b)
    return side_from(b)


@pytest.mark.parametrize(
    ("what", "add"),
    [
        ("shapes", lambda b: b.op("aten::add", 1, 1, **{"Input Dims": [[2, 3]]})),
        ("stacks", lambda b: b.python("train.py(3): step", 1, 1)),
        ("modules", lambda b: b.python("nn.Module: Net_0", 1, 1)),
        ("memory", lambda b: b.memory(1, 100)),
    ],
)
def test_what_only_one_side_recorded(what, add):
    more, plain = with_events(add), side_from(training())
    assert keyed(more, plain)[f"{what}_on_one"] == {"side": "candidate"}
    assert keyed(plain, more)[f"{what}_on_one"] == {"side": "base"}
    assert keyed(more, more) == {}


def test_recording_options_that_slow_one_side_down():
    more = with_events(lambda b: b.python("train.py(3): step", 1, 1), lambda b: b.memory(1, 100))
    assert keyed(side_from(training()), more)["options_differ"] == {
        "base": "–",
        "candidate": "with_stack, profile_memory",
    }
    assert keyed(headed(record_shapes=1), headed(record_shapes=0))["options_differ"] == {
        "base": "record_shapes",
        "candidate": "–",
    }


def test_runtime_calls_and_host_operators_of_one_side_only():
    found = keyed(side_from(training()), side_from(training(launches=False)))
    assert found["idle_as_one"] == {"side": "candidate"}
    assert keyed(side_from(training(launches=False)), side_from(training()))["idle_as_one"] == {"side": "base"}
    assert "api_on_one" not in found
    b = training(wait=40)
    b.events = [event for event in b.events if event["cat"] not in {"cpu_op", "user_annotation"}]
    found = keyed(side_from(b), side_from(training(wait=40)))
    assert found["outside_calls_as_one"] == {"side": "base"}
    assert found["whole_trace_on_one"] == {"side": "base"}
    assert "host_ops_on_one" not in found
    assert keyed(side_from(training(wait=40)), side_from(b))["outside_calls_as_one"] == {"side": "candidate"}


def test_steps_of_a_device_alone_are_no_steps_of_the_host(tmp_path):
    (rank,) = simulate(Workload(model=Model(layers=2), device=Device(vendor="ascend"), steps=2))
    whole, tables = (write_ascend(tmp_path / name, rank) for name in ("whole", "tables"))
    (tables / OUTPUT / "trace_view.json").unlink()
    both, alone = (side(traceanalyze.load(home).traces[0]) for home in (whole, tables))
    found = keyed(both, alone)
    assert found["device_steps_on_one"] == {"side": "candidate"}
    assert keyed(alone, both)["host_ops_on_one"] == keyed(alone, both)["device_steps_on_one"] == {"side": "base"}
    assert "device_steps_on_one" not in keyed(alone, alone)
    assert "nothing of the host" in traceanalyze.compare(whole, tables).verdict


def test_a_device_on_one_side_or_none():
    b = TraceBuilder()
    b.op("aten::mm", 0, 10)
    host = side_from(b)
    found = keyed(host, side_from(training()))
    assert found["no_device_on_one"] == found["api_on_one"] == {"side": "base"}
    assert "no_device_on_either" in keyed(host, host)


def test_host_operators_of_one_side_are_told_where_its_device_is_missing_too():
    calls, ops = TraceBuilder(), TraceBuilder()
    calls.launch(0, 1, 5, 10)
    ops.op("aten::mm", 0, 10)
    found = keyed(side_from(calls), side_from(ops))
    assert found["host_ops_on_one"] == {"side": "base"}
    assert found["api_on_one"] == found["no_device_on_one"] == {"side": "candidate"}
    assert "host_ops_on_one" not in keyed(side_from(calls), side_from(calls))


def test_shares_of_known_operators_that_lie_more_than_five_points_apart():
    def known(part):
        b = TraceBuilder()
        b.step(0, 0, 200)
        b.op("aten::mm", 0, 5)
        b.launch(1, 1, 10, part)
        b.device(10 + part, 100 - part)
        return side_from(b)

    assert keyed(known(90), known(84))["coverage_differs"] == {"base_share": 0.9, "candidate_share": 0.84}
    assert "coverage_differs" not in keyed(known(90), known(85))
    assert "coverage_differs" not in keyed(known(85), known(90))


def test_clocks():
    fine = training()
    fine.event("cpu_op", "aten::add", 1.5, 0.25)
    assert keyed(side_from(fine), side_from(training()))["clocks_differ"] == {"base_ns": 1, "candidate_ns": 1000}


def ranked(rank, world):
    return headed(distributedInfo={"rank": rank, "world_size": world})


def test_ranks_and_sizes_of_runs():
    assert keyed(ranked(3, 8), ranked(1, 2)) == {
        "world_sizes_differ": {"base": 8, "candidate": 2},
        "ranks_differ": {"base": 3, "candidate": 1},
    }
    trace = training().trace()
    assert keyed(side(trace, ranks=2), side(trace, ranks=4)) == {"rank_counts_differ": {"base": 2, "candidate": 4}}
    # Of how many ranks the run without a world was, nobody knows.
    assert "world_sizes_differ" not in keyed(ranked(3, 8), side(trace, ranks=1))
    one = ranked(0, 8).context.trace
    assert keyed(side(one, ranks=8), side(one, ranks=5)) == {"rank_counts_differ": {"base": 8, "candidate": 5}}


def test_ranks_that_send_more_than_others_do_the_same_work():
    """Two stages of a pipeline: the one between others sends and receives, the last only receives."""

    def stage(rank, *kinds, dtype="Float"):
        b = TraceBuilder()
        b.header = {"distributedInfo": {"rank": rank, "world_size": 3}}
        b.step(0, 0, 100)
        for place, kind in enumerate(kinds):
            described = {"Collective name": kind, "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": dtype}
            b.launch(20 * place, 1, 5 + 20 * place, 5, name="ncclDevKernel_SendRecv", **described)
        return side_from(b)

    middle, last = stage(1, "recv", "send"), stage(2, "recv")
    assert keyed(middle, last)["ranks_differ"] == {"base": 1, "candidate": 2}
    assert "work_collectives" not in keyed(middle, last)
    assert keyed(stage(2, "recv", "send"), last)["work_collectives"]["ratio"] == 0.5
    # Ranks that only reduce do the same work, whichever are compared.
    assert keyed(stage(1, "all_reduce", "all_reduce"), stage(2, "all_reduce"))["work_collectives"]["ratio"] == 0.5
    # As much in a type twice as wide is the same work.
    wide = keyed(stage(1, "all_reduce", dtype="BFloat16"), stage(1, "all_reduce"))
    assert wide == {"typed_collectives": {"ratio": 2, "base_bytes": 2000, "candidate_bytes": 4000}}


def test_devices():
    found = keyed(
        headed(deviceProperties=[{"id": 0, "name": "NVIDIA H100"}]),
        headed(deviceProperties=[{"id": 0, "name": "NVIDIA A100"}]),
    )
    assert found == {"devices_differ": {"base": "NVIDIA H100", "candidate": "NVIDIA A100"}}


def test_steps_chosen_otherwise_and_steps_left_out():
    b = training(steps=3)
    b.step(3, 180, 50)
    whole, median = side_from(b), side_from(b, Options(steps=median_step))
    assert keyed(whole, median) == {
        "side_left_out": {"side": "base", "steps": 1},
        "steps_differ": {"base": "complete", "candidate": "median"},
    }
    bare = TraceBuilder()
    bare.launch(0, 1, 5, 10)
    assert keyed(side_from(bare), side_from(bare)) == {"whole_traces": {}}


@pytest.mark.parametrize(
    ("lengths", "key"),
    [((300, 100, 100, 100), "side_start_left_out"), ((120, 90, 120, 90, 120), "side_cycle_left_out")],
)
def test_steps_left_out_at_the_start(lengths, key):
    b, at = TraceBuilder(), 0
    for number, length in enumerate(lengths):
        b.step(number, at, length)
        b.launch(at + 5, 2, at + 10, length - 20)
        at += length
    found = side_from(b)
    assert keyed(found, found)[key] == {"side": "candidate", "steps": 1}


def test_levels_of_the_profiler():
    gpu = side_from(training())
    untold, one, two = (
        gpu._replace(info=replace(gpu.info, vendor="ascend", device_name="", level=level))
        for level in ("", "Level1", "Level2")
    )
    assert keyed(untold, one) == {"levels_differ": {"base": "–", "candidate": "Level1"}}
    assert keyed(two, one) == {"levels_differ": {"base": "Level2", "candidate": "Level1"}}
    assert "levels_differ" not in keyed(gpu, one), "a GPU's trace has no level"


def test_a_device_that_one_form_does_not_name_may_be_the_same():
    gpu = side_from(training())
    text, database, older = (
        gpu._replace(info=replace(gpu.info, vendor="ascend", device_name=name))
        for name in ("", "Ascend910B", "Ascend910A")
    )
    assert keyed(text, database) == {}
    assert keyed(older, database) == {"devices_differ": {"base": "Ascend910A", "candidate": "Ascend910B"}}
    assert "devices_differ" in keyed(gpu, text)
    # Turned round nothing is told of what there is to win.
    assert "devices_turned" in keyed(text, gpu)


def test_a_file_that_ends_early_and_one_with_broken_events():
    from traceanalyze.readers.kineto import read_text

    text = training().text()
    cut = side(read_text(text[: text.rindex("{") + 20].encode()))
    assert keyed(cut, side_from(training()))["side_truncated"] == {"side": "base"}
    b = training()
    b.event("cpu_op", "aten::add", 1, -5)
    assert keyed(side_from(training()), side_from(b)) == {"side_salvaged": {"side": "candidate", "count": 1}}


def test_events_that_one_side_does_not_count():
    """Three of a category that nobody knows, one device event twice in the file, and one that ends 9 s after all."""
    unknown, wrong = training(), training()
    for at in (1, 2, 3):
        unknown.event("npu_work", "gemm", at, 1, pid=0, tid=7, stream=7, correlation=900)
    last = max((event for event in wrong.events if event["cat"] == "kernel"), key=lambda event: event["ts"])
    wrong.events.append(last)
    wrong.device(last["ts"] + last["dur"] + 1, 9_000_000)
    told = {"side": "candidate", "count": 3, "categories": "npu_work × 3", "first": "npu_work"}
    assert keyed(side_from(training()), side_from(unknown)) == {"side_unknown": told}
    assert keyed(side_from(wrong), side_from(training()))["side_impossible"] == {"side": "base", "count": 2}
