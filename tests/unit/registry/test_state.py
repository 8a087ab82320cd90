"""Subjects of a registry, and its state: what the entries of a topic add up to."""

from __future__ import annotations

import random
from typing import NoReturn

import pytest

from minibroker.registry.entries import (
    ClearedSubject,
    DeletedSubject,
    Entry,
    ErasedVersion,
    HighestId,
    ModeEntry,
    Reference,
    SchemaText,
    SettingsEntry,
    VersionEntry,
)
from minibroker.registry.errors import RegistryError
from minibroker.registry.state import RegistryState
from minibroker.registry.subjects import (
    check_subject,
    context_named,
    context_of,
    name_within,
    qualified,
)

INT = SchemaText("AVRO", '"int"')
LONG = SchemaText("AVRO", '"long"')


def state_of(*entries: Entry) -> RegistryState:
    state = RegistryState()
    for entry in entries:
        apply(state, entry)
    return state


def apply(state: RegistryState, entry: Entry) -> None:
    for _ in state.apply(entry):
        pass


def numbers(state: RegistryState, subject: str, *, deleted: bool = False) -> list[int]:
    return [entry.version for entry in state.versions(subject, deleted=deleted)]


class Unwalked(dict[int, VersionEntry]):
    """Versions that nobody walks through."""

    def values(self) -> NoReturn:
        raise AssertionError("the versions are walked through")


def test_the_latest_version_is_not_looked_for_among_all() -> None:
    """A subject may have any number of versions that are deleted."""
    state = state_of(*(VersionEntry("a", version, 1, INT) for version in range(1, 9)))
    state.subjects["a"] = Unwalked(state.subjects["a"])
    assert state.latest("a") == VersionEntry("a", 8, 1, INT)
    apply(state, DeletedSubject("a", 6))
    assert state.latest("a") == VersionEntry("a", 8, 1, INT)
    apply(state, DeletedSubject("a", 8))
    assert state.latest("a") is None


@pytest.mark.parametrize("seed", range(50))
def test_the_latest_version_is_the_last_that_is_not_deleted(seed: int) -> None:
    generator = random.Random(seed)
    state = RegistryState()
    for _ in range(60):
        version = generator.randint(1, 6)
        entry = generator.choice(
            [
                VersionEntry("a", version, 1, INT, is_deleted=generator.random() < 0.3),
                VersionEntry("a", version, 1, INT),
                ErasedVersion("a", version),
                DeletedSubject("a", version),
                ClearedSubject("a"),
            ]
        )
        apply(state, entry)
        for deleted in (False, True):
            versions = state.versions("a", deleted=deleted)
            assert state.latest("a", deleted=deleted) == (versions[-1] if versions else None)


def test_ids_go_on_above_all_that_there_were() -> None:
    state = state_of(VersionEntry("a", 1, 7, INT), ErasedVersion("a", 1))
    assert state.next_id(".") == 8
    assert state.next_id(".other") == 1
    assert state.schemas == {}
    assert state.id_of(".", INT) is None


def test_an_id_is_that_of_the_last_text_which_has_it() -> None:
    """No registry writes two: the topic was written by somebody else."""
    both = [VersionEntry("a", 1, 1, INT), VersionEntry("b", 1, 1, LONG)]
    state = state_of(*both)
    assert (state.id_of(".", INT), state.id_of(".", LONG)) == (None, 1)
    assert state.same("a", INT) is None
    state = state_of(*both, ErasedVersion("a", 1), ErasedVersion("b", 1))
    assert (state.id_of(".", INT), state.id_of(".", LONG)) == (None, None)
    assert state.same("a", INT) is None


def test_highest_id_counts_without_its_version() -> None:
    state = state_of(VersionEntry("a", 1, 2, INT), HighestId(".", 7), HighestId(".", 3))
    assert state.next_id(".") == 8
    assert state.contexts == {"."}


def test_context_has_ids_of_its_own() -> None:
    state = state_of(VersionEntry("a", 1, 1, INT), VersionEntry(":.c:a", 1, 1, LONG))
    assert state.id_of(".", INT) == 1
    assert state.id_of(".c", LONG) == 1
    assert state.id_of(".c", INT) is None
    assert state.contexts == {".", ".c"}
    assert state.context_names == [".", ".c"]


def test_schema_of_two_subjects_stays_until_the_last_goes() -> None:
    state = state_of(VersionEntry("a", 1, 1, INT), VersionEntry("b", 1, 1, INT))
    assert [entry.subject for entry in state.places(".", 1)] == ["a", "b"]
    apply(state, ErasedVersion("a", 1))
    assert state.id_of(".", INT) == 1
    apply(state, ErasedVersion("b", 1))
    assert state.id_of(".", INT) is None
    assert state.names == []


def test_text_of_a_schema_is_in_memory_once() -> None:
    texts = ["".join(["x", str(1)]) for _ in range(2)]
    first, second = (SchemaText("AVRO", text) for text in texts)
    assert first.text is not second.text
    state = state_of(VersionEntry("a", 1, 1, first), VersionEntry("b", 1, 1, second))
    assert state.versions("b")[0].schema is first


def test_deleted_subject_has_versions_for_who_wants_deleted_ones() -> None:
    state = state_of(
        VersionEntry("a", 1, 1, INT), VersionEntry("a", 2, 2, LONG), DeletedSubject("a", 1)
    )
    assert numbers(state, "a") == [2]
    assert numbers(state, "a", deleted=True) == [1, 2]


