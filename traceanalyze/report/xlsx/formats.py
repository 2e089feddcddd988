"""Formats of cells, each made once: a workbook stores and Excel loads every one that is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format

HEADER_FILL = "#DCE6F1"
RULE = "#7F7F7F"
DIM = "#6F6F6F"
LINK = "#0563C1"
TIME_BAR = "#9DC3E6"
SHARE_BAR = "#C5B7DE"
SIDE_FILLS = {"base": "#E2EFDA", "candidate": "#FFF2CC"}
"""Of both sides of a comparison."""
SIDE_COLOURS = {"base": "#70AD47", "candidate": "#FFC000"}
WORSE, BETTER = "#C00000", "#2E7D32"
SCALE = ("#DDEBF7", "#FFFFFF", "#FCE4D6")
"""Low, middle and high of a ratio; neither is good or bad."""
PARTS = {
    "compute": "#4472C4",
    "communication": "#ED7D31",
    "memory_ops": "#FFC000",
    "data_loading": "#C00000",
    "sync": "#7030A0",
    "dispatch": "#00A3A3",
    "idle": "#A6A6A6",
    "host_sync": "#7030A0",
    "peer_wait": "#ED7D31",
    "host_api": "#00A3A3",
    "host_op": "#4472C4",
    "untraced": "#A6A6A6",
}
"""Colour of each part of a step, the same in every chart."""
INSET = {"align": "left", "indent": 1}
"""Of text beside a number."""
LEVELS = {"WARN": "#9C5700", "ERROR": "#C00000"}


class Formats:
    """Formats of one workbook by their properties."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._made: dict[tuple[tuple[str, Any], ...], Format] = {}

    def get(self, **properties: Any) -> Format:
        """The format with these properties; vertically all cells start at the top."""
        key = tuple(sorted(properties.items()))
        if key not in self._made:
            self._made[key] = self._workbook.add_format({"valign": "top", **properties})
        return self._made[key]

    @property
    def title(self) -> Format:
        """Of a sheet."""
        return self.get(bold=True, font_size=14)

    @property
    def section(self) -> Format:
        """Heading within a sheet."""
        return self.get(bold=True, font_size=12, bottom=1, bottom_color=RULE)

    @property
    def note(self) -> Format:
        """What is said beside a table."""
        return self.get(font_color=DIM)

    @property
    def aside(self) -> Format:
        """What is said beside a number."""
        return self.get(font_color=DIM, **INSET)

    @property
    def wrapped(self) -> Format:
        """Sentences."""
        return self.get(text_wrap=True)

    @property
    def link(self) -> Format:
        """To another sheet."""
        return self.get(font_color=LINK, underline=1)

    @property
    def missing(self) -> Format:
        """A value that was not measured."""
        return self.get(font_color=DIM, italic=True, align="right")

    def header(self, *, right: bool, indent: int = 0, fill: str = HEADER_FILL) -> Format:
        """Heading of a column of text or of numbers."""
        shown = {
            "bold": True,
            "valign": "bottom",
            "text_wrap": True,
            "bg_color": fill,
            "bottom": 1,
            "bottom_color": RULE,
        }
        return self.get(**shown, **aligned(right=right, indent=indent))

    def colour(self, colour: str) -> Format:
        """Of text that says worse or better; for conditional formats, which change nothing else."""
        key = (("conditional", colour),)
        if key not in self._made:
            self._made[key] = self._workbook.add_format({"font_color": colour})
        return self._made[key]

    def group(self, fill: str) -> Format:
        """Heading over the columns of one side."""
        return self.get(bold=True, bg_color=fill, align="left")

    def indented(self, level: int) -> Format:
        """What names a row that lies inside another."""
        return self.get(**aligned(right=False, indent=level))

    def cell(self, number_format: str | None, *, first: bool = False) -> Format:
        """A value; text keeps away from the number before it, and what names the row stands at the left."""
        shown = {"num_format": number_format} if number_format else {}
        right = number_format is not None and not first
        return self.get(**shown, **aligned(right=right, indent=0 if first or right else 1))

    def total(self, number_format: str | None, *, first: bool = False) -> Format:
        """What a column sums to."""
        shown = {"num_format": number_format} if number_format else {}
        right = number_format is not None and not first
        indent = 0 if first or right else 1
        return self.get(bold=True, top=1, top_color=RULE, **shown, **aligned(right=right, indent=indent))


def aligned(*, right: bool, indent: int = 0) -> dict[str, Any]:
    """Properties of a format: the side, and how far from it."""
    return {"align": "right" if right else "left", **({"indent": indent} if indent else {})}
