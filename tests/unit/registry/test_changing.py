"""Changes of a registry: the entries that they write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.registry.changing import NEW, Revision, delete_subject, delete_version, register
from minibroker.registry.entries import (
    Entry,
    ErasedVersion,
    HighestId,
    ModeEntry,
    SchemaText,
    VersionEntry,
)
from minibroker.registry.state import IMPORT, RegistryState

if TYPE_CHECKING:
    from minibroker.broker.slices import Steps

INT = SchemaText("AVRO", '"int"')
LONG = SchemaText("AVRO", '"long"')
FIRST = VersionEntry("a", 1, 1, INT, is_deleted=True)
SECOND = VersionEntry("b", 1, 2, LONG, is_deleted=True)
OTHER = VersionEntry(":.c:a", 1, 1, LONG, is_deleted=True)


def state_of(*entries: Entry) -> RegistryState:
    state = RegistryState()
    for entry in entries:
        for _ in state.apply(entry):
            pass
    return state


def deleted(state: RegistryState, subject: str) -> Revision:
    """Return the change that deletes a subject for good."""
    revisions = []

    def steps() -> Steps[None]:
        revisions.append((yield from delete_subject(state, subject, permanent=True)))

    for _ in steps():
        pass
    return revisions[0]


def test_highest_id_is_noted_before_its_version_is_erased() -> None:
    state = state_of(FIRST, SECOND)
    note = [HighestId(".", 2), ErasedVersion("b", 1)]
    assert delete_version(state, "b", 1, permanent=True).entries == note
    assert deleted(state, "b").entries == note


def test_lower_id_is_not_noted() -> None:
    state = state_of(FIRST, SECOND)
    assert delete_version(state, "a", 1, permanent=True).entries == [ErasedVersion("a", 1)]
    assert deleted(state, "a").entries == [ErasedVersion("a", 1)]


def test_highest_id_of_a_context_is_noted_for_the_context() -> None:
    state = state_of(FIRST, SECOND, OTHER)
    assert deleted(state, ":.c:a").entries == [HighestId(".c", 1), ErasedVersion(":.c:a", 1)]


def test_highest_id_is_noted_before_an_import_replaces_its_version() -> None:
    state = state_of(FIRST, SECOND, ModeEntry(None, IMPORT))
    revision = register(state, "b", INT, 1, 1)
    assert revision.entries == [HighestId(".", 2), VersionEntry("b", 1, 1, INT)]
    revision = register(state, "b", INT, 1, 2)
    assert revision.entries == [VersionEntry("b", 2, 1, INT)]


def test_soft_deletion_notes_no_id() -> None:
    state = state_of(VersionEntry("a", 1, 1, INT))
    assert delete_version(state, "a", NEW, permanent=False).entries == [FIRST]
