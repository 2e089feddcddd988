"""Commands whose usage errors are one line, as all their errors are."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

USAGE_ERROR = 2


class OneLine(TyperCommand):
    """A command that tells wrong usage in one line with its name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Errors of usage are those with a message for people; where their class lives depends on typer's version.
            told = getattr(error, "format_message", None)
            if told is None:
                raise
            typer.echo(f"{ctx.command_path}: {' '.join(str(told()).split())}", err=True)
            raise typer.Exit(USAGE_ERROR) from error
