"""What a recording asks of torch, by kind of device; torch is a stand-in that notes what it is asked for."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from traceanalyze.errors import UsageError
from traceanalyze.recording import context
from traceanalyze.recording.bootstrap import outcome
from traceanalyze.recording.context import Recording, dump_snapshot, find_device, make_profiler, record, watch_allocator
from traceanalyze.recording.options import (
    CPU,
    CUDA,
    HIP,
    NPU,
    Device,
    RecordOptions,
    rank_and_world,
    refuse_recorded,
    worker_name,
)


class Profiler:
    """One profile; `stop` hands it over as torch does, if there was a step to record."""

    def __init__(self, **given):
        self.given, self.calls = given, []

    def start(self):
        self.calls.append("start")

    def step(self):
        self.calls.append("step")

    def stop(self):
        self.calls.append("stop")

    def export_chrome_trace(self, path):
        Path(path).touch()


class Memory:
    """The allocator's history."""

    def __init__(self, fails=None):
        self.asked, self.fails = [], fails

    def _record_memory_history(self, **given):
        if self.fails:
            raise RuntimeError(self.fails)
        self.asked.append(given)

    def _dump_snapshot(self, path):
        if self.fails:
            raise RuntimeError(self.fails)
        Path(path).touch()


def profilers(*, refuses=False):
    def profile(**given):
        if refuses and isinstance(given["activities"][0], dict):
            raise TypeError("activities")
        return Profiler(**given)

    activity = SimpleNamespace(CPU="cpu", CUDA="cuda", NPU="npu")
    return SimpleNamespace(ProfilerActivity=activity, profile=profile, schedule=lambda **given: given)


@pytest.fixture
def torch(monkeypatch):
    """A torch without devices."""
    fake = ModuleType("torch")
    fake.__version__ = "2.9.1"
    fake.version = SimpleNamespace(cuda="12.8", hip=None)
    fake.cuda = SimpleNamespace(
        is_available=lambda: False,
        is_initialized=lambda: False,
        device_count=lambda: 2,
        get_device_name=lambda index: f"GPU {index}",
        memory=Memory(),
        _lazy_call=lambda begin: begin(),
    )
    fake.backends = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: False))
    fake.observers = []
    fake._C = SimpleNamespace(_cuda_attach_out_of_memory_observer=fake.observers.append)
    fake.profiler = profilers()
    fake.distributed = ModuleType("torch.distributed")
    fake.distributed.is_available = lambda: True
    fake.distributed.is_initialized = lambda: False
    fake.__path__ = []
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.distributed", fake.distributed)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(context, "installed", lambda _package: False)
    monkeypatch.setattr(context, "require_torch", lambda: None)
    monkeypatch.setattr(context, "let_children_end", lambda: None)
    return fake


@pytest.fixture
def npu(torch, monkeypatch):
    """A torch with torch_npu beside it."""
    fake = ModuleType("torch_npu")
    fake.__version__ = "2.7.1"
    fake.npu = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        device_count=lambda: 1,
        get_device_name=lambda index: f"Ascend {index}",
        memory=Memory(),
    )
    fake.profiler = profilers()

    def handler(folder, worker_name):
        fake.handled = folder, worker_name
        return lambda profile: None

    fake.profiler.tensorboard_trace_handler = handler
    monkeypatch.setitem(sys.modules, "torch_npu", fake)
    monkeypatch.setattr(context, "installed", lambda package: package == "torch_npu")
    return fake


def test_a_host_alone_has_no_devices(torch):
    assert find_device() == Device(CPU, (), {"torch": "2.9.1"})


def test_devices_are_found_with_their_versions(torch):
    torch.cuda.is_available = lambda: True
    assert find_device() == Device(CUDA, ("GPU 0", "GPU 1"), {"torch": "2.9.1", "cuda": "12.8"})
    torch.version.hip = "6.3"
    assert find_device() == Device(HIP, ("GPU 0", "GPU 1"), {"torch": "2.9.1", "hip": "6.3"})


def test_an_npu_is_found_where_it_can_be_used(npu):
    assert find_device() == Device(NPU, ("Ascend 0",), {"torch": "2.9.1", "torch_npu": "2.7.1"})
    npu.npu.is_available = lambda: False
    assert find_device().kind == CPU


