"""The user's configuration of rules: `traceanalyze.toml`, or the table `tool.traceanalyze` of `pyproject.toml`."""

from __future__ import annotations

from pathlib import Path

from traceanalyze.errors import UsageError
from traceanalyze.rules.config import RuleConfig, rule_config

OWN, PROJECT = "traceanalyze.toml", "pyproject.toml"


def configured_rules(start: Path | None = None) -> RuleConfig:
    """What the nearest configuration says: of the folder (default: the current one), else of those above it.

    Raises:
        UsageError: The file is not TOML, or does not say what it should.
    """
    folder = (start or Path.cwd()).resolve()
    for here in (folder, *folder.parents):
        own, project = here / OWN, here / PROJECT
        if own.is_file():
            return _config(_read(own), own)
        if project.is_file():
            table = _read(project).get("tool", {})
            if isinstance(table, dict) and "traceanalyze" in table:
                return _config(table["traceanalyze"], project)
    return RuleConfig()


def _read(path: Path) -> dict[str, object]:
    # Imported here: most folders have no configuration.
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error


def _config(table: object, path: Path) -> RuleConfig:
    if not isinstance(table, dict) or not isinstance(table.get("rules", {}), dict):
        raise UsageError(f"{path}: rules is not a table")
    return rule_config(table.get("rules", {}), path.name)
