"""Exchanges as lines of JSON, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.trace.decode import Frames, decode
from minibroker.trace.json_lines import DialogueError, from_json, read_exchanges, to_json
from tests.support.trace_frames import EXCHANGE, exchange_of, recorded_frames, request_frame

LINE = json.loads(to_json(EXCHANGE))


@pytest.mark.parametrize("broker", ["3.9.1", "4.4.0"])
def test_dialogues_come_back_equal(broker: str) -> None:
    exchanges = [decode(frames, {}) for frames in recorded_frames(broker)]
    lines = [to_json(exchange) for exchange in exchanges]
    assert list(read_exchanges([*lines, "", "\n"])) == exchanges


def test_names_are_those_of_kafka() -> None:
    frames = recorded_frames()[0]
    content = json.loads(to_json(decode(frames, {})))
    assert content["api"] == "ApiVersions"
    assert content["correlationId"] == 1
    assert content["request"]["clientSoftwareName"] == "confluent-kafka-python"
    assert content["answer"]["apiKeys"][0] == {"apiKey": 0, "minVersion": 0, "maxVersion": 11}


def test_a_line_is_ascii_whatever_the_names_are() -> None:
    line = to_json(EXCHANGE._replace(client_id="ü\n\ud800"))
    assert line.isascii()
    assert "\n" not in line
    assert from_json(line).client_id == "ü\n\ud800"


def test_passwords_and_keys_are_hidden() -> None:
    login = request_frame(SaslAuthenticateRequest(auth_bytes=b"\x00user\x00secret"), 1)
    configs = [
        AlterableConfig(name="ssl.keystore.password", value="secret"),
        AlterableConfig(name="sasl.jaas.config", value="secret"),
        AlterableConfig(name="retention.ms", value="5"),
    ]
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(configs=configs)])
    change = request_frame(request, 1)
    text = to_json(exchange_of(login)) + to_json(exchange_of(change))
    assert "secret" not in text
    assert text.count("[hidden]") == 3
    assert '"value":"5"' in text
    again = from_json(to_json(exchange_of(login)))
    assert again.request == SaslAuthenticateRequest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": "1"}, "number: expected a number"),
        ({"number": True}, "number: expected a number"),
        ({"atMs": None}, "atMs: expected a number of ms"),
        ({"api": 5}, "api: expected a text"),
        ({"error": 5}, "error: expected a text"),
        ({"api": "Other", "request": {}}, "'Other' version 9 is not known"),
        ({"version": 99, "request": {}}, "'Produce' version 99 is not known"),
        ({"request": {"x": 1}}, "ProduceRequest version 9 has no field 'x'"),
        ({"answer": 5}, "ProduceResponse: 5 is no object"),
    ],
)
def test_a_line_that_is_no_exchange_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DialogueError, match=message):
        from_json(json.dumps({**LINE, **change}))


@pytest.mark.parametrize("line", ["x", "[]", "5", "[" * 100_000, "{"])
def test_a_line_that_is_no_json_object_is_refused(line: str) -> None:
    with pytest.raises(DialogueError, match=r"line 2: (no JSON|expected an object)"):
        list(read_exchanges([to_json(EXCHANGE), line]))


def test_an_unreadable_exchange_has_its_subject() -> None:
    broken = decode(Frames(1, 1, "c", "b", 0.0, None, b"\x03\xe7\x00\x01abcd", None), {})
    assert from_json(to_json(broken)) == broken
