"""TLS contexts of OpenSSL from Kafka's `ssl.*` settings, of clients and (`set_up`) of listeners.

Kafka's names of cipher suites are those of Java, which are those of the RFCs; OpenSSL has its own.
TLS below 1.2 is not spoken, whatever `ssl.enabled.protocols` says: Java 17 disables it, too.

Source: Kafka DefaultSslEngineFactory, SslConfigs; RFC 5246, RFC 8446.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.key_material import KeyStore, TrustStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.kafka.config_keys import TypedSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_PROTOCOLS: Final = ("TLS", "TLSv1.2", "TLSv1.3")
_TLS13_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
_DEFAULT_SUITES: Final = (
    "@SECLEVEL=2:ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!SHA1:!AESCCM:!aNULL:!PSK"
)
"""The suites of TLS 1.2 without `ssl.cipher.suites`, in OpenSSL's words. Java has each of them."""
_CIPHERS: Final = {
    "AES_128_GCM": "AES128-GCM",
    "AES_256_GCM": "AES256-GCM",
    "AES_128_CBC": "AES128",
    "AES_256_CBC": "AES256",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
}


def client_context(
    settings: TypedSettings, keys: KeyStore | None, trusted: TrustStore | None
) -> ssl.SSLContext:
    """Return the context of connections to brokers. Raises ConfigError.

    An empty `ssl.endpoint.identification.algorithm` turns the comparison of host names off.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = settings.text("ssl.endpoint.identification.algorithm") or ""
    if algorithm.lower() not in ("", "https"):
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm={algorithm}: expected https, or no value"
        )
    context.check_hostname = bool(algorithm)
    set_up(context, settings, keys, trusted)
    return context


def set_up(
    context: ssl.SSLContext,
    settings: TypedSettings,
    keys: KeyStore | None,
    trust_store: TrustStore | None,
) -> None:
    """Set protocols, suites, trusted certificates and own keys of a context. Raises ConfigError."""
    protocol = settings.text("ssl.protocol") or ""
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"ssl.protocol={protocol}: expected one of {', '.join(_PROTOCOLS)}")
    # A certificate in the trust store is trusted, also one that another one issued (as in Java).
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _set_versions(context, settings.words("ssl.enabled.protocols"))
    _set_ciphers(context, settings.words("ssl.cipher.suites"))
    if trust_store is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH
            if context.protocol == ssl.PROTOCOL_TLS_SERVER
            else ssl.Purpose.SERVER_AUTH
        )
    else:
        _load_trusted(context, trust_store)
    if keys is not None:
        _load_keys(context, keys)


def _set_versions(context: ssl.SSLContext, names: list[str]) -> None:
    unknown = [name for name in names if name not in _VERSIONS and name not in _OLD_VERSIONS]
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if unknown or (names and not versions):
        raise ConfigError(
            f"ssl.enabled.protocols={','.join(names)}: expected {' and '.join(_VERSIONS)}, or one"
            " of them"
        )
    context.minimum_version = min(versions, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(versions, default=ssl.TLSVersion.TLSv1_3)


def _set_ciphers(context: Any, names: list[str]) -> None:
    """Allow only these cipher suites; no name: those of `_DEFAULT_SUITES`."""
    if not names:
        context.set_ciphers(_DEFAULT_SUITES)
        return
    newer = [name for name in names if name in _TLS13_SUITES]
    older = [_openssl_name(name) for name in names if name not in _TLS13_SUITES]
    if hasattr(context, "set_ciphersuites") and newer:
        context.set_ciphersuites(":".join(newer))
    elif newer and len(set(newer)) < len(_TLS13_SUITES):
        raise ConfigError(
            f"ssl.cipher.suites={','.join(names)}: this Python cannot choose among the suites of"
            f" TLS 1.3: name all of {', '.join(_TLS13_SUITES)}, or none"
        )
    if not newer:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if not older:
        context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_3)
    if context.minimum_version > context.maximum_version:
        raise ConfigError(
            f"ssl.cipher.suites={','.join(names)}: no suite of a protocol in ssl.enabled.protocols"
        )
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites={','.join(names)}: OpenSSL has none of them"
            ) from None


def _openssl_name(name: str) -> str:
    """Return OpenSSL's name of a cipher suite of TLS 1.2. Raises ConfigError.

    `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`, and a suite without
    forward secrecy, `TLS_RSA_WITH_AES_128_CBC_SHA`, is `AES128-SHA`.
    """
    exchange, _, bulk_cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher, _, digest = bulk_cipher.rpartition("_")
    if not name.startswith("TLS_") or cipher not in _CIPHERS:
        raise ConfigError(
            f"ssl.cipher.suites has {name}: expected names such as"
            " TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
        )
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    parts.append(_CIPHERS[cipher])
    if cipher != "CHACHA20_POLY1305":
        parts.append(digest)
    return "-".join(parts)


def _load_trusted(context: ssl.SSLContext, trust_store: TrustStore) -> None:
    try:
        context.load_verify_locations(cadata="\n".join(trust_store.certificates))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{trust_store.source}: a certificate cannot be read: {error}") from None


def _load_keys(context: ssl.SSLContext, keys: KeyStore) -> None:
    """Give the key to OpenSSL, which reads it from files only."""
    # A password that is not asked for does no harm. Without one OpenSSL would ask on the terminal.
    password = keys.key_password or ""
    text = "\n".join((keys.key, *keys.certificates, ""))
    try:
        with _private_file(text.encode()) as path:
            context.load_cert_chain(path, path, password)
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        if "KEY_VALUES_MISMATCH" in reason or "KEY_TYPE_MISMATCH" in reason:
            why = "the key belongs to another certificate than the first one"
        elif "ENCRYPTED" in keys.key:
            why = "the password of the key (ssl.key.password) is missing or wrong"
        else:
            why = f"key or certificate cannot be used: {reason}"
        raise ConfigError(f"{keys.source}: {why}") from None


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """Give the path of a file with these bytes: in memory where the system can, else a file that
    only this user can read. It is gone at the end.
    """
    # OpenSSL opens the memory by its path, which a root directory without /proc does not have.
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):  # noqa: PTH112  as memfd
        handle = os.memfd_create("minibroker-key", os.MFD_CLOEXEC)
        try:
            os.write(handle, data)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    handle, path = tempfile.mkstemp(prefix="minibroker-key-")  # mode 0600
    try:
        os.write(handle, data)
        yield path
    finally:
        os.close(handle)
        os.unlink(path)  # noqa: PTH108  as memfd: plain calls
