"""Every byte of the peak has a name, and what a lever saves is what the same run needs less with it."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.gpt import BLOCK_LINE, Gpt, train
from tests.simulate.allocator.pool import MIB, Allocator, OutOfMemoryError
from tests.simulate.allocator.programs import Loop, engine, frame, module, user
from tests.simulate.allocator.programs import train as loop
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.categories import categories
from traceanalyze.analyses.memory.composition import live_at
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.levers import levers
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from traceanalyze.model.snapshot import Snapshot

GIB = 1 << 30


class Quick(Allocator):
    """Without what was free at every event, which nobody asks here."""

    def _look(self) -> None:
        pass


def read(content: dict[str, Any], folder: Path) -> Snapshot:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    return read_snapshot(Source(str(path), size=path.stat().st_size))


def late(allocator: Allocator, keep: int) -> dict[str, Any]:
    """As if recording had begun when only so many events were left: blocks from before have no stacks."""
    content = dump(allocator, keep=keep)
    for segment in content["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []
    return content


def device_of(snapshot: Snapshot, **known: Any) -> Device:
    (device,) = snapshot.devices
    return Device(snapshot, device, sites(snapshot.stacks), **known)


def held(device: Device, event: int | None = None) -> dict[str, int]:
    """Requested bytes of each category at the peak, or after an event."""
    code, names, _ = device.once(categories)
    sums: dict[str, int] = {}
    for row in live_at(device.lives, device.active.peak[1] if event is None else event).tolist():
        name = names[code[row]].removeprefix("category_")
        sums[name] = sums.get(name, 0) + int(device.lives.requested[row])
    return sums


MEDIUM = Gpt(batch=15, steps=2)
LADDER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("checkpoint", {"checkpointed": True}),
    ("eight_bit_optimizer", {"eight_bit": True}),
    ("chunked_loss", {"chunks": 8}),
    ("fused_optimizer", {"fused": True}),
    ("half_gradients", {"half_gradients": True}),
    ("smaller_batch", {"batch": 7}),
    ("shard_optimizer", {"ranks": 2}),
)


def rungs() -> Iterator[tuple[str, Gpt]]:
    gpt = MEDIUM
    yield "", gpt
    for name, change in LADDER:
        gpt = replace(gpt, **change)
        yield name, gpt


@cache
def ran(gpt: Gpt) -> Allocator:
    return train(gpt, Quick())


def peak(gpt: Gpt) -> int:
    return max(state.allocated for state in ran(gpt).truth)


def test_the_ladder_leads_from_36_gib_to_far_below_8() -> None:
    peaks = [peak(gpt) for _, gpt in rungs()]
    assert peaks[0] > 36 * GIB
    assert peaks[3] < 5 * GIB
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize("rung", range(len(LADDER)))
@pytest.mark.parametrize("forgotten", [False, True])
def test_what_each_step_of_the_ladder_gains_is_told_before(tmp_path: Path, rung: int, forgotten: bool) -> None:
    """Also where the ring has only the last step, and parameters and states are from before it."""
    (_, now), (name, then) = [*rungs()][rung : rung + 2]
    events = ran(now).events
    content = late(ran(now), len(events) * 9 // 20) if forgotten else dump(ran(now))
    found = {one.lever: one for one in reversed([*levers(device_of(read(content, tmp_path))).records()])}
    said, gained = found[f"lever_{name}"].saved_bytes, peak(now) - peak(then)
    assert abs(said - gained) <= 0.2 * gained
    if name == "checkpoint":
        one = found["lever_checkpoint"]
        assert (one.source_line, one.count) == (f"gpt.py:{BLOCK_LINE} forward", MEDIUM.layers)


@pytest.mark.parametrize("change", [{}, {"checkpointed": True, "chunks": 8}])
def test_blocks_from_before_the_history_are_named_by_their_sizes(tmp_path: Path, change: dict[str, Any]) -> None:
    gpt = Gpt(layers=6, batch=2, steps=2, **change)
    allocator = train(gpt, Quick())
    keep = next(at for at, one in enumerate(reversed(allocator.events)) if one.get("frames") == user(20)) + 1
    device = device_of(read(late(allocator, keep), tmp_path))
    before = held(device, -1)
    assert before == {"parameters": sum(gpt.parameters), "optimizer": 2 * sum(gpt.parameters)}
    at_peak = held(device)
    assert at_peak.get("preexisting", 0) + at_peak.get("other", 0) == 0


@pytest.mark.parametrize(
    ("parameter", "states", "named"),
    [
        (4, (4, 4), {"parameters": 4, "optimizer": 8}),  # Adam
        (4, (4,), {"parameters": 4, "optimizer": 4}),  # momentum
        (2, (4, 4, 4), {"parameters": 2, "optimizer": 12}),  # 16 bits, with a copy and Adam's states in 32
        (4, (2,), {"parameters": 4, "optimizer": 2}),  # a copy in 16 bits
    ],
)
def test_states_have_the_sizes_of_gradients_or_twice_or_half_of_them(
    tmp_path: Path, parameter: int, states: tuple[int, ...], named: dict[str, int]
) -> None:
    sizes = (5 * MIB, 7 * MIB, 11 * MIB)
    allocator = Quick()
    for each in (parameter, *states):
        for size in sizes:
            allocator.malloc(each * size, user(9))
    other = allocator.malloc(3 * MIB, user(9))
    keep = len(allocator.events)
    for size in sizes:
        allocator.malloc(parameter * size, engine("mm"))
    allocator.malloc(MIB, user(12))
    assert other in allocator.live
    found = held(device_of(read(late(allocator, len(allocator.events) - keep), tmp_path)), -1)
    assert found == {name: each * sum(sizes) for name, each in named.items()} | {"preexisting": 3 * MIB}


def mixed_precision(parameter: int, states: tuple[int, ...], eight: tuple[int, ...] = ()) -> Allocator:
    """Bytes of each number of a parameter, of what is kept beside it from the start, and what of that has a quarter."""
    allocator, sizes = Quick(), [(20 + 3 * number) * MIB for number in range(14)]
    for at, each in enumerate((parameter, *states)):
        for size in sizes:
            allocator.malloc(each * size // (4 if at - 1 in eight else 1), user(9))
    for _ in range(2):
        kept = [allocator.malloc(20 * MIB, module(40)) for _ in range(4)]
        gradients = [allocator.malloc(parameter * size, engine("mm", accumulates=True)) for size in sizes]
        for one in (*kept, *(allocator.malloc(MIB, user(25)) for _ in range(15)), *gradients):
            allocator.free(one)
    return allocator


@pytest.mark.parametrize(
    ("parameter", "states", "eight"),
    [
        (4, (4, 4), (0, 1)),  # Adam in 32 bits
        (4, (4,), (0,)),  # momentum
        (2, (4, 4, 4), (1, 2)),  # 16 bits, with a copy and Adam's states in 32
        (2, (4,), ()),  # with the copy alone
        (2, (4, 4), (0, 1)),  # without it
    ],
)
def test_a_copy_of_the_parameters_is_no_state_of_eight_bits(
    tmp_path: Path, parameter: int, states: tuple[int, ...], eight: tuple[int, ...]
) -> None:
    """And gradients beside larger states have half the bits already."""
    now = mixed_precision(parameter, states)
    early = 14 * (1 + len(states)) * 2
    found = levers(device_of(read(late(now, len(now.events) - early), tmp_path)))
    said = {one.lever: one.saved_bytes for one in found.records()}
    most = [max(each.allocated for each in run.truth) for run in (now, mixed_precision(parameter, states, eight))]
    assert abs(said.get("lever_eight_bit_optimizer", 0) - (most[0] - most[1])) <= 0.02 * most[0]
    assert ("lever_half_gradients" in said) == (parameter == 4)


def test_sizes_of_few_gradients_name_nothing(tmp_path: Path) -> None:
    allocator = Quick()
    allocator.malloc(5 * MIB, user(9))
    keep = len(allocator.events)
    for size in (5 * MIB, 60 * MIB):
        allocator.malloc(size, engine("mm"))
    allocator.malloc(MIB, user(12))
    found = held(device_of(read(late(allocator, len(allocator.events) - keep), tmp_path)), -1)
    assert found == {"preexisting": 5 * MIB}


def test_activations_are_those_also_where_the_forward_pass_fails(tmp_path: Path) -> None:
    """And what is missing for the request is what the device lacks."""
    allocator = Quick(capacity=200 * MIB)
    kept = [allocator.malloc(40 * MIB, module(40)) for _ in range(4)]
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(64 * MIB, module(41))
    for address in kept:
        allocator.free(address)
    snapshot = read(dump(allocator), tmp_path)
    device = device_of(snapshot)
    assert held(device, device.failures[0]) == {"activations": 160 * MIB}
    (found,) = analyze_snapshot(snapshot)
    assert found.missing == 160 * MIB + 64 * MIB - 200 * MIB
    saved = {one.lever: one.saved_bytes for one in found.levers.records()}
    assert saved["lever_smaller_batch"] == 80 * MIB


def test_a_request_that_fails_beside_a_device_with_room_lacks_nothing_that_is_known(tmp_path: Path) -> None:
    """As where a process may take only a part of the device."""
    allocator = Quick(capacity=200 * MIB)
    allocator.malloc(160 * MIB, module(40))
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(64 * MIB, module(41))
    snapshot = dump(allocator)
    (failed,) = (event for event in snapshot["device_traces"][0] if event["action"] == "oom")
    failed["device_free"] = 64 * MIB
    (found,) = analyze_snapshot(read(snapshot, tmp_path))
    assert found.missing is None


def test_functions_outside_of_modules_keep_activations_where_the_backward_pass_finds_them(tmp_path: Path) -> None:
    allocator = Quick()
    lasting, kept = allocator.malloc(8 * MIB, user(9)), allocator.malloc(16 * MIB, user(10))
    for _ in range(12):
        allocator.free(allocator.malloc(2 * MIB, user(11)))
    for _ in range(12):
        allocator.free(allocator.malloc(2 * MIB, engine("mm")))
    allocator.free(kept)
    assert lasting in allocator.live
    found = held(device_of(read(dump(allocator), tmp_path)))
    assert {**found, "transient": 0} == {"parameters": 8 * MIB, "activations": 16 * MIB, "transient": 0}


TORCH = "/usr/lib/python3.12/site-packages/torch"


def test_buffers_of_collectives_are_told_from_the_model_that_runs_within_a_sharded_module(tmp_path: Path) -> None:
    call = frame("_call_impl", f"{TORCH}/nn/modules/module.py", 1750)
    sharded = frame("forward", f"{TORCH}/distributed/fsdp/fully_sharded_data_parallel.py", 850)
    gathered = frame("_unshard", f"{TORCH}/distributed/fsdp/_runtime_utils.py", 300)
    allocator = Quick()
    allocator.malloc(8 * MIB, user(10, gathered, sharded, call))
    allocator.malloc(4 * MIB, user(10, frame("forward", "/home/me/m.py", 3), call, sharded, call))
    assert held(device_of(read(dump(allocator), tmp_path))) == {"communication": 8 * MIB, "activations": 4 * MIB}


def test_gradients_of_sharded_modules_are_what_their_collectives_leave(tmp_path: Path) -> None:
    """Reduced in the backward pass and alive after it; what was gathered for it is freed in it."""
    collectives = [frame("foreach_reduce", f"{TORCH}/distributed/fsdp/_fully_shard/_fsdp_collectives.py", 500)]
    allocator = Quick()
    for _ in range(3):
        allocator.malloc(8 * MIB, user(9))
    keep = len(allocator.events)
    allocator.malloc(MIB, engine("mm"))
    gathered = allocator.malloc(16 * MIB, [*collectives, *engine("all_gather")])
    allocator.malloc(8 * MIB, [*collectives, *engine("reduce_scatter")])
    for _ in range(11):
        allocator.free(allocator.malloc(MIB, engine("mm")))
    allocator.free(gathered)
    allocator.malloc(2 * MIB, user(12))
    found = device_of(read(late(allocator, len(allocator.events) - keep), tmp_path))
    assert held(found, -1) == {"parameters": 8 * MIB, "optimizer": 16 * MIB}
    at_peak = held(found)
    assert (at_peak["communication"], at_peak["gradients"]) == (16 * MIB, 9 * MIB)


def marked(allocator: Allocator, **marks: tuple[str, str]) -> dict[str, Any]:
    """The snapshot with what the program and torch.compile say of allocations at some lines."""
    content = dump(allocator)
    for event in content["device_traces"][0]:
        said, unit = marks.get(f"line_{event['frames'][-2]['line']}", ("", "N/A"))
        event["user_metadata"], event["compile_context"] = said, unit
    return content


def test_users_name_categories_by_marks_ranges_and_patterns(tmp_path: Path) -> None:
    allocator = Quick()
    for line in (10, 11, 12, 13):
        allocator.malloc(
            line * MIB, user(line, frame("work", "/home/me/experts.py" if line == 13 else "/home/me/a.py", 1))
        )
    allocator.note("attention")
    allocator.malloc(14 * MIB, user(14))
    allocator.note("attention", "END")
    content = marked(allocator, line_10=("cache of keys", "N/A"), line_11=("", "3/0"))
    assert held(device_of(read(content, tmp_path))) == {
        "cache of keys": 10 * MIB,
        "compile": 11 * MIB,
        "parameters": (12 + 13 + 14) * MIB,
    }
    patterns = {name: re.compile(name) for name in ("expert", "attention", "keys", "3/0")}
    assert held(device_of(read(content, tmp_path), patterns=patterns)) == {
        "keys": 10 * MIB,
        "3/0": 11 * MIB,
        "parameters": 12 * MIB,
        "expert": 13 * MIB,
        "attention": 14 * MIB,
    }


def test_frames_of_compiled_graphs_stand_for_the_lines_they_come_from(tmp_path: Path) -> None:
    origin = '  File "/me/model.py", line 7, in forward\n    x = self.mlp(x)\n  File "/me/mlp.py", line 9, in forward\n'
    compiled = {**frame("call", "/tmp/torchinductor_me/ab/cab.py", 80), "fx_original_trace": origin}
    allocator = Quick()
    allocator.malloc(MIB, user(10, compiled))
    found = device_of(read(dump(allocator), tmp_path))
    assert found.line(1) == "mlp.py:9 forward"


@pytest.mark.parametrize("said", [3, None, ["a"], {"a": 1}])
def test_marks_that_are_no_texts_say_nothing(tmp_path: Path, said: Any) -> None:
    allocator = Quick()
    allocator.malloc(MIB, user(10))
    content = dump(allocator)
    for event in content["device_traces"][0]:
        event["user_metadata"] = event["compile_context"] = said
        event["frames"] = [{**one, "fx_original_trace": said} for one in event["frames"]]
    assert held(device_of(read(content, tmp_path))) == {"parameters": MIB}


def test_what_steps_leave_behind_is_a_lever(tmp_path: Path) -> None:
    device = device_of(read(dump(loop(Loop(leak=10 * MIB), Quick())), tmp_path))
    assert held(device)["leaked"] == 70 * MIB
    saved = {one.lever: one.saved_bytes for one in levers(device).records()}
    assert saved["lever_drop_references"] == 70 * MIB  # the peak is in the last step, which has left nothing yet


NAMED = ("cuda-transformer-128-training", "cuda-small", "cuda-2.10-training", "npu-expandable", "npu-empty-cache")


@pytest.mark.parametrize("name", NAMED)
def test_at_most_a_tenth_of_the_peak_of_real_trainings_has_no_name(shared_snapshots: Path, name: str) -> None:
    path = shared_snapshots / f"{name}.pickle"
    device = device_of(read_snapshot(Source(str(path), size=path.stat().st_size)))
    found = held(device)
    assert found.get("preexisting", 0) + found.get("other", 0) <= 0.1 * device.active.peak[0]


def test_a_snapshot_that_contradicts_itself_promises_nothing(tmp_path: Path) -> None:
    """Without its last events the dump holds less than the history leads to."""
    content = dump(train(Gpt(layers=2, batch=2, steps=1), Quick()))
    del content["device_traces"][0][90:]
    (found,) = analyze_snapshot(read(content, tmp_path))
    assert not found.reconciled
    assert found.levers.absent == NotMeasured("snapshot_contradicts_itself")


@pytest.mark.parametrize("closure", [False, True])
def test_what_has_no_stack_in_a_step_is_the_optimizers_unless_it_trains(tmp_path: Path, closure: bool) -> None:
    """As in Lightning, which calls model and backward pass within the step, with stacks of Python alone."""
    allocator = Quick()
    allocator.note("Optimizer.step#AdamW.step", "START" if closure else "END")
    kept = [allocator.malloc(MIB, module(40)) for _ in range(12)]
    allocator.note("Optimizer.step#AdamW.step")
    made = [allocator.malloc(2 * MIB) for _ in range(12)]
    for one in kept:
        allocator.free(one)
    allocator.note("Optimizer.step#AdamW.step", "END")
    allocator.malloc(MIB, user(9))
    assert made
    found = held(device_of(read(dump(allocator), tmp_path)))
    assert found["gradients" if closure else "optimizer"] == 24 * MIB


def test_what_the_optimizer_makes_is_no_part_of_the_loss_whatever_its_size(tmp_path: Path) -> None:
    """Of an embedding, say, twice as large as the logits."""
    allocator = Quick()
    lasting = allocator.malloc(16 * MIB, user(9))
    logits = [allocator.malloc(8 * MIB, user(24, frame("cross_entropy", "/x/torch/nn/functional.py", 3494)))]
    for step in ([], [frame("step", "/x/torch/optim/adamw.py", 220)] * 3):
        made = [allocator.malloc(16 * MIB, user(25, one)) for one in step]
        for one in (*logits, *made):
            allocator.free(one)
        logits = []
    assert lasting in allocator.live
    found = {one.lever: one.saved_bytes for one in levers(device_of(read(dump(allocator), tmp_path))).records()}
    assert found["lever_fused_optimizer"] == 40 * MIB
    assert "lever_chunked_loss" not in found
