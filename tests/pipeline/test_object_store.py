"""Archives in an S3: tables, decoded columns and upserts, with the progress on this machine.

The Spark of these tests has no S3A. Tasks write through PyArrow, the driver through the libraries
of the tables.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline import archive
from minibroker.pipeline.errors import PipelineError
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.table_readers import table_in_store
from tests.support.object_store import BUCKET, LOST, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.object_store import S3Server

COMMITS = {"iceberg": "v2.metadata.json", "delta": "_delta_log/00000000000000000001.json"}
"""The object that is the commit of the first batch."""


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_a_commit_whose_answer_is_lost_is_there_once(
    stored: dict[str, Any], topic: str, tmp_path: Path, s3: S3Server, file_format: str
) -> None:
    topics.create(stored["bootstrap"], topic, 2)
    topics.send(stored["bootstrap"], topic, 20)
    to = f"s3://{BUCKET}/{topic}"
    options = {**stored, "format": file_format}
    with pytest.raises(PipelineError, match=r"has no S3A: give --packages .*hadoop-aws:3"):
        archive(topic, to=to, **options)
    options["checkpoint"] = tmp_path / "progress"
    s3.fail(Fault(["PUT"], COMMITS[file_format], LOST))
    with pytest.raises(PipelineError):
        archive(topic, to=to, **options)
    archive(topic, to=to, **options)
    topics.send(stored["bootstrap"], topic, 10)
    assert archive(topic, to=to, **options).rows == 10
    table = table_in_store(s3, file_format, to)
    places = sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
    assert len(places) == len(set(places)) == 30
    with pytest.raises(PipelineError, match="was written with another checkpoint"):
        archive(topic, to=to, **{**options, "checkpoint": tmp_path / "another"})


def test_columns_rows_and_dead_letters(
    stored: dict[str, Any], topic: str, tmp_path: Path, s3: S3Server
) -> None:
    """A value that is no JSON goes to a topic; the batch of it lies in the store meanwhile."""
    dead, address = f"{topic}-dead", stored["bootstrap"]
    for name in (topic, dead):
        topics.create(address, name)
    client = topics.producer(address)
    values = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}]
    for value in [*(json.dumps(value).encode() for value in values), b"none"]:
        client.produce(topic, value, partition=0)
    assert client.flush(topics.SECONDS) == 0
    options = {**stored, "schema": "id BIGINT, name STRING", "dead_letters": dead}
    to = f"s3://{BUCKET}/{topic}"
    rows = archive(topic, to=f"{to}-rows", checkpoint=tmp_path / "rows", format="delta", **options)
    assert (rows.rows, rows.bad_records) == (3, 1)
    values_in_store = table_in_store(s3, "delta", f"{to}-rows")["value"].to_pylist()
    assert sorted(values_in_store, key=str) == sorted(values, key=str)
    upserted = archive(
        topic,
        to=f"{to}-last",
        checkpoint=tmp_path / "last",
        format="iceberg",
        upsert_by="id",
        **options,
    )
    assert upserted.bad_records == 1
    last = table_in_store(s3, "iceberg", f"{to}-last").to_pylist()
    assert sorted(last, key=str) == [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]
    aside = archive(
        topic,
        to=f"{to}-aside",
        checkpoint=tmp_path / "aside",
        **{**options, "dead_letters": f"{to}-dead"},
    )
    assert aside.bad_records == 1
    [lines] = [path for path in s3.paths(f"{to}-dead") if path.endswith("part-00000.json")]
    assert "topic=" in lines
    [letter] = s3.read(lines).splitlines()
    assert json.loads(letter)["offset"] == 3
    [letters] = records(address, dead).values()
    assert [letter.value for letter in letters] == [b"none", b"none"]
