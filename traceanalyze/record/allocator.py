"""History of the device's caching allocator, and its snapshots."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from traceanalyze.record.requirements import installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ENTRIES = 100_000
"""Allocations and frees kept, the latest: each takes about a kilobyte of host memory with its stack."""


def watch_allocator(out_of_memory: Callable[[], None], failed: Callable[[str], None]) -> None:
    """Record the allocator's history from the moment the script itself begins to use the device.

    Beginning earlier would settle the choice of devices before the script has made it.

    Args:
        out_of_memory: Called at a request that fails, before its error is raised.
        failed: Called with the reason if the history cannot be recorded; the script runs on.
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
