"""How far reading and analysing are, on stderr: only on a terminal, and only when it takes long enough to wonder."""

import sys
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

from traceanalyze.locales import Texts, texts
from traceanalyze.model.table import sentences

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_SAY = sentences(analysing="{name}: analysis")
PATIENCE_S = 0.5


class Progress:
    """Called with the name of what is being read, the bytes read so far and the bytes there are.

    What has been read is analysed until something else is read. A timer shows it, as nothing is called meanwhile.
    """

    def __init__(self, texts: Texts | None = None, *, wanted: bool) -> None:
        self._texts = texts
        self._wanted = wanted and sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._state: dict[str, Any] = {"description": "", "completed": 0, "total": None}
        self._timer = Timer(PATIENCE_S, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._wanted:
            self._timer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """Keep it, and show it once it is worth it."""
        read = total is not None and done >= total
        self._state = {"description": self._analysing(name) if read else name, "completed": done, "total": total}
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **self._state)

    def _analysing(self, name: str) -> str:
        words = self._texts or texts()
        return words.messages[_SAY["analysing"]].format(name=name)

    def _show(self) -> None:
        bar = self._started()
        self._task = bar.add_task(**self._state)
        self._bar = bar

    def _started(self) -> "Bar":
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar
