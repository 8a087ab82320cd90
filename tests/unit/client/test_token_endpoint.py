"""This broker's token from an identity provider over HTTP: asked for, renewed, tried again."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Semaphore
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.client.exchange_end import ExchangeEnd, connection_to
from minibroker.client.oauth import HANDLER_KEY, RETRIEVER_KEY, URL_KEY, oauth_login
from minibroker.client.token_endpoint import (
    AGAIN_MS,
    ANSWER_BYTES_MAX,
    ENCODED_KEY,
    ID_KEY,
    SCOPE_KEY,
    SECRET_KEY,
    Refreshing,
    TokenEndpoint,
    TokenFetchError,
    TokenRequest,
    endpoint_of,
)
from minibroker.clock import SystemClock
from minibroker.kafka.errors import ConfigError
from tests.support.certificates import authority_pem
from tests.support.in_process import ManualClock
from tests.support.signed_tokens import rsa_key, token, write_key
from tests.support.token_provider import CLIENT, TokenProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
OPTIONS = {"clientId": CLIENT[0], "clientSecret": CLIENT[1], "extension_logicalCluster": "c1"}
REFRESHING = Refreshing(0.8, 0.0, 60_000, 300_000)
RETRY = {"sasl.login.retry.backoff.ms": "1", "sasl.login.retry.backoff.max.ms": "60000"}


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    with TokenProvider() as running:
        yield running


def endpoint(url: str, settings: dict[str, str] | None = None, **more: Any) -> TokenEndpoint:
    values = ConfigValues({**RETRY, **(settings or {})})
    return endpoint_of(
        url, values, more.pop("options", OPTIONS), None, SystemClock().now_ms, **more
    )


def test_the_request_is_the_one_of_kafka(provider: TokenProvider) -> None:
    access_token = endpoint(provider.url, options={**OPTIONS, "scope": " read write "}).token()
    assert [access_token] == provider.tokens
    (request,) = provider.requests
    assert (request.method, request.path) == ("POST", "/token?tenant=1")
    assert request.client == ":".join(CLIENT)
    assert request.body == "grant_type=client_credentials&scope=read+write"
    assert request.headers["accept"] == "application/json"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"


def test_settings_stand_over_the_options_of_the_jaas_line(provider: TokenProvider) -> None:
    settings = {ID_KEY: CLIENT[0], SECRET_KEY: CLIENT[1], SCOPE_KEY: "s"}
    options = {"clientId": "x", "clientSecret": "y", "scope": "z"}
    assert endpoint(provider.url, settings, options=options).token()
    assert provider.requests[0].body.endswith("&scope=s")


def test_a_login_shows_the_token_and_the_extensions(provider: TokenProvider) -> None:
    settings = ConfigValues({HANDLER_KEY: HANDLER, URL_KEY: provider.url})
    login = oauth_login(settings, OPTIONS, SystemClock().now_ms)
    first = login.begin("host").begin().decode()
    assert first == (f"n,,\x01auth=Bearer {provider.tokens[0]}\x01logicalCluster=c1\x01\x01")
    assert login.begin("host").begin().decode() == first
    assert len(provider.requests) == 1


def test_a_token_is_trusted_to_https_with_the_ca_of_the_jaas_line(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(authority_pem())
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    with TokenProvider(is_tls=True) as provider:
        settings = ConfigValues(
            {HANDLER_KEY: HANDLER, URL_KEY: provider.url, "sasl.login.retry.backoff.ms": "0"}
        )
        login = oauth_login(settings, {**OPTIONS, **trust}, SystemClock().now_ms)
        assert provider.tokens == []
        assert provider.url.startswith("https:")
        login.begin("host").begin()
        assert len(provider.tokens) == 1
        with pytest.raises(OSError, match="certificate verify failed"):
            oauth_login(settings, OPTIONS, SystemClock().now_ms).begin("host").begin()


def test_an_error_that_may_pass_is_tried_again_with_longer_pauses(provider: TokenProvider) -> None:
    pauses: list[float] = []
    request = endpoint(provider.url)._request
    fetching = TokenEndpoint(
        request,
        REFRESHING,
        SystemClock().now_ms,
        backoff_ms=100,
        backoff_max_ms=10**9,
        pause=pauses.append,
    )
    provider.statuses = [500, 503, 429]
    assert fetching.token() == provider.tokens[0]
    assert pauses == [0.1, 0.2, 0.4]


def test_an_error_that_stays_is_not_tried_again(provider: TokenProvider) -> None:
    wrong = endpoint(provider.url, options={"clientId": "x", "clientSecret": "not-this"})
    with pytest.raises(TokenFetchError) as caught:
        wrong.token()
    assert str(caught.value) == (
        f"{provider.url} answers with HTTP status 401: invalid_client - unknown"
    )
    assert len(provider.requests) == 1
    assert "not-this" not in f"{wrong._request!r}"


def test_a_provider_that_is_not_there_is_named() -> None:
    url = "http://127.0.0.1:1/token"
    with pytest.raises(TokenFetchError, match=f"{url}: .*refused") as caught:
        endpoint(url, {"sasl.login.retry.backoff.ms": "0"}).token()
    assert not caught.value.is_final


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_an_address_of_ipv6_without_a_port_has_that_of_the_scheme(scheme: str, port: int) -> None:
    connection = connection_to(f"{scheme}://[2001:db8::10]/token", 1, None)
    assert (connection.host, connection.port) == ("2001:db8::10", port)


def test_a_provider_whose_host_is_no_name_is_named() -> None:
    request = TokenRequest("http://a..b/", None, dict, None, 1, 1)
    with pytest.raises(TokenFetchError, match=r"http://a\.\.b/: "):
        request.send()


def test_tries_end_when_the_time_for_them_is_over(provider: TokenProvider) -> None:
    clock = ManualClock()
    tries = TokenEndpoint(
        endpoint(provider.url)._request,
        REFRESHING,
        clock.now_ms,
        backoff_ms=1000,
        backoff_max_ms=2500,
        pause=lambda pause_s: clock.advance(round(pause_s * 1000)),
    )
    provider.statuses = [500] * 10
    with pytest.raises(TokenFetchError, match="HTTP status 500"):
        tries.token()
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "answers without an access_token"),
        (b"[" * 100_000, "answers without an access_token"),
        (b'{"access_token": 5}', "answers without an access_token"),
        (b'{"access_token": " "}', "answers without an access_token"),
        (b'{"access_token": "a.b"}', "gave no token: a token has three parts"),
        (b'{"access_token": "a.b.c"}', "gave no token"),
        (b" " * (ANSWER_BYTES_MAX + 1), f"answers with over {ANSWER_BYTES_MAX} bytes"),
        (json.dumps({"access_token": token({"exp": 1})}).encode(), "has no end, or is over"),
        (json.dumps({"access_token": token({"exp": None})}).encode(), "has no end, or is over"),
    ],
)
def test_an_answer_without_a_token_is_an_error(
    answer: bytes, sentence: str, provider: TokenProvider
) -> None:
    provider.answer = answer
    with pytest.raises(TokenFetchError, match=sentence):
        endpoint(provider.url, {"sasl.login.retry.backoff.ms": "0"}).token()


@pytest.mark.parametrize(
    ("first_bytes", "again", "read_ms", "sentence"),
    [
        (b"", b"", 200, r"did not answer within 0\.2 s"),
        (b"HTTP/1.1 200 OK\r\n\r\n{", b"", 200, r"did not answer within 0\.2 s"),
        (b"HTTP/1.1 200 OK\r\nA: ", b"x", 200, r"did not answer within 0\.2 s"),
        (b"HTTP/1.1 200 OK\r\n\r\n{", b" ", 200, r"did not answer within 0\.2 s"),
        (b"nonsense\r\n\r\n", b"", 60_000, "nonsense"),
    ],
)
def test_a_provider_that_does_not_go_on_is_left(
    first_bytes: bytes, again: bytes, read_ms: int, sentence: str
) -> None:
    """Bytes that come one by one, in the headers or behind them, do not put the end off."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):
                client.sendall(first_bytes)
                client.settimeout(0.01)
                while True:
                    try:
                        if not client.recv(1 << 16):
                            return
                    except TimeoutError:
                        client.sendall(again)

        thread = threading.Thread(target=accept)
        thread.start()
        settings = {"sasl.login.read.timeout.ms": f"{read_ms}", "sasl.login.retry.backoff.ms": "0"}
        with pytest.raises(OSError, match=sentence):
            endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/", settings).token()
        thread.join()


