"""How far reading is, on stderr: only on a terminal, and only when it takes long enough to wonder."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE_S = 0.5


class Progress:
    """Called with the name of what is being read, the bytes read so far and the bytes there are."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._begin = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """Show it, once it is worth it."""
        if not self._wanted or time.monotonic() - self._begin < PATIENCE_S:
            return
        if self._bar is None:
            self._bar = self._started()
            self._task = self._bar.add_task(name)
        if self._task is not None:
            self._bar.update(self._task, description=name, completed=done, total=total)

    def _started(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar
