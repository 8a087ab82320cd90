"""From one declaration: the plan from words and from Python, refusals, and the given options."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import pytest

from minibroker.cli.declaration import (
    InPython,
    InWords,
    Option,
    Part,
    built,
    given_lines,
    options_of,
    plan_of,
)
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import COUNT, DURATION, SWITCH, TEXT, TOPICS
from minibroker.pipeline.verbs.table import VERBS


class Wheels(NamedTuple):
    number: Annotated[int, Option("--wheels", COUNT, "how many", name="wheels")] = 4


class Car(NamedTuple):
    """A declaration with each kind of field."""

    name: Annotated[str, Option("--name", TEXT, "its name", example="Ada")]
    wheels: Annotated[Wheels, Part(Wheels)] = Wheels()
    doors: Annotated[int, Part(Wheels, lambda wheels: wheels.number * 2)] = 8
    brakes_after_ms: Annotated[int | None, Option("--brakes", DURATION, "", name="brakes")] = None
    is_open: Annotated[bool, Option("--open", SWITCH, "no roof")] = False
    towns: Annotated[tuple[str, ...], Option("--town", TOPICS, "where")] = ()
    number: int = 0
    """No option."""


def test_a_plan_from_words_and_the_same_from_python() -> None:
    words = InWords(
        {
            "--name": ["Ada"],
            "--wheels": ["3"],
            "--brakes": ["2s"],
            "--open": [""],
            "--town": ["a,b", "c"],
        }
    )
    python = InPython(
        {"name": "Ada", "wheels": 3, "brakes": "2s", "is_open": True, "towns": ["a", "b", "c"]}
    )
    car = Car("Ada", Wheels(3), 6, 2000, is_open=True, towns=("a", "b", "c"))
    assert built(Car, words) == built(Car, python) == car


def test_an_option_that_is_not_given_has_its_default() -> None:
    assert built(Car, InWords({"--name": ["Ada"]})) == Car("Ada")
    assert built(Car, InPython({"name": "Ada", "brakes": None})) == Car("Ada")


@pytest.mark.parametrize(
    ("words", "python", "sentence"),
    [
        ({}, {}, "{name} is missing: for instance {name}"),
        ({"--name": [""]}, {"name": ""}, "{name} is missing"),
        (
            {"--name": ["A"], "--wheels": ["0"]},
            {"name": "A", "wheels": 0},
            "{wheels} '0': expected a number from 1 up",
        ),
        (
            {"--name": ["A"], "--brakes": ["2"]},
            {"name": "A", "brakes": "2"},
            "{brakes} '2' is no duration: expected for instance 30s",
        ),
    ],
)
def test_both_ways_in_refuse_the_same(
    words: dict[str, list[str]], python: dict[str, object], sentence: str
) -> None:
    """Each names the option as the user has written it."""
    for way, names in (
        (InWords(words), {"name": "--name", "wheels": "--wheels", "brakes": "--brakes"}),
        (InPython(python), {"name": "name", "wheels": "wheels", "brakes": "brakes"}),
    ):
        with pytest.raises(UsageError) as caught:
            built(Car, way)
        assert str(caught.value).startswith(sentence.format(**names))


def test_rules_for_two_options_are_the_same_for_both_ways() -> None:
    """An archive to a catalogue that is no table's."""
    words = InWords({"--to": ["d"], "--topic": ["t"], "--table": ["a.b"]})
    python = InPython({"to": "d", "topics": "t", "table": "a.b"})
    sentences = []
    for way in (words, python):
        with pytest.raises(UsageError) as caught:
            plan_of(VERBS["archive"], way)
        sentences.append(str(caught.value))
    assert sentences[0].replace("--", "") == sentences[1]


def test_a_flag_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="--name is given 2 times"):
        built(Car, InWords({"--name": ["a", "b"]}))


def test_the_options_that_have_not_their_default() -> None:
    assert given_lines(Car("Ada the 2nd", Wheels(3), 6, 90_000, is_open=True, towns=("a",))) == [
        "--name 'Ada the 2nd'",
        "--wheels 3",
        "--brakes 1m30s",
        "--open",
        "--town a",
    ]
    assert given_lines(Car("Ada")) == ["--name Ada"]
    archive = plan_of(VERBS["archive"], InPython({"to": "d", "topics": "t", "kafka": {"a": "b"}}))
    assert given_lines(archive) == ["--to d", "--topic t"]


def test_the_options_of_a_part_stand_in_its_place() -> None:
    names = [field.name for field in options_of(Car)]
    assert names == ["name", "number", "number", "brakes_after_ms", "is_open", "towns"]


def test_no_two_options_of_a_verb_have_one_name() -> None:
    for verb in VERBS.values():
        fields = [*options_of(verb.plan), *(options_of(verb.engine) if verb.engine else ())]
        for way in (InWords({}), InPython({})):
            names = [way.name_of(field) for field in fields]
            assert len(names) == len(set(names)), (verb.name, names)


def test_a_field_without_a_default_has_an_example() -> None:
    for verb in VERBS.values():
        for field in options_of(verb.plan):
            assert not field.is_needed or field.declared.example, (verb.name, field.name)


def test_another_verb_has_an_option_with_other_texts() -> None:
    option = Option("--wheels", COUNT, "how many", "Parts", name="wheels", default="4", short="-w")
    other = option.changed(help="how many it has", default="")
    assert (other.help, other.default) == ("how many it has", "")
    assert (other.flag, other.kind, other.group) == ("--wheels", COUNT, "Parts")
    assert (other.name, other.short) == ("wheels", "-w")
    assert option.help == "how many"
