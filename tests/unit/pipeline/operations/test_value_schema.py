"""The fields of JSON values; what needs Spark to be read is seen in tests/pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.operations.value_schema import examples
from minibroker.pipeline.values.schema_text import schema_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text", ['{"a": 1}\n{"a": 2}\n\n', '[{"a": 1}, {"a": 2}]', '[\n{"a": 1},\n{"a": 2}\n]']
)
def test_examples_in_the_forms_that_people_have(tmp_path: Path, text: str) -> None:
    path = tmp_path / "example.json"
    path.write_text(text)
    assert examples(str(path)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected JSON objects"),
        ("5", "expected JSON objects"),
        ('["a"]', "expected JSON objects"),
        ('{"a": 1}\n{"a":\n', "line 2 is no JSON"),
    ],
)
def test_no_examples(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "example.json"
    path.write_text(text)
    with pytest.raises(PipelineError, match=sentence):
        examples(str(path))


def test_a_schema_is_a_file_or_the_schema_itself(tmp_path: Path) -> None:
    path = tmp_path / "schema.ddl"
    path.write_text("id BIGINT,\n amount DOUBLE\n")
    assert schema_text(str(path)) == "id BIGINT,\n amount DOUBLE"
    assert schema_text("id BIGINT") == "id BIGINT"
    assert schema_text(' {"type": "struct"}') == '{"type": "struct"}'
    with pytest.raises(PipelineError, match="--schema nowhere cannot be read: No such file"):
        schema_text("nowhere")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(PipelineError, match="it is not UTF-8"):
        schema_text(str(tmp_path / "bytes"))


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
