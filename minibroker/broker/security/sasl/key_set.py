"""`KeySet`: the keys by which an identity provider signs its tokens, as its JWKS has them.

    jwks.endpoint.url ─ worker: read, parse ─► keys ─► signed_token.check_signed
          ▲ every jwks.endpoint.refresh.ms, and at once for a token whose key is unknown

The first reading belongs to the start: without keys nobody could log in. A later one that fails
leaves the keys in use. A reading has 20 seconds and 512 KiB (RFC 7517; jose4j has the same limits),
and runs beside the loop.

Source: Kafka RefreshingHttpsJwks, RefreshingHttpsJwksVerificationKeyResolver, Retry.
Differs from Kafka: the keys of a file are read again, too. No redirection is followed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from jwt import PyJWK, PyJWTError

from minibroker.broker.security.sasl.signed_token import (
    ALGORITHMS,
    PublishedKey,
    SignedRules,
    UnknownKeyError,
    check_signed,
)
from minibroker.client.daemons import in_daemon
from minibroker.client.exchange_end import ExchangeEnd, connection_to
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    import ssl

    from minibroker.broker.security.sasl.oauth import OAuthToken
    from minibroker.broker.timers import Timer, Timers
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

CONNECT_S: Final = 20.0
FETCH_S: Final = 20.0
"""The connection, and the whole answer."""
_THREAD: Final = "minibroker-keys"
JWKS_BYTES_MAX: Final = 512 * 1024
_CHUNK_BYTES: Final = 64 * 1024
MISSING_MS: Final = 60_000
"""A key that is not in the set is looked for once in so much time."""
MISSING_MAX: Final = 16
"""So many of these are remembered."""
KEY_ID_MAX: Final = 1000
"""Characters; a longer one is not looked for."""


class KeySource(NamedTuple):
    """The place of a JWKS."""

    url: str
    tls: ssl.SSLContext | None = None
    """For `https`, None: the system's CAs are trusted."""

    def read(self) -> tuple[PublishedKey, ...]:
        """Return the keys. Blocks, at most `FETCH_S` and a little. Raises OSError, ValueError."""
        scheme = urlsplit(self.url).scheme.lower()
        try:
            return parse_jwks(self._read_file() if scheme == "file" else self._fetch())
        except HTTPException as error:  # neither an OSError nor a ValueError
            raise ValueError(f"the answer is no HTTP: {error!r}") from error

    def _read_file(self) -> bytes:
        with Path(unquote(urlsplit(self.url).path)).open("rb") as file:
            return _check_size(file.read(JWKS_BYTES_MAX + 1))

    def _fetch(self) -> bytes:
        """Read by HTTP, without the proxies of the environment, as Java does."""
        ends_s = time.monotonic() + FETCH_S
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(None)
            with ExchangeEnd(connection.sock, max(0.0, ends_s - time.monotonic())) as end:
                try:
                    data = self._exchange(connection)
                except (OSError, HTTPException):
                    if not end.is_over:
                        raise
            if end.is_over:  # what was read may be cut off
                raise TimeoutError(f"{self.url} did not answer within {FETCH_S:.0f} s")
        finally:
            connection.close()
        return _check_size(data)

    def _connection(self) -> HTTPConnection:
        """Return a connection that is not open yet. Raises ValueError."""
        parts = urlsplit(self.url)
        if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url}: no way to read it")
        return connection_to(self.url, CONNECT_S, self.tls)

    def _exchange(self, connection: HTTPConnection) -> bytes:
        """Return the body of the answer, or a little more of it than it may have."""
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": "application/json", "Connection": "close"}
        connection.request("GET", path, headers=headers)
        data = bytearray()
        with connection.getresponse() as answer:
            if answer.status != 200:
                raise ConnectionError(f"HTTP status {answer.status}")
            while len(data) <= JWKS_BYTES_MAX and (chunk := answer.read1(_CHUNK_BYTES)):
                data += chunk
        return bytes(data)


def _check_size(data: bytes) -> bytes:
    if len(data) > JWKS_BYTES_MAX:
        raise ValueError(f"the JWKS is larger than {JWKS_BYTES_MAX} bytes")
    return data