def made(kind, folder, **options):
    written = []
    return make_profiler(Device(kind, (), {}), RecordOptions(**options), folder, lambda: 3, written.append), written


@pytest.mark.parametrize(
    ("kind", "options", "activities"),
    [
        (CPU, {}, ["cpu"]),
        (CUDA, {}, ["cpu", "cuda"]),
        (HIP, {}, ["cpu", "cuda"]),
        (CPU, {"light": True}, ["cpu"]),
        (CUDA, {"light": True}, [{"cpu": ["USER_ANNOTATION"]}, "cuda"]),
    ],
)
def test_what_is_recorded_of_which_device(torch, tmp_path, kind, options, activities):
    profiler, _ = made(kind, tmp_path, **options)
    assert profiler.given["activities"] == activities
    assert profiler.given["schedule"] == {"wait": 5, "warmup": 3, "active": 5, "repeat": 1}


def test_options_of_the_profiler_are_those_asked_for(torch, tmp_path):
    given = made(CPU, tmp_path, wait=1, warmup=2, active=4, stacks=True, shapes=False)[0].given
    assert given["schedule"] == {"wait": 1, "warmup": 2, "active": 4, "repeat": 1}
    assert (given["record_shapes"], given["with_stack"], given["profile_memory"]) == (False, True, False)
    given = made(CPU, tmp_path, memory=True)[0].given
    assert (given["record_shapes"], given["with_stack"], given["profile_memory"]) == (True, False, True)


def test_a_torch_that_cannot_leave_operators_out_records_them(torch, tmp_path):
    torch.profiler = profilers(refuses=True)
    assert made(CUDA, tmp_path, light=True)[0].given["activities"] == ["cpu", "cuda"]


def test_a_trace_appears_whole_under_its_rank(torch, tmp_path):
    profiler, written = made(CPU, tmp_path)
    profiler.given["on_trace_ready"](profiler)
    assert [path.name for path in tmp_path.iterdir()] == written
    assert written[0].startswith("rank3_")
    assert written[0].endswith(".pt.trace.json.gz")


def test_an_npu_writes_a_folder_of_its_worker(npu, tmp_path):
    profiler, written = made(NPU, tmp_path, light=True)
    assert profiler.given["activities"] == ["cpu", "npu"]
    profiler.given["on_trace_ready"](profiler)
    assert (npu.handled, written) == ((str(tmp_path), worker_name(3)), [])
    (tmp_path / f"{worker_name(3)}_1_ascend_pt").mkdir()
    (tmp_path / f"{worker_name(4)}_1_ascend_pt").mkdir()
    profiler.given["on_trace_ready"](profiler)
    assert written == [f"{worker_name(3)}_1_ascend_pt"]


def test_the_history_is_recorded_and_a_failed_request_seen(torch):
    full, failed = [], []
    watch_allocator(lambda: full.append(1), failed.append)
    assert torch.cuda.memory.asked == []
    torch.backends.cuda.is_built = lambda: True
    watch_allocator(lambda: full.append(1), failed.append)
    assert torch.cuda.memory.asked == [{"max_entries": 100_000, "stacks": "python"}]
    (observer,) = torch.observers
    observer(0, 1, 2)
    assert (full, failed) == ([1], [])
    torch.cuda.memory = Memory("no history")
    watch_allocator(lambda: full.append(1), failed.append)
    assert failed == ["RuntimeError: no history"]


def test_the_history_of_an_npu_is_recorded(npu):
    failed = []
    watch_allocator(list, failed.append)
    assert npu.npu.memory.asked == [{"max_entries": 100_000, "stacks": "python"}]
    npu.npu.memory = Memory("no history")
    watch_allocator(list, failed.append)
    assert failed == ["RuntimeError: no history"]


def test_a_snapshot_is_written_whole_where_a_device_was_used(torch, tmp_path):
    assert not dump_snapshot(tmp_path / "s.pickle")
    assert list(tmp_path.iterdir()) == []
    torch.cuda.is_initialized = lambda: True
    assert dump_snapshot(tmp_path / "s.pickle")
    assert [path.name for path in tmp_path.iterdir()] == ["s.pickle"]


def test_a_snapshot_of_an_npu(npu, tmp_path):
    assert dump_snapshot(tmp_path / "s.pickle")
    npu.npu.is_initialized = lambda: False
    assert not dump_snapshot(tmp_path / "t.pickle")


