"""A recording of the running process: the profiler, the allocator's history, and what they leave in a folder."""

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from traceanalyze.recording.options import (
    CPU,
    CUDA,
    HIP,
    NPU,
    Device,
    RecordOptions,
    installed,
    rank_and_world,
    refuse_recorded,
    require_torch,
    trace_name,
    worker_name,
    write_run,
)

_ENTRIES = 100_000
"""Allocations and frees kept, the latest: each takes about a kilobyte of host memory with its stack."""


def watch_allocator(out_of_memory: Callable[[], None], failed: Callable[[str], None]) -> None:
    """Record the allocator's history from the moment the script itself begins to use the device.

    Beginning earlier would settle the choice of devices before the script has made it. `out_of_memory` is called at a
    request that fails, before its error is raised; `failed` with the reason if the history cannot be recorded.
    """
    import torch

    def begin() -> None:
        try:
            torch.cuda.memory._record_memory_history(max_entries=_ENTRIES, stacks="python")
            torch._C._cuda_attach_out_of_memory_observer(lambda *_: out_of_memory())
        except Exception as error:  # noqa: BLE001, RUF100 - whatever torch raises, the script must go on
            failed(f"{type(error).__name__}: {error}")

    if torch.backends.cuda.is_built():
        torch.cuda._lazy_call(begin)
    elif installed("torch_npu"):
        try:
            _npu_memory()._record_memory_history(max_entries=_ENTRIES, stacks="python")
        except Exception as error:  # noqa: BLE001, RUF100
            failed(f"{type(error).__name__}: {error}")


def dump_snapshot(path: Path) -> bool:
    """Write what the allocator holds and its history; False where no device has been used."""
    import torch

    if torch.cuda.is_initialized():
        memory = torch.cuda.memory
    elif installed("torch_npu") and _npu_memory() is not None:
        memory = _npu_memory()
    else:
        return False
    hidden = path.with_name(f".{path.name}")
    memory._dump_snapshot(str(hidden))
    os.replace(hidden, path)  # noqa: PTH105
    return True


def _npu_memory() -> Any:
    import torch_npu

    return torch_npu.npu.memory if torch_npu.npu.is_initialized() else None


