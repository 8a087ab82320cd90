"""Changes of a registry, decided on its state: the entries to write, or an error. Pure functions.

They hold for the state with everything that the topic has; see `topic.all_visible`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.slices import gather
from minibroker.registry.entries import (
    NUMBER_MAX,
    ContextEntry,
    DeletedSubject,
    Entry,
    ErasedVersion,
    HighestId,
    ModeEntry,
    SchemaText,
    SettingsEntry,
    VersionEntry,
)
from minibroker.registry.errors import (
    invalid_schema,
    is_not_permitted,
    is_not_soft_deleted,
    is_referenced,
    is_soft_deleted,
    is_version_not_soft_deleted,
    is_version_soft_deleted,
    no_subject,
    no_version,
)
from minibroker.registry.state import IMPORT, READONLY, READONLY_OVERRIDE, READWRITE
from minibroker.registry.subjects import DEFAULT, context_of, prefix_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from minibroker.broker.slices import Steps
    from minibroker.registry.state import RegistryState

NEW: Final = -1
"""An id or a version that the registry chooses."""


class Revision(NamedTuple):
    """Entries to write, and the answer behind them."""

    entries: Sequence[Entry]
    answer: Any


def check_writable(state: RegistryState, subject: str | None) -> None:
    """Raise RegistryError(42205) where the mode forbids every change."""
    if state.mode(subject) in (READONLY, READONLY_OVERRIDE):
        raise is_not_permitted(f"Subject {subject} is in read-only mode")


def check_registers(state: RegistryState, subject: str, schema_id: int) -> None:
    """Raise RegistryError(42205) where the mode forbids a registration, with an id or without."""
    check_writable(state, subject)
    mode = state.mode(subject)
    if schema_id != NEW and mode != IMPORT:
        raise is_not_permitted(f"Subject {subject} is not in import mode")
    if schema_id == NEW and mode != READWRITE:
        raise is_not_permitted(f"Subject {subject} is not in read-write mode")


def register(
    state: RegistryState, subject: str, schema: SchemaText, schema_id: int, version: int
) -> Revision:
    """Return the change that adds a version, or none if the subject has it; the answer is its
    entry. `schema_id`, `version`: as the client wants them, or NEW.

    Raises RegistryError.
    """
    check_registers(state, subject, schema_id)
    same = state.same(subject, schema)
    if same is not None and schema_id in (NEW, same.schema_id) and version in (NEW, same.version):
        return Revision((), same)
    context = context_of(subject)
    number = _new_version(state, subject, version)
    if schema_id == NEW:
        own = state.id_of(context, schema)
        schema_id = state.next_id(context) if own is None else own
    elif state.schemas.get((context, schema_id), schema) != schema:
        raise is_not_permitted(f"Overwrite new schema with id {schema_id} is not permitted.")
    if schema_id > NUMBER_MAX or number > NUMBER_MAX:
        raise is_not_permitted(f"ids and versions end at {NUMBER_MAX}")
    entry = VersionEntry(subject, number, schema_id, schema)
    old = state.subjects.get(subject, {}).get(number)
    entries = _id_note(state, subject, () if old is None else (old.schema_id,))
    if context != DEFAULT and context not in state.contexts:
        entries.append(ContextEntry(context))
    return Revision([*entries, entry], entry)


def _id_note(state: RegistryState, subject: str, ids: Container[int]) -> list[Entry]:
    """Return the entry to write before versions of a subject go for good, or none: the highest id
    of its context, if it is among `ids`, those of the versions. Else it would be given again once
    the topic is compacted and read anew.
    """
    context = context_of(subject)
    last_id = state.last_id(context)
    return [HighestId(context, last_id)] if last_id in ids else []


def _new_version(state: RegistryState, subject: str, version: int) -> int:
    """Raises RegistryError(42201)."""
    newest = state.latest(subject, deleted=True)
    last = 0 if newest is None else newest.version
    if version == NEW:
        return last + 1
    if state.mode(subject) != IMPORT and version != last + 1:
        raise invalid_schema(f"Version is not one more than previous version {last}")
    return version


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Steps[Revision]:
    """Return the change that deletes all versions; the answer is their numbers. Raises
    RegistryError.
    """
    check_writable(state, subject)
    if state.latest(subject, deleted=True) is None:
        raise no_subject(subject)
    if permanent and state.latest(subject) is not None:
        raise is_not_soft_deleted(subject)
    if not permanent and state.latest(subject) is None:
        raise is_soft_deleted(subject)
    numbers: list[int] = []
    ids: set[int] = set()
    for version, entry in state.subjects[subject].items():
        if permanent or not entry.is_deleted:
            _check_unreferenced(state, subject, version)
            numbers.append(version)
            ids.add(entry.schema_id)
        yield
    if permanent:
        erased = yield from gather(ErasedVersion(subject, version) for version in numbers)
        return Revision([*_id_note(state, subject, ids), *erased], numbers)
    entries: list[Entry] = [DeletedSubject(subject, numbers[-1])]
    if subject in state.modes:
        entries.append(ModeEntry(subject, None))
    if subject in state.configs:
        entries.append(SettingsEntry(subject, None))
    return Revision(entries, numbers)


def delete_version(
    state: RegistryState, subject: str, version: int, *, permanent: bool
) -> Revision:
    """Return the change that deletes a version; the answer is its number. `version` NEW: the last
    one. Raises RegistryError.
    """
    check_writable(state, subject)
    latest = state.latest(subject, deleted=permanent or version != NEW)
    if latest is None:
        raise no_subject(subject)
    if version == NEW:
        version = (state.latest(subject) or latest).version
    entry = state.subjects[subject].get(version)
    if entry is None:
        raise no_version(version)
    if permanent and not entry.is_deleted:
        raise is_version_not_soft_deleted(subject, version)
    if not permanent and entry.is_deleted:
        raise is_version_soft_deleted(subject, version)
    _check_unreferenced(state, subject, version)
    if permanent:
        note = _id_note(state, subject, (entry.schema_id,))
        return Revision([*note, ErasedVersion(subject, version)], version)
    return Revision([entry._replace(is_deleted=True)], version)


def _check_unreferenced(state: RegistryState, subject: str, version: int) -> None:
    """Raise RegistryError(42206) for a version that another schema refers to."""
    if next(state.referrers(subject, version), None) is not None:
        raise is_referenced(subject, version)


def set_config(state: RegistryState, subject: str | None, fields: Mapping[str, Any]) -> Revision:
    """Return the change that sets fields of a configuration; the answer is all that it has then.

    Raises RegistryError.
    """
    check_writable(state, subject)
    values = {**state.own_config(subject), **fields}
    return Revision([SettingsEntry(subject, values)], values)


def delete_config(state: RegistryState, subject: str | None) -> Revision:
    """Return the change that removes a configuration; the answer is the one that was. Raises
    RegistryError.
    """
    check_writable(state, subject)
    if subject in state.configs:
        return Revision([SettingsEntry(subject, None)], dict(state.configs[subject]))
    if subject is not None:
        raise no_subject(subject)
    return Revision((), state.config(None))


def set_mode(state: RegistryState, subject: str | None, mode: str, *, force: bool) -> Revision:
    """Return the change that sets a mode; the answer is the mode. Raises RegistryError(42205)."""
    if mode == IMPORT and not force and state.mode(subject) != IMPORT and _has(state, subject):
        raise is_not_permitted("Cannot import since found existing subjects")
    return Revision([ModeEntry(subject, mode)], mode)


def _has(state: RegistryState, subject: str | None) -> bool:
    """Return whether there is a version in a subject, in a context, or anywhere."""
    if subject is None:
        return bool(state.names)
    if subject != prefix_of(context_of(subject)):
        return subject in state.subjects
    place = state.names_from(subject)
    return place < len(state.names) and state.names[place].startswith(subject)


def delete_mode(state: RegistryState, subject: str | None) -> Revision:
    """Return the change that removes a mode; the answer is that mode. Raises RegistryError."""
    mode = state.modes.get(subject)
    if mode is not None:
        return Revision([ModeEntry(subject, None)], mode)
    if subject is not None:
        raise no_subject(subject)
    return Revision((), READWRITE)
