"""Recordings by one added line: of `torch.profiler`, a Hugging Face `Trainer`, a Lightning `Trainer`.

The packages are imported when a callback of theirs is made.
"""

import atexit
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from traceanalyze.errors import UsageError
from traceanalyze.recording.context import Recording, record
from traceanalyze.recording.options import RecordOptions, installed


def handler(folder: str | os.PathLike[str], *, snapshot: bool = True) -> Callable[[Any], None]:
    """What `torch.profiler.profile(on_trace_ready=…)` calls: it leaves the same folder as `traceanalyze record`.

        with torch.profiler.profile(schedule=…, on_trace_ready=traceanalyze.handler("run")) as profiler:

    Args:
        folder: Where the recording goes; made if need be. All ranks of a job share it. A schedule that repeats leaves
            a trace for every cycle.
        snapshot: History of the device's allocator, watched from now on, and its snapshot.

    Raises:
        UsageError: torch is missing, or the folder holds a recording of this rank.
    """
    recording = Recording(Path(folder), RecordOptions(snapshot=snapshot))
    recording.prepare()

    def ready(profiler: Any) -> None:
        recording.options = _options(profiler, recording.options)
        recording.take(profiler, profiler.step_num)

    return ready


def _options(profiler: Any, options: RecordOptions) -> RecordOptions:
    """What a profiler of the user's own was asked for; of its schedule how many steps were of each kind until now."""
    actions = [profiler.schedule(step).name for step in range(profiler.step_num)]
    wait, warmup = actions.count("NONE"), actions.count("WARMUP")
    active = max(len(actions) - wait - warmup, 1)
    names = {"shapes": "record_shapes", "stacks": "with_stack", "memory": "profile_memory"}
    noted = {ours: bool(getattr(profiler, theirs)) for ours, theirs in names.items()}
    return replace(options, wait=wait, warmup=warmup, active=active, **noted)


def trainer_callback(folder: str | os.PathLike[str], **options: Any) -> Any:
    """What records a Hugging Face `Trainer`: `Trainer(callbacks=[traceanalyze.trainer_callback("run")])`.

    A step ends when the optimizer has stepped. Of a trainer that trains several times, the first time is recorded.

    Args:
        folder: Where the recording goes; made if need be. All ranks of a job share it.
        options: As of `record`: `wait`, `warmup`, `active`, `shapes`, `stacks`, `memory`, `snapshot`, `light`.

    Raises:
        UsageError: torch or transformers is missing, or an option is wrong; when training begins: the folder holds a
            recording of this rank.
    """
    _require("transformers")
    from transformers import TrainerCallback

    begin, step, end = _once(folder, options)

    class Callback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            step()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            end()

    return Callback()


def lightning_callback(folder: str | os.PathLike[str], **options: Any) -> Any:
    """What records a Lightning `Trainer`: `Trainer(callbacks=[traceanalyze.lightning_callback("run")])`.

    Steps, arguments and errors are those of `trainer_callback`.
    """
    package = "lightning.pytorch" if installed("lightning") else "pytorch_lightning"
    _require("lightning" if installed("lightning") else package)
    from importlib import import_module

    begin, step, end = _once(folder, options)
    stepped = 0

    class Callback(import_module(package).Callback):  # type: ignore[misc]
        def on_train_start(self, *_: Any) -> None:
            begin()

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            nonlocal stepped
            if trainer.global_step > stepped:
                stepped = trainer.global_step
                step()

        def on_train_end(self, *_: Any) -> None:
            end()

        def on_exception(self, *_: Any) -> None:
            end()

    return Callback()


def _require(package: str) -> None:
    if not installed(package):
        raise UsageError("this callback needs {package}: pip install {package2}", package, package)


def _once(
    folder: str | os.PathLike[str], options: dict[str, Any]
) -> tuple[Callable[[], None], Callable[[], None], Callable[[], None]]:
    """What begins, steps and ends a recording, which is made once and written at the latest when the process ends."""
    recording = record(folder, **options)
    begun = running = False

    def begin() -> None:
        nonlocal begun, running
        if not begun:
            recording.__enter__()
            begun = running = True
            atexit.register(end)

    def step() -> None:
        if running:
            recording.step()

    def end() -> None:
        nonlocal running
        if running:
            running = False
            recording.finish()

    return begin, step, end
