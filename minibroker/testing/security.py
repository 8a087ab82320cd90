"""`Security`: what makes a broker of tests secure, and the settings of clients that fit to it.

    security = Security("SSL", directory)
    security.broker_settings()                          listeners and certificates, for the broker
    security.client_settings("aiokafka", "host:port")   ready to use

The certificates come from `trustme` and stand in the directory; a directory that has them already
keeps its CA, so that clients go on to trust the broker after a restart. A client that shows a
certificate is the user of its common name: `User:alice`. With SASL, users log in with a password.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.broker.config.secured import MECHANISMS, check_users, sasl_settings
from minibroker.kafka.errors import ConfigError
from minibroker.testing.acls import BROKER_USER
from minibroker.testing.client_settings import CLIENTS, ClientAccess, ClientLogin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import trustme

DEFAULT_MECHANISM: Final = "SCRAM-SHA-256"
CA_FILE: Final = "ca.pem"
_CA_KEY_FILE: Final = "ca-key.pem"
_USERS_DIRECTORY: Final = "users"
"""Has the certificates of clients, so that no name of a user is that of a file of the CA."""
_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_CERTIFICATES_NAME_USERS: Final = {
    "ssl.client.auth": "requested",
    # The user of a certificate is its common name alone.
    "ssl.principal.mapping.rules": "RULE:^(?:.*,)?CN=([^,+]+).*$/$1/,DEFAULT",
}


class Security:
    """One protocol with its certificates. Raises ConfigError."""

    def __init__(
        self,
        protocol: str,
        directory: Path,
        users: Mapping[str, str] | None = None,
        *,
        has_own_user: bool = False,
    ) -> None:
        """`protocol`: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. `directory`: for the
        certificates, made if missing. `users`: name → password, with SASL. `has_own_user`: the
        broker itself is `BROKER_USER`; else it is the first user.
        """
        if protocol.upper() not in SecurityProtocol.__members__:
            raise ConfigError(f"security={protocol}: expected one of {', '.join(SecurityProtocol)}")
        self.protocol = SecurityProtocol(protocol.upper())
        """Constant, as are the next two."""
        self._users = dict(users or {})
        check_users(self.protocol, self._users)
        self._own: dict[str, str] = {}
        if has_own_user and self.protocol.uses_sasl:
            self._own[BROKER_USER] = self._users.get(BROKER_USER, secrets.token_hex(16))
        self.directory = directory
        self._ca: trustme.CA | None = None
        if self.protocol.uses_tls:
            self._ca = _authority(directory)

    @property
    def ca_file(self) -> Path:
        """Return the file of the CA that clients have to trust (PEM)."""
        return self.directory / CA_FILE

    def broker_settings(self, address: str = "127.0.0.1:0") -> dict[str, str]:
        """Return the settings of a broker that listens at `address`."""
        settings = {
            "listeners": f"{self.protocol}://{address}",
            "security.inter.broker.protocol": str(self.protocol),
        }
        if self.protocol.uses_sasl:
            settings |= sasl_settings({**self._own, **self._users})
        host = address.rpartition(":")[0].strip("[]")
        return settings | self.tls_settings(host)

    def tls_settings(self, host: str) -> dict[str, str]:
        """Return the settings of a certificate for `host` and for this machine's own names."""
        if self._ca is None:
            return {}
        names = (*_NAMES, host) if host not in ("", "0.0.0.0", "::", *_NAMES) else _NAMES
        certificate = self._ca.issue_cert(*names, common_name=BROKER_USER)
        chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": _pkcs8(certificate.private_key_pem.bytes()).decode(),
            "ssl.keystore.certificate.chain": chain.decode(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self._ca.cert_pem.bytes().decode(),
            **({} if self.protocol.uses_sasl else _CERTIFICATES_NAME_USERS),
        }

    def client_settings(
        self,
        client: str,
        bootstrap: str,
        *,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> dict[str, Any]:
        """Return a client's settings. `client`: a name of `CLIENTS`. With a `user` it shows a
        certificate of that name, or logs in, as the first user if none is named.

        Raises ValueError for another client, an unknown user or mechanism.
        """
        settings_of = CLIENTS.get(client)
        if settings_of is None:
            raise ValueError(f"client {client!r}: expected one of {', '.join(CLIENTS)}")
        certificate = None
        login = self._login(user, mechanism) if self.protocol.uses_sasl else None
        if user is not None and self._ca is not None and login is None:
            certificate = self._certificate_file(user)
        return settings_of(ClientAccess(bootstrap, self.protocol, self.ca_file, certificate, login))

    def _login(self, user: str | None, mechanism: str) -> ClientLogin:
        """Return the login of a user, of the first one for None. Raises ValueError."""
        if mechanism not in MECHANISMS:
            raise ValueError(f"mechanism {mechanism!r}: expected one of {', '.join(MECHANISMS)}")
        passwords = {**self._users, **self._own}
        name = next(iter(passwords)) if user is None else user
        if name not in passwords:
            raise ValueError(f"user {name!r}: expected one of {', '.join(passwords)}")
        return ClientLogin(mechanism, name, passwords[name])

    def _certificate_file(self, user: str) -> Path:
        """Return a file with key and certificate of a user; made where it is missing."""
        file = self.directory / _USERS_DIRECTORY / f"{quote(user, safe='')}.pem"
        if not file.exists():
            assert self._ca is not None
            file.parent.mkdir(exist_ok=True)
            certificate = self._ca.issue_cert(f"{user}@example.org", common_name=user)
            chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
            _write_private(file, _pkcs8(certificate.private_key_pem.bytes()) + chain)
        return file


def _authority(directory: Path) -> trustme.CA:
    """Return the CA of a directory, a new one where it has none. Raises ConfigError."""
    try:
        import trustme  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError(
            "to make a certificate needs trustme: pip install 'minibroker[security]'"
        ) from None
    certificate, key = directory / CA_FILE, directory / _CA_KEY_FILE
    try:
        if certificate.exists() and key.exists():
            return trustme.CA.from_pem(certificate.read_bytes(), key.read_bytes())
        directory.mkdir(parents=True, exist_ok=True)
        ca = trustme.CA()
        _write_private(key, ca.private_key_pem.bytes())
        certificate.write_bytes(ca.cert_pem.bytes())
    except OSError as error:
        raise ConfigError(f"cannot write certificates to {directory}: {error.strerror}") from None
    return ca


def _pkcs8(key: bytes) -> bytes:
    """Return a private key (PEM) in the only form that Java takes."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  as trustme does

    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user can read."""
    path.touch(mode=0o600)
    path.write_bytes(data)
