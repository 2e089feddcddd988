"""`@frozen` classes are what `dataclass(frozen=True, slots=True)` makes of them."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, is_dataclass, replace

import pytest

from traceanalyze.frozen import frozen


@frozen
class Point:
    """A place."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    secret: str = field(default="", repr=False)

    @property
    def both(self) -> int:
        return self.x + self.y


@dataclass(frozen=True, slots=True)
class Usual:
    """A place."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    secret: str = field(default="", repr=False)


@frozen
class Key:
    """Of a dictionary."""

    name: str
    at: int = 0


@frozen
class Empty:
    """Nothing."""


@frozen
class Node:
    """May hold itself."""

    children: list[object]


def test_fields_are_set_by_place_by_name_and_by_default():
    assert astuple(Point(1)) == astuple(Usual(1)) == (1, 2, [], "")
    assert astuple(Point(1, 3, ["a"], secret="s")) == (1, 3, ["a"], "s")
    assert Point(1, 3).both == 4


def test_a_factory_makes_a_value_for_each_instance():
    first, second = Point(1), Point(1)
    first.tags.append("mine")
    assert second.tags == []


@pytest.mark.parametrize("arguments", [(), (1, 2, [], "", 5)])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        Point(*arguments)


def test_nothing_can_be_changed_added_or_deleted():
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 5
    with pytest.raises(FrozenInstanceError):
        point.other = 5
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point.x == 1
    assert not hasattr(point, "__dict__")


def test_equal_where_class_and_fields_are():
    assert Point(1) == Point(1)
    assert Point(1) != Point(2)
    assert Point(1) != Usual(1)
    assert Empty() == Empty()
    assert Key("a") != ("a", 0)


def test_equal_ones_are_one_key():
    assert {Key("a"): 1, Key("a", 0): 2, Key("b"): 3} == {Key("a"): 2, Key("b"): 3}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


def test_told_like_a_data_class():
    assert repr(Point(1)) == "Point(x=1, y=2, tags=[])"
    assert repr(Empty()) == "Empty()"
    node = Node([])
    node.children.append(node)
    assert repr(node) == "Node(children=[...])"


def test_the_tools_of_dataclasses_know_it():
    assert is_dataclass(Point)
    assert [each.name for each in fields(Point)] == [each.name for each in fields(Usual)]
    assert replace(Point(1), y=7) == Point(1, 7)
    assert asdict(Point(1)) == asdict(Usual(1))
    assert Point.__match_args__ == Usual.__match_args__
    assert Point.__slots__ == Usual.__slots__
    assert Point.__doc__ == "A place."


def test_the_signature_names_fields_and_types():
    assert list(inspect.signature(Point).parameters) == list(inspect.signature(Usual).parameters)
    assert inspect.signature(Point).parameters["y"].annotation == "int"
    assert Point.__init__.__qualname__ == "Point.__init__"


@pytest.mark.parametrize("again", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy, copy.deepcopy])
def test_copies_are_equal(again):
    point = Point(1, 3, ["a"], "s")
    assert again(point) == point
    assert again(point) is not point
