"""`Security`: what makes a broker of tests secure, and the settings of clients that fit to it.

    security = Security("SSL", directory)
    security.broker_settings()                          listeners and certificates, for the broker
    security.client_settings("aiokafka", "host:port")   ready to use

The certificates come from `trustme` and stand in the directory; a directory that has them already
keeps its CA, so that clients go on to trust the broker after a restart. A client that shows a
certificate is the user of its common name: `User:alice`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.config.listeners import SecurityProtocol
from minibroker.errors import ConfigError
from minibroker.testing.client_settings import CLIENTS, ClientAccess

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

CA_FILE: Final = "ca.pem"
_CA_KEY_FILE: Final = "ca-key.pem"
_NAMES: Final = ("localhost", "127.0.0.1", "::1")
# The user of a certificate is its common name alone.
_MAPPING: Final = "RULE:^(?:.*,)?CN=([^,+]+).*$/$1/,DEFAULT"


class Security:
    """One protocol with its certificates. Raises ConfigError."""

    def __init__(self, protocol: str, directory: Path) -> None:
        """`protocol`: PLAINTEXT or SSL. `directory`: for the certificates, made if missing."""
        served = (SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL)
        if protocol.upper() not in served:
            raise ConfigError(f"security={protocol}: expected one of {', '.join(served)}")
        self.protocol = SecurityProtocol(protocol.upper())
        """Constant, as is the next."""
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
        if self._ca is None:
            return settings
        host = address.rpartition(":")[0].strip("[]")
        names = (*_NAMES, host) if host not in ("", "0.0.0.0", "::", *_NAMES) else _NAMES
        certificate = self._ca.issue_cert(*names, common_name="broker")
        chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
        return {
            **settings,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": certificate.private_key_pem.bytes().decode(),
            "ssl.keystore.certificate.chain": chain.decode(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self._ca.cert_pem.bytes().decode(),
            "ssl.client.auth": "requested",
            "ssl.principal.mapping.rules": _MAPPING,
        }

    def client_settings(
        self, client: str, bootstrap: str, *, user: str | None = None
    ) -> dict[str, Any]:
        """Return a client's settings. `client`: a name of `CLIENTS`. With a `user` it shows a
        certificate of that name.

        Raises ValueError for another client.
        """
        settings_of = CLIENTS.get(client)
        if settings_of is None:
            raise ValueError(f"client {client!r}: expected one of {', '.join(CLIENTS)}")
        certificate = None
        if user is not None and self._ca is not None:
            certificate = self._certificate_file(user)
        return settings_of(ClientAccess(bootstrap, self.protocol, self.ca_file, certificate))

    def _certificate_file(self, user: str) -> Path:
        """Return a file with key and certificate of a user; made where it is missing."""
        file = self.directory / f"{user}.pem"
        if not file.exists():
            assert self._ca is not None
            certificate = self._ca.issue_cert(f"{user}@example.org", common_name=user)
            _write_private(file, certificate.private_key_and_cert_chain_pem.bytes())
        return file


def _authority(directory: Path) -> trustme.CA:
    """Return the CA of a directory, a new one where it has none. Raises ConfigError."""
    try:
        import trustme  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError(
            "certificates for tests need a package: pip install 'minibroker[testing]'"
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


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user can read."""
    path.touch(mode=0o600)
    path.write_bytes(data)
