"""The schemas, configurations and modes of one registry: what the entries of its topic add up to.

Entries are applied in the order of the topic, once each. So two registries that read the same topic
have the same state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.registry.entries import (
    ClearedSubject,
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
from minibroker.registry.levels import DEFAULT_LEVEL, LEVELS
from minibroker.registry.subjects import DEFAULT, context_of, prefix_of, qualified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.broker.slices import Steps

READWRITE: Final = "READWRITE"
READONLY: Final = "READONLY"
READONLY_OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
MODES: Final = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)


class SchemaPlace(NamedTuple):
    """A version of a subject, by name."""

    subject: str
    version: int


class RegistryState:
    """The state of a registry at one offset of its topic. Owned by the loop."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, VersionEntry]] = {}
        """Qualified name → version → entry, soft-deleted ones too; ascending."""
        self._active: dict[str, list[int]] = {}
        """Subject → its versions that are not deleted, ascending."""
        self.names: list[str] = []
        """The subjects, sorted."""
        self.schemas: dict[tuple[str, int], SchemaText] = {}
        """(context, id) → schema."""
        self.configs: dict[str | None, Mapping[str, Any]] = {}
        """Subject, or context such as `:.a:`, or None → configuration."""
        self.modes: dict[str | None, str] = {}
        self.contexts: set[str] = {DEFAULT}
        self.context_names: list[str] = [DEFAULT]
        """The contexts, sorted."""
        self._ids: dict[tuple[str, SchemaText], dict[int, None]] = {}
        """(context, schema) → its ids; more than one only after an import."""
        self._last_ids: dict[str, int] = {}
        self._places: dict[tuple[str, int], dict[str, dict[int, None]]] = {}
        """(context, id) → subject → versions."""
        self._referrers: dict[SchemaPlace, dict[SchemaPlace, None]] = {}

    # Questions.

    def versions(self, subject: str, *, deleted: bool = False) -> list[VersionEntry]:
        """Return the versions of a subject, ascending; with `deleted` the soft-deleted ones too."""
        entries = self.subjects.get(subject, {}).values()
        return [entry for entry in entries if deleted or not entry.is_deleted]

    def latest(self, subject: str, *, deleted: bool = False) -> VersionEntry | None:
        """Return the last version of a subject, None without one; `deleted` as of `versions`."""
        versions = self.subjects.get(subject, {})
        if deleted:
            return next(reversed(versions.values()), None)
        numbers = self._active.get(subject)
        return versions[numbers[-1]] if numbers else None

    def same(
        self, subject: str, schema: SchemaText, *, deleted: bool = False
    ) -> VersionEntry | None:
        """Return the newest version of a subject that has this schema, None without one."""
        context = context_of(subject)
        numbers = [
            number
            for schema_id in self._ids.get((context, schema), ())
            for number in self._places[context, schema_id].get(subject, ())
        ]
        entries = (self.subjects[subject][number] for number in sorted(numbers, reverse=True))
        return next((entry for entry in entries if deleted or not entry.is_deleted), None)

    def id_of(self, context: str, schema: SchemaText) -> int | None:
        """Return the id that a schema has in a context, None: none yet."""
        return next(iter(self._ids.get((context, schema), ())), None)

    def next_id(self, context: str) -> int:
        """Return the id for the next new schema of a context: above all that there ever were."""
        return self._last_ids.get(context, 0) + 1

    def last_id(self, context: str) -> int:
        """Return the highest id of a context, 0 for none."""
        return self._last_ids.get(context, 0)

    def places(self, context: str, schema_id: int) -> Iterator[VersionEntry]:
        """Yield the versions that have a schema, soft-deleted ones too. The state may change
        meanwhile: then some may be missing.
        """
        for subject, numbers in list(self._places.get((context, schema_id), {}).items()):
            versions = self.subjects.get(subject, {})
            yield from [versions[number] for number in numbers if number in versions]

    def uses(self, context: str, schema_id: int, subject: str) -> bool:
        """Return whether a subject has a version with a schema, soft-deleted or not."""
        return subject in self._places.get((context, schema_id), ())

    def referrers(self, subject: str, version: int) -> Iterator[VersionEntry]:
        """Yield the versions that refer to this one and are not deleted. The state may change
        meanwhile: then some may be missing.
        """
        for place in list(self._referrers.get(SchemaPlace(subject, version), ())):
            entry = self.subjects.get(place.subject, {}).get(place.version)
            if entry is not None and not entry.is_deleted:
                yield entry

    def names_from(self, prefix: str) -> int:
        """Return the place in `names` where the names with a prefix begin."""
        return bisect_left(self.names, prefix)

    def own_config(self, subject: str | None) -> Mapping[str, Any]:
        """Return the configuration of a subject, a context or all; empty if it has none."""
        return self.configs.get(subject, {})

    def config(self, subject: str | None) -> dict[str, Any]:
        """Return the configuration in force: the subject's over its context's over that of all."""
        layers = [self.own_config(None)]
        if subject is not None:
            layers += [self.own_config(scope) for scope in _scopes(subject)]
        merged: dict[str, Any] = {"compatibilityLevel": DEFAULT_LEVEL}
        for layer in layers:
            merged |= {name: layer[name] for name in layer if name != "alias"}
        if merged["compatibilityLevel"] not in LEVELS:
            merged["compatibilityLevel"] = DEFAULT_LEVEL
        return merged

    def mode(self, subject: str | None) -> str:
        """Return the mode in force."""
        mode = self.modes.get(None, READWRITE)
        if subject is None or mode == READONLY_OVERRIDE:
            return mode
        for scope in _scopes(subject):
            mode = self.modes.get(scope, mode)
        return mode

    def target(self, subject: str) -> str:
        """Return the subject behind an alias, or the subject itself."""
        alias = self.own_config(subject).get("alias")
        return qualified(alias, context_of(subject)) if alias else subject

    # Entries.

    def apply(self, entry: Entry) -> Steps[None]:
        """Change the state by the next entry of the topic. The caller runs all steps before it
        applies another entry.
        """
        match entry:
            case VersionEntry():
                self._add(entry)
            case ErasedVersion(subject, version):
                self._erase(subject, version)
            case DeletedSubject(subject, version):
                numbers = self._active.get(subject, [])
                del numbers[: bisect_right(numbers, version)]
                for number in list(self.subjects.get(subject, {})):
                    if number <= version:
                        old = self.subjects[subject][number]
                        self.subjects[subject][number] = old._replace(is_deleted=True)
                    yield
            case ClearedSubject(subject):
                self._active.pop(subject, None)
                for number in list(self.subjects.get(subject, {})):
                    self._erase(subject, number)
                    yield
            case SettingsEntry(subject, values):
                _set(self.configs, subject, values)
            case ModeEntry(subject, mode):
                _set(self.modes, subject, mode)
            case ContextEntry(context):
                self._add_context(context)
            case HighestId(context, schema_id):
                self._raise_last_id(context, schema_id)

    def _add_context(self, context: str) -> None:
        if context not in self.contexts:
            self.contexts.add(context)
            insort(self.context_names, context)

    def _raise_last_id(self, context: str, schema_id: int) -> None:
        self._last_ids[context] = max(self._last_ids.get(context, 0), schema_id)

    def _add(self, entry: VersionEntry) -> None:
        subject, context = entry.subject, context_of(entry.subject)
        key = (context, entry.schema_id)
        schema = self.schemas.get(key)
        if schema == entry.schema:
            entry = entry._replace(schema=schema)  # many subjects may have one large text
        elif schema is not None:  # of two texts with one id, the last one has it
            _discard(self._ids, (context, schema), entry.schema_id)
        old = self.subjects.get(subject, {}).get(entry.version)
        if old is not None:
            self._drop_uses(old)
        elif subject not in self.subjects:
            insort(self.names, subject)
        versions = self.subjects.setdefault(subject, {})
        is_last = not versions or entry.version > next(reversed(versions))
        versions[entry.version] = entry
        self._note_active(subject, entry.version, is_active=not entry.is_deleted)
        if old is None and not is_last:
            self.subjects[subject] = dict(sorted(versions.items()))
        self._add_context(context)
        self.schemas[key] = entry.schema
        self._ids.setdefault((context, entry.schema), {})[entry.schema_id] = None
        self._raise_last_id(context, entry.schema_id)
        place = SchemaPlace(subject, entry.version)
        self._places.setdefault(key, {}).setdefault(subject, {})[entry.version] = None
        for reference in entry.schema.references:
            target = SchemaPlace(qualified(reference.subject, context), reference.version)
            self._referrers.setdefault(target, {})[place] = None

    def _erase(self, subject: str, version: int) -> None:
        entry = self.subjects.get(subject, {}).pop(version, None)
        if entry is None:
            return
        self._drop_uses(entry)
        self._note_active(subject, version, is_active=False)
        if not self.subjects[subject]:
            del self.subjects[subject]
            self._active.pop(subject, None)
            del self.names[bisect_left(self.names, subject)]

    def _note_active(self, subject: str, version: int, *, is_active: bool) -> None:
        """Note whether a version is there and not deleted."""
        numbers = self._active.setdefault(subject, [])
        place = bisect_left(numbers, version)
        was_active = numbers[place : place + 1] == [version]
        if is_active and not was_active:
            numbers.insert(place, version)
        elif was_active and not is_active:
            del numbers[place]

    def _drop_uses(self, entry: VersionEntry) -> None:
        """Forget that a version has its schema; a schema that no version has is gone."""
        context = context_of(entry.subject)
        key, place = (context, entry.schema_id), SchemaPlace(entry.subject, entry.version)
        for reference in entry.schema.references:
            target = SchemaPlace(qualified(reference.subject, context), reference.version)
            _discard(self._referrers, target, place)
        subjects = self._places[key]
        if _discard(subjects, entry.subject, entry.version) and not subjects:
            del self._places[key]
            _discard(self._ids, (context, self.schemas.pop(key)), entry.schema_id)


def _scopes(subject: str) -> tuple[str, ...]:
    """Return the names whose settings count for a subject; the later one wins."""
    prefix = prefix_of(context_of(subject))
    return (prefix, subject) if prefix and prefix != subject else (subject,)


def _set(values: dict[str | None, Any], name: str | None, value: Any) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _discard(sets: dict[Any, dict[Any, None]], key: Any, member: Any) -> bool:
    """Remove a member of a set; return whether that made the set empty, and drop it."""
    members = sets.get(key, {})
    members.pop(member, None)
    if members:
        return False
    return sets.pop(key, None) is not None
