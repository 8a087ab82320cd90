"""The operations of a run that goes on, and of the first one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.cli.moments import moment_of
from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.mask_rules import rules_of
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.spark import job_operations
from minibroker.pipeline.spark.job_operations import CheckedPlaces

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mask_secret.VARIABLE, raising=False)


def test_the_second_run_has_moments_and_secret_of_the_first(tmp_path: Path) -> None:
    files, directory = LocalFiles(), str(tmp_path)

    def begin(now_ms: int, job: dict[str, str]) -> job_operations.RunOperations:
        row_operations = RowOperations(since=moment_of("-1h", now_ms), rules=rules_of(["a=hash"]))
        return job_operations.begin_operations(
            row_operations, files, directory, job, in_result=False
        )

    first = begin(10_000_000, {})
    assert set(first.identity) == {"since", "mask", "secret"}
    assert begin(20_000_000, {"job": "replay", **first.identity}) == first


def test_a_secret_of_the_environment_is_compared_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_operations = RowOperations(rules=rules_of(["a=hash"]))
    monkeypatch.setenv(mask_secret.VARIABLE, "the first secret of this job")
    first = job_operations.begin_operations(
        row_operations, LocalFiles(), str(tmp_path), {}, in_result=True
    )
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(mask_secret.VARIABLE, "the second secret of this job")
    with pytest.raises(PipelineError, match="masked with another secret"):
        job_operations.check_operations(
            row_operations, "/dir", {"job": "archive", **first.identity}, in_result=True
        )


FILES = LocalFiles()
ORDER = (None, bytearray(b'{"email": "a@b.c"}'), [("user", bytearray(b"ann"))])


class Rows:
    """A frame with these records."""

    def __init__(self, *records: Any) -> None:
        self._records = records

    def select(self, *names: str) -> Rows:
        assert names == ("key", "value", "headers")
        return self

    def limit(self, count: int) -> Rows:
        return Rows(*self._records[:count])

    def collect(self) -> list[Any]:
        return list(self._records)


def places(directory: Path, mask: str) -> CheckedPlaces:
    operations = NONE._replace(rules=rules_of([mask]))
    return CheckedPlaces(operations, b"sixteen bytes or more", FILES, str(directory))


def begin(checked: CheckedPlaces, *records: Any) -> bool:
    rows: Any = Rows(*records)
    return checked.begin(lambda: rows, 1000, stop=None, waits=False)


def test_a_job_that_passed_is_not_checked_again(tmp_path: Path) -> None:
    assert begin(places(tmp_path, "email=mask, headers.user=drop"), ORDER)
    assert places(tmp_path, "email=mask, headers.user=drop").is_done
    assert not places(tmp_path, "email=mask").is_done
    assert places(tmp_path / "other", "").is_done


def test_a_place_is_looked_for_in_the_whole_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver looks at a few records, and tasks at all if a place is missing there."""
    monkeypatch.setattr(job_operations, "found_in", lambda *_: 0b1)
    assert begin(places(tmp_path, "phone=mask"), ORDER)
    monkeypatch.setattr(job_operations, "found_in", lambda *_: 0)
    with pytest.raises(JobUsageError, match=r"--mask emial=mask: no .* \(did you mean email"):
        begin(places(tmp_path, "emial=mask"), ORDER)
    assert not places(tmp_path, "emial=mask").is_done


def test_a_job_without_a_record_does_not_begin(tmp_path: Path) -> None:
    """One that follows waits for the first."""
    assert not begin(places(tmp_path, "email=mask"))
    stop = threading.Event()
    stop.set()
    waiting = places(tmp_path, "email=mask")
    none: Any = Rows()
    assert not waiting.begin(lambda: none, 1000, stop=stop, waits=True)
    assert not waiting.is_done
