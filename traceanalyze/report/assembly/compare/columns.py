"""Columns that tables of a comparison share."""

from __future__ import annotations

from traceanalyze.model.table import Column, Kind

DIFF = Column("diff_ns", Kind.CHANGE, par=0.0)
STEP_SHARE = Column("step_change_share", Kind.SHARE)
CHANGE_SHARE = Column("change_share", Kind.SHARE)
MATCH = Column("match", Kind.TERM, minor=True)
PLACE = Column("place", Kind.COUNT)
SUMS = (
    Column("base_sum_ns", Kind.DURATION, machine=True),
    Column("candidate_sum_ns", Kind.DURATION, machine=True),
)


def ratio(key: str = "ratio", alias: str = "Diff Ratio") -> Column:
    """Candidate over base."""
    return Column(key, Kind.RATIO, par=1.0, alias=alias)


def diff(alias: str, key: str = "diff_ns") -> Column:
    """Candidate minus base."""
    return Column(key, Kind.CHANGE, par=0.0, alias=alias)


def both(*columns: tuple[str, Kind, str] | tuple[str, Kind, str, str]) -> tuple[Column, ...]:
    """The columns of the base, then the same of the candidate; each as end of key, kind, alias and scale."""
    return tuple(
        Column(f"{side}_{key}", kind, scale=scale, side=side, alias=alias.format(side=name))
        for side, name in (("base", "Base"), ("candidate", "Comparison"))
        for key, kind, alias, scale in (column if len(column) == 4 else (*column, "time") for column in columns)
    )
