"""The figures that the pages show: stored beside this module, and written between two marks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.simulate.matrix.figures import HEADS, NAMES, Figures, table

if TYPE_CHECKING:
    from collections.abc import Mapping

STORED = Path(__file__).with_name("figures.json")
_ROOT = Path(__file__).parents[3]
OPEN, CLOSE = "<!-- promises: python -m tests.simulate.matrix --write -->", "<!-- /promises -->"
_CHINESE = ("", "程序数", "首个原因正确", "问题数", "在范围内", "范围够窄", "ρ", "平均误差", "合计误差")
_GROUPS = {"all": "全部", "one": "单个问题", "two": "两个问题", "three": "三个问题", "pairs": "改动前后的真实录制"}
READMES: dict[Path, tuple[tuple[str, ...], dict[str, str]]] = {
    _ROOT / "docs" / "whatif.md": (HEADS, NAMES),
    _ROOT / "docs" / "zh" / "whatif.md": (_CHINESE, _GROUPS),
}
"""With the words of each."""


def stored() -> dict[str, Figures]:
    """The figures when they were written last."""
    return {name: Figures(**each) for name, each in json.loads(STORED.read_text(encoding="utf-8")).items()}


def shown(path: Path) -> str:
    """What a page shows."""
    return path.read_text(encoding="utf-8").partition(OPEN)[2].partition(CLOSE)[0].strip()


def told(path: Path, found: Mapping[str, Figures]) -> str:
    """What it should show."""
    return table(found, *READMES[path])


def rounded_off(one: Figures) -> dict[str, float | None]:
    """As they are stored."""
    return {key: None if value is None else round(value, 4) for key, value in asdict(one).items()}


def store(found: Mapping[str, Figures]) -> None:
    """Keep the figures beside those that were not measured anew, and show them."""
    rounded = {name: rounded_off(one) for name, one in (stored() | dict(found)).items()}
    STORED.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    for path in READMES:
        text = path.read_text(encoding="utf-8")
        before, _, rest = text.partition(OPEN)
        after = rest.partition(CLOSE)[2]
        path.write_text(f"{before}{OPEN}\n{told(path, stored())}\n{CLOSE}{after}", encoding="utf-8")
