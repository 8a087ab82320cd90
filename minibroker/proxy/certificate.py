"""The certificate that the proxy shows to clients."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def server_context(path: str | Path) -> ssl.SSLContext:
    """Return the TLS of listeners: `path` is a PEM file of a private key and its certificates.

    Raises ConfigError.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password OpenSSL would ask on the terminal.
        context.load_cert_chain(path, password=b"")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no private key with its certificate: {error}") from None
    return context
