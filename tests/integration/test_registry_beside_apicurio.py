"""The same 250 calls to minibroker's registry and to Apicurio's, which has Confluent's API, too.

Each difference is judged by Confluent's documentation, or else by what its clients read. In all of
them minibroker keeps to it; a new one, or one that is gone, fails here.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from minibroker.testing import Broker
from tests.integration.registry_requests import calls
from tests.support.registry import Registry
from tests.support.registry_calls import ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.registry_calls import RegistryAnswer

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

_VERSION_ID: Final = "a version that cannot be is 42202"
_TEXTS: Final = (
    "texts that differ in blanks alone are one schema of Avro, so the subject has no version 3"
)
DIFFERENCES: Final = {
    "GET /config": "the default is BACKWARD",
    "GET /mode": "the path is served",
    "GET /contexts": "the default context is called `.`",
    "GET /config/a": "a subject without a level is 40408, with defaultToGlobal that of all",
    "GET /nothing": "every error is JSON",
    "GET /subjects/a/versions/1/referencedby": "a subject that is not there is 40401",
    'POST /compatibility/subjects/a/versions {"schema": "\\"int\\""': (
        "a subject without versions takes every schema"
    ),
    "GET /subjects": "names are sorted",
    "GET /subjects/orders/versions": _TEXTS,
    "GET /subjects/orders/versions/3": _TEXTS,
    "GET /subjects/orders/versions/latest": _TEXTS,
    "GET /subjects/orders/versions/-1": _TEXTS,
    "GET /subjects/orders/versions/0": _VERSION_ID,
    "GET /subjects/orders/versions/x": _VERSION_ID,
    "GET /subjects/orders/versions/2147483648": _VERSION_ID,
    "GET /subjects/orders/versions/99999999999": _VERSION_ID,
    "GET /schemas/ids/1/versions": "places are sorted",
    "GET /schemas/ids/1/subjects": "the path is served",
    'POST /subjects/orders {"schema": "wrong"': "a text that is no schema is 42201",
    "POST /subjects/orders/versions {": "by default new schemas have to read old data",
    "POST /subjects/orders/versions": "a body without a schema is 42201",
    'PUT /config {"compatibility": "WRONG"}': "a wrong level is 42203",
    'PUT /config/orders {"compatibility": "WRONG"}': "a wrong level is 42203",
    'PUT /mode {"mode": "WRONG"}': "a wrong mode is 42204",
    'PUT /config {"compatibility": "NONE"}': "setting a level twice is no error",
    "GET /config/int-long": "a level that was deleted is 40408",
    'POST /subjects/gone {"schema": "\\"long\\""': "a soft-deleted subject is 40401",
    "GET /subjects/proto/versions/1": "Protobuf is kept in one form, as Confluent's prints it",
    'POST /compatibility/subjects/proto/versions/latest {"schema": "syntax = \\"proto3\\";'
    '\\nmessage M {\\n  string a = 2;\\n}\\n"': "a field may go, and another one may come",
}
"""Start of a call → the reason why the answers differ."""


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    directory: Path = tmp_path_factory.mktemp("apicurio")
    registry = Registry(directory)
    registry.start()
    registry.wait()
    yield registry
    registry.stop()


def comparable(answer: RegistryAnswer) -> Any:
    """Return an answer without ids, without fields that have their default, with texts as JSON."""
    if isinstance(answer.body, dict) and "error_code" in answer.body:
        return answer.code
    return answer.status, _without_defaults(answer.body)


def _without_defaults(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        fields = {
            name: _without_defaults(part, name)
            for name, part in value.items()
            if (name, part) not in (("references", []), ("schemaType", "AVRO"))
        }
        # The documentation has one name for what is set, and another for what is read.
        level = fields.pop("compatibilityLevel", None) or fields.pop("compatibility", None)
        return {**fields, "level": level} if level else fields
    if isinstance(value, list):
        return [_without_defaults(part) for part in value]
    if key == "id":
        return "an id"
    if key == "schema":
        with suppress(ValueError):
            return json.loads(value)
    return value


def test_answers_differ_where_there_is_a_reason(apicurio: Registry) -> None:
    differences: dict[str, str] = {}
    requests = list(calls())
    assert len(requests) >= 200
    with Broker(registry=True) as broker:
        for call in requests:
            own = ask(broker.registry_url, call.method, call.path, call.body)
            other = ask(apicurio.url, call.method, call.path, call.body)
            if call.path.endswith("/referencedby") and own.status == other.status == 200:
                assert len(own.body) == len(other.body), call  # ids differ
            elif comparable(own) != comparable(other):
                differences[str(call)] = f"{own.status} {own.body}, Apicurio {other.body}"
    reasons = {
        call: start
        for call in differences
        for start in DIFFERENCES
        if call == start or (start.endswith(('"', "{")) and call.startswith(start))
    }
    assert {call: differences[call] for call in differences if call not in reasons} == {}
    assert set(reasons.values()) == set(DIFFERENCES), "a difference is gone"
