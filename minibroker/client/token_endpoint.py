"""`TokenEndpoint`: the token for our logins, fetched from an identity provider by HTTP.

    login at a broker ─► token ─ known, and not to be renewed yet ─► the same again
                           └ else POST to the provider, with the client's secret or an
                             assertion (`client_assertion`)

A token is renewed by the first login after `sasl.login.refresh.window.factor` of its life. The
others show the old one meanwhile. If the renewal fails, the old one is shown until it ends, and
`AGAIN_MS` later the next login tries again. Calls block, so a broker makes them beside its loop.
One answer has `ANSWER_BYTES_MAX` bytes and `sasl.login.read.timeout.ms`, with its headers.

Source: Kafka ClientCredentialsJwtRetriever, JwtBearerJwtRetriever, HttpJwtRetriever,
ClientSecretRequestFormatter, ClientAssertionRequestFormatter, JwtBearerRequestFormatter,
ClientJwtValidator, Retry, ExpiringCredentialRefreshingLogin.
Differs from Kafka: no redirection is followed. Time-outs that are not set are `TIMEOUT_S`.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

from minibroker.client.assertion import FILE_KEY, assertions_of, has_assertions
from minibroker.client.exchange_end import ExchangeEnd, connection_to
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.oauthbearer import MESSAGE_BYTES_MAX, TokenError, claims_of, seconds_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from minibroker.kafka.config_keys import TypedSettings

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 20.0
ANSWER_BYTES_MAX: Final = 2 * MESSAGE_BYTES_MAX
AGAIN_MS: Final = 10_000
_CHUNK_BYTES: Final = 16 * 1024
_ERROR_CHARACTERS: Final = 500
_OAUTH: Final = "sasl.oauthbearer."
_LOGIN: Final = "sasl.login."
ID_KEY: Final = f"{_OAUTH}client.credentials.client.id"
SECRET_KEY: Final = f"{_OAUTH}client.credentials.client.secret"
SCOPE_KEY: Final = f"{_OAUTH}scope"
ENCODED_KEY: Final = f"{_OAUTH}header.urlencode"
_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_FINAL_STATUSES: Final = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505}
)
"""Another try would get the same answer."""


class TokenFetchError(ConnectionError):
    """The provider gave no token. The text names it, and no secret."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """True where another try would get the same answer."""


class TokenRequest(NamedTuple):
    """A request for a token, and the time that its answer may take."""

    url: str
    authorization: str | None
    """The header with the client's id and secret, None where an assertion stands for them."""
    form: Callable[[], Mapping[str, str]]
    """Returns the fields of the body. Raises ConfigError."""
    tls: ssl.SSLContext | None
    """For `https`, None: the system's CAs are trusted."""
    connect_s: float
    read_s: float

    def __repr__(self) -> str:
        """Return a text without the secret."""
        return f"TokenRequest({self.url})"

    def send(self) -> bytes:
        """Return the answer. Blocks. Raises OSError."""
        try:
            body = urlencode(self.form()).encode()
        except ConfigError as error:  # a file that was right at the start
            raise TokenFetchError(str(error), is_final=True) from None
        headers = {
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        connection = connection_to(self.url, self.connect_s, self.tls)
        try:
            connection.connect()
            status, data = self._exchange(connection, body, headers)
        except TokenFetchError:
            raise
        except HTTPException as error:
            raise TokenFetchError(f"{self.url}: {error!r}") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: of IDNA, for the host
            raise TokenFetchError(f"{self.url}: {error}") from error
        finally:
            connection.close()
        if status not in {200, 201}:
            raise TokenFetchError(
                f"{self.url} answers with HTTP status {status}: {_reason_of(data)}",
                is_final=status in _FINAL_STATUSES,
            )
        return data

    def _exchange(
        self, connection: HTTPConnection, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Return status and body of the answer. Raises OSError, HTTPException."""
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.sock.settimeout(None)
        with ExchangeEnd(connection.sock, self.read_s) as end:
            try:
                connection.request("POST", path, body, headers)
                with connection.getresponse() as answer:
                    data = self._read(answer.read1)
            except (OSError, HTTPException):
                if not end.is_over:
                    raise
        if end.is_over:  # what was read may be cut off
            raise TokenFetchError(f"{self.url} did not answer within {self.read_s:g} s")
        return answer.status, data

    def _read(self, read: Callable[[int], bytes]) -> bytes:
        """Raises TokenFetchError for an answer that is too long."""
        data = bytearray()
        while chunk := read(_CHUNK_BYTES):
            data += chunk
            if len(data) > ANSWER_BYTES_MAX:
                raise TokenFetchError(f"{self.url} answers with over {ANSWER_BYTES_MAX} bytes")
        return bytes(data)


class Refreshing(NamedTuple):
    """When a token is renewed: the settings `sasl.login.refresh.*`."""

    factor: float
    jitter: float
    min_period_ms: int
    buffer_ms: int

    def renew_at(self, start_ms: int, end_ms: int, now_ms: int) -> int:
        """Return the wall clock at which a token is renewed whose life this is."""
        part = self.factor + self.jitter * random.random()
        if self.min_period_ms + self.buffer_ms > end_ms - now_ms:  # too short-lived for both
            return now_ms + int((end_ms - now_ms) * part)
        chosen_ms = min(start_ms + int((end_ms - start_ms) * part), end_ms - self.buffer_ms)
        return max(chosen_ms, now_ms + self.min_period_ms)


class _KnownToken(NamedTuple):
    """A token, and when it ends and is to be renewed, by the wall clock."""

    text: str
    ends_ms: int
    renew_at_ms: int

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"_KnownToken(ends_ms={self.ends_ms})"


class TokenEndpoint:
    """One provider, and its last token. Threads may call it."""

    def __init__(
        self,
        request: TokenRequest,
        refreshing: Refreshing,
        now_ms: Callable[[], int],
        *,
        backoff_ms: int,
        backoff_max_ms: int,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`pause`: waits for so many seconds."""
        self._request = request
        self._refreshing = refreshing
        self._now_ms = now_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._pause = pause
        self._lock = threading.Lock()
        """Held by the thread that fetches."""
        self._cached = _KnownToken("", 0, 0)
        """The last token. It is read without the lock, and exchanged as a whole under it."""

    def token(self) -> str:
        """Return the token to show now. Raises OSError where none can be had.

        Blocks while the provider is asked: the login that renews a token, and every login where no
        token is good.
        """
        cached = self._cached
        now_ms = self._now_ms()
        if now_ms < cached.renew_at_ms:
            return cached.text
        if not self._lock.acquire(blocking=now_ms >= cached.ends_ms):
            return cached.text  # another login renews it
        try:
            return self._renewed().text
        finally:
            self._lock.release()

    def _renewed(self) -> _KnownToken:
        """Return a token that is not to be renewed yet, or one whose renewal failed. Raises
        OSError. The lock is held.
        """
        if self._now_ms() >= self._cached.renew_at_ms:  # no other login was faster
            try:
                self._cached = self._ask()
            except OSError as error:
                now_ms = self._now_ms()  # tries may have taken longer than `AGAIN_MS`
                if now_ms >= self._cached.ends_ms:
                    raise
                logger.warning("the token for logins at brokers stays: %s", error)
                self._cached = self._cached._replace(renew_at_ms=now_ms + AGAIN_MS)
        return self._cached

    def _ask(self) -> _KnownToken:
        """Fetch a token. Raises OSError."""
        token = _token_of(self._request.url, self._fetch())
        now_ms = self._now_ms()
        try:
            claims = claims_of(token)
            start_s, end_s = seconds_of(claims, "iat"), seconds_of(claims, "exp")
        except TokenError as error:
            raise TokenFetchError(f"{self._request.url} gave no token: {error}") from None
        if end_s is None or end_s * 1000 <= now_ms:
            raise TokenFetchError(f"{self._request.url} gave a token that has no end, or is over")
        ends_ms = int(end_s * 1000)
        start_ms = now_ms if start_s is None else int(start_s * 1000)
        return _KnownToken(token, ends_ms, self._refreshing.renew_at(start_ms, ends_ms, now_ms))

    def _fetch(self) -> bytes:
        """Return an answer; on an error try again, with pauses that double. Raises OSError."""
        ends_ms, pause_ms = self._now_ms() + self._backoff_max_ms, self._backoff_ms
        while True:
            try:
                return self._request.send()
            except OSError as error:
                left_ms = ends_ms - self._now_ms()
                if getattr(error, "is_final", False) or pause_ms <= 0 or left_ms <= 0:
                    raise
                logger.warning("no token for logins yet, another try follows: %s", error)
            self._pause(min(pause_ms, left_ms) / 1000)
            pause_ms *= 2


def endpoint_of(
    url: str,
    settings: TypedSettings,
    options: Mapping[str, str],
    tls: ssl.SSLContext | None,
    now_ms: Callable[[], int],
    *,
    is_bearer: bool = False,
) -> TokenEndpoint:
    """Return the provider at this URL. `settings` stand over `options` of the JAAS line.

    `is_bearer`: whether the assertion itself is exchanged for a token, as JwtBearerJwtRetriever
    does. Raises ConfigError.
    """
    authorization: str | None = None
    if is_bearer:
        form = _bearer_form(settings, now_ms)
    elif has_assertions(settings):
        form = _assertion_form(settings, options, now_ms)
    else:
        authorization, form = _secret_form(url, settings, options)
    request = TokenRequest(
        url,
        authorization,
        form,
        tls,
        _seconds(settings, "connect.timeout.ms"),
        _seconds(settings, "read.timeout.ms"),
    )
    return TokenEndpoint(
        request,
        _refreshing(settings),
        now_ms,
        backoff_ms=settings.integer(f"{_LOGIN}retry.backoff.ms"),
        backoff_max_ms=settings.integer(f"{_LOGIN}retry.backoff.max.ms"),
    )


def _secret_form(
    url: str, settings: TypedSettings, options: Mapping[str, str]
) -> tuple[str, Callable[[], Mapping[str, str]]]:
    """Return header and fields for a client with a secret. Raises ConfigError."""
    client_id = _setting_of(settings, ID_KEY, options, "clientId")
    secret = _setting_of(settings, SECRET_KEY, options, "clientSecret")
    if client_id is None or secret is None:
        key, option = (ID_KEY, "clientId") if client_id is None else (SECRET_KEY, "clientSecret")
        raise ConfigError(
            f"sasl.oauthbearer.token.endpoint.url={url} needs {key}, or {option} in the JAAS line;"
            f" or {FILE_KEY}, or others of its kind, for a client without a secret"
        )
    if _is_encoded(settings):
        client_id, secret = _form_encoded(client_id), _form_encoded(secret)
    basic = base64.b64encode(f"{client_id}:{secret}".encode()).decode("ascii")
    fields = {"grant_type": "client_credentials", **_scope(settings, options)}
    return f"Basic {basic}", lambda: fields


def _is_encoded(settings: TypedSettings) -> bool:
    """Return whether the provider wants id and secret encoded (RFC 6749, 2.3.1). Raises
    ConfigError. Kafka has the setting for its clients only, so it has no type here.
    """
    text = (settings.text(ENCODED_KEY) or "false").strip()
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"{ENCODED_KEY}={text}: expected true or false")
    return text.lower() == "true"


def _form_encoded(text: str) -> str:
    """Return a text as Java's URLEncoder writes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _assertion_form(
    settings: TypedSettings, options: Mapping[str, str], now_ms: Callable[[], int]
) -> Callable[[], Mapping[str, str]]:
    """Return the fields of a client with assertions. Raises ConfigError."""
    make = assertions_of(settings, now_ms)
    client_id = _setting_of(settings, ID_KEY, options, "clientId")
    more = {"grant_type": "client_credentials"} | ({"client_id": client_id} if client_id else {})
    more |= _scope(settings, options)
    return lambda: {
        "client_assertion_type": _ASSERTION_TYPE,
        "client_assertion": make(),
        **more,
    }


def _bearer_form(
    settings: TypedSettings, now_ms: Callable[[], int]
) -> Callable[[], Mapping[str, str]]:
    """Return the fields of an assertion that is exchanged for a token. Raises ConfigError."""
    make = assertions_of(settings, now_ms)
    more = _scope(settings, {})
    return lambda: {"grant_type": _BEARER, "assertion": make(), **more}


def _scope(settings: TypedSettings, options: Mapping[str, str]) -> dict[str, str]:
    """Return the field of the scope, none where none is set."""
    scope = _setting_of(settings, SCOPE_KEY, options, "scope")
    return {"scope": scope} if scope else {}


def _refreshing(settings: TypedSettings) -> Refreshing:
    """Raises ConfigError for a value that Kafka does not take."""
    numbers = []
    for name, lowest, highest in (
        ("window.factor", 0.5, 1.0),
        ("window.jitter", 0.0, 0.25),
        ("min.period.seconds", 0, 900),
        ("buffer.seconds", 0, 3600),
    ):
        key = f"{_LOGIN}refresh.{name}"
        value = settings.number(key)
        if not lowest <= value <= highest:
            raise ConfigError(f"{key}={value:g}: expected {lowest:g} to {highest:g}")
        numbers.append(value)
    factor, jitter, period_s, buffer_s = numbers
    return Refreshing(factor, jitter, int(period_s * 1000), int(buffer_s * 1000))


def _setting_of(
    settings: TypedSettings, key: str, options: Mapping[str, str], option: str
) -> str | None:
    """Return the setting, else the option of the JAAS line; None where both are blank."""
    return (settings.text(key) or options.get(option) or "").strip() or None


def _seconds(settings: TypedSettings, name: str) -> float:
    """Return a time-out. 0 stands for none in Java, as a setting that is missing does."""
    value = settings.get(f"{_LOGIN}{name}")
    return value / 1000 if isinstance(value, int) and value > 0 else TIMEOUT_S


def _token_of(url: str, data: bytes) -> str:
    """Return the token of an answer. Raises TokenFetchError, without the answer: it is secret."""
    answer = _json_of(data)
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token.strip():
        raise TokenFetchError(f"{url} answers without an access_token")
    return token.strip()


def _reason_of(data: bytes) -> str:
    """Return what an error of the provider says (RFC 6749, 5.2)."""
    answer = _json_of(data)
    if isinstance(answer, dict):
        for code, text in (("error", "error_description"), ("errorCode", "errorSummary")):
            if code in answer:
                return f"{answer[code]} - {answer.get(text, '')}"[:_ERROR_CHARACTERS]
    return data[:_ERROR_CHARACTERS].decode("utf-8", "replace")


def _json_of(data: bytes) -> Any:
    """Return a JSON value, None where there is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
