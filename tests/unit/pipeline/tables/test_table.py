"""A commit is tried again while other writers of the table are faster."""

from __future__ import annotations

import importlib.util

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.tables import choice as tables
from minibroker.pipeline.tables import table


class OvertakenError(Exception):
    """The error of a library."""


def test_a_commit_that_another_writer_overtook_is_made_again() -> None:
    results = iter([OvertakenError(), OvertakenError(), "made"])

    def commit() -> str:
        result = next(results)
        if isinstance(result, OvertakenError):
            raise result
        return result

    assert table.retried("./orders", OvertakenError, commit) == "made"


def test_the_last_batch_may_be_repeated_and_no_earlier_one() -> None:
    class Place:
        def has(self, batch: table.BatchId) -> bool:
            return batch.query == "q" and batch.number <= 4

    assert [table.is_repeated(Place(), table.BatchId("q", number)) for number in (5, 4)] == [
        False,
        True,
    ]
    with pytest.raises(PipelineError, match="batch 3 is to be written, and a later one is comm"):
        table.is_repeated(Place(), table.BatchId("q", 3))


def test_a_batch_that_the_faster_writer_committed_is_not_committed_again() -> None:
    """The other writer commits it between the look and the commit."""
    presence = iter([False, True])
    commits = []

    def commit() -> None:
        commits.append(1)
        raise OvertakenError

    is_mine = table.committed_once("./orders", OvertakenError, lambda: next(presence), commit)
    assert not is_mine
    assert commits == [1]
    assert table.committed_once("./orders", OvertakenError, lambda: False, lambda: None)


def test_after_many_attempts_the_error_names_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "COMMIT_TRIES", 3)
    calls = []

    def commit() -> None:
        calls.append(1)
        raise OvertakenError

    with pytest.raises(PipelineError, match=r"\./orders: other writers were faster 3 times"):
        table.retried("./orders", OvertakenError, commit)
    assert len(calls) == 3


def test_another_error_is_not_retried() -> None:
    def commit() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        table.retried("./orders", OvertakenError, commit)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match=r"deltalake is not installed.*minibroker\[tables\]"):
        tables.check("delta", "d")


def test_a_url_is_one_of_a_store() -> None:
    for directory in ("d", "s3://bucket/d", "s3a://bucket/d"):
        tables.check("iceberg", directory)
    with pytest.raises(PipelineError, match="iceberg tables cannot be at hdfs://name/d: give"):
        tables.check("iceberg", "hdfs://name/d")
