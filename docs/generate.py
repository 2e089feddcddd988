"""Pages that follow from the code: the start page, every rule, commands, definitions, the schema. A hook of mkdocs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from traceanalyze.cli.app import app
from traceanalyze.cli.rule import DEFINITIONS
from traceanalyze.locales import option_sources, rule_doc, texts
from traceanalyze.rules.registry import every_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig

    from traceanalyze.locales import Texts
    from traceanalyze.rules.rule import Rule

ROOT = Path(__file__).resolve().parents[1]
_SCHEMA = ROOT / "traceanalyze" / "report" / "schema.json"
_HEAD = re.compile(r"^([^\s:].*)$")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, content in pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def pages() -> dict[str, str]:
    """Their contents by path."""
    found = {
        "index.md": _start("README.md"),
        "zh/index.md": _start("README.zh-CN.md"),
        "contributing.md": (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "definitions.md": DEFINITIONS.read_text(encoding="utf-8"),
        "commands.md": "\n".join(_commands()),
        "schema.md": "\n".join(_schema()),
    }
    for language, folder in (("en", "rules"), ("zh", "zh/rules")):
        words, rules = texts(language), every_rule()
        found[f"{folder}/index.md"] = "\n".join(_index(rules, words))
        found |= {f"{folder}/{each.id}.md": "\n".join(_rule(each, words)) for each in rules}
    return found


def _start(readme: str) -> str:
    """A README, whose links are of the repository, as a page of this folder."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    text = text.replace("](.github/CONTRIBUTING.md)", "](docs/contributing.md)")
    text = text.replace("](README.zh-CN.md)", "](docs/zh/index.md)").replace("](README.md)", "](docs/index.md)")
    if readme == "README.md":
        return text.replace("](docs/", "](")
    return text.replace("](docs/zh/", "](").replace("](docs/", "](../")


def _title(each: Rule, words: Texts) -> str:
    return words.terms.get(f"rule_{each.id}") or each.doc.partition("\n")[0]


_FAMILIES = {
    "DAT": ("Loading of data", "数据加载"),
    "HST": ("The host", "Host"),
    "SYN": ("Waiting for the device", "同步"),
    "MEM": ("Memory", "显存"),
    "KRN": ("Kernels", "Kernel"),
    "CGR": ("Compilation and graphs", "编译与图"),
    "COM": ("Communication", "通信"),
    "RNK": ("Ranks", "Rank 之间"),
    "CAP": ("The recording itself", "采集本身"),
    "NPU": ("Ascend NPU", "昇腾 NPU"),
}


def _index(rules: tuple[Rule, ...], words: Texts) -> Iterator[str]:
    chinese = words.language != "en"
    yield f"# {'规则' if chinese else 'Rules'}"
    for family, names in _FAMILIES.items():
        head = "| 规则 | 名称 | 发现什么 |" if chinese else "| rule | name | what it finds |"
        yield from ("", f"## {names[chinese]}", "", head, "|---|---|---|")
        yield from (
            f"| [{each.id}]({each.id}.md) | `{each.slug}` | {_escaped(_title(each, words))} |"
            for each in rules
            if each.id.startswith(family)
        )


def _rule(each: Rule, words: Texts) -> Iterator[str]:
    yield from (f"# {each.id} `{each.slug}`", "", f"**{_escaped(_title(each, words))}**", "")
    # Headings of the docstring stand alone, with their text further in.
    for line in (rule_doc(words.language, each.id) or each.doc).splitlines():
        head = bool(_HEAD.fullmatch(line)) and len(line) < 40 and not line.endswith((".", "。"))
        yield f"\n## {line}\n" if head else _escaped(line.strip())
    said = words.messages
    platforms = words.messages["list_mark"].join((*each.platforms, *(("cpu",) if each.host is not None else ())))
    confidence = words.terms[f"confidence_{each.confidence.name.lower()}"]
    facts = said["rule_facts_line"].format(confidence=confidence, since=each.since, platforms=platforms)
    yield from ("", f"## {said['rule_facts'].rstrip(':：')}", "", facts)
    if each.options:
        known = option_sources(words.language)
        yield from ("", f"## {said['rule_options'].format(slug=each.slug).rstrip(':：')}", "", "```toml")
        yield f"[rules.{each.slug}]"
        for name, option in each.options.items():
            yield f"{name} = {option.default}  # {known.get(option.source, option.source)}"
        yield "```"
    advice = dict.fromkeys(said[f"advice_{key}.{platform}"] for key in each.advice for platform in each.platforms)
    if advice:
        yield from ("", f"## {said['rule_advice'].rstrip(':：')}", "", *(f"- {_escaped(text)}" for text in advice))


def _commands() -> Iterator[str]:
    yield "# Commands"
    group: Any = get_command(app)
    for name, command in group.commands.items():
        for path, each in [(name, command), *((f"{name} {sub}", one) for sub, one in _below(command).items())]:
            yield from ("", f"## traceanalyze {path}", "", _escaped(each.help or ""), "")
            options = [one for one in each.params if not getattr(one, "hidden", False)]
            if options:
                yield from ("| option | what |", "|---|---|")
            for one in options:
                spelled = ", ".join(f"`{text}`" for text in (*one.opts, *one.secondary_opts))
                argument = f"`{one.metavar or one.name}`" if one.param_type_name == "argument" else spelled
                yield f"| {argument} | {_escaped(' '.join((getattr(one, 'help', None) or '').split()))} |"


def _below(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def _schema() -> Iterator[str]:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    yield from ("# JSON schema", "", f"`{schema['$id']}`: what every column of every table means.")
    for name, each in schema["$defs"].items():
        if not name.startswith("row."):
            continue
        yield from ("", f"## {name.removeprefix('row.')}", "", _escaped(each.get("description", "")), "")
        yield from ("| column | type | meaning |", "|---|---|---|")
        for column, of in each.get("properties", {}).items():
            kind = of.get("type", "")
            kind = ", ".join(kind) if isinstance(kind, list) else kind
            yield f"| `{column}` | {kind} | {_escaped(of.get('description', ''))} |"


def _escaped(text: str) -> str:
    """Text of the code as Markdown shows it."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
