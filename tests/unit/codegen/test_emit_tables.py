"""The two tables: error codes and API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from protocol_specs.codegen.emit_tables import api_keys_source, error_codes_source
from tests.unit.codegen.specs import api_of

if TYPE_CHECKING:
    from pathlib import Path


def test_error_codes_as_an_enum() -> None:
    rows = [
        {"code": -1, "name": "UNKNOWN_SERVER_ERROR", "retriable": False, "meaning": "A bug."},
        {"code": 0, "name": "NONE", "retriable": False, "meaning": "Fine."},
        {"code": 7, "name": "LATER", "retriable": True, "meaning": "Not yet."},
    ]
    namespace: dict[str, Any] = {"__name__": "codes"}
    exec(error_codes_source({"errors": rows}), namespace)
    codes = namespace["ErrorCode"]
    assert [code.name for code in codes] == ["UNKNOWN_SERVER_ERROR", "NONE", "LATER"]
    assert (codes.LATER.retriable, codes.NONE.retriable) == (True, False)
    assert codes(7).meaning == "Not yet."
    assert codes(8) is codes.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="LATER"):
        codes("LATER")


def test_every_error_code_has_a_meaning() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.INVALID_TOPIC_EXCEPTION.retriable
    assert all(code.meaning.endswith((".", ")")) for code in ErrorCode)
    assert [int(code) for code in ErrorCode] == list(range(-1, len(ErrorCode) - 1))


def test_api_keys_as_constants_and_a_table(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "keys"}
    exec(api_keys_source([api_of(tmp_path)]), namespace)
    assert namespace["TOY"] == 99
    assert namespace["APIS"][99] == (99, "Toy", "toy", 0, 3, 2)
