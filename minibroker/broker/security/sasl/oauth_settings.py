"""The settings of OAUTHBEARER on one listener: which tokens it believes, and by which keys.

`sasl.server.callback.handler.class` names one of Kafka's classes, behind the prefix of listener and
mechanism. The class decides: without one, and with Kafka's unsecured one, tokens have no
signature.

Source: Kafka OAuthBearerValidatorCallbackHandler, VerificationKeyResolverFactory,
BrokerJwtValidator.
Differs from Kafka: a listener with a JWKS and without the class for it does not start. Kafka would
believe unsecured tokens there. `expected.audience` and `expected.issuer` may be missing, as in 3.9.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.security.sasl.oauth import OAuthToken, TokenRules, check_unsecured, rules_of
from minibroker.client.identity_provider import PACKAGE, check_allowed, provider_tls, scheme_of
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.settings import ConfigValues
    from minibroker.broker.security.sasl.key_set import KeySet

logger = logging.getLogger(__name__)

_VALIDATORS: Final = (
    f"{PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED: Final = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_JWT_VALIDATORS: Final = (f"{PACKAGE}DefaultJwtValidator", f"{PACKAGE}BrokerJwtValidator")
HANDLER_KEY: Final = "sasl.server.callback.handler.class"
_PREFIX: Final = "sasl.oauthbearer."
_URL_KEY: Final = f"{_PREFIX}jwks.endpoint.url"


class OAuthSettings:
    """The tokens that one listener believes. Constant after construction."""

    __slots__ = ("check", "keys")

    def __init__(self, settings: ConfigValues, options: Mapping[str, str]) -> None:
        """`settings`: as listener and mechanism see them; `options`: of the JAAS line. Raises
        ConfigError.
        """
        handler = settings.text(HANDLER_KEY) or None
        self.keys: KeySet | None = None
        """The keys of signed tokens; `KeySet.begin` has to read them."""
        self.check: Callable[[str, int], OAuthToken]
        """Token, wall clock in ms → its claims; it raises TokenError."""
        if handler in _VALIDATORS:
            self.keys = _key_set(settings, options)
            self.check = self.keys.check
            return
        if handler not in {None, _UNSECURED}:
            raise ConfigError(
                f"{HANDLER_KEY}={handler} of OAUTHBEARER: no Java class is loaded, expected"
                f" {_VALIDATORS[0]} or {_UNSECURED}"
            )
        if settings.text(_URL_KEY):
            raise ConfigError(
                f"{_URL_KEY} is set, and unsecured tokens would get in: set"
                f" listener.name.NAME.oauthbearer.{HANDLER_KEY}={_VALIDATORS[0]}"
            )
        rules = rules_of(options) if options else TokenRules()
        self.check = partial(_check_unsecured, rules)


def _check_unsecured(rules: TokenRules, token: str, now_ms: int) -> OAuthToken:
    return check_unsecured(token, rules, now_ms)


def _key_set(settings: ConfigValues, options: Mapping[str, str]) -> KeySet:
    """Raises ConfigError."""
    try:
        from minibroker.broker.security.sasl.key_set import (  # noqa: PLC0415  an extra
            KeySet,
            KeySource,
        )
        from minibroker.broker.security.sasl.signed_token import SignedRules  # noqa: PLC0415  as above
    except ImportError as error:
        raise ConfigError(
            f"signed tokens need the package {error.name}: pip install 'minibroker[security]'"
        ) from None
    url = _url(settings)
    validator = settings.text(f"{_PREFIX}jwt.validator.class")
    if validator not in _JWT_VALIDATORS:
        raise ConfigError(
            f"{_PREFIX}jwt.validator.class={validator}: no Java class is loaded, expected one of"
            f" {', '.join(_JWT_VALIDATORS)}"
        )
    rules = SignedRules(
        _claim(settings, "sub"),
        _claim(settings, "scope"),
        settings.integer(f"{_PREFIX}clock.skew.seconds"),
        (settings.text(f"{_PREFIX}expected.issuer") or "").strip() or None,
        frozenset(settings.words(f"{_PREFIX}expected.audience")),
        any_audience=settings.boolean(f"{_PREFIX}allow.unverified.audience"),
    )
    _check_parties(settings, "audience", is_checked=bool(rules.audiences))
    _check_parties(settings, "issuer", is_checked=rules.issuer is not None)
    source = KeySource(url, provider_tls(options) if url.lower().startswith("https:") else None)
    backoff_ms = settings.integer(f"{_PREFIX}jwks.endpoint.retry.backoff.ms")
    backoff_max_ms = settings.integer(f"{_PREFIX}jwks.endpoint.retry.backoff.max.ms")
    refresh_ms = settings.integer(f"{_PREFIX}jwks.endpoint.refresh.ms")
    if not (refresh_ms > 0 and 0 <= backoff_ms <= backoff_max_ms):
        raise ConfigError(
            f"{_PREFIX}jwks.endpoint: refresh.ms={refresh_ms}, retry.backoff.ms={backoff_ms},"
            f" retry.backoff.max.ms={backoff_max_ms}: expected a refresh.ms above 0, and a"
            " retry.backoff.ms from 0 to retry.backoff.max.ms"
        )
    return KeySet(
        source, rules, refresh_ms=refresh_ms, backoff_ms=backoff_ms, backoff_max_ms=backoff_max_ms
    )


def _url(settings: ConfigValues) -> str:
    """Return `jwks.endpoint.url`. Raises ConfigError."""
    url = (settings.text(_URL_KEY) or "").strip()
    if scheme_of(url) is None:
        raise ConfigError(
            f"{_URL_KEY}={url}: signed tokens need the JWKS of their issuer, expected"
            " file:/PATH, http://HOST/… or https://HOST/…"
        )
    check_allowed(settings, _URL_KEY, url)
    return url


def _claim(settings: ConfigValues, name: str) -> str:
    """Return the name of a claim. Raises ConfigError."""
    key = f"{_PREFIX}{name}.claim.name"
    claim = (settings.text(key) or "").strip()
    if not claim:
        raise ConfigError(f"{key} is blank, expected the name of a claim")
    return claim


def _check_parties(settings: ConfigValues, party: str, *, is_checked: bool) -> None:
    """Warn where tokens of any issuer get in, or for any audience. Raises ConfigError where a file
    of Kafka 4 says that none may.
    """
    if is_checked:
        return
    allow = f"{_PREFIX}allow.unverified.{party}"
    if allow in settings.originals and not settings.boolean(allow):
        raise ConfigError(f"{_PREFIX}expected.{party} is missing, and {allow}=false wants it")
    if party == "issuer" or settings.boolean(allow):
        logger.warning(
            "%sexpected.%s is not set: tokens are accepted whatever their %s",
            _PREFIX,
            party,
            party,
        )
