"""Named tuples of ours beside those of `typing`: the same to whoever uses them."""

from __future__ import annotations

import pickle
import typing

import pytest

from minibroker import named_tuples
from minibroker.named_tuples import NamedTuple


class Pair(NamedTuple):
    """A key and a value."""

    key: str
    value: int = 7

    @property
    def text(self) -> str:
        return f"{self.key}={self.value}"


class LoudPair(Pair):
    """A subclass with a constructor of its own."""

    __slots__ = ()

    def __new__(cls, key: str) -> LoudPair:
        return super().__new__(cls, key.upper())


class TypingPair(typing.NamedTuple):
    key: str
    value: int = 7


def fresh_pair() -> type[Pair]:
    """Return a class of which no tuple was made yet."""

    class Pair(NamedTuple):
        key: str
        value: int = 7

    return Pair  # type: ignore[return-value]


def test_a_named_tuple_takes_values_fields_and_defaults() -> None:
    kind = fresh_pair()
    assert kind("a", 1) == kind(key="a", value=1) == ("a", 1)
    assert kind("a") == ("a", 7)
    assert (kind("b").key, kind("b").value) == ("b", 7)
    assert not hasattr(kind("a"), "__dict__")


def test_the_first_tuple_makes_the_constructor_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    make = named_tuples._NAMEDTUPLE

    def count(name: str, *arguments: object, **options: object) -> object:
        names.append(name)
        return make(name, *arguments, **options)

    monkeypatch.setattr(named_tuples, "_NAMEDTUPLE", count)
    kind = fresh_pair()
    assert names == []
    assert [kind("a"), kind("b")] == [("a", 7), ("b", 7)]
    assert names == ["Pair"]


@pytest.mark.parametrize("arguments", [(), ("a", 1, 2)])
def test_a_named_tuple_refuses_another_number_of_values(arguments: tuple[object, ...]) -> None:
    for kind in (fresh_pair(), Pair, TypingPair):
        with pytest.raises(TypeError):
            kind(*arguments)  # type: ignore[arg-type]


def test_a_named_tuple_refuses_a_field_that_it_has_not() -> None:
    with pytest.raises(TypeError):
        fresh_pair()(key="a", values=1)  # type: ignore[call-arg]


def test_methods_are_those_of_typing() -> None:
    pair, other = Pair("a"), TypingPair("a")
    assert pair._asdict() == other._asdict() == {"key": "a", "value": 7}
    assert pair._replace(value=8) == other._replace(value=8) == ("a", 8)
    assert type(pair._replace(value=8)) is Pair
    assert repr(pair) == repr(other).removeprefix("Typing") == "Pair(key='a', value=7)"
    assert Pair._fields == Pair.__match_args__ == TypingPair._fields
    assert Pair._field_defaults == TypingPair._field_defaults
    assert Pair._make(["a", 1]) == TypingPair._make(["a", 1])
    assert hash(pair) == hash(other)
    assert pair.text == "a=7"


def test_make_and_replace_work_before_the_first_tuple() -> None:
    assert fresh_pair()._make(["a", 1])._replace(key="b") == ("b", 1)


def test_make_and_replace_refuse_what_typing_refuses() -> None:
    with pytest.raises(TypeError, match="Pair has 2 fields, not 3"):
        Pair._make(["a", 1, 2])
    with pytest.raises(ValueError, match="no fields"):
        Pair("a")._replace(name="b")  # type: ignore[call-arg]


def test_a_pickled_tuple_comes_back() -> None:
    back = pickle.loads(pickle.dumps(Pair("a", 1)))
    assert (back, type(back)) == (("a", 1), Pair)


def test_a_subclass_keeps_its_own_constructor() -> None:
    pair = LoudPair("a")
    assert (pair, type(pair)) == (("A", 7), LoudPair)
    assert Pair("a") == ("a", 7)


def test_a_tuple_matches_a_pattern() -> None:
    match Pair("a", 1):
        case Pair(key, value):
            assert (key, value) == ("a", 1)


def test_a_declaration_without_order_or_fields_is_refused() -> None:
    with pytest.raises(TypeError, match="stands behind one with a default"):
        type(NamedTuple)("Pair", (NamedTuple,), {"__annotations__": {"a": "", "b": ""}, "a": 1})
    with pytest.raises(TypeError, match="no fields"):
        type(NamedTuple)("Pair", (NamedTuple,), {})
    with pytest.raises(TypeError, match="no other base"):
        type(NamedTuple)("Pair", (NamedTuple, Pair), {"__annotations__": {"a": ""}})
