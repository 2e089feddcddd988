"""Which events are runs of Python's garbage collector.

category `gc`
    what torch_npu records as "Python GC"
Python functions `gc.py(12): …`, `<built-in function collect>`, `<built-in method collect …>`, `gc.collect`
    only collections that the program asks for; those that Python starts by itself call no function
annotations `gc`, `gc.collect`, `gc: generation 2`, `Python GC`, `garbage collection`
    what a program writes from `gc.callbacks`
"""

from __future__ import annotations

import re

GC_CATEGORY = "gc"
_FRAME = re.compile(r"(.*/)?gc\.py\(\d+\): |<built-in (function|method) collect\b|gc\.collect\b")
_ANNOTATION = re.compile(r"(python[ _.:-]*)?(gc|garbage[ _-]?collect(ion|or)?)([ _.:(\[#-].*)?", re.IGNORECASE)


def is_gc_category(category: str) -> bool:
    """A category of which every event is a run of the collector."""
    return category.lower() == GC_CATEGORY


def is_gc_frame(name: str) -> bool:
    """A Python function that collects garbage."""
    return _FRAME.match(name) is not None


def is_gc_annotation(name: str) -> bool:
    """A user annotation around a run of the collector."""
    return _ANNOTATION.fullmatch(name) is not None
