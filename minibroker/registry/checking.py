"""Schemas against their format, and against the versions before them; on a worker.

    SchemaText ─► references from the state (the loop) ─► formats.parse (the worker) ─► ParsedSchema
    ParsedSchema, versions before it ─► incompatibilities (the worker) ─► messages

A schema may be hostile: `formats` bounds the work of each one, one worker does all of it, and a
check of many versions ends after `CHECK_S`.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.tasks import quick_switches
from minibroker.registry.errors import invalid_schema, took_too_long
from minibroker.registry.levels import LEVELS
from minibroker.registry.subjects import context_of, qualified

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from minibroker.registry.entries import SchemaText, VersionEntry
    from minibroker.registry.formats import ParsedSchema
    from minibroker.registry.state import RegistryState

    T = TypeVar("T")

CACHE_SIZE: Final = 100
"""Parsed schemas that are remembered."""
CACHE_BYTES_MAX: Final = 512 << 10
"""Bytes of their texts, with those of their references. A parsed schema takes ten times its text.
"""
REFERENCES_MAX: Final = 1000
"""References of one schema and of those that it refers to, counted each time."""
CHECK_S: Final = 20.0
"""Longest check of one schema against the versions before it."""


class ResolvedSchema(NamedTuple):
    """A schema with the texts that it refers to; constant, so a worker may have it."""

    schema_type: str
    text: str
    references: tuple[tuple[str, str], ...]
    """(name, text), each behind those that it refers to."""

    @property
    def size_bytes(self) -> int:
        """Return the length of its texts, in characters: most are ASCII."""
        return len(self.text) + sum(len(text) for _, text in self.references)


def resolve(
    state: RegistryState, context: str, schema: SchemaText, *, deleted: bool = False
) -> ResolvedSchema:
    """Return a schema with the texts of its references, theirs too.

    `deleted`: soft-deleted versions count. Raises RegistryError(42201) for one that is missing.
    """
    texts: dict[str, str] = {}
    open_names: set[str] = set()
    count = 0

    def add(parent: SchemaText, own_context: str) -> None:
        nonlocal count
        count += len(parent.references)
        if count > REFERENCES_MAX:
            raise invalid_schema(f"more than {REFERENCES_MAX} references")
        for reference in parent.references:
            subject = qualified(reference.subject, own_context)
            entry = state.subjects.get(subject, {}).get(reference.version)
            if entry is None or (entry.is_deleted and not deleted):
                raise invalid_schema(
                    f'No schema reference found for subject "{reference.subject:.200}" and version'
                    f" {reference.version}"
                )
            if reference.name in texts or reference.name in open_names:
                continue
            open_names.add(reference.name)
            add(entry.schema, context_of(subject))
            open_names.discard(reference.name)
            texts[reference.name] = entry.schema.text

    try:
        add(schema, context)
    except RecursionError:
        raise invalid_schema("its references refer to others too often") from None
    return ResolvedSchema(schema.schema_type, schema.text, tuple(texts.items()))


class SchemaChecks:
    """The worker of one registry, and the schemas that it parsed last. The loop owns it."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "registry-schemas")
        """Its thread begins with the first schema."""
        self._cache: OrderedDict[ResolvedSchema, ParsedSchema] = OrderedDict()
        """The worker's alone; the schema that was used last stands last."""
        self._cache_bytes = 0
        """Bytes of the texts in the cache; the worker's alone."""

    def close(self) -> None:
        """End the worker after the schema that it works on."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, which runs on the worker; raise what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, _quick, work)

    async def parse(self, schema: ResolvedSchema) -> ParsedSchema:
        """Return the parsed schema. Raises RegistryError(42201)."""
        return await self.run(lambda: self._parse(schema))

    async def descriptor(self, schema: ResolvedSchema) -> str:
        """Return a Protobuf schema as a FileDescriptorProto in base64. Raises RegistryError."""
        return await self.run(lambda: _descriptor(self._parse(schema)))

    async def messages(
        self,
        schema: ResolvedSchema,
        others: Sequence[tuple[VersionEntry, ResolvedSchema]],
        level: str,
    ) -> list[str]:
        """Return why a schema does not fit others, newest first; empty: it fits them all. Raises
        RegistryError.
        """
        if not others or level == "NONE":
            return []
        return await self.run(lambda: self._messages(schema, others, level))

    def _parse(self, schema: ResolvedSchema) -> ParsedSchema:
        """Raises RegistryError(42201)."""
        from minibroker.registry.formats import (  # noqa: PLC0415  with the first schema
            InvalidSchemaError,
            parse,
        )

        parsed_schema = self._cache.get(schema)
        if parsed_schema is not None:
            self._cache.move_to_end(schema)
            return parsed_schema
        try:
            parsed_schema = parse(schema.schema_type, schema.text, schema.references)
        except InvalidSchemaError as error:
            raise invalid_schema(
                f"{schema.text:.1000} of type {schema.schema_type:.100}, details: {error}"
            ) from None
        self._remember(schema, parsed_schema)
        return parsed_schema

    def _remember(self, schema: ResolvedSchema, parsed_schema: ParsedSchema) -> None:
        self._cache[schema] = parsed_schema
        self._cache_bytes += schema.size_bytes
        while len(self._cache) > CACHE_SIZE or self._cache_bytes > CACHE_BYTES_MAX:
            oldest, _ = self._cache.popitem(last=False)
            self._cache_bytes -= oldest.size_bytes

    def _messages(
        self,
        schema: ResolvedSchema,
        others: Sequence[tuple[VersionEntry, ResolvedSchema]],
        level: str,
    ) -> list[str]:
        """Raises RegistryError."""
        from minibroker.registry.compatibility import incompatibilities  # noqa: PLC0415  as above

        until_s = monotonic() + CHECK_S
        rule = LEVELS[level]
        new = self._parse(schema)
        for entry, other in reversed(others):
            if monotonic() > until_s:
                raise took_too_long(
                    f"the check against {len(others)} versions took more than {CHECK_S:g} s"
                )
            old = self._parse(other)
            if new.schema_type != old.schema_type:
                messages = [
                    f"{{errorType:'SCHEMA_TYPE_CHANGED', description:'the type is"
                    f" {new.schema_type}, and that of version {entry.version} is"
                    f" {old.schema_type}'}}"
                ]
            else:
                messages = incompatibilities(new, old) if rule.reads_old else []
                if rule.is_read_by_old:
                    messages += incompatibilities(old, new)
            if messages:
                return [
                    *messages,
                    f"{{oldSchemaVersion: {entry.version}}}",
                    f"{{oldSchema: '{entry.schema.text:.1000}'}}",
                    f"{{compatibility: '{level}'}}",
                ]
        return []


def _descriptor(schema: ParsedSchema) -> str:
    from minibroker.registry.formats.protobuf import ProtobufContent  # noqa: PLC0415  as above

    assert isinstance(schema.content, ProtobufContent)
    return base64.b64encode(schema.content.file.SerializeToString()).decode()


def _quick(work: Callable[[], T]) -> T:
    with quick_switches():
        return work()