def test_the_profiler_sees_every_step_and_stops_after_the_last(torch, tmp_path):
    with record(tmp_path, wait=1, warmup=0, active=2, snapshot=False) as recording:
        seen = []
        for _ in range(5):
            recording.step()
            seen.append((recording.steps, recording.done, recording._profiler.calls[-1]))
    assert seen == [(1, False, "step"), (2, False, "step"), *((count, True, "stop") for count in (3, 4, 5))]
    assert recording._profiler.calls == ["start", "step", "step", "step", "stop"]
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_of_requests_that_fail_the_first_is_dumped(torch, tmp_path):
    torch.cuda.is_initialized = lambda: True
    torch.backends.cuda.is_built = lambda: True
    with record(tmp_path) as recording:
        torch.observers[0]()
        torch.observers[0]()
    assert recording.snapshots == ["snapshot_rank0_oom.pickle", "snapshot_rank0.pickle"]
    assert recording.troubles == []


def test_a_snapshot_that_fails_is_a_trouble_and_no_more(torch, tmp_path):
    torch.cuda.is_initialized, torch.cuda.memory = lambda: True, Memory("disk full")
    with record(tmp_path / "a") as recording:
        pass
    assert (recording.snapshots, recording.troubles) == ([], ["no snapshot_rank0.pickle: RuntimeError: disk full"])
    with record(tmp_path / "b", light=True) as recording:
        pass
    assert recording.troubles == []


def test_a_recording_by_call_has_the_options_of_the_command():
    parameters = list(inspect.signature(record).parameters.values())[1:]
    options = RecordOptions()
    assert {one.name: one.default for one in parameters} == {one.name: getattr(options, one.name) for one in parameters}
    assert (options.wait, options.warmup, options.active, options.steps) == (5, 3, 5, 13)
    assert (options.with_shapes, options.stacks, options.memory, options.with_snapshot) == (True, False, False, True)
    assert not options.light


@pytest.mark.parametrize(
    ("steps", "files", "told"),
    [
        (0, [], ["no optimizer stepped, so there are no steps: nothing was recorded"]),
        (0, ["t"], ["no optimizer stepped, so there are no steps: the recording is one stretch", "wrote t, s to "]),
        (1, [], ["the script ended after 1 step, and --wait 1 --warmup 0 --active 2 take 3: nothing was recorded"]),
        (
            2,
            ["t"],
            ["the script ended after 2 steps, and --wait 1 --warmup 0 --active 2 take 3: the rec", "wrote t, s"],
        ),
        (3, ["t"], ["wrote t, s to "]),
    ],
)
def test_what_is_said_at_the_end(torch, tmp_path, steps, files, told):
    recording = Recording(tmp_path, RecordOptions(1, 0, 2))
    recording.steps, recording.files, recording.snapshots = steps, files, ["s"]
    lines = list(outcome(recording))
    assert [line[: len(start)] for line, start in zip(lines, told, strict=True)] == told
    assert list(outcome(recording, quiet=True)) == [line for line in lines if not line.startswith("wrote")]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, (0, None)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"RANK": "x", "WORLD_SIZE": ""}, (0, None)),
        ({"WORLD_SIZE": "8"}, (0, 8)),
    ],
)
def test_a_rank_is_what_the_launcher_says(torch, environment, found):
    assert rank_and_world(environment) == found


def test_a_rank_is_first_what_the_job_itself_says(torch):
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_rank, torch.distributed.get_world_size = lambda: 5, lambda: 8
    assert rank_and_world({"RANK": "3", "WORLD_SIZE": "4"}) == (5, 8)
    torch.distributed.is_available = lambda: False
    assert rank_and_world({"RANK": "3", "WORLD_SIZE": "4"}) == (3, 4)


@pytest.mark.parametrize("name", ["rank1_h_1.2.pt.trace.json.gz", "rank1_h_1_ascend_pt"])
def test_a_rank_is_recorded_once_into_a_folder(tmp_path, name):
    refuse_recorded(tmp_path)
    refuse_recorded(tmp_path / "new")
    (tmp_path / name).touch()
    refuse_recorded(tmp_path, 0)
    for rank in (1, None):
        with pytest.raises(UsageError, match="holds a recording already"):
            refuse_recorded(tmp_path, rank)
    with pytest.raises(UsageError, match="this is a file"):
        refuse_recorded(tmp_path / name)
