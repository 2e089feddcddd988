from __future__ import annotations

import pytest

from traceanalyze.analyses.idle.gc_pauses import is_gc_annotation, is_gc_category, is_gc_frame


@pytest.mark.parametrize("name", ["gc.py(12): run", "tools/gc.py(3): f", "<built-in function collect>", "gc.collect"])
def test_functions_of_the_collector(name):
    assert is_gc_frame(name)


@pytest.mark.parametrize(
    "name", ["logc.py(12): run", "train.py(3): collect", "<built-in function collector>", "gc.collected"]
)
def test_other_functions(name):
    assert not is_gc_frame(name)


@pytest.mark.parametrize(
    "name", ["gc", "GC", "gc.collect", "gc: generation 2", "Python GC", "garbage collection", "GC (gen 2)"]
)
def test_annotations_of_the_collector(name):
    assert is_gc_annotation(name)


@pytest.mark.parametrize("name", ["gcn_layer", "## gc ##", "agc", "collect", "gradient checkpointing"])
def test_other_annotations(name):
    assert not is_gc_annotation(name)


def test_the_category():
    assert is_gc_category("GC")
    assert not is_gc_category("gcx")
