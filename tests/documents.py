"""What users read, as one text in the order of the chapters: the README and the pages under `docs`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    *("record", "whatif", "use", "findings", "plugins", "postmortem", "compare", "gate", "memory", "perfetto"),
    *("many-ranks", "fleet", "words", "outputs"),
)
_OF_SEVERAL = {"record", "outputs"}
"""Pages whose chapters have a title above them all."""


def files(language: str = "en") -> list[Path]:
    """The README first."""
    folder = ROOT / "docs" if language == "en" else ROOT / "docs" / language
    readme = "README.md" if language == "en" else "README.zh-CN.md"
    return [ROOT / readme, *(folder / f"{page}.md" for page in PAGES)]


def guides(language: str = "en") -> list[Path]:
    """The tutorial and the page of symptoms, which promise nothing that others do not."""
    folder = ROOT / "docs" if language == "en" else ROOT / "docs" / language
    return [folder / "tutorial.md", folder / "symptoms.md"]


def text(language: str = "en") -> str:
    """Everything, chapters at the second level."""
    return "\n".join(map(_chapters, files(language)))


def _chapters(file: Path) -> str:
    content = file.read_text(encoding="utf-8")
    if file.parent == ROOT:
        return content
    if file.stem in _OF_SEVERAL:
        return content.partition("\n\n")[2]
    lines, fenced = [], False
    for line in content.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        lines.append(f"#{line}" if line.startswith("#") and not fenced else line)
    return "".join(lines)
