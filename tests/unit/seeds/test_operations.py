"""Operations of a recording: the sample is Spark's, and times are those of the records."""

from __future__ import annotations

import pickle

import pytest

from minibroker.cli.moments import Moment
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.record import Record
from minibroker.pipeline.operations.mask_rules import rules_of
from minibroker.pipeline.operations.rows import RowOperations
from minibroker.seeds.errors import SeedError
from minibroker.seeds.operations import RecordOperations, sample_of

PLACE = TopicPartition("orders-\u00e9", 7)
SPARKS_OFFSETS = [161, 371, 396, 500, 664, 887]
"""Rows of PLACE below 1,000 that Spark 4.3 takes for `--sample 1%`."""
SPARKS_KEYS = [1, 31, 39, 45, 52, 60, 80]
"""Numbers N below 100 whose `key N` Spark 4.3 takes for `--sample 5% --sample-by key`."""


def record(offset: int = 0, when: int = 0, key: bytes | None = None) -> Record:
    return Record(offset, when, key, b'{"card":"1234"}')


def test_the_sample_is_the_one_that_spark_takes() -> None:
    is_in = sample_of(PLACE, 0.01, by_key=False)
    assert [n for n in range(1000) if is_in(record(n))] == SPARKS_OFFSETS


def test_a_sample_by_key_is_the_one_that_spark_takes() -> None:
    is_in = sample_of(PLACE, 0.05, by_key=True)
    assert [n for n in range(100) if is_in(record(key=b"key %d" % n))] == SPARKS_KEYS
    without_key = sample_of(PLACE, 0.01, by_key=True)
    assert [n for n in range(1000) if without_key(record(n))] == SPARKS_OFFSETS


def test_a_record_without_a_time_is_in_no_range_of_time() -> None:
    words = RowOperations(until=Moment("later", 10))
    operations = RecordOperations(words, b"")
    records = [record(0, 9), record(1, 10), record(2, -1)]
    assert [r.offset for r in operations.apply(PLACE, records, is_dated=True).records] == [0, 2]
    assert operations.apply(PLACE, records, is_dated=False).records == []


def test_another_process_masks_the_same() -> None:
    words = RowOperations(rules=rules_of(["card=hash, phone?=null"]))
    operations = RecordOperations(words, b"a secret of sixteen bytes")
    copy = pickle.loads(pickle.dumps(operations))
    operated = operations.apply(PLACE, [record()], is_dated=True)
    assert copy.apply(PLACE, [record()], is_dated=True) == operated
    copy.check_places(operated.mask_places, set())
    with pytest.raises(SeedError, match=r"--mask card=hash: no record has card \(did you mean crd"):
        copy.check_places(0, {"crd", "id"})
