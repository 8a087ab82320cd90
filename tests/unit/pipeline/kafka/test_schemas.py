"""The contract of columns: what the jobs and the files of users rely on."""

from __future__ import annotations

from minibroker.pipeline.kafka import schemas


def test_columns_are_those_of_sparks_kafka_source_in_its_order() -> None:
    assert schemas.RECORD.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )


def test_headers_come_last_and_only_when_asked_for() -> None:
    with_headers = schemas.record_schema(include_headers=True)

    assert with_headers.fields[:-1] == schemas.record_schema(include_headers=False).fields
    assert with_headers.fields[-1].simpleString() == (
        "headers:array<struct<key:string,value:binary>>"
    )


def test_arrow_has_the_same_columns() -> None:
    arrow = schemas.arrow_schema(include_headers=True)

    assert arrow.names == schemas.RECORD_WITH_HEADERS.fieldNames()
    assert str(arrow.field("timestamp").type) == "timestamp[us, tz=UTC]"


def test_an_archive_adds_the_date_that_its_directories_bear() -> None:
    assert schemas.ARCHIVE.fieldNames()[-2:] == ["headers", "date"]
    assert set(schemas.ARCHIVE_PARTITION_COLUMNS) <= set(schemas.ARCHIVE.fieldNames())