@cache
def let_children_end() -> None:
    """Let forked processes leave out the exit handlers of C libraries, from now on.

    Kineto, once started, keeps a thread that waits on a condition variable. A forked process has the variable and not
    the thread, and destroying it at exit waits for the thread for ever. `multiprocessing` leaves these handlers out for
    its processes as well; what Python does at exit, and the exit status, are as always.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit") and hasattr(library, "fcloseall"):
        os.register_at_fork(after_in_child=lambda: _exit_at_once(library))


def _exit_at_once(library: ctypes.CDLL) -> None:
    """Make glibc's `exit(status)` write out what C streams still hold, then call `_exit(status)`: last in, first out.

    Without a Python function in between: by then the interpreter is gone.
    """
    for name in ("_exit", "fcloseall"):
        library.on_exit(ctypes.cast(getattr(library, name), ctypes.c_void_p), None)


def record(
    folder: str | os.PathLike[str],
    *,
    wait: int = 5,
    warmup: int = 3,
    active: int = 5,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    snapshot: bool = True,
    light: bool = False,
) -> "Recording":
    """Record a loop of your own.

        with traceanalyze.record("run") as recording:
            for batch in loader:
                train_step(batch)
                recording.step()

    Args:
        folder: Where the recording goes; made if need be. All ranks of a job share it.
        wait: Steps before the profiler is switched on.
        warmup: Steps under the profiler that are thrown away.
        active: Steps recorded.
        shapes: Shapes of the operators' inputs.
        stacks: Python stacks; slows the host.
        memory: Every allocation as an event; slows the host.
        snapshot: History and snapshot of the device's allocator.
        light: Device activities and step marks alone, for timing.

    Raises:
        UsageError: torch is missing, an option is wrong, or the folder holds a recording of this rank.
    """
    options = RecordOptions(wait, warmup, active, shapes, stacks, memory, snapshot, light)
    return Recording(Path(folder), options)


class Recording:
    """One recording of this process; a context manager. `step()` ends a step of the loop.

    Processes that this one forks have a copy of it that does nothing.
    """

    def __init__(self, folder: Path, options: RecordOptions) -> None:
        require_torch()
        self.folder, self.options = folder, options
        self.steps = 0
        """Steps ended so far."""
        self.files: list[str] = []
        """Traces written, names in the folder."""
        self.snapshots: list[str] = []
        """Snapshots written, names in the folder."""
        self.troubles: list[str] = []
        """What could not be recorded, and why."""
        self._device: Device | None = None
        self._profiler: Any = None
        self._running = False
        self._owner = os.getpid()

    def prepare(self) -> None:
        """Make the folder and watch the allocator; asks no device for anything."""
        refuse_recorded(self.folder, rank_and_world()[0])
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.options.with_snapshot:
            watch_allocator(self._out_of_memory, lambda why: self.troubles.append(f"no memory history: {why}"))

    def start(self) -> None:
        """Start the profiler: the first step begins."""
        self._device = find_device()
        self._profiler = make_profiler(
            self._device, self.options, self.folder, lambda: rank_and_world()[0], self.files.append
        )
        let_children_end()
        self._profiler.start()
        self._running = True

    def step(self) -> None:
        """The step ends here, and the next begins."""
        if not self.owned:
            return
        self.steps += 1
        if self._profiler is None:
            self.start()
        if self._running:
            self._profiler.step()
            if self.done:
                self._stop_profiler()

    def take(self, profiler: Any, steps: int) -> None:
        """Write what a profiler of the user's own has recorded until now, after so many steps, and all beside it."""
        if not self.owned:
            return
        self._device, self.steps = self._device or find_device(), steps
        exporter(self._device.kind, self.folder, lambda: rank_and_world()[0], self.files.append)(profiler)
        self.finish()

    @property
    def owned(self) -> bool:
        """Whether this is the process that records, not one that it forked."""
        return os.getpid() == self._owner

    @property
    def done(self) -> bool:
        """Whether all steps that were asked for are recorded."""
        return self.steps >= self.options.steps

    def finish(self) -> None:
        """Stop: write what there is, the allocator's snapshot and `run.json`."""
        if not self.owned:
            return
        rank = rank_and_world()
        try:
            self._stop_profiler()
        finally:
            if self.options.with_snapshot:
                self._dump(f"snapshot_rank{rank[0]}.pickle")
        # Without a step the script may not have chosen its devices, but it has ended now.
        device = self._device or find_device()
        write_run(self.folder, self.options, device, rank, self.steps, [*self.files, *self.snapshots])

    def _stop_profiler(self) -> None:
        if self._running:
            self._running = False
            self._profiler.stop()

    def _out_of_memory(self) -> None:
        """Of a script that goes on after a failed request, only the first."""
        name = f"snapshot_rank{rank_and_world()[0]}_oom.pickle"
        if name not in self.snapshots:
            self._dump(name)

    def _dump(self, name: str) -> None:
        try:
            if dump_snapshot(self.folder / name):
                self.snapshots.append(name)
        except Exception as error:  # noqa: BLE001, RUF100 - a snapshot that fails must not take the trace with it
            self.troubles.append(f"no {name}: {type(error).__name__}: {error}")

    def __enter__(self) -> Self:
        """Begin the first step."""
        self.prepare()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write everything, whether the loop ended well or not."""
        self.finish()


def find_device() -> Device:
    """The devices torch can use now. Asks the driver: the script must have had its chance to choose devices."""
    import torch

    versions = {"torch": str(torch.__version__)}
    if torch.cuda.is_available():
        names = tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
        hip = getattr(torch.version, "hip", None)
        return Device(HIP if hip else CUDA, names, versions | {HIP if hip else CUDA: str(hip or torch.version.cuda)})
    if installed("torch_npu"):
        import torch_npu

        if torch_npu.npu.is_available():
            names = tuple(torch_npu.npu.get_device_name(index) for index in range(torch_npu.npu.device_count()))
            return Device(NPU, names, versions | {"torch_npu": str(torch_npu.__version__)})
    return Device(CPU, (), versions)


def exporter(kind: str, folder: Path, rank: Callable[[], int], written: Callable[[str], None]) -> Callable[[Any], None]:
    """What writes a profile of a kind of device; `written` takes the names of what it leaves in the folder."""

    def export(profile: Any) -> None:
        name = trace_name(rank())
        hidden = folder / f".{name}"
        profile.export_chrome_trace(str(hidden))
        os.replace(hidden, folder / name)  # noqa: PTH105
        written(name)

    def export_npu(profile: Any) -> None:
        from torch_npu import profiler

        worker = worker_name(rank())
        profiler.tensorboard_trace_handler(str(folder), worker_name=worker)(profile)
        for path in sorted(folder.glob(f"{worker}_*_ascend_pt")):
            written(path.name)

    return export_npu if kind == NPU else export


def make_profiler(
    device: Device, options: RecordOptions, folder: Path, rank: Callable[[], int], written: Callable[[str], None]
) -> Any:
    """The profiler, not started; `written` takes the name of what it has written into the folder."""
    npu = device.kind == NPU
    if npu:
        from torch_npu import profiler
    else:
        from torch import profiler

    common = {
        "schedule": profiler.schedule(wait=options.wait, warmup=options.warmup, active=options.active, repeat=1),
        "on_trace_ready": exporter(device.kind, folder, rank, written),
        "record_shapes": options.with_shapes,
        "with_stack": options.stacks,
        "profile_memory": options.memory,
    }
    kinds = profiler.ProfilerActivity
    devices = [kinds.NPU] if npu else [] if device.kind == CPU else [kinds.CUDA]
    if options.light and devices and not npu:
        # A torch that cannot leave operators out records them: without the step marks there would be no steps.
        with suppress(TypeError, ValueError, RuntimeError, AttributeError):
            return profiler.profile(activities=[{kinds.CPU: ["USER_ANNOTATION"]}, *devices], **common)
    return profiler.profile(activities=[kinds.CPU, *devices], **common)
