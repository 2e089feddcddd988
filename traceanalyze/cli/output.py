"""What a command shows on stdout, writes, and says on stderr: what it has written, and while it works how far it is."""

import sys
from collections.abc import Sequence
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

from traceanalyze.cli.guard import in_language, tell_slow_scanner
from traceanalyze.errors import Phrase
from traceanalyze.locales import Texts, texts
from traceanalyze.model.table import sentences
from traceanalyze.model.units import size
from traceanalyze.report import output
from traceanalyze.report.output import Target
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from traceanalyze.report.model import Report


def write(reports: "Sequence[Report]", targets: Sequence[Target], texts: Texts, view: View) -> None:
    """Show the reports, or write them and say so."""
    for target in targets:
        if target.path is None:
            show(output.rendered(reports, target, texts, view))
        else:
            tell_written(output.write(reports, target, texts, view), texts.language)


def tell_written(said: Phrase, language: str) -> None:
    """Say on stderr what was written."""
    sys.stderr.write(f"{in_language(said, language)}\n")


def show(text: str | bytes) -> None:
    """Print a report."""
    # Names in traces may hold what the terminal's encoding does not know.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(str(text))
    sys.stdout.flush()


_SAY = sentences(analysing="{name}: analysis")
PATIENCE_S = 0.5
_LONGEST = 40
"""Letters of a name, beside which there is room for the rest."""


class Progress:
    """How far reading and analysing are: only on a terminal, and only when it takes long enough to wonder.

    Called with the name of what is being read, the bytes read so far and the bytes there are: shown in percent.

    What has been read is analysed until something else is read. A timer shows it, as nothing is called meanwhile.
    """

    def __init__(self, texts: Texts | None = None, *, wanted: bool) -> None:
        tell_slow_scanner(texts.language if texts else "en", quiet=not wanted)
        self._texts = texts
        self._wanted = wanted and sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._state: dict[str, Any] = {"description": "", "completed": 0, "total": None, "size": ""}
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
        if not self._wanted:
            return  # It is told with every block of text.
        if len(name) > _LONGEST:
            name = f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 :]}"
        self._state = {"description": name, "completed": done, "total": total, "size": size(done)}
        if total is not None:
            self._state["size"] = f"{size(done)} / {size(total)}"
        if total is not None and done >= total:
            # How long it takes is not known: the bar only says that something happens.
            self._state |= {"description": self._analysing(name), "total": None, "size": ""}
        if self._bar is not None and self._task is not None:
            # Of an update without a total the bar would keep the one before.
            self._bar.tasks[0].total = self._state["total"]
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
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        texts = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[size]}"))
        columns = (next(texts), BarColumn(), TaskProgressColumn(), next(texts))
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar
