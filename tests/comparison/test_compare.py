"""The whole comparison: sections that were not asked for are not there, the attribution always is."""

from __future__ import annotations

import pytest

from tests.comparison.make import side_from, training
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import SECTIONS, CompareOptions

OF_SECTION = {
    "profiling": {"overall"},
    "operator": {"operators", "operator_pairs", "modules"},
    "memory": {"memory", "memory_calls"},
    "communication": {"collectives"},
    "api": {"apis"},
    "kernel": {"kernels", "kernel_types"},
}


def there(options=None):
    """Sections that are not None."""
    one = side_from(training())
    found = compare_sides(one, one, options)
    assert found.parts
    assert found.contributions
    return {name for names in OF_SECTION.values() for name in names if getattr(found, name) is not None}


def test_every_section_is_there_by_default():
    assert set(OF_SECTION) == set(SECTIONS)
    assert there() == set().union(*OF_SECTION.values())


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_alone(name):
    assert there(CompareOptions(sections=frozenset({name}))) == OF_SECTION[name]


def test_without_details_modules_and_types_of_kernels():
    left_out = {"operator_pairs", "memory_calls", "modules", "kernel_types"}
    options = CompareOptions(details=False, modules=False, kernel_types=False)
    assert there(options) == set().union(*OF_SECTION.values()) - left_out


def test_without_any_section_the_attribution_remains():
    assert there(CompareOptions(sections=frozenset())) == set()
