"""The keys of an identity provider: from a file, over HTTP, again and again."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.security.sasl import key_set
from minibroker.broker.security.sasl.key_set import JWKS_BYTES_MAX, KeySet, KeySource, parse_jwks
from minibroker.broker.security.sasl.signed_token import SignedRules, UnknownKeyError
from minibroker.broker.timers import Timers
from minibroker.clock import SystemClock
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.oauthbearer import TokenError
from tests.support.signed_tokens import FAR_S, jwks, token, write_jwks
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULES = SignedRules(any_audience=True)
NOW_MS = FAR_S * 1000 - 1_000_000
NEW = {**jwks()["keys"][0], "kid": "new"}


class Provider:
    """An identity provider over HTTP, whose next answers a test chooses."""

    def __init__(self) -> None:
        self.keys = list(jwks()["keys"])
        self.status = 200
        self.location: str | None = None
        self.padding = b""
        self.has_half_a_head = False
        """True: an answer ends in its head, and the connection stays."""
        self.is_garbled = False
        """True: an answer is no HTTP."""
        self.request_count = 0
        self.event = threading.Event()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.request_count += 1
                if provider.is_garbled:
                    self.wfile.write(b"this is no status line\r\n\r\n")
                    return
                if provider.has_half_a_head:
                    self.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
                    self.rfile.read()  # until the reader goes
                    return
                self.send_response(provider.status)
                if provider.location is not None:
                    self.send_header("Location", provider.location)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": provider.keys}).encode() + provider.padding)
                provider.event.set()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


def keys_of(url: str, refresh_ms: int = 3_600_000) -> KeySet:
    return KeySet(KeySource(url), RULES, refresh_ms=refresh_ms, backoff_ms=1, backoff_max_ms=60_000)


async def begin(keys: KeySet) -> Timers:
    clock = SystemClock()
    timers = Timers(clock)
    await keys.begin(timers, clock)
    return timers


async def test_keys_of_a_file_are_read(tmp_path: Path) -> None:
    directory = tmp_path / "a b"
    directory.mkdir()
    keys = keys_of(write_jwks(directory))
    await begin(keys)
    assert keys.check(token(), NOW_MS).name == "alice"
    await keys.close()


async def test_keys_are_read_over_http_again_and_again(provider: Provider) -> None:
    keys = keys_of(provider.url, refresh_ms=1)
    await begin(keys)
    provider.keys = [NEW]
    await eventually(lambda: [key.key_id for key in keys.keys] == ["new"])
    provider.status = 500
    request_count = provider.request_count
    await eventually(lambda: provider.request_count > request_count + 2)
    assert [key.key_id for key in keys.keys] == ["new"]
    provider.status = 200
    provider.keys = []
    await eventually(lambda: not keys.keys)
    await keys.close()
    assert keys._task is None


async def test_a_provider_that_answers_without_sense_is_asked_again(provider: Provider) -> None:
    keys = keys_of(provider.url, refresh_ms=1)
    await begin(keys)
    for odd_answer in ({"is_garbled": True}, {"keys": [{"kty": "oct", "kid": "no key"}]}):
        vars(provider).update(odd_answer)
        request_count = provider.request_count
        await eventually(lambda count=request_count: provider.request_count > count + 2)
        provider.is_garbled, provider.keys = False, [NEW]
        await eventually(lambda: [key.key_id for key in keys.keys] == ["new"])
    await keys.close()


async def test_an_unknown_key_is_looked_for_once_in_a_while(provider: Provider) -> None:
    keys = keys_of(provider.url)
    await begin(keys)
    provider.keys.append(NEW)
    fresh = token(key="rsa", header={"kid": "new"})
    with pytest.raises(UnknownKeyError):
        keys.check(fresh, NOW_MS)
    await eventually(lambda: len(keys.keys) == 7)
    assert keys.check(fresh, NOW_MS).name == "alice"
    assert provider.request_count == 2
    unknown = [token(header={"kid": f"unknown {number}"}) for number in range(40)]
    for text in [*unknown, token(header={"kid": "x" * 1001})]:
        with pytest.raises(TokenError):
            keys.check(text, NOW_MS)
    assert len(keys._missing_ids) == key_set.MISSING_MAX
    await eventually(lambda: keys._task is None)
    request_count = provider.request_count
    with pytest.raises(TokenError):
        keys.check(unknown[-1], NOW_MS + key_set.MISSING_MS - 1)
    assert keys._task is None
    with pytest.raises(TokenError):
        keys.check(unknown[-1], NOW_MS + key_set.MISSING_MS)
    await eventually(lambda: provider.request_count == request_count + 1)
    await keys.close()


async def test_a_start_without_keys_fails_and_says_where(
    provider: Provider, tmp_path: Path
) -> None:
    for url in (f"file:{tmp_path}/none", f"file:{tmp_path}", provider.url + "x" * 3):
        provider.status = 404
        with pytest.raises(ConfigError, match=f"{url} cannot be read"):
            await begin(keys_of(url))
    provider.status = 200
    provider.padding = b" " * JWKS_BYTES_MAX
    with pytest.raises(ConfigError, match="larger than 524288 bytes"):
        await begin(keys_of(provider.url))
    provider.is_garbled = True
    with pytest.raises(ConfigError, match="BadStatusLine"):
        await begin(keys_of(provider.url))
    provider.is_garbled = False
    provider.status, provider.location = 302, "file:/etc/passwd"
    with pytest.raises(ConfigError, match="cannot be read"):
        await begin(keys_of(provider.url))


def test_a_provider_that_answers_byte_by_byte_has_an_end(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_set, "FETCH_S", -1.0)
    with pytest.raises(TimeoutError, match="did not answer within"):
        KeySource(provider.url).read()


def test_a_head_that_never_ends_has_an_end(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte of it begins the time-out of the socket anew."""
    provider.has_half_a_head = True
    monkeypatch.setattr(key_set, "FETCH_S", -1.0)
    with pytest.raises(TimeoutError, match="did not answer within"):
        KeySource(provider.url).read()


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_an_address_of_ipv6_without_a_port_has_that_of_the_scheme(scheme: str, port: int) -> None:
    connection = KeySource(f"{scheme}://[2001:db8::10]/keys")._connection()
    assert (connection.host, connection.port) == ("2001:db8::10", port)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys":5}', b"[" * 100_000, b"\xff", b'{"keys":{}}']
)
def test_a_text_that_is_no_jwks_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_jwks(text)


def test_keys_that_cannot_be_read_are_left_out() -> None:
    odd = [5, {}, {"kty": 5}, {"kty": "RSA", "kid": "odd"}, {"kty": "EC", "crv": "P-256", "x": "A"}]
    odd.append({"kty": "oct", "kid": "no key"})
    assert parse_jwks(json.dumps({"keys": odd}).encode()) == ()
    assert [key.key_id for key in parse_jwks(json.dumps(jwks()).encode())] == [
        "rsa",
        "encryption",
        "small",
        "ec",
        "shared",
        "short",
    ]
