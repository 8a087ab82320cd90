"""The data source as Spark meets it before anything is read: its name and its columns."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.data_source import TopicSource
from minibroker.pipeline.kafka.source.batch import BatchReader, FilteredReader


def test_its_columns_follow_include_headers_alone() -> None:
    assert TopicSource.name() == "minibroker"
    assert TopicSource({}).schema() == schemas.RECORD
    assert TopicSource({"includeHeaders": "true"}).schema() == schemas.RECORD_WITH_HEADERS
    assert TopicSource({"emit": "ranges"}).schema() == schemas.RANGE


def test_only_a_reader_that_was_told_so_takes_filters() -> None:
    """Spark refuses one that takes them in a session without push-down."""
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    for more, kind in (({}, BatchReader), ({"pushFilters": "true"}, FilteredReader)):
        assert type(TopicSource({**given, **more}).reader(schemas.RECORD)) is kind


def test_its_readers_check_the_options() -> None:
    source = TopicSource({"subscribe": "t"})

    for make in (source.reader, source.streamReader):
        with pytest.raises(PipelineError, match=r"kafka\.bootstrap\.servers is missing"):
            make(schemas.RECORD)


def test_its_readers_travel_to_the_tasks() -> None:
    source = TopicSource({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})

    for reader in (source.reader(schemas.RECORD), source.streamReader(schemas.RECORD)):
        assert type(pickle.loads(pickle.dumps(reader))) is type(reader)


def test_a_process_that_plans_a_query_imports_no_reader_of_records_and_no_sink() -> None:
    """Spark starts one for each streaming query, and waits for it."""
    code = (
        "import sys; from minibroker.pipeline.kafka.data_source import TopicSource; "
        "given = {'kafka.bootstrap.servers': 'x:1', 'subscribe': 't'}; "
        "TopicSource(given).streamReader(TopicSource(given).schema()); "
        "print([name for name in sys.modules if name == 'pyarrow.compute' or "
        "name.startswith(('minibroker.pipeline.kafka.source.range_', "
        "'minibroker.pipeline.kafka.sink'))])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "[]\n"
