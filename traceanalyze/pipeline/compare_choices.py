"""What a user may choose about a comparison, as texts, and what they mean to it."""

from __future__ import annotations

import ast
import json
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.comparison.side import SECTIONS, CompareOptions, median_step
from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen
from traceanalyze.pipeline.choices import Choices
from traceanalyze.report.assembly.selection import step_chooser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceanalyze.analyses.options import Options

MEDIAN = "median"


@frozen
class SideChoices:
    """What is compared of one side."""

    name: str
    """base or candidate, for messages."""
    path: str
    steps: str | None = None
    """Numbers as of `analyze`, or `median`; None: all complete steps."""
    steps_option: str = "--base-step"
    rank: int | None = None
    """None: the rank whose step takes longest."""
    rank_option: str = "--base-rank"

    def options(self, choices: Choices) -> Options:
        """For the analyses of this side."""
        common = choices.options()
        if self.steps is None:
            return common
        chosen = median_step if self.steps == MEDIAN else step_chooser(self.steps, self.steps_option)
        return replace(common, steps=chosen)


@frozen
class CompareChoices:
    """What is compared with what, and how."""

    base: SideChoices
    candidate: SideChoices
    common: Choices = field(default_factory=Choices)
    """Regular expressions and categories, for both sides."""
    sections: frozenset[str] = frozenset()
    """Names of `SECTIONS`; empty means all."""
    details: bool = True
    modules: bool = True
    max_kernel_num: int | None = None
    op_name_map: str | None = None
    """JSON, a Python dictionary, or the name of a file that holds one."""
    use_input_shape: bool = False

    def options(self) -> CompareOptions:
        """The same for the comparison.

        Raises:
            UsageError: A text cannot be understood.
        """
        unknown = self.sections - set(SECTIONS)
        if unknown:
            raise UsageError(f"no section {', '.join(sorted(unknown))}; there is {', '.join(SECTIONS)}")
        return CompareOptions(
            sections=self.sections or frozenset(SECTIONS),
            details=self.details,
            modules=self.modules,
            max_kernel_num=self.max_kernel_num,
            op_name_map=name_map(self.op_name_map) if self.op_name_map else {},
            use_input_shape=self.use_input_shape,
        )

    def listed(self) -> dict[str, str]:
        """Options in effect, by their names on the command line."""
        found = {
            "--base-step": self.base.steps,
            "--comparison-step": self.candidate.steps,
            "--base-rank": self.base.rank,
            "--comparison-rank": self.candidate.rank,
            "sections": ", ".join(name for name in SECTIONS if name in (self.sections or SECTIONS)),
            "--disable-details": not self.details,
            "--disable-module": not self.modules,
            "--max-kernel-num": self.max_kernel_num,
            "--op-name-map": self.op_name_map,
            "--use-input-shape": self.use_input_shape,
            "--step-marker": self.common.step_marker,
            "--data-regex": self.common.data_regex,
            "--comm-regex": self.common.comm_regex,
            "--not-comm-regex": self.common.not_comm_regex,
            "--category": ", ".join(self.common.categories),
        }
        return {name: str(value) for name, value in found.items() if value not in (None, False, "")}


def name_map(text: str) -> Mapping[str, str]:
    """Names of operators to other names: JSON, a Python dictionary as text, or a file that holds either.

    Raises:
        UsageError: It is none of these.
    """
    inline = text.lstrip().startswith("{")
    if not inline:
        try:
            content = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise UsageError(
                f"--op-name-map {text}: neither a dictionary nor a file that can be read: {reason}"
            ) from error
    else:
        content = text
    found = _literal(content)
    if not isinstance(found, dict) or not all(isinstance(name, str) for item in found.items() for name in item):
        raise UsageError(f'--op-name-map {text}: write names in braces: {{"npu::name": "aten::name"}}')
    return found


def _literal(content: str) -> object:
    """What JSON or a Python literal says; None when it is neither."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(content.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
