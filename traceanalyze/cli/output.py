"""What a command shows on stdout, writes, and says on stderr of what it has written."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceanalyze.cli.guard import in_language
from traceanalyze.errors import Phrase
from traceanalyze.locales import Texts
from traceanalyze.report import output
from traceanalyze.report.output import Target
from traceanalyze.report.view import View

if TYPE_CHECKING:
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
