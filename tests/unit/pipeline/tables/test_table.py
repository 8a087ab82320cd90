"""A commit is tried again while other writers of the table are faster."""

from __future__ import annotations

import pytest

from minibroker.pipeline.errors import PipelineError
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
