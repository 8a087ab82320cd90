"""The content of a key store and of a trust store, whatever their format: PEM texts."""

from __future__ import annotations

from typing import NamedTuple


class KeyStore(NamedTuple):
    """A private key and its certificates, as PEM."""

    key: str
    key_password: str | None
    """None where the key is not encrypted."""
    certificates: tuple[str, ...]
    """The one of the key first, then its issuers."""
    source: str
    """The setting that names it, for messages."""


class TrustStore(NamedTuple):
    """Certificates that are trusted, as PEM."""

    certificates: tuple[str, ...]
    source: str
