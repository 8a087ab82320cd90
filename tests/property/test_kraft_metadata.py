"""Any metadata → records → the bytes of a snapshot → records → metadata: nothing changes.

Damaged records are errors of ours, never others.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import Token
from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.kafka.scram import ScramCredential
from minibroker.tools.kraft.levels import LEVELS, LevelError, has_eligible_replicas
from minibroker.tools.kraft.log_directory import (
    SnapshotId,
    write_metadata_directory,
)
from minibroker.tools.kraft.log_reading import read_metadata_directory
from minibroker.tools.kraft.metadata import (
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.records import RegisteredBroker, encode_record, records_of

NOW_MS = 1_795_225_152_000
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
IDS = st.binary(min_size=16, max_size=16).filter(any)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
BROKERS = st.lists(INT32, max_size=4, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn, *, has_eligible: bool) -> PartitionValue:
    replicas = draw(BROKERS)
    count = len(replicas)
    directories = st.lists(IDS, min_size=count, max_size=count).map(tuple)
    return PartitionValue(
        replicas,
        draw(BROKERS),
        draw(st.integers(-1, 2**31 - 1)),
        draw(INT32),
        draw(BROKERS),
        draw(BROKERS),
        draw(st.booleans()),
        draw(INT32),
        draw(st.just(()) | directories),
        draw(BROKERS) if has_eligible else (),
        draw(BROKERS) if has_eligible else (),
    )


def tables(
    keys: st.SearchStrategy[object], values: st.SearchStrategy[object]
) -> st.SearchStrategy[dict[Any, Any]]:
    return st.dictionaries(keys, st.dictionaries(NAMES, values, min_size=1, max_size=3), max_size=4)


QUOTA_ENTITIES = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip"]), st.none() | TEXTS, min_size=1
).map(lambda parts: tuple(sorted(parts.items())))
ACLS = st.builds(
    Acl,
    st.builds(Pattern, st.sampled_from(ResourceType), TEXTS, st.sampled_from(PatternType)),
    st.builds(Entry, TEXTS, TEXTS, st.sampled_from(Operation), st.sampled_from(Permission)),
)
CREDENTIALS = st.builds(ScramCredential, st.binary(), st.binary(), st.binary(), INT32)
TOKENS = st.lists(
    st.builds(Token, NAMES, TEXTS, TEXTS, st.lists(TEXTS).map(tuple), INT64, INT64, INT64),
    unique_by=lambda token: token.id,
    max_size=3,
)


@st.composite
def metadata_values(draw: st.DrawFn) -> Metadata:
    features = dict(LEVELS[draw(st.sampled_from(sorted(LEVELS)))])
    has_eligible = has_eligible_replicas(features)
    lists = st.lists(partitions(has_eligible=has_eligible), max_size=3).map(tuple)
    topic_ids = draw(st.lists(IDS, max_size=4, unique=True))
    names = draw(st.lists(NAMES, min_size=len(topic_ids), max_size=len(topic_ids), unique=True))
    acls = draw(st.lists(ACLS, max_size=4, unique=True))
    acl_ids = draw(st.lists(IDS, min_size=len(acls), max_size=len(acls), unique=True))
    kinds = [kind for kind in ConfigKind if kind is not ConfigKind.GROUP or len(features) > 1]
    entities = st.builds(ConfigEntity, st.sampled_from(kinds), TEXTS)
    return Metadata(
        topics={
            name: TopicValue(TopicId(topic_id), draw(lists))
            for name, topic_id in zip(names, topic_ids, strict=True)
        },
        configs=draw(tables(entities, TEXTS)),
        quotas=draw(tables(QUOTA_ENTITIES, st.floats(allow_nan=False))),
        credentials=draw(
            st.dictionaries(st.tuples(NAMES, st.sampled_from([1, 2])), CREDENTIALS, max_size=3)
        ),
        acls=dict(zip(acls, acl_ids, strict=True)),
        tokens={token.id: token for token in draw(TOKENS)},
        features=features,
        next_producer_id=draw(INT64),
        epoch=draw(st.integers(1, 2**31 - 2)),
    )


REGISTRATIONS = st.builds(RegisteredBroker, INT64, IDS, st.lists(IDS, max_size=3).map(tuple))


@given(metadata_values(), st.dictionaries(INT32, REGISTRATIONS, max_size=3), INT64)
def test_metadata_survives_its_files(
    metadata: Metadata, brokers: dict[int, RegisteredBroker], offset: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        records = records_of(metadata, brokers=brokers)
        snapshot = SnapshotId(max(offset, 1), metadata.epoch)
        write_metadata_directory(REAL_FILES, directory, records, snapshot, NOW_MS)
        stored = read_metadata_directory(REAL_FILES, directory)
    assert stored.metadata == metadata
    assert stored.brokers == brokers
    assert stored.end_offset == snapshot.offset


@st.composite
def damaged_records(draw: st.DrawFn) -> list[bytes]:
    """Return values of records, some of them with other bytes in their middle, or cut."""
    values = [encode_record(record) for record in records_of(draw(metadata_values()))]
    for place in draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=4)):
        value = bytearray(values[place])
        at = draw(st.integers(0, len(value)))
        value[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=6))
        values[place] = bytes(value)
    return values


@given(damaged_records())
def test_damage_that_the_crc_does_not_show_is_an_error_of_ours(values: list[bytes]) -> None:
    records = [Record(0, NOW_MS, None, value) for value in values]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, names.KRAFT_LOG)
        path.mkdir()
        batch = build_batch(records, leader_epoch=1)
        (path / names.segment_file(0, names.LOG)).write_bytes(batch)
        try:
            read_metadata_directory(REAL_FILES, directory)
        except (CorruptionError, LevelError):
            return
