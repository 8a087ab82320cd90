"""Logins by OAUTHBEARER with librdkafka's names, as Java has them.

    names of Java or librdkafka ──in_java──► sasl.jaas.config, … ─► client.oauth

`client.oauth` makes, reads or fetches the tokens. A process has one login for equal settings. So
all of its connections show the same token, and an identity provider is asked once, and again before
the token ends.

Source: Kafka SaslConfigs, OAuthBearerLoginCallbackHandler; librdkafka CONFIGURATION.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.client.oauth import HANDLER_KEY, JAAS_KEY, KEYS
from minibroker.client.oauth import RETRIEVER_KEY as _RETRIEVER_KEY
from minibroker.client.oauth import SCOPE_KEY as _SCOPE_KEY
from minibroker.client.oauth import URL_KEY as _URL_KEY
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_strings import quoted
from minibroker.kafka.oauthbearer import MECHANISM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.java_formats.jaas import LoginModule


_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
MODULE: Final = f"{_PACKAGE}OAuthBearerLoginModule"
_OAUTH: Final = "sasl.oauthbearer."
_HANDLER: Final = f"{_PACKAGE}OAuthBearerLoginCallbackHandler"

_UNSECURED_KEY: Final = "enable.sasl.oauthbearer.unsecure.jwt"
_CONFIG_KEY: Final = f"{_OAUTH}config"
_EXTENSIONS_KEY: Final = f"{_OAUTH}extensions"
_GRANT_KEY: Final = f"{_OAUTH}grant.type"
_METHOD_KEY: Final = f"{_OAUTH}method"
_CA_KEY: Final = "https.ca.location"
_OPTIONS: Final = {
    f"{_OAUTH}client.credentials.client.id": "clientId",
    f"{_OAUTH}client.credentials.client.secret": "clientSecret",
    f"{_OAUTH}client.id": "clientId",
    f"{_OAUTH}client.secret": "clientSecret",
    _CA_KEY: "ssl.truststore.location",
    "https.ca.pem": "ssl.truststore.certificates",
}
"""Setting → the option of the JAAS line, which Java has in every version."""
_RENAMED: Final = {f"{_OAUTH}assertion.jwt.template.file": f"{_OAUTH}assertion.template.file"}
_GRANTS: Final = {
    "client_credentials": f"{_PACKAGE}DefaultJwtRetriever",
    "urn:ietf:params:oauth:grant-type:jwt-bearer": f"{_PACKAGE}JwtBearerJwtRetriever",
}
"""librdkafka's grant → Java's class."""
_LIBRDKAFKA_KEYS: Final = frozenset(
    {
        *(_UNSECURED_KEY, _CONFIG_KEY, _EXTENSIONS_KEY, _GRANT_KEY, _METHOD_KEY),
        *(_OPTIONS.keys() | _RENAMED.keys()),
    }
)
"""Settings whose place in Java is another one."""
_EXTENSION: Final = "extension_"
_MECHANISM_KEYS: Final = ("sasl.mechanism", "sasl.mechanisms")


def is_token_login(settings: Mapping[str, str], module: LoginModule | None = None) -> bool:
    """Return whether a client logs in by a token: its mechanism says it, or its JAAS line."""
    mechanisms = {settings.get(key, "").upper() for key in _MECHANISM_KEYS}
    return MECHANISM in mechanisms or (module is not None and module.name == MODULE)


def in_java(settings: dict[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Remove a login by token from `settings`; return it with names of Java, with its JAAS line.

    Args:
        settings: with names of Java or librdkafka; theirs stand over `options`, as in Java.
        options: those of the JAAS line.

    Raises ConfigError for a setting or a value that this client does not take.
    """
    oauth_settings = {
        name: settings[name] for name in settings if name in KEYS or _is_librdkafkas(name)
    }
    renamed = {_RENAMED.get(name, name): oauth_settings[name] for name in oauth_settings}
    for name in sorted(renamed.keys() - KEYS - _LIBRDKAFKA_KEYS):
        raise ConfigError(f"{name} is a setting of OAUTHBEARER that this client does not know")
    if renamed.get(_CA_KEY) == "probe":
        del renamed[_CA_KEY]  # the usual places, where the client looks without a setting
    for name in oauth_settings:
        del settings[name]
    java_settings = {name: renamed[name] for name in renamed if name in KEYS}
    line = {**options, **_options_of(renamed)}
    if _SCOPE_KEY in java_settings:
        line["scope"] = java_settings[_SCOPE_KEY]
    if _GRANT_KEY in renamed:
        java_settings.setdefault(_RETRIEVER_KEY, _retriever(renamed[_GRANT_KEY]))
    if _URL_KEY in java_settings or renamed.get(_METHOD_KEY, "").lower() == "oidc":
        java_settings.setdefault(HANDLER_KEY, _HANDLER)
    java_settings[JAAS_KEY] = line_of(MODULE, line)
    return java_settings


def line_of(module: str, options: Mapping[str, str]) -> str:
    """Return a JAAS line."""
    return " ".join((module, "required", *(f"{k}={quoted(v)}" for k, v in options.items()))) + ";"


def _is_librdkafkas(name: str) -> bool:
    """Return whether librdkafka has the name for a login by token, and Java has not."""
    is_one = name.startswith((_OAUTH, "https.")) or name == _UNSECURED_KEY
    return is_one and name not in KEYS


def _options_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a JAAS line that stand for these settings. Raises ConfigError."""
    java_options = {_OPTIONS[name]: value for name, value in settings.items() if name in _OPTIONS}
    if "ssl.truststore.location" in java_options or "ssl.truststore.certificates" in java_options:
        java_options["ssl.truststore.type"] = "PEM"
    for pair in filter(None, settings.get(_EXTENSIONS_KEY, "").split(",")):
        name, _, value = pair.partition("=")
        java_options[f"{_EXTENSION}{name.strip()}"] = value
    if settings.get(_UNSECURED_KEY, "false").lower() == "true":
        java_options |= _unsecured(settings.get(_CONFIG_KEY, ""))
    return java_options


def _unsecured(config: str) -> dict[str, str]:
    """Return the options of an unsecured token, which librdkafka's text describes.

    The text is `principal=alice scope=read,write lifeSeconds=60`. Raises ConfigError.
    """
    parts = dict(pair.partition("=")[::2] for pair in config.split())
    name_claim, scope_claim = parts.pop("principalClaimName", ""), parts.pop("scopeClaimName", "")
    java_options = {"unsecuredLoginPrincipalClaimName": name_claim} if name_claim else {}
    for name, value in parts.items():
        if name == "principal":
            java_options[f"unsecuredLoginStringClaim_{name_claim or 'sub'}"] = value
        elif name == "scope":
            java_options[f"unsecuredLoginListClaim_{scope_claim or 'scope'}"] = f",{value}"
        elif name == "lifeSeconds":
            java_options["unsecuredLoginLifetimeSeconds"] = value
        elif name.startswith("extension_"):
            java_options[f"unsecuredLoginE{name[1:]}"] = value
        else:
            raise ConfigError(
                f"{_CONFIG_KEY} has {name}: expected principal, principalClaimName, scope, "
                "scopeClaimName, lifeSeconds or extension_NAME"
            )
    return java_options


def _retriever(grant: str) -> str:
    if grant not in _GRANTS:
        raise ConfigError(f"{_GRANT_KEY}={grant}: expected {' or '.join(_GRANTS)}")
    return _GRANTS[grant]
