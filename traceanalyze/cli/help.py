"""Help, and what is said of wrong usage, in the language that --lang chooses."""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import cleandoc
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from traceanalyze.cli.guard import ENGLISH, STATED, chosen_language, language_behind, may_be_configured, tell
from traceanalyze.errors import Phrase, TraceAnalyzeError, UsageError

_LANGUAGE, _PLACES = "traceanalyze.language", "traceanalyze.places"
_WIDEST, _NAMES = 80, 30
"""Columns of a page, and of the names in it that share a line with what they mean."""
_WRONG = (
    (r"No such option:? '?(-\S+?)'?\W*(?:\s.*)?", Phrase("{name}: there is no such option{hint}")),
    (r"No such command '(.+?)'.*", Phrase("{name}: there is no such command{hint}")),
    (r"Missing command\.?", Phrase("give a command; --help lists them")),
    (r"Missing (?:argument|option|parameter) '?(.+?)'?\.", Phrase("give {name}; --help says more")),
    (r"Option '(.+?)' requires an argument\.", Phrase("{name}: give a value")),
    (r"Option '(.+?)' does not take a value\.", Phrase("{name}: takes no value")),
    (r"Got unexpected extra arguments?(?:\(s\))? \((.+)\)", Phrase("{names}: more than the command takes")),
    (
        r"Invalid value for (.+?): .*(?:greater than or equal to |not in the range x>=)(\d+)\.?",
        Phrase("{given}: give a whole number from {least} on"),
    ),
    (r"Invalid value for (.+?): .*valid int.*", Phrase("{given}: give a whole number, such as 5")),
    (r"Invalid value for (.+?): .*not one of (.+?)\.", Phrase("{given}: give one of {known}")),
    (r"Invalid value for (.+?): (.*)", Phrase("{given}: {why}")),
)
"""What typer and click say, whatever their version, and what is said in its place."""

_INSTEAD = (({"-q", "--quiet"}, {"verbose", "whole"}), ({"-v", "--verbose", "--all"}, {"quiet"}))
"""Options, and parameters that do not hold where these are typed: how much is shown was said anew."""
_WORDS = (
    *(Phrase("Usage: "), Phrase("Arguments:"), Phrase("Options:"), Phrase("Commands:"), Phrase("default: ")),
    *(Phrase("required"), Phrase("; "), Phrase("Show this message and exit.")),
)
"""What typer itself writes into a page."""


@contextmanager
def _in_one_line(language: str, command: Any, given: Mapping[str, str]) -> Iterator[None]:
    """Wrong usage is told as other errors are; of options by what was given for them, and where."""
    try:
        yield
    except TraceAnalyzeError as error:
        raise typer.Exit(tell(error, language)) from error
    except Exception as error:
        # Errors of usage are those with a message for people; where their class lives depends on typer's version.
        message = getattr(error, "format_message", None)
        # The page of a group, which is shown where nothing is asked of it, is an error to click.
        if message is None or type(error).__name__ == "NoArgsIsHelpError":
            raise
        said = _wrong(" ".join(str(message()).split()), command, given)
        raise typer.Exit(tell(UsageError("{said}", said), language)) from error


class _Spoken:
    """A command whose help and wrong usage are said in the chosen language."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; nothing at all shows the page of a group."""
        ctx.meta[_LANGUAGE] = chosen_language(args)
        given = {each: f"{each} {after}" for each, after in pairwise(args) if each.startswith("-")}
        given |= {each.partition("=")[0]: each.replace("=", " ", 1) for each in args if re.match("--.*=", each)}
        if not args and self.no_args_is_help:  # type: ignore[attr-defined]
            return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return]
        with _in_one_line(ctx.meta[_LANGUAGE], self, given):
            if isinstance(self, TyperCommand) and not {"-h", "--help"} & {*args}:
                ctx.default_map, places = defaults(self)
                for flags, others in _INSTEAD:
                    if flags & {*args}:
                        ctx.default_map = {key: each for key, each in ctx.default_map.items() if key not in others}
                places = {name: place for name, place in places.items() if name not in given}
                ctx.meta[_PLACES] = places
                given |= places
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

    def invoke(self, ctx: Any) -> Any:
        """Run it; errors that it finds in values name where these were given."""
        token = STATED.set(ctx.meta.get(_PLACES, {}))
        try:
            return super().invoke(ctx)
        finally:
            STATED.reset(token)


class Group(_Spoken, TyperGroup):
    """A command that has commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what comes before the command; its language is the command's."""
        return super().parse_args(ctx, language_behind(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with _in_one_line(ctx.meta[_LANGUAGE], self, {}):
            return super().invoke(ctx)


def _wrong(text: str, command: Any, given: Mapping[str, str]) -> Phrase:
    """What is said of wrong usage, known again by how libraries word it."""
    for pattern, said in _WRONG:
        if found := re.fullmatch(pattern, text):
            first, *others = found.groups() or ("",)
            # 'A' / '--a': ways to write one option, the last of them the longest.
            names = re.findall(r"'(.+?)'", first)
            if "{hint}" in said:
                return Phrase(said, first, _nearest(first, command))
            shown = next((given[name] for name in names if name in given), names[0] if names else first)
            return Phrase(said, *([shown, *(each.replace("'", "") for each in others)] if "{" in said else ()))
    return Phrase("{text}", text)


def _nearest(name: str, command: Any) -> Phrase:
    """What was probably meant, where anything comes near."""
    # Imported here: commands are right most of the time.
    from difflib import get_close_matches

    known = [each for param in command.params for each in param.opts] if name.startswith("-") else command.commands
    # Dashes are no likeness.
    bare = {each.strip("-"): each for each in known}
    near = get_close_matches(name.strip("-"), [each for each in bare if each], n=1, cutoff=0.65)
    return Phrase("; did you mean {path}?", bare[near[0]]) if near else Phrase("")


def defaults(command: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of a command by name, as variables `TRACEANALYZE_…` and the command's table in the configuration say.

    And by what they are called on the command line where each stands, with its value.
    """
    named = {
        name.removeprefix("--").replace("-", "_"): each
        for each in command.params
        if each.param_type_name == "option" and not each.hidden
        for name in each.opts
        if name.startswith("--")
    }
    found, places = {}, {}
    if may_be_configured(command.name):
        # Imported here: most folders have no configuration.
        from traceanalyze.pipeline.choices import configuration
        from traceanalyze.regression.budget import OPTIONS, check_known, words

        document, source = configuration()
        table = {words(key): value for key, value in document.get(command.name, {}).items()}
        if command.name == "gate":
            table = {key: value for key, value in table.items() if key in OPTIONS}
        check_known(table, named, f"{source}: [{command.name}]")
        found = {key: value for key, value in table.items() if value is not False}
        places = {key: f"{source}: [{command.name}] {key} = {value}" for key, value in found.items()}
    stated = {key: os.environ.get(f"TRACEANALYZE_{key.upper()}") for key in named}
    found |= {key: text for key, text in stated.items() if text}
    places |= {key: f"TRACEANALYZE_{key.upper()}={text}" for key, text in stated.items() if text}
    typed = {named[key].name: _typed(named[key], value, places[key]) for key, value in found.items()}
    return typed, {f"--{key.replace('_', '-')}": place for key, place in places.items()}


def _typed(param: Any, value: Any, place: str) -> Any:
    if param.is_flag:
        truth = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}
        if str(value).lower() not in truth:
            raise UsageError("{place}: give true or false", place)
        return truth[str(value).lower()]
    if param.multiple:
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return str(value)


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