def test_cleared_subject_is_gone() -> None:
    state = state_of(VersionEntry("a", 1, 1, INT), ClearedSubject("a"))
    assert state.subjects == {}


def test_versions_are_ascending_in_any_order_of_records() -> None:
    state = state_of(VersionEntry("a", 2, 2, LONG), VersionEntry("a", 1, 1, INT))
    assert numbers(state, "a") == [1, 2]


def test_version_that_comes_again_replaces_the_first() -> None:
    state = state_of(VersionEntry("a", 1, 1, INT), VersionEntry("a", 1, 2, LONG))
    assert state.versions("a") == [VersionEntry("a", 1, 2, LONG)]
    assert list(state.places(".", 1)) == []
    assert (".", 1) not in state.schemas


def test_referrer_counts_until_it_is_deleted() -> None:
    user = SchemaText("AVRO", '"X"', (Reference("X", "a", 1),))
    entry = VersionEntry(":.c:b", 1, 1, user)
    state = state_of(VersionEntry(":.c:a", 1, 2, INT), entry)
    assert list(state.referrers(":.c:a", 1)) == [entry]
    assert list(state.referrers("a", 1)) == []
    apply(state, DeletedSubject(":.c:b", 1))
    assert list(state.referrers(":.c:a", 1)) == []


def test_configuration_of_a_subject_stands_over_its_context_over_all() -> None:
    state = state_of(SettingsEntry(None, {"compatibilityLevel": "FULL"}))
    assert state.config(":.c:a")["compatibilityLevel"] == "FULL"
    apply(state, SettingsEntry(":.c:", {"compatibilityLevel": "FORWARD", "normalize": True}))
    apply(state, SettingsEntry(":.c:a", {"compatibilityLevel": "NONE"}))
    assert state.config(":.c:a") == {"compatibilityLevel": "NONE", "normalize": True}
    assert state.config(":.c:b")["compatibilityLevel"] == "FORWARD"
    assert state.config("a")["compatibilityLevel"] == "FULL"
    apply(state, SettingsEntry(None, None))
    assert state.config("a") == {"compatibilityLevel": "BACKWARD"}


def test_mode_that_overrides_stands_over_those_of_subjects() -> None:
    state = state_of(ModeEntry("a", "IMPORT"), ModeEntry(None, "READONLY"))
    assert (state.mode("a"), state.mode("b")) == ("IMPORT", "READONLY")
    apply(state, ModeEntry(None, "READONLY_OVERRIDE"))
    assert (state.mode("a"), state.mode("b")) == ("READONLY_OVERRIDE", "READONLY_OVERRIDE")


def test_alias_leads_to_another_subject_of_the_context() -> None:
    state = state_of(SettingsEntry(":.c:a", {"alias": "b"}))
    assert state.target(":.c:a") == ":.c:b"
    assert state.target("a") == "a"


def test_state_depends_on_the_entries_that_compaction_leaves() -> None:
    entries = [
        VersionEntry("a", 1, 1, INT),
        VersionEntry("a", 2, 2, LONG),
        VersionEntry("a", 1, 1, INT, is_deleted=True),
        SettingsEntry("a", {"compatibilityLevel": "NONE"}),
        SettingsEntry("a", None),
    ]
    whole, compacted = state_of(*entries), state_of(*entries[1:3], entries[4])
    assert whole.subjects == compacted.subjects
    assert whole.schemas == compacted.schemas
    assert whole.configs == compacted.configs


@pytest.mark.parametrize(
    ("subject", "context", "full_name"),
    [
        ("a", ".", "a"),
        ("a", ".c", ":.c:a"),
        (":.d:a", ".c", ":.d:a"),
        (":.:a", ".c", "a"),
        (":.d:", ".", ":.d:"),
        (":a", ".", ":a"),
        (":.a", ".", ":.a"),
        ("a:.b:c", ".", "a:.b:c"),
        (":.d:x:y", ".", ":.d:x:y"),
    ],
)
def test_name_is_qualified_by_the_context_of_the_caller(
    subject: str, context: str, full_name: str
) -> None:
    assert qualified(subject, context) == full_name


@pytest.mark.parametrize(
    ("subject", "context", "name"),
    [("a", ".", "a"), (":.c:a", ".c", "a"), (":.c:", ".c", ""), (":.c", ".", ":.c")],
)
def test_qualified_name_has_a_context_and_a_name(subject: str, context: str, name: str) -> None:
    assert (context_of(subject), name_within(subject)) == (context, name)


@pytest.mark.parametrize("text", [".c", ":.c:", "c"])
def test_context_of_a_path_is_written_in_three_ways(text: str) -> None:
    assert context_named(text) == ".c"


@pytest.mark.parametrize("subject", ["", ":.c:", "__GLOBAL", "__EMPTY", "a\nb", "x" * 5000])
def test_name_that_no_subject_can_have_is_refused(subject: str) -> None:
    with pytest.raises(RegistryError) as refusal:
        check_subject(subject)
    assert refusal.value.code == 42208


def test_usual_names_are_subjects() -> None:
    for subject in ("orders-value", "a/b c", "ü", ":.c:a"):
        check_subject(subject)
