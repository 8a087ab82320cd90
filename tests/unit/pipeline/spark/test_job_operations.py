"""The operations of a run that goes on, and of the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.mask_rules import rules_of
from minibroker.pipeline.operations.moments import moment_of
from minibroker.pipeline.operations.rows import RowOperations
from minibroker.pipeline.spark import job_operations as settled_operations

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mask_secret.VARIABLE, raising=False)


def test_the_second_run_has_moments_and_secret_of_the_first(tmp_path: Path) -> None:
    files, here = LocalFiles(), str(tmp_path)

    def begun(now_ms: int, job: dict[str, str]) -> settled_operations.Settled:
        given = RowOperations(since=moment_of("-1h", now_ms), rules=rules_of(["a=hash"]))
        return settled_operations.begin_operations(given, files, here, job, in_result=False)

    first = begun(10_000_000, {})
    assert set(first.identity) == {"since", "mask", "secret"}
    assert begun(20_000_000, {"job": "replay", **first.identity}) == first


def test_a_secret_of_the_environment_is_compared_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = RowOperations(rules=rules_of(["a=hash"]))
    monkeypatch.setenv(mask_secret.VARIABLE, "the first secret of this job")
    first = settled_operations.begin_operations(
        given, LocalFiles(), str(tmp_path), {}, in_result=True
    )
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(mask_secret.VARIABLE, "the second secret of this job")
    with pytest.raises(PipelineError, match="masked with another secret"):
        settled_operations.check_operations(
            given, "/dir", {"job": "archive", **first.identity}, in_result=True
        )
