"""A record is a claim: its time, its schema and its key end no job, and lose no other record."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.cli.program import run_words
from minibroker.pipeline import PipelineError, archive, copy, replay, rollup
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.cluster import Kafka
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.table_readers import READERS, table_in_store
from tests.support.object_store import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.object_store import S3Server

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

GOOD = 100
YEAR_58879 = 1_796_000_000_000_000
"""Microseconds of 2026, given as milliseconds."""
BAD_OFFSET = GOOD
SCHEMA = "n INT"
BEGIN_MS = 1_795_262_400_000  # 2026-11-21 12:00:00 UTC, in front of a window
UNTIL = (None, "9999-12-31")


def send_around_a_bad_date(address: str, topic: str) -> None:
    """Send 100 good records, one of the year 58879, 100 good ones."""
    topics.create(address, topic, 1, topics.FOR_EVER)
    client = topics.producer(address)
    for number in range(2 * GOOD + 1):
        is_bad = number == BAD_OFFSET
        at_ms = YEAR_58879 if is_bad else BEGIN_MS + number * 1000
        client.produce(topic, b'{"n": %d}' % number, b"k", timestamp=at_ms, partition=0)
    assert client.flush(topics.SECONDS) == 0


def letters_in(directory: Path) -> list[str]:
    """Return the dead letters in a directory, as JSON."""
    return [
        line
        for file in directory.glob("topic=*/date=*/*.json")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def assert_one_letter(letters: list[str]) -> None:
    (letter,) = map(json.loads, letters)
    assert letter["offset"] == BAD_OFFSET
    assert letter["value"] == '{"n": 100}'
    assert letter["reason"].startswith(f"it is dated {YEAR_58879} ms since 1970, which is more")


@pytest.mark.parametrize("until", UNTIL)
def test_a_record_of_the_year_58879_is_one_dead_letter_of_an_archive(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path, until: str | None
) -> None:
    """In each format; a table has a place of its own for it, files without a place keep it."""
    address = minibroker_address
    send_around_a_bad_date(address, topic)
    common = {"bootstrap": address, "spark": spark, "until": until}
    expected = [offset for offset in range(2 * GOOD + 1) if offset != BAD_OFFSET]
    for file_format in ("parquet", "iceberg", "delta"):
        directory, dead = tmp_path / file_format, tmp_path / f"dead-{file_format}"
        places = {} if file_format != "parquet" else {"dead_letters": f"{dead}/"}
        outcome = archive(topic, to=directory, format=file_format, **places, **common)
        assert (outcome.rows, outcome.bad_records) == (2 * GOOD, 1)
        for reader in READERS[file_format]:
            assert [row[2] for row in reader(directory)] == expected, reader
        assert_one_letter(letters_in(dead if places else directory / "_minibroker" / "bad-dates"))
    outcome_of_files = archive(topic, to=tmp_path / "files", **common)
    assert outcome_of_files.rows == (2 * GOOD + 1 if until is None else 2 * GOOD)
    dead = tmp_path / "dead-json"
    outcome = archive(topic, to=tmp_path / "json", format="json", dead_letters=f"{dead}/", **common)
    assert (outcome.rows, outcome.bad_records) == (2 * GOOD, 1)
    lines = [path.read_text() for path in tmp_path.glob("json/topic=*/date=*/*.json")]
    assert sum(text.count("\n") for text in lines) == 2 * GOOD


@pytest.mark.parametrize("until", UNTIL)
def test_it_is_one_dead_letter_of_a_replay_and_of_a_copy(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path, until: str | None
) -> None:
    address = minibroker_address
    send_around_a_bad_date(address, topic)
    topics.create(address, f"{topic}-dead", 1)
    common: dict[str, Any] = {"bootstrap": address, "spark": spark}
    archive(topic, to=tmp_path / "files", **common)
    options = {"keep_timestamps": True, "dead_letters": f"{tmp_path}/dead/", **common}
    options["until"] = until
    outcome = replay(tmp_path / "files", to_topic=f"{topic}-replayed", **options)
    assert (outcome.rows, outcome.bad_records) == (2 * GOOD, 1)
    assert_one_letter(letters_in(tmp_path / "dead"))
    options = {"checkpoint": tmp_path / "copied", "dead_letters": f"{topic}-dead", **common}
    options["until"] = until
    outcome = copy(topic, to_topic=f"{topic}-copied", **options)
    assert (outcome.rows, outcome.bad_records) == (2 * GOOD, 1)
    for name in ("replayed", "copied"):
        assert len(records(address, f"{topic}-{name}")[0]) == 2 * GOOD
    (letter,) = records(address, f"{topic}-dead")[0]
    fields = dict(letter.headers or [])
    assert fields["__connect.errors.offset"] == b"100"
    assert fields["__connect.errors.timestamp"] == str(YEAR_58879).encode()
    assert letter.timestamp_ms < YEAR_58879


def test_without_a_place_for_letters_it_is_replayed_and_copied_as_it_is(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    address = minibroker_address
    send_around_a_bad_date(address, topic)
    common: dict[str, Any] = {"bootstrap": address, "spark": spark}
    archive(topic, to=tmp_path / "files", **common)
    whole = copy(topic, to_topic=f"{topic}-whole", checkpoint=tmp_path / "whole", **common)
    assert whole.rows == 2 * GOOD + 1
    assert records(address, f"{topic}-whole") == records(address, topic)
    # At a speed it is due with the records before it, and not in thousands of years.
    paced = replay(
        tmp_path / "files",
        to_topic=f"{topic}-paced",
        checkpoint=tmp_path / "paced",
        speed="1000x",
        **common,
    )
    assert paced.rows == 2 * GOOD + 1
    masked = replay(
        tmp_path / "files",
        to_topic=f"{topic}-masked",
        mask="n=fixed:1",
        checkpoint=tmp_path / "masked",
        keep_timestamps=True,
        dead_letters=f"{tmp_path}/dead-masked/",
        **common,
    )
    assert (masked.rows, masked.bad_records) == (2 * GOOD, 1)
    (hidden,) = map(json.loads, letters_in(tmp_path / "dead-masked"))
    assert (hidden["offset"], hidden.get("value"), hidden.get("key")) == (BAD_OFFSET, None, None)


@pytest.mark.parametrize("until", UNTIL)
def test_it_is_one_dead_letter_of_an_archive_in_an_object_store(
    stored: dict[str, Any], s3: S3Server, topic: str, tmp_path: Path, until: str | None
) -> None:
    """In tables, and in Parquet with columns; the letters lie in the store, too."""
    send_around_a_bad_date(stored["bootstrap"], topic)
    for file_format in ("iceberg", "delta", "parquet"):
        to = f"s3://{BUCKET}/{topic}-{until}/{file_format}"
        options = stored | {"checkpoint": tmp_path / file_format, "until": until}
        places = {"dead_letters": f"{to}-dead/"} if file_format != "delta" else {}
        options |= {"schema": SCHEMA, "format": file_format} if places else {"format": file_format}
        outcome = archive(topic, to=to, **places, **options)
        assert (outcome.rows, outcome.bad_records) == (2 * GOOD, 1)
        offsets = table_in_store(s3, file_format, to)["offset"].to_pylist()
        assert sorted(offsets) == [row for row in range(2 * GOOD + 1) if row != BAD_OFFSET]
        path = f"{to}-dead" if places else f"{to}/_minibroker/bad-dates"
        letters = [s3.read(path) for path in s3.paths(path) if "/topic=" in path]
        assert_one_letter([line for text in letters for line in text.splitlines()])


@pytest.mark.parametrize("until", UNTIL)
def test_it_ends_no_window_of_a_rollup(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path, until: str | None
) -> None:
    """Two runs: the second one has records that an end of all windows would have lost."""
    address = minibroker_address
    send_around_a_bad_date(address, topic)
    common: dict[str, Any] = {"bootstrap": address, "spark": spark, "window": "1m"}
    common |= {"agg": "count(*) AS records", "schema": SCHEMA, "until": until}
    for name, place in (("with", {"dead_letters": f"{tmp_path}/dead/"}), ("without", {})):
        directory = tmp_path / name
        outcome = rollup(topic, to=directory, batch_rows=GOOD + 1, **place, **common)
        assert (outcome.bad_records, outcome.late_rows) == (1, 0)
        sums = spark.read.parquet(str(directory)).groupBy().sum("records").collect()
        assert sums[0][0] == 2 * GOOD
    assert_one_letter(letters_in(tmp_path / "dead"))


def test_lost_records_are_named_and_a_new_topic_is_not_the_old_one(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """`--on-data-loss continue` is about records that were removed, and counts them."""
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic)
    topics.send(address, topic, 10)
    common: dict[str, Any] = {"bootstrap": address, "spark": spark, "fail_on_data_loss": False}
    archive(topic, to=directory, **common)
    topics.send(address, topic, 60)
    topics.delete_records(address, topic, 60)
    outcome = archive(topic, to=directory, **common)
    assert (outcome.rows, outcome.skipped_offsets) == (10, 50)
    topics.delete(address, topic)
    topics.create(address, topic)
    topics.send(address, topic, 100)
    with pytest.raises(PipelineError, match=r"was made anew since the last run .*--on-recreated"):
        archive(topic, to=directory, **common)


def send_customers(address: str, topic: str) -> None:
    topics.create(address, topic, 1, topics.FOR_EVER)
    client = topics.producer(address)
    for number in range(10):
        value = {"customer": {"email": "ann@example.com"}, "n": number}
        at_ms = BEGIN_MS + number
        client.produce(topic, json.dumps(value).encode(), b"k", timestamp=at_ms, partition=0)
    assert client.flush(topics.SECONDS) == 0


def files_in(directory: Path) -> list[str]:
    """Return the files of data below a directory."""
    return [path.name for path in directory.rglob("part-*")] + [
        path.name for path in directory.rglob("*.parquet")
    ]


def test_a_misspelt_mask_writes_nothing(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """In every verb that writes; the corrected one goes into the same directory."""
    address = minibroker_address
    send_customers(address, topic)
    common: dict[str, Any] = {"bootstrap": address, "spark": spark}
    archive(topic, to=tmp_path / "whole", **common)
    directory = tmp_path / "out"
    jobs: list[tuple[str, Any]] = [
        ("parquet", lambda mask: archive(topic, to=directory / "parquet", mask=mask, **common)),
        (
            "json",
            lambda mask: archive(topic, to=directory / "json", format="json", mask=mask, **common),
        ),
        (
            "delta",
            lambda m: archive(topic, to=directory / "delta", format="delta", mask=m, **common),
        ),
        (
            "copy",
            lambda mask: copy(
                topic, to_topic=f"{topic}-copy", checkpoint=directory / "copy", mask=mask, **common
            ),
        ),
        (
            "replay",
            lambda mask: replay(
                tmp_path / "whole", to_topic=f"{topic}-replay", mask=mask, **common
            ),
        ),
        (
            "rollup",
            lambda mask: rollup(
                topic,
                to=directory / "rollup",
                window="1m",
                by="customer.email",
                agg="count(*) AS n",
                schema="customer STRUCT<email: STRING>",
                mask=mask,
                **common,
            ),
        ),
    ]
    for name, job in jobs:
        with pytest.raises(JobUsageError, match=r"no record .* \(did you mean customer\.email"):
            job("customer.emial=mask")
        assert not files_in(directory / name)
    partitions = preflight.ask(Kafka(address)).partitions
    assert not {f"{topic}-copy", f"{topic}-replay"} & set(partitions)
    for name, job in jobs:
        assert job("customer.email=fixed:x, customer.phone?=drop").rows == 10, name
    for name in (f"{topic}-copy", f"{topic}-replay"):
        assert {record.value for record in records(address, name)[0]} == {
            b'{"customer":{"email":"x"},"n":%d}' % number for number in range(10)
        }


def test_a_misspelt_mask_writes_nothing_into_an_object_store(
    stored: dict[str, Any], s3: S3Server, topic: str, tmp_path: Path
) -> None:
    send_customers(stored["bootstrap"], topic)
    schema = "customer STRUCT<email: STRING>, n INT"
    to = f"s3://{BUCKET}/{topic}"
    for options in (
        {"format": "iceberg"},
        {"format": "delta"},
        {"format": "iceberg", "schema": schema},
        {"format": "parquet", "schema": schema},
    ):
        options |= {"checkpoint": tmp_path / "-".join(options.values()), **stored}
        with pytest.raises(JobUsageError, match=r"no record .* \(did you mean customer\.email"):
            archive(topic, to=to, mask="customer.emial=mask", **options)
        assert not [path for path in s3.paths(to) if "/_minibroker/" not in path]
        path = f"{to}-{options['checkpoint'].name}"
        assert archive(topic, to=path, mask="customer.email=mask", **options).rows == 10


def test_a_misspelt_mask_has_an_exit_code_and_waits_for_a_first_record(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(minibroker_address, topic)
    out, errors = io.StringIO(), io.StringIO()
    words = ["archive", "--bootstrap", minibroker_address, "--topic", topic]
    words += ["--to", f"{tmp_path}/archive", "--mask", "customer.emial=mask"]
    assert run_words(["pipeline", *words], out, errors) == 0, errors.getvalue()
    assert not (tmp_path / "archive").exists()
    client = topics.producer(minibroker_address)
    client.produce(topic, b'{"customer": {"email": "ann@example.com"}}')
    assert client.flush(topics.SECONDS) == 0
    assert run_words(["pipeline", *words], out, errors) == 2
    assert "(did you mean customer.email" in errors.getvalue()
    assert not (tmp_path / "archive").exists()
