"""The whole comparison: sections that were not asked for are not there, the attribution always is."""

from __future__ import annotations

import pytest

from tests.comparison.make import reason_rows, side_from, training
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import SECTIONS, CompareOptions

OF_SECTION = {
    "profiling": {"overall_metrics"},
    "operator": {"operator_compare_statistic", "operator_compare", "module_compare_statistic", "module_compare"},
    "memory": {"memory_compare_statistic", "memory_compare"},
    "communication": {"communication_compare"},
    "api": {"api_compare"},
    "kernel": {"kernel_compare", "kernel_type_compare"},
}


def there(options=None):
    """Tables of sections that are there."""
    one = side_from(training())
    found = compare_sides(one, one, options)
    assert found.parts
    assert reason_rows(one, one, options)
    assert {"step_difference", "causes"} <= set(found.tables)
    return {name for names in OF_SECTION.values() for name in names if name in found.tables}


def test_every_section_is_there_by_default():
    assert set(OF_SECTION) == set(SECTIONS)
    assert there() == set().union(*OF_SECTION.values())


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_alone(name):
    assert there(CompareOptions(sections=frozenset({name}))) == OF_SECTION[name]


def test_without_details_and_modules():
    left_out = {"operator_compare", "memory_compare", "module_compare_statistic", "module_compare"}
    options = CompareOptions(details=False, modules=False)
    assert there(options) == set().union(*OF_SECTION.values()) - left_out


def test_without_any_section_the_attribution_remains():
    assert there(CompareOptions(sections=frozenset())) == set()
