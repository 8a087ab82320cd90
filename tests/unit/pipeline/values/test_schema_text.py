"""A schema as it is, or the file that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.values.schema_text import schema_text

if TYPE_CHECKING:
    from pathlib import Path


def test_a_schema_is_a_text_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema"
    file.write_text("a INT\n")
    assert schema_text(" a INT ") == schema_text(str(file)) == "a INT"
    assert schema_text('{"type": 1}') == '{"type": 1}'


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"--where-schema .*none cannot be read: No such file"):
        schema_text(str(tmp_path / "none"), "--where-schema")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(PipelineError, match="cannot be read: it is not UTF-8"):
        schema_text(str(tmp_path / "bytes"))