def parse_jwks(data: bytes) -> tuple[PublishedKey, ...]:
    """Return the keys of a JWKS. One that cannot be read is left out. Raises ValueError."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("the JWKS is nested too deeply") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError('the JWKS has no list "keys"')
    return tuple(key for entry in entries if (key := _key(entry)) is not None)


def _key(entry: Any) -> PublishedKey | None:
    """Return a key, None where no token can be signed by it."""
    if not isinstance(entry, dict):
        return None
    key_type, curve = _text(entry, "kty"), _text(entry, "crv")
    algorithm = next(
        (
            name
            for name, (expected_type, of_curve) in ALGORITHMS.items()
            if expected_type == key_type and of_curve in {None, curve}
        ),
        None,
    )
    if key_type is None or algorithm is None:
        return None
    try:
        # PyJWT wants an algorithm; every one of the type has the same keys.
        key = PyJWK(entry, algorithm=algorithm).key
    except (PyJWTError, ValueError, TypeError, KeyError) as error:
        logger.warning("key %r of the JWKS is left out: %r", _text(entry, "kid"), error)
        return None
    if hasattr(key, "public_key"):  # a private key, of which the public half counts
        key = key.public_key()
    return PublishedKey(
        _text(entry, "kid"), key_type, curve, _text(entry, "use"), _text(entry, "alg"), key
    )


def _text(entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) else None


class KeySet:
    """The keys of one listener. Belongs to the loop."""

    def __init__(
        self,
        source: KeySource,
        rules: SignedRules,
        *,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
    ) -> None:
        """Take the settings `sasl.oauthbearer.jwks.endpoint.*`."""
        self._source = source
        self._rules = rules
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self.keys: tuple[PublishedKey, ...] = ()
        """Replaced as a whole."""
        self._missing_ids: dict[str, int] = {}
        """Key that is not in the set → the wall clock at which it may be looked for again."""
        self._timers: Timers
        self._clock: Clock
        self._timer: Timer | None = None
        """Begins the next reading."""
        self._task: asyncio.Task[None] | None = None
        """The reading that is under way."""
        self._is_closed = False

    async def begin(self, timers: Timers, clock: Clock) -> None:
        """Read the keys, and again from time to time until `close`. Raises ConfigError."""
        self._timers, self._clock = timers, clock
        logger.info(
            "waiting for the keys of signed tokens at %s, %g s at most", self._source.url, FETCH_S
        )
        try:
            self.keys = await in_daemon(self._source.read, _THREAD)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url={self._source.url} cannot be read: {error}"
            ) from None
        self._timer = timers.after(self._refresh_ms, self._refresh)

    async def close(self) -> None:
        """End reading."""
        self._is_closed = True
        self._drop_timer()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def check(self, token: str, now_ms: int) -> OAuthToken:
        """Return the claims of a token. Raises TokenError, ProtocolError."""
        try:
            return check_signed(token, self.keys, self._rules, now_ms)
        except UnknownKeyError as error:
            if error.key_id is not None:
                self._look_for(error.key_id, now_ms)
            raise

    def _look_for(self, key_id: str, now_ms: int) -> None:
        """Read the keys now, unless this one was looked for a moment ago."""
        if len(key_id) > KEY_ID_MAX or self._missing_ids.get(key_id, 0) > now_ms:
            return
        self._missing_ids.pop(key_id, None)
        if len(self._missing_ids) == MISSING_MAX:
            del self._missing_ids[next(iter(self._missing_ids))]
        self._missing_ids[key_id] = now_ms + MISSING_MS
        self._refresh()

    def _refresh(self) -> None:
        if self._task is None and not self._is_closed:
            self._drop_timer()
            self._task = asyncio.get_running_loop().create_task(self._read_again())

    async def _read_again(self) -> None:
        """Read the keys; on an error again, with pauses, for `backoff_max_ms` at most."""
        ends_ms, pause_ms = self._clock.now_ms() + self._backoff_max_ms, self._backoff_ms
        try:
            while not await self._has_read():
                pause_ms = min(pause_ms, ends_ms - self._clock.now_ms())
                if pause_ms <= 0:
                    break
                await self._pause(pause_ms)
                pause_ms *= 2
        finally:
            self._task = None
        self._timer = self._timers.after(self._refresh_ms, self._refresh)

    async def _has_read(self) -> bool:
        try:
            self.keys = await in_daemon(self._source.read, _THREAD)
        except (OSError, ValueError) as error:
            logger.warning("the keys in use stay: %s cannot be read: %s", self._source.url, error)
            return False
        for key in self.keys:
            self._missing_ids.pop(key.key_id or "", None)
        return True

    async def _pause(self, delay_ms: int) -> None:
        over = asyncio.Event()
        timer = self._timers.after(delay_ms, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
