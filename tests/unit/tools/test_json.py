"""JSON: of dump-log's findings, and of stored records as Kafka writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitValue
from minibroker.tools.stored_json import RawNumber, to_json, to_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said


def test_every_line_is_an_object_that_names_file_and_type(
    dump: Callable[..., Said], data: Path
) -> None:
    files = sorted((data / "t-0").iterdir())
    said = dump("--json", "--print-data-log", *files)
    found = [json.loads(line) for line in said.output.splitlines()]
    assert all(line["file"] in map(str, files) for line in found)
    assert {line["type"] for line in found} == {
        "aborted_transaction",
        "batch",
        "empty_index",
        "log",
        "offset_entry",
        "producer",
        "record",
        "time_entry",
        "unknown_file",
    }
    (marker,) = [line for line in found if line.get("control_type")]
    assert (marker["control_type"], marker["offset"]) == ("ABORT", 11)
    assert [line["value"] for line in found if "value" in line][-1] == "last"


def test_reports_are_objects_too(dump: Callable[..., Said], data: Path) -> None:
    index = data / "t-0" / "00000000000000000000.index"
    index.write_bytes(b"\0\0\0\5\0\0\0\xce")
    last = json.loads(dump("--json", index).output.splitlines()[-1])
    assert last == {
        "file": str(index),
        "type": "wrong_offset",
        "index_offset": 5,
        "log_offset": 2,
    }


def test_a_version_has_its_fields_and_a_tag_only_what_is_set() -> None:
    value = OffsetCommitValue(offset=1, metadata="x", topic_id=bytes(range(16)))
    plain = OffsetCommitValue(offset=1)
    expected = ["offset", "metadata", "commitTimestamp", "expireTimestamp"]
    assert list(to_json(plain, 1)) == expected
    assert to_json(value, 4)["topicId"] == "AAECAwQFBgcICQoLDA0ODw"
    assert "topicId" not in to_json(OffsetCommitValue(), 4)
    assert "leaderEpoch" in to_json(value, 3)


def test_text_as_jackson_writes_it() -> None:
    assert to_line({"a": 'é"\\\n\x1f', "b": [True, None]}) == (
        '{"a":"é\\"\\\\\\n\\u001F","b":[true,null]}'
    )
    content = {"a": [1, True, None, RawNumber("1.0E7")], "b": {"ü": "\x1f"}}
    assert to_line(content) == '{"a":[1,true,null,1.0E7],"b":{"ü":"\\u001F"}}'
