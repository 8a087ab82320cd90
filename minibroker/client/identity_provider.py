"""The address and the TLS of an identity provider: it gives tokens to clients, and keys to brokers.

Source: Kafka ConfigurationUtils, JaasOptionsUtils.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from minibroker.client.config import ClientConfig
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from minibroker.kafka.config_keys import TypedSettings

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
"""The package of Kafka's classes for OAUTHBEARER."""
ALLOWED_URLS_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def scheme_of(url: str) -> str | None:
    """Return `file`, `http` or `https`; None for another URL, or one that cannot be asked."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme == "file":
            return scheme if parts.path and not parts.netloc else None
        host, _ = (parts.hostname or "").encode("idna"), parts.port
        request_bytes = host + f"{parts.path}{parts.query}".encode("ascii")
    except ValueError:
        return None
    is_web = scheme in {"http", "https"} and host and min(request_bytes) > 0x20
    return scheme if is_web else None


def check_allowed(settings: TypedSettings, key: str, url: str) -> None:
    """Raise ConfigError for the URL of a setting if others are listed and this one is not."""
    allowed = settings.text(ALLOWED_URLS_KEY)
    if allowed is not None and url not in {word.strip() for word in allowed.split(",")}:
        raise ConfigError(f"{key}={url} is not among {ALLOWED_URLS_KEY}={allowed}")


def provider_tls(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS for the provider, by the options `ssl.*` of the JAAS line; None where there
    are none. Raises ConfigError.
    """
    own = {key: value for key, value in options.items() if key.startswith("ssl.")}
    if not own:
        return None
    from minibroker.client.tls import client_context  # noqa: PLC0415  seldom set
    from minibroker.kafka.java_formats.stores import (  # noqa: PLC0415  as above
        load_key_store,
        load_trust_store,
    )

    settings = ClientConfig(own)
    return client_context(settings, load_key_store(settings), load_trust_store(settings))
