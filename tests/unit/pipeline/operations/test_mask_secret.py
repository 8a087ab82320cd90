"""The secret: where it comes from, what is refused, and that it stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.mask_rules import rules_of
from minibroker.pipeline.operations.rows import RowOperations

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "0123456789abcdef"
HASHES = RowOperations(rules=rules_of(["a=hash"]))
ENVIRONMENT = {mask_secret.VARIABLE: "another secret of some length"}


def from_file(path: Path, content: bytes) -> RowOperations:
    path.write_bytes(content)
    return RowOperations(rules=rules_of(["a=hash"]), secret_file=str(path))


def test_a_file_wins_over_the_environment(tmp_path: Path) -> None:
    found = from_file(tmp_path / "secret", f"{TEXT}\r\n".encode())
    assert mask_secret.given_secret(found, ENVIRONMENT) == TEXT.encode()
    assert mask_secret.given_secret(HASHES, ENVIRONMENT) == b"another secret of some length"
    assert mask_secret.given_secret(HASHES, {}) is None


def test_without_a_hash_no_secret_is_read() -> None:
    found = RowOperations(rules=rules_of(["a=last4"]))
    assert mask_secret.given_secret(found, ENVIRONMENT) is None
    assert mask_secret.secret_of_job(found, ENVIRONMENT, None) == b""


@pytest.mark.parametrize("content", [b"", b"short\n", b"x" * 5000])
def test_a_secret_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    found = from_file(tmp_path / "secret", content)
    with pytest.raises(PipelineError, match="expected 16 to 4096, for instance from `openssl"):
        mask_secret.given_secret(found, {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    found = HASHES._replace(secret_file=str(tmp_path / "none"))
    with pytest.raises(PipelineError, match="cannot be read: No such file"):
        mask_secret.given_secret(found, {})


def test_a_job_keeps_its_own(tmp_path: Path) -> None:
    place = LocalFiles(), str(tmp_path / "job")
    first = mask_secret.secret_of_job(HASHES, {}, place)
    assert first == mask_secret.secret_of_job(HASHES, {}, place)
    assert first != mask_secret.secret_of_job(HASHES, {}, (LocalFiles(), str(tmp_path / "other")))
    kept = tmp_path / "job" / "_minibroker" / mask_secret.FILE
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in kept.parent.iterdir()] == [mask_secret.FILE]
    kept.chmod(0o600)
    kept.write_text("cut")
    with pytest.raises(PipelineError, match="mask-secret has a secret of 3 bytes"):
        mask_secret.secret_of_job(HASHES, {}, place)


def test_none_is_made_within_a_result() -> None:
    with pytest.raises(PipelineError, match="one beside /lake would go with the data"):
        mask_secret.check_given(HASHES, {}, in_result="/lake")
    assert mask_secret.check_given(HASHES, {}, in_result=None) is None
