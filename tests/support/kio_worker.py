"""A process beside the tests with one version of kio on its path: it decodes and encodes its input.

kio stands in two versions that cannot be imported together, so each gets a process of its own. One
batch in, one batch out, both pickled: stdin holds a list of (schema name, entity type, version,
[bytes, …]); stdout gets, for each, None when kio has no such schema, else a list with one (values,
bytes) or error text per input. Values are plain: lists of fields in order, ints for durations and
dates (ms), bytes for uuids.
"""

import pickle
import sys
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from io import BytesIO
from typing import Any
from uuid import UUID

from kio.index import UnknownEntity, load_entity_schema  # type: ignore[import-not-found]
from kio.schema.index import schema_name_map  # type: ignore[import-not-found]
from kio.serial import entity_reader, entity_writer  # type: ignore[import-not-found]
from kio.static.constants import EntityType  # type: ignore[import-not-found]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
Case = tuple[str, str, int, list[bytes]]


def plain(value: Any) -> Any:
    """Return kio's rich values as numbers, text, bytes and lists."""
    if is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime):
        return (value - EPOCH) // MILLISECOND
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, IntEnum):
        return int(value)
    if isinstance(value, bytes):
        return bytes(value)
    return str(value) if isinstance(value, str) else value


def answer(case: Case) -> list[Any] | None:
    """Return kio's answer to one case."""
    name, entity, version, inputs = case
    if name not in schema_name_map:
        return None
    try:
        schema = load_entity_schema(name, version, EntityType[entity])
    except UnknownEntity:
        return None
    reader, writer = entity_reader(schema), entity_writer(schema)
    answers: list[Any] = []
    for data in inputs:
        try:
            value, size = reader(data, 0)
            output = BytesIO()
            writer(output, value)
        except Exception as error:  # whatever it is, the test shows it
            answers.append(f"{type(error).__name__}: {error}")
            continue
        same_end = "" if size == len(data) else f"read {size} of {len(data)} bytes"
        answers.append(same_end or (plain(value), output.getvalue()))
    return answers


if __name__ == "__main__":
    cases: list[Case] = pickle.load(sys.stdin.buffer)  # from our own test
    pickle.dump([answer(case) for case in cases], sys.stdout.buffer)
