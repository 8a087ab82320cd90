"""Lists of subjects, versions and schemas, in steps: a registry may have many of them.

A list has at most as many items as Confluent's registry answers by default, so an answer is
bounded; `offset` and `limit` page through the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.registry.subjects import EVERY_CONTEXT, context_of, name_within, prefix_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.slices import Steps
    from minibroker.registry.entries import VersionEntry
    from minibroker.registry.state import RegistryState

SUBJECTS_MAX: Final = 20_000
SCHEMAS_MAX: Final = 1000


class Page(NamedTuple):
    """A part of a list."""

    offset: int
    limit: int

    def within(self, count_max: int) -> Page:
        """Return the page with at most so many items; a limit of 0 or less asks for all."""
        limit = self.limit if 0 < self.limit < count_max else count_max
        return Page(max(self.offset, 0), limit)


class Search(NamedTuple):
    """The subjects and versions that a list is about."""

    prefix: str
    """The beginning of qualified names, or `:*:` and that of names in any context."""
    deleted: bool = False
    """Soft-deleted versions, too."""
    deleted_only: bool = False
    """Soft-deleted versions alone."""

    def has(self, entry: VersionEntry) -> bool:
        """Return whether a version is one of those that are searched."""
        return entry.is_deleted if self.deleted_only else self.deleted or not entry.is_deleted


def _matching(state: RegistryState, prefix: str) -> Iterator[str]:
    """Yield the subjects with a prefix, in order."""
    if prefix.startswith(EVERY_CONTEXT):
        part = prefix.removeprefix(EVERY_CONTEXT)
        for name in list(state.names):
            yield name if name_within(name).startswith(part) else ""
        return
    context = context_of(prefix)
    begin = state.names_from(prefix)
    for name in state.names[begin:]:
        if not name.startswith(prefix):
            return
        yield name if context_of(name) == context else ""


def subjects(state: RegistryState, search: Search, page: Page) -> Steps[list[str]]:
    """Return the names of subjects that have a version of the search."""
    names: list[str] = []
    offset, limit = page.within(SUBJECTS_MAX)
    for name in _matching(state, search.prefix):
        # A soft-deleted subject is one whose versions are all deleted.
        is_active = state.latest(name) is not None
        is_listed = not is_active if search.deleted_only else search.deleted or is_active
        if is_listed and name in state.subjects:
            if offset:
                offset -= 1
            else:
                names.append(name)
        if len(names) >= limit:
            break
        yield
    return names


def schemas(
    state: RegistryState, search: Search, page: Page, *, latest_only: bool
) -> Steps[list[VersionEntry]]:
    """Return versions of subjects; `latest_only`: the last one of each."""
    entries: list[VersionEntry] = []
    offset, limit = page.within(SCHEMAS_MAX)
    for name in _matching(state, search.prefix):
        versions = state.subjects.get(name, {}).values()
        for entry in list(reversed(versions) if latest_only else versions):
            if not search.has(entry):
                continue
            if offset:
                offset -= 1
            elif len(entries) < limit:
                entries.append(entry)
            yield
            if latest_only or len(entries) >= limit:
                break
        if len(entries) >= limit:
            break
        yield
    return entries


def numbers(state: RegistryState, subject: str, search: Search, page: Page) -> Steps[list[int]]:
    """Return the numbers of a subject's versions."""
    offset, limit = page.within(SUBJECTS_MAX)
    versions: list[int] = []
    for entry in list(state.subjects.get(subject, {}).values()):
        if search.has(entry):
            versions.append(entry.version)
        yield
    return versions[offset : offset + limit]


def places(
    state: RegistryState, context: str, schema_id: int, search: Search
) -> Steps[list[tuple[str, int]]]:
    """Return (subject, version) that have a schema; a prefix of the search is a whole name."""
    pairs: list[tuple[str, int]] = []
    for entry in state.places(context, schema_id):
        if search.has(entry) and (not search.prefix or entry.subject == search.prefix):
            pairs.append((entry.subject, entry.version))
        yield
    return pairs


def find_context(
    state: RegistryState, context: str, schema_id: int, subject: str | None
) -> Steps[str | None]:
    """Return the context that an id is of, None if it is in none.

    A subject says which one: its own context, or the first one where it has this schema, the
    default one before others.
    """
    if subject is None:
        return context if (context, schema_id) in state.schemas else None
    own = context_of(subject)
    others = [] if prefix_of(own) else state.context_names
    name = name_within(subject)
    for candidate in (own, *others):
        if state.uses(candidate, schema_id, f"{prefix_of(candidate)}{name}"):
            return candidate
        yield
    return own if (own, schema_id) in state.schemas else None
