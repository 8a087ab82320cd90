"""The nodes of delegation tokens in the tree, as Kafka 3.9 writes them.

    /delegation_token/tokens/<id>                    the token as JSON, without its HMAC
    /delegation_token/token_changes/token_change_…   the id of a token that changed

Source: Kafka ZkData (DelegationToken…ZNode), DelegationTokenManagerZk (toJsonCompatibleMap).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from minibroker.broker.cluster.codecs import load_json
from minibroker.broker.cluster.paths import desanitize, sanitize
from minibroker.broker.security.tokens import Token
from minibroker.kafka.errors import CoordinationError

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE_PATH: Final = f"{CHANGES}/token_change_"
"""A number follows."""
BYTES_MAX: Final = 1_000_000
"""Largest node of a new token. ZooKeeper ends the connection of whoever sends it more than 1 MiB
(jute.maxbuffer); Kafka sends such a token again and again."""
_VERSION: Final = 3
_REQUESTER_VERSION: Final = 3
_ID: Final = re.compile(r"[A-Za-z0-9_=-]{1,128}")


def path_of(token_id: str) -> str:
    """Return the node of a token."""
    return f"{TOKENS}/{token_id}"


def is_id(text: str) -> bool:
    """Return whether a token may have this id."""
    return _ID.fullmatch(text) is not None


def encode(token: Token) -> bytes:
    """Return the value of the node of a token."""
    content = {
        "version": _VERSION,
        "owner": sanitize(token.owner),
        "tokenRequester": sanitize(token.requester),
        "renewers": [sanitize(renewer) for renewer in token.renewers],
        "issueTimestamp": token.issued_ms,
        "maxTimestamp": token.max_ms,
        "expiryTimestamp": token.expires_ms,
        "tokenId": token.id,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode(token_id: str, value: bytes) -> Token:
    """Return the token of a node. Raises CoordinationError for a value that is none."""
    try:
        content = load_json(value)
        version = content["version"]
        if not 0 < version <= _VERSION:
            raise ValueError(f"version {version}")
        if content["tokenId"] != token_id:
            raise ValueError(f"it holds token {content['tokenId']!r}")
        owner = _principal(content["owner"])
        has_requester = version >= _REQUESTER_VERSION
        return Token(
            token_id,
            owner,
            _principal(content["tokenRequester"]) if has_requester else owner,
            tuple(_principal(renewer) for renewer in content["renewers"]),
            _time(content["issueTimestamp"]),
            _time(content["maxTimestamp"]),
            _time(content["expiryTimestamp"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoordinationError(f"{path_of(token_id)} does not hold a token: {error}") from error


def _principal(text: Any) -> str:
    principal = desanitize(text)
    if ":" not in principal:
        raise ValueError(f"expected a principal as type:name, not {principal!r}")
    return principal


def _time(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a time, not {value!r}")
    return value
