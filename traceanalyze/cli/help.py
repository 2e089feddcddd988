"""Help, and what is said of wrong usage, in the language that --lang chooses."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from traceanalyze.cli.guard import ENGLISH, chosen_language, language_behind, tell
from traceanalyze.errors import Phrase, UsageError

_LANGUAGE = "traceanalyze.language"
_WIDEST, _NAMES = 80, 30
"""Columns of a page, and of the names in it that share a line with what they mean."""
_WRONG = (
    Phrase("No such option: {option} (Possible options: {near})"),
    Phrase("No such option: {option} Did you mean {near}?"),
    Phrase("No such option: {option}"),
    Phrase("No such command {name}. Did you mean {near}?"),
    Phrase("No such command {name}."),
    Phrase("Missing command."),
    Phrase("Missing argument {name}."),
    Phrase("Option {name} requires an argument."),
    Phrase("Option {name} does not take a value."),
    Phrase("Got unexpected extra argument(s) ({names})"),
    Phrase("Invalid value for {name}: Input should be greater than or equal to {least}"),
    Phrase("Invalid value for {name}: Input should be a valid integer, unable to parse string as an integer"),
    Phrase("Invalid value for {name}: Value error, {value} is not one of {known}."),
    Phrase("Invalid value for {name}: {why}"),
)
"""What typer and click say, in the order in which they are looked for."""

_WORDS = (
    *(Phrase("Usage: "), Phrase("Arguments:"), Phrase("Options:"), Phrase("Commands:"), Phrase("default: ")),
    *(Phrase("required"), Phrase("; "), Phrase("Show this message and exit.")),
)
"""What typer itself writes into a page."""


@contextmanager
def _in_one_line(language: str) -> Iterator[None]:
    """Wrong usage is told as other errors are."""
    try:
        yield
    except Exception as error:
        # Errors of usage are those with a message for people; where their class lives depends on typer's version.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        said = _wrong(" ".join(str(message()).split()))
        raise typer.Exit(tell(UsageError("{said}", said), language)) from error


class _Spoken:
    """A command whose help and wrong usage are said in the chosen language."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; nothing at all shows the page of a group."""
        ctx.meta[_LANGUAGE] = chosen_language(args)
        with nullcontext() if not args and self.no_args_is_help else _in_one_line(ctx.meta[_LANGUAGE]):  # type: ignore[attr-defined]
            return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return]

    def get_help(self, ctx: Any) -> str:
        """The page of the command."""
        from traceanalyze.locales import catalogue

        language = ctx.meta.get(_LANGUAGE, ENGLISH)
        known = {**catalogue(language).get("phrases", {}), **catalogue(language).get("help", {})}
        # Not known, English is typer's own page.
        return "\n".join(_page(self, ctx, lambda text: known.get(text, text))) if known else super().get_help(ctx)  # type: ignore[misc]


class Command(_Spoken, TyperCommand):
    """A command."""


class Group(_Spoken, TyperGroup):
    """A command that has commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what comes before the command; its language is the command's."""
        return super().parse_args(ctx, language_behind(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with _in_one_line(ctx.meta[_LANGUAGE]):
            return super().invoke(ctx)


def _wrong(text: str) -> Phrase:
    """What is said of wrong usage, known again by how it is worded."""
    for each in _WRONG:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(each))
        if found := re.fullmatch(pattern, text):
            return Phrase(each, *found.groupdict().values())
    return Phrase("{text}", text)


def text_of(command: Any) -> str:
    """Help of a command as it is shown: paragraphs without the indent of the docstring."""
    return cleandoc(command.help or "").partition("\f")[0].strip()


def _page(command: Any, ctx: Any, say: Callable[[str], str]) -> Iterator[str]:
    """Lines as click lays them out, wrapped where a language without spaces can be."""
    # Imported here: commands are declared without it.
    from traceanalyze.report.console.style import display_width, filled

    width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
    yield filled(" ".join(command.collect_usage_pieces(ctx)), width, f"{say('Usage: ')}{ctx.command_path} ", "    ")
    for paragraph in say(text_of(command)).split("\n\n"):
        yield from ("", filled(" ".join(paragraph.split()), width, "  ", "  "))
    for heading, rows in _sections(command, ctx, say):
        most = min(max(display_width(name) for name, _ in rows), _NAMES)
        yield from ("", say(f"{heading}:"))
        for name, meaning in rows:
            gap = most - display_width(name)
            first, indent = f"  {name}{' ' * (gap + 2)}", " " * (most + 4)
            if gap < 0:
                yield f"  {name}"
            yield filled(meaning, width, first if gap >= 0 else indent, indent)


def _sections(command: Any, ctx: Any, say: Callable[[str], str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Commands": []}
    for param in command.get_params(ctx):
        shown = param.get_help_record(ctx)
        if shown is not None:
            # Behind the help: [default: 5; x>=1]
            extra = (
                shown[1]
                .removeprefix(param.help or "")
                .replace("default: ", say("default: "))
                .replace("required", say("required"))
                .replace("; ", say("; "))
            )
            rows["Arguments" if param.param_type_name == "argument" else "Options"].append(
                (shown[0], say(param.help or "") + extra)
            )
    for name in command.list_commands(ctx) if isinstance(command, TyperGroup) else ():
        rows["Commands"].append((name, say(text_of(command.get_command(ctx, name))).partition("\n\n")[0]))
    yield from ((heading, found) for heading, found in rows.items() if found)
