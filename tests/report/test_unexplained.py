"""Large parts of the step have a finding, or the verdict says that they have none; lost data is told beside it."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.rules.sequences import Run, mm, steps
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.errors import Lost
from traceanalyze.report.contents.unexplained import not_explained
from traceanalyze.rules.finding import Finding, Outcome, Severity, Unexplained

MS = 1_000


def exposed(share):
    """Three steps of 100 ms: an all-reduce of `share` of them with nothing beside it, then compute."""
    trace = TraceBuilder()
    for number in range(3):
        at = 100 * MS * number
        length = round(100 * share) * MS
        trace.step(number, at, 100 * MS)
        trace.launch(at + 10, 5, at + 20, length - 20, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=20)
        trace.launch(at + 20, 5, at + length, 100 * MS - length, name="work")
    return trace


def told(report):
    return {message.key: {name: value for name, _, value in message.values} for message in report.verdict_messages}


@pytest.mark.parametrize(
    ("share", "ignore", "said"), [(0.4, (), False), (0.4, ("COM",), True), (0.19, ("COM",), False)]
)
def test_a_fifth_of_the_step_without_a_finding_is_told(tmp_path, share, ignore, said):
    exposed(share).write(tmp_path / "trace.json")
    for command in (traceanalyze.analyze, traceanalyze.postmortem):
        found = told(command(tmp_path / "trace.json", ignore=ignore))
        assert ("not_explained_communication" in found) == said
        if said:
            assert found["not_explained_communication"]["share"] == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize(("api", "why"), [("cudaGraphLaunch", "in_graphs"), ("cudaLaunchKernel", "device_dependency")])
def test_gaps_between_the_nodes_of_a_graph_may_come_from_recording_them(tmp_path, api, why):
    """Kernels of 60 µs, 40 µs apart, all launched at once."""
    trace = TraceBuilder()
    for number in range(3):
        at = 10_000 * number
        trace.step(number, at, 10_000)
        trace.api(api, at + 1, 50, correlation=number + 1)
        for node in range(99):
            trace.device(at + 60 + 100 * node, 60, correlation=number + 1)
    trace.write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert found[f"not_explained_{why}"]["share"] == pytest.approx(0.39, abs=0.01)


@pytest.mark.parametrize("function", ["", "train.py(70): save_checkpoint"])
def test_what_the_host_does_once_in_a_recorded_function_is_told_with_its_line(tmp_path, function):
    """One pause of 40 ms in six steps of 10 ms: no pattern, so no finding, but not outside of Python functions."""
    b, at = TraceBuilder(), 0
    b.python("train.py(1): main", 0, 5)
    for number in range(6):
        length = 50_000 if number == 3 else 10_000
        b.step(number, at, length)
        b.launch(at + 10, 5, at + 20, 9_900, name="work")
        if length > 10_000 and function:
            b.python(function, at + 9_000, 40_900)
        at += length
    b.write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert found[f"not_explained_untraced_{'line' if function else 'python'}"].get("line", "") == function


@pytest.mark.parametrize(("gap", "hidden"), [(100, True), (9, False)])
def test_compute_behind_a_slow_host_is_said_to_be_hidden(tmp_path, gap, hidden):
    """Ten kernels of 60 µs in steps of 1000, launched one every 100 µs: without them the host takes as long.

    Launched one every 9 µs they run back to back, and without them nothing but these launches is left.
    """
    b = TraceBuilder()
    for number in range(4):
        at = 1000 * number if hidden else 610 * number
        b.step(number, at, 1000 if hidden else 610)
        for place in range(10):
            begin = at + gap * place
            b.launch(begin, 5, begin + 10 if hidden else at + 10 + 60 * place, 60, name="work")
        if not hidden:
            b.api("cudaDeviceSynchronize", at + 100, 510)
    b.write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    if hidden:
        assert found["compute_hidden"] == {"share": pytest.approx(0.6, abs=0.01), "most": pytest.approx(0, abs=0.02)}
    else:
        assert "compute_hidden" not in found
        assert found["compute_shapes"] == {"share": pytest.approx(0.98, abs=0.01)}


def test_what_computes_while_the_host_waits_may_be_saved_at_best(tmp_path):
    """As above, but a copy on a stream of its own holds the host up until 55 of 60 µs of a kernel have passed."""
    b = TraceBuilder()
    for number in range(4):
        at = 1000 * number
        b.step(number, at, 1000)
        for place in range(10):
            b.launch(at + 100 * place, 5, at + 100 * place + 10, 60, name="work")
        b.copy(at + 15, 55, at + 68, 2, name="Memcpy DtoH (Device -> Pageable)", stream=20)
    b.write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert 0.054 < found["compute_hidden"]["most"] < 0.12


_SMALL = Run("mine::op", 900, [[1, 64, 56, 56]], ["float"], "act", device={"blocks per SM": 0.4})


@pytest.mark.parametrize(
    ("runs", "key", "values"),
    [
        # 34.4 GFLOP in 150 µs are 229 of 312 TFLOP/s.
        ([mm(150)] * 25, "compute_rated", {"share": 0.94, "reached": 0.734, "of": 1.0}),
        # Of requests one by one, which have no larger batch to give: a finding would ask for it.
        ([_SMALL, _SMALL, *[mm(150)] * 3], "compute_few_blocks", {"share": 0.562, "of": 0.8}),
        ([Run("mine::op", 900, [[64, 64]], ["float"], "mine")] * 4, "compute_formulas", {"share": 0.9}),
        ([Run("mine::op", 900, None, None, "mine")] * 4, "compute_shapes", {"share": 0.9}),
    ],
)
def test_of_large_compute_without_a_finding_the_verdict_says_what_is_known(tmp_path, runs, key, values):
    steps(runs).write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert found[key] == {name: pytest.approx(value, abs=0.01) for name, value in values.items()}


def test_where_the_device_is_not_known_its_peaks_are_missing(tmp_path):
    steps([mm(150)] * 25, device={"id": 0, "name": "Card X"}).write(tmp_path / "trace.json")
    assert "compute_peaks" in told(traceanalyze.analyze(tmp_path / "trace.json"))


def test_of_a_few_chosen_rules_nobody_expects_that_they_explain_everything(tmp_path):
    exposed(0.4).write(tmp_path / "trace.json")
    assert "not_explained_communication" not in told(traceanalyze.analyze(tmp_path / "trace.json", select=["DAT"]))


def test_nothing_is_said_to_be_found_not_where_a_part_is_only_a_bound(tmp_path):
    """Of 10 % in collectives nobody knows how much is waiting: other ranks were not recorded."""
    for share, key in ((0.1, "healthy_open"), (0.04, "healthy")):
        exposed(share).write(tmp_path / "trace.json")
        found = told(traceanalyze.postmortem(tmp_path / "trace.json", ignore=("COM",)))
        assert key in found
        assert ("healthy" in found) == (key == "healthy")
    assert "part" not in found["healthy"]
    # What compute lacks to be judged is no problem that a rule did not find.
    assert "compute_shapes" in found


def test_a_finding_about_the_ranks_explains_waiting():
    open_part = Outcome(unexplained=(Unexplained("communication", 0.4, "communication"),))
    late = Finding(rule="RNK101", severity=Severity.MEDIUM)
    assert [one.key for one in not_explained(open_part)] == ["not_explained_communication"]
    assert not_explained(open_part, Outcome((late,))) == ()
    assert not_explained(None) == ()


def test_events_that_could_not_be_read_are_told_beside_the_verdict(tmp_path):
    trace = exposed(0.1)
    trace.write(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    at = text.index('"traceEvents"')
    at = text.index("[", at) + 1
    (tmp_path / "trace.json").write_text(text[:at] + '{"ph": "X", "name": "lost", "ts": 5},' + text[at:])
    report = traceanalyze.analyze(tmp_path / "trace.json")
    assert told(report)["lost_events"]["count"] == 1


@pytest.mark.parametrize(("more", "told_of"), [({"correlation": 7, "stream": 7}, True), ({"correlation": 7}, False)])
def test_work_of_the_device_in_a_category_that_nobody_knows_is_told_beside_the_verdict(tmp_path, more, told_of):
    trace = exposed(0.1)
    trace.event("gpu_kernel_v9", "gemm", 10, 5, **more)
    trace.write(tmp_path / "trace.json")
    said = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert ("unknown_work" in said) == told_of
    assert not told_of or said["unknown_work"]["categories"] == "gpu_kernel_v9 × 1"


def test_remarks_on_lost_data_are_warnings_and_others_notes(tmp_path):
    assert isinstance(Lost("{name} cannot be read and was left out", "x"), str)
    exposed(0.1).write(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    (tmp_path / "trace.json").write_text('{"distributedInfo": {"rank": tru, "world_size": 2}, ' + text.lstrip()[1:])
    report = traceanalyze.analyze(tmp_path / "trace.json")
    analysis = report.analyses[0]
    assert isinstance(analysis, RankAnalysis)
    assert [(one.id, one.level.name) for one in analysis.checks if one.message == "note"] == [("Q01", "WARN")]
    assert "lost_data" in told(report)


def test_work_that_is_done_once_is_told_in_the_verdict_and_is_no_health(tmp_path):
    """In 100 ms, 80 ms pass in the first launch of a kernel, whose code it loads."""
    trace = TraceBuilder()
    trace.op("aten::mm", 0, 100 * MS)
    trace.launch(0, 5, 10, 990, name="other")
    trace.launch(1_000, 80 * MS, 81 * MS + 10, 990, name="new")
    for at in range(82 * MS, 100 * MS, MS):
        trace.launch(at - 900, 5, at, MS - 50, name="other")
    trace.write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert found["done_once"]["share"] == pytest.approx(0.8, abs=0.01)
    found = told(traceanalyze.postmortem(tmp_path / "trace.json"))
    assert {"done_once", "healthy_trace_yet"} <= found.keys()
    assert "healthy_trace" not in found


def on_host(*steps):
    """Steps of 10 ms and more: an operator and a wait for other processes in each, and at the end nothing recorded."""
    trace, at = TraceBuilder(), 0
    for number, (sort, waits, nothing) in enumerate(steps):
        begin = at
        for name, length in (("aten::sort", sort), ("aten::mm", 1), ("gloo:all_reduce", waits)):
            trace.op(name, at, length * MS)
            at += length * MS
        at += nothing * MS
        trace.step(number, begin, at - begin)
    return trace


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([(8, 0, 1)] * 4, {"not_explained_host_operator": {"share": 0.8, "line": "aten::sort"}}),
        ([(1, 0, 8)] * 4, {}),
        ([(4, 4, 1)] * 4, {"not_explained_peer_wait": {"share": 0.4}, "not_explained_host_operator": {"share": 0.4}}),
        # A fifth at least.
        ([(1, 1, 7)] * 4, {}),
        # What comes once is no pattern, and it is said where it is.
        (
            [(1, 0, 1)] * 3 + [(1, 0, 18)],
            {"not_explained_untraced": {"share": 21 / 29}, "not_explained_step": {"step": "3"}},
        ),
        ([(1, 0, 1)] * 2 + [(1, 0, 8), (1, 0, 8)], {}),
    ],
)
def test_large_parts_of_a_host_that_computes_are_told(tmp_path, steps, said):
    on_host(*steps).write(tmp_path / "trace.json")
    found = told(traceanalyze.analyze(tmp_path / "trace.json"))
    assert {key for key in found if key.startswith("not_explained")} == set(said)
    for key, values in said.items():
        assert {name: found[key][name] for name in values} == pytest.approx(values)


def test_of_ranks_side_by_side_waiting_for_the_late_one_is_explained(tmp_path):
    for rank, (sort, waits) in enumerate(((1, 8), (8, 1))):
        trace = on_host(*[(sort, waits, 0)] * 4)
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "gloo"}
        trace.write(tmp_path / f"rank{rank}.json")
    keys = told(traceanalyze.analyze(tmp_path))
    assert "straggler_part_because" in keys or "straggler_because" in keys
    assert "not_explained_peer_wait" not in keys
    assert "not_explained_peer_wait" in told(traceanalyze.analyze(tmp_path / "rank0.json"))


@pytest.mark.parametrize(
    ("kernels", "lengths", "said"),
    [
        ([4] * 6, [100, 100, 110, 120, 150, 160], "steps_slow_down"),
        ([4, 4, 4, 4, 4, 5], [100, 100, 110, 120, 150, 160], "steps_grow"),
        # One of the last is as short as the first were; by less than a fifth; too few.
        ([4] * 6, [100, 120, 110, 120, 120, 160], ""),
        ([4] * 6, [100, 100, 110, 110, 115, 120], ""),
        ([4] * 5, [100, 100, 120, 150, 160], ""),
    ],
)
def test_steps_that_become_longer_are_told_with_what_grows(tmp_path, kernels, lengths, said):
    trace, at = TraceBuilder(), 0
    for number, (count, length) in enumerate(zip(kernels, lengths, strict=True)):
        trace.step(number, at, length * MS)
        for part in range(count):
            begin = at + part * length * MS // count
            trace.launch(begin, 5, begin + 10, length * MS // count - 20)
        at += length * MS
    found = told(traceanalyze.analyze(trace.write(tmp_path / "trace.json")))
    assert [key for key in found if key.startswith("steps_")] == ([said] if said else [])
    if said:
        values = found[said]
        assert (values["first"], values["last"], values["part"]) == (100 * MS * MS, 155 * MS * MS, "compute")
        assert values["more"] == pytest.approx(sum(kernels[4:]) / 8 - 1)
