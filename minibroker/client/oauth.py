"""The client's side of OAUTHBEARER: where the token comes from, and how it is shown.

A broker logs in at others with it, and a job of the pipeline at its brokers.

    no callback handler, or Kafka's unsecured one  the options `unsecuredLogin…` of the JAAS line
    Kafka's OAuthBearerLoginCallbackHandler        `sasl.oauthbearer.token.endpoint.url`: a file, or
                                                   an identity provider (`token_endpoint`)

A token is made or read for each connection, so a file that something else renews is up to date.

Source: Kafka OAuthBearerSaslClient, OAuthBearerUnsecuredLoginCallbackHandler, FileTokenRetriever.
"""

from __future__ import annotations

import base64
import json
import threading
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from minibroker.client.config import ClientConfig
from minibroker.client.identity_provider import (
    PACKAGE,
    check_allowed,
    provider_tls,
    scheme_of,
)
from minibroker.clock import SystemClock
from minibroker.kafka.errors import ConfigError, ProtocolError
from minibroker.kafka.java_formats.jaas import parse_line
from minibroker.kafka.oauthbearer import ERROR_HEARD, MECHANISM, MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.kafka.config_keys import TypedSettings

_ENDPOINT_HANDLERS: Final = (
    f"{PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
_UNSECURED: Final = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
HANDLER_KEY: Final = "sasl.login.callback.handler.class"
URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
RETRIEVER_KEY: Final = "sasl.oauthbearer.jwt.retriever.class"
_OAUTH: Final = "sasl.oauthbearer."
SCOPE_KEY: Final = f"{_OAUTH}scope"
JAAS_KEY: Final = "sasl.jaas.config"
KEYS: Final = frozenset(
    {
        *(JAAS_KEY, HANDLER_KEY, URL_KEY, RETRIEVER_KEY, SCOPE_KEY),
        f"{_OAUTH}header.urlencode",
        *(f"{_OAUTH}{claim}.claim.name" for claim in ("scope", "sub")),
        *(
            f"{_OAUTH}assertion.{name}"
            for name in (
                *("algorithm", "claim.aud", "claim.exp.seconds", "claim.iss", "claim.jti.include"),
                *("claim.nbf.seconds", "claim.sub", "file", "private.key.file"),
                *("private.key.passphrase", "template.file"),
            )
        ),
        *(
            f"sasl.login.{name}"
            for name in (
                *("connect.timeout.ms", "read.timeout.ms", "refresh.buffer.seconds"),
                *("refresh.min.period.seconds", "refresh.window.factor", "refresh.window.jitter"),
                *("retry.backoff.max.ms", "retry.backoff.ms"),
            )
        ),
    }
)
"""The settings of a login by token; another one is not looked at."""
LOGINS_MAX: Final = 16
"""Logins of one process: a job has one, or two if it goes from cluster to cluster."""
_BEARER: Final = f"{PACKAGE}JwtBearerJwtRetriever"
_RETRIEVERS: Final = {
    f"{PACKAGE}DefaultJwtRetriever": ("http", "https", "file"),
    f"{PACKAGE}ClientCredentialsJwtRetriever": ("http", "https"),
    f"{PACKAGE}FileJwtRetriever": ("file",),
    _BEARER: ("http", "https"),
}
"""Kafka's class → the URLs that it reads."""
_OPTION: Final = "unsecuredLogin"
_RESERVED: Final = ("exp", "iat")
_lock: Final = threading.Lock()


class OAuthLogin:
    """The login. Constant."""

    mechanism = MECHANISM

    __slots__ = ("extensions", "token")

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self.token = token
        """Returns the token to show now; it may block, and raises OSError."""
        self.extensions = extensions
        """Name → value, sent with the token."""

    def begin(self, host: str) -> OAuthClient:
        """Do `sasl.SaslLogin.begin`."""
        return OAuthClient(self.token, self.extensions)


class OAuthClient:
    """One login: a token, and an empty answer; or the reason of a refusal, and an empty message."""

    __slots__ = ("_extensions", "_make_token", "_refusal", "is_complete")

    def __init__(self, make_token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self._make_token = make_token
        self._extensions = extensions
        self._refusal = b""
        """The broker's reason for not believing our token."""
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `sasl.ClientExchange.begin`."""
        pairs = {"auth": f"Bearer {self._make_token()}", **self._extensions}
        return ("n,,\x01" + "".join(f"{k}={v}\x01" for k, v in pairs.items()) + "\x01").encode()

    def respond(self, token: bytes) -> bytes:
        """Do `sasl.ClientExchange.respond`."""
        if self._refusal:
            raise ProtocolError(f"OAUTHBEARER: the broker answered {self._refusal[:200]!r}")
        if token:
            # After this the broker ends the login with an error, which has the reason.
            self._refusal = token
            return ERROR_HEARD
        self.is_complete = True
        return b""


def oauth_login(
    settings: TypedSettings, options: Mapping[str, str], now_ms: Callable[[], int]
) -> OAuthLogin:
    """Return the login. `settings`: as listener and mechanism see them; `options`: of the JAAS
    line. Raises ConfigError.
    """
    handler = settings.text(HANDLER_KEY) or None
    is_unsecured = handler not in _ENDPOINT_HANDLERS
    prefix = f"{_OPTION}Extension_" if is_unsecured else "extension_"
    extensions = {
        key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)
    }
    if not is_unsecured:
        return OAuthLogin(_retriever(settings, options, now_ms), extensions)
    if handler not in {None, _UNSECURED}:
        raise ConfigError(
            f"{HANDLER_KEY}={handler}: no Java class is loaded, expected {_ENDPOINT_HANDLERS[0]} or"
            f" {_UNSECURED}"
        )
    claims = _claims_of(options)
    lifetime = options.get(f"{_OPTION}LifetimeSeconds", "3600")
    if not lifetime.isdecimal() or len(lifetime) > 9:
        raise ConfigError(f"{_OPTION}LifetimeSeconds={lifetime}: expected a number of seconds")
    return OAuthLogin(partial(_unsecured, claims, int(lifetime), now_ms), extensions)


def _retriever(
    settings: TypedSettings, options: Mapping[str, str], now_ms: Callable[[], int]
) -> Callable[[], str]:
    """Return what gives the token of a file or of a provider. Raises ConfigError."""
    retriever = settings.text(RETRIEVER_KEY)
    if retriever not in _RETRIEVERS:
        raise ConfigError(
            f"{RETRIEVER_KEY}={retriever}: no Java class is loaded, expected one of"
            f" {', '.join(_RETRIEVERS)}"
        )
    url = (settings.text(URL_KEY) or "").strip()
    scheme = scheme_of(url)
    if scheme not in _RETRIEVERS[retriever]:
        expected = " or ".join(
            "file:/PATH" if name == "file" else f"{name}://HOST/…"
            for name in _RETRIEVERS[retriever]
        )
        raise ConfigError(
            f"{URL_KEY}={url}: the token of OAUTHBEARER comes from there, expected {expected}"
        )
    check_allowed(settings, URL_KEY, url)
    if scheme == "file":
        return partial(_read, Path(unquote(urlsplit(url).path)))
    from minibroker.client.token_endpoint import endpoint_of  # noqa: PLC0415  seldom set

    tls = provider_tls(options) if scheme == "https" else None
    is_bearer = retriever == _BEARER
    return endpoint_of(url, settings, options, tls, now_ms, is_bearer=is_bearer).token


def _read(path: Path) -> str:
    """Return the token of a file. Raises OSError."""
    with path.open("rb") as file:
        return file.read(MESSAGE_BYTES_MAX).decode("ascii", "replace").strip()


def _unsecured(claims: Mapping[str, Any], lifetime_s: int, now_ms: Callable[[], int]) -> str:
    """Return an unsecured token that is valid from now on."""
    now_s = now_ms() / 1000
    times = {"exp": now_s + lifetime_s, "iat": now_s}
    return f"{_part({'alg': 'none'})}.{_part({**claims, **times})}."


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _claims_of(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims that the options give. Raises ConfigError."""
    claims: dict[str, Any] = {}
    for option, value in options.items():
        kind, underscore, name = option.removeprefix(_OPTION).partition("_")
        if not (option.startswith(_OPTION) and underscore and name):
            continue
        if name in _RESERVED:
            raise ConfigError(f"option {option} of the JAAS line: {name} is set for each token")
        if kind == "StringClaim":
            claims[name] = value
        elif kind == "ListClaim":
            claims[name] = value[1:].split(value[0]) if len(value) > 1 else []
        elif kind == "NumberClaim":
            try:
                claims[name] = float(value)
            except ValueError:
                raise ConfigError(f"option {option} of the JAAS line is no number") from None
    name = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
    if not isinstance(claims.get(name), str) or not claims[name].strip():
        raise ConfigError(
            f"the JAAS line of OAUTHBEARER does not say where a token comes from, expected"
            f' {_OPTION}StringClaim_{name}="NAME", or a {HANDLER_KEY}'
        )
    return claims


def login_of(settings: Mapping[str, Any]) -> OAuthLogin:
    """Return the login of this process for these settings, of which those of `KEYS` count.

    Raises ConfigError.
    """
    login_settings = tuple(sorted((name, str(settings[name])) for name in settings if name in KEYS))
    with _lock:  # two threads of the driver get the same one
        return _login_of_settings(login_settings)


@lru_cache(maxsize=LOGINS_MAX)
def _login_of_settings(login_settings: tuple[tuple[str, str], ...]) -> OAuthLogin:
    settings = dict(login_settings)
    options = parse_line(settings.pop(JAAS_KEY)).options
    return oauth_login(ClientConfig(settings), options, SystemClock().now_ms)