def test_a_token_is_renewed_before_it_ends(provider: TokenProvider) -> None:
    clock = ManualClock(SystemClock().now_ms())
    fetching = TokenEndpoint(
        endpoint(provider.url)._request, REFRESHING, clock.now_ms, backoff_ms=0, backoff_max_ms=0
    )
    first = fetching.token()
    clock.advance(2_800_000)
    assert fetching.token() == first
    clock.advance(100_000)  # 0.8 of the hour is over
    provider.statuses = [500]
    assert fetching.token() == first
    assert fetching.token() == first
    assert len(provider.requests) == 2
    clock.advance(AGAIN_MS)
    second = fetching.token()
    assert [first, second] == provider.tokens
    clock.advance(4_000_000)
    provider.statuses = [500]
    with pytest.raises(TokenFetchError):
        fetching.token()


def test_a_provider_that_takes_long_to_fail_is_not_asked_by_each_login() -> None:
    clock = ManualClock(SystemClock().now_ms())
    times: list[int] = []

    class SlowRequest(NamedTuple):
        url: str = "http://a/"

        def send(self) -> bytes:
            times.append(clock.now_ms())
            if len(times) > 1:
                clock.advance(2 * AGAIN_MS)
                raise TokenFetchError("silent")
            life = {"iat": clock.now_ms() // 1000, "exp": clock.now_ms() // 1000 + 3600}
            return json.dumps({"access_token": token(life)}).encode()

    fetching = TokenEndpoint(
        SlowRequest(), REFRESHING, clock.now_ms, backoff_ms=0, backoff_max_ms=0
    )
    first = fetching.token()
    clock.advance(2_900_000)  # over 0.8 of the hour
    assert [fetching.token(), fetching.token()] == [first, first]
    assert len(times) == 2
    clock.advance(3_600_000 - 2_900_000 - 2 * AGAIN_MS - 1)
    with pytest.raises(TokenFetchError):  # it ends during the try
        fetching.token()


def test_logins_show_the_old_token_while_one_renews_it_and_wait_when_it_has_ended() -> None:
    clock = ManualClock(SystemClock().now_ms())
    questions, may_answer = Semaphore(0), Semaphore(0)

    class HeldRequest(NamedTuple):
        url: str = "http://a/"

        def send(self) -> bytes:
            questions.release()
            assert may_answer.acquire(timeout=60)
            life = {"iat": clock.now_ms() // 1000, "exp": clock.now_ms() // 1000 + 3600}
            return json.dumps({"access_token": token(life)}).encode()

    fetching = TokenEndpoint(
        HeldRequest(), REFRESHING, clock.now_ms, backoff_ms=0, backoff_max_ms=0
    )
    may_answer.release()
    first = fetching.token()
    assert questions.acquire(timeout=60)
    with ThreadPoolExecutor(3) as pool:
        clock.advance(2_900_000)  # over 0.8 of the hour
        renewing = pool.submit(fetching.token)
        assert questions.acquire(timeout=60)
        try:
            assert pool.submit(fetching.token).result(timeout=10) == first
        finally:
            clock.advance(800_000)  # the old one has ended
            late = pool.submit(fetching.token)
            may_answer.release()
        second = renewing.result()
        assert late.result() == second
        assert second != first
    assert not questions.acquire(blocking=False)


def test_the_end_of_an_exchange_by_tls_gives_up_no_encryption() -> None:
    near, far = socket.socketpair()
    with (
        far,
        ssl.create_default_context().wrap_socket(
            near, do_handshake_on_connect=False, server_hostname="localhost"
        ) as stream,
    ):
        with ExchangeEnd(stream, 0) as end:
            assert far.recv(1) == b""
        assert end.is_over
        # Without its encryption a stream answers None.
        assert stream.session_reused is False


@pytest.mark.parametrize(
    ("refreshing", "life_s", "renewed_s"),
    [
        (REFRESHING, (0, 3600), 2880),
        (Refreshing(1.0, 0.0, 60_000, 300_000), (0, 3600), 3300),
        (Refreshing(0.5, 0.0, 2_000_000, 300_000), (0, 3600), 2000),
        (REFRESHING, (0, 100), 80),  # too short for both
        (REFRESHING, (-1000, 2600), 1880),
    ],
)
def test_settings_say_when(refreshing: Refreshing, life_s: tuple[int, int], renewed_s: int) -> None:
    start, end = (1000 * value for value in life_s)
    assert refreshing.renew_at(start, end, 0) == 1000 * renewed_s


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ({}, {}, f"needs {ID_KEY}, or clientId in the JAAS line"),
        ({}, {"clientId": "x", "clientSecret": " "}, f"needs {SECRET_KEY}, or clientSecret"),
        ({"sasl.login.refresh.window.factor": "0.4"}, OPTIONS, "factor=0.4: expected 0.5 to 1"),
        ({"sasl.login.refresh.buffer.seconds": "3601"}, OPTIONS, "expected 0 to 3600"),
        ({ENCODED_KEY: "yes"}, OPTIONS, "urlencode=yes: expected true or false"),
    ],
)
def test_settings_that_cannot_be_are_named(
    settings: dict[str, str], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        endpoint("http://127.0.0.1:1/", settings, options=options)


def test_a_request_shows_no_secret() -> None:
    request = TokenRequest("http://a/", "Basic c2VjcmV0", b"", None, 1, 1)
    assert f"{request} {request!r}" == "TokenRequest(http://a/) TokenRequest(http://a/)"


ASSERTION = "sasl.oauthbearer.assertion."


def signing(provider: TokenProvider, directory: Path) -> dict[str, str]:
    """Return settings of a client with assertions, which the provider knows."""
    provider.public_key = rsa_key("broker").public_key()
    return {
        f"{ASSERTION}claim.aud": provider.url,
        f"{ASSERTION}claim.iss": CLIENT[0],
        f"{ASSERTION}claim.sub": CLIENT[0],
        f"{ASSERTION}private.key.file": write_key(directory / "key.pem", rsa_key("broker")),
    }


def test_an_assertion_stands_for_the_secret(provider: TokenProvider, tmp_path: Path) -> None:
    settings = signing(provider, tmp_path)
    options = {"clientId": "an id", "clientSecret": "not asked for", "scope": " read write "}
    assert endpoint(provider.url, settings, options=options).token() == provider.tokens[0]
    assert list(provider.requests[0].fields.items())[::2] == [
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("grant_type", "client_credentials"),
        ("scope", "read write"),
    ]
    assert provider.requests[0].fields["client_id"] == "an id"
    assert endpoint(provider.url, settings, options={}).token() == provider.tokens[1]
    assert list(provider.requests[1].fields)[1:] == ["client_assertion", "grant_type"]


def test_an_assertion_is_exchanged_for_a_token(provider: TokenProvider, tmp_path: Path) -> None:
    settings = {
        HANDLER_KEY: HANDLER,
        URL_KEY: provider.url,
        RETRIEVER_KEY: HANDLER.replace("OAuthBearerLoginCallbackHandler", "JwtBearerJwtRetriever"),
        SCOPE_KEY: "s",
        **signing(provider, tmp_path),
    }
    login = oauth_login(ConfigValues(settings), {"scope": "of the JAAS line"}, SystemClock().now_ms)
    assert provider.tokens == []
    assert b"Bearer " in login.begin("host").begin()
    fields = provider.requests[0].fields
    assert list(fields) == ["grant_type", "assertion", "scope"]
    assert fields["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert fields["scope"] == "s"


def test_a_key_that_is_gone_is_told_and_not_tried_again(
    provider: TokenProvider, tmp_path: Path
) -> None:
    token_endpoint = endpoint(provider.url, signing(provider, tmp_path), options={})
    (tmp_path / "key.pem").unlink()
    with pytest.raises(TokenFetchError, match=r"key\.pem cannot be read") as caught:
        token_endpoint.token()
    assert caught.value.is_final
    assert provider.requests == []
