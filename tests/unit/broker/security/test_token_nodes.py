"""The nodes of delegation tokens, as Kafka 3.9 writes and reads them."""

from __future__ import annotations

import json

import pytest

from minibroker.broker.security.token_nodes import decode, encode, is_id, path_of
from minibroker.broker.security.tokens import Token
from minibroker.kafka.errors import CoordinationError

TOKEN = Token("a-_1", "User:o", "User:q", ("User:CN=r,O=x",), 1, 3, 2)


def test_a_token_is_written_as_kafka_writes_it() -> None:
    assert path_of(TOKEN.id) == "/delegation_token/tokens/a-_1"
    assert json.loads(encode(TOKEN)) == {
        "version": 3,
        "owner": "User%3Ao",
        "tokenRequester": "User%3Aq",
        "renewers": ["User%3ACN%3Dr%2CO%3Dx"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "a-_1",
    }
    assert decode(TOKEN.id, encode(TOKEN)) == TOKEN


def test_the_owner_asked_for_a_token_of_an_older_version() -> None:
    content = json.loads(encode(TOKEN))
    del content["tokenRequester"]
    content["version"] = 1
    assert decode(TOKEN.id, json.dumps(content).encode()) == TOKEN._replace(requester="User:o")


@pytest.mark.parametrize(
    "changes",
    [{"version": 4}, {"tokenId": "b"}, {"owner": "o"}, {"renewers": [1]}, {"maxTimestamp": "3"}],
)
def test_a_node_that_is_no_token_is_named(changes: dict[str, object]) -> None:
    content = {**json.loads(encode(TOKEN)), **changes}
    with pytest.raises(CoordinationError, match="/delegation_token/tokens/a-_1"):
        decode(TOKEN.id, json.dumps(content).encode())


def test_an_id_is_one_name_of_a_node() -> None:
    assert is_id("a-_1")
    assert not any(map(is_id, ("", "a/b", "..", "a" * 129)))
