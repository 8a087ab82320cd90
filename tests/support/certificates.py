"""Certificates for tests of TLS: a CA, a broker for localhost, clients. Made once per process."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from minibroker.broker.config.listeners import Listener, SecurityProtocol

SSL_LISTENER = Listener("SSL", "127.0.0.1", 0, SecurityProtocol.SSL)
STORES = Path(__file__).parents[1] / "golden" / "stores"


def authority(number: int = 0) -> trustme.CA:
    """Return a CA; each number is another one."""
    return _authority(number)


def broker_certificate(number: int = 0) -> trustme.LeafCert:
    """Return the certificate of a broker on localhost, by the CA of this number."""
    return _issued("broker", number, "localhost", "127.0.0.1")


def client_certificate(name: str = "alice", number: int = 0) -> trustme.LeafCert:
    """Return a client's certificate: `CN=name,OU=Users,O=Acme`."""
    return _issued(name, number, f"{name}@example.org")


@cache
def chained(name: str, *identities: str) -> trustme.LeafCert:
    """Return a certificate of an intermediate CA, and that CA's by the CA 0, in one chain."""
    middle = authority().create_child_ca()
    return middle.issue_cert(
        *identities, common_name=name, organization_name="Acme", organization_unit_name="Users"
    )


@cache
def _authority(number: int) -> trustme.CA:
    return trustme.CA(organization_name=f"CA {number}")


@cache
def _issued(name: str, number: int, *identities: str) -> trustme.LeafCert:
    return _authority(number).issue_cert(
        *identities, common_name=name, organization_name="Acme", organization_unit_name="Users"
    )


def pem_of(certificate: trustme.LeafCert) -> str:
    """Return key and certificates in one text."""
    return certificate.private_key_and_cert_chain_pem.bytes().decode()


def pem_for_java(certificate: trustme.LeafCert) -> str:
    """Return key and certificates in one text. Kafka reads keys in PKCS8 only."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = b"".join(part.bytes() for part in certificate.cert_chain_pems)
    return (text + chain).decode()


def write_stores(directory: Path, certificate: trustme.LeafCert, trusted: str) -> dict[str, str]:
    """Write a key store and a trust store as PEM files; return the settings that name them.

    `trusted`: certificates of authorities, PEM. Both Apache Kafka and minibroker read the files.
    """
    directory.mkdir(parents=True, exist_ok=True)
    key_store, trust_store = directory / "keystore.pem", directory / "truststore.pem"
    key_store.write_text(pem_for_java(certificate))
    trust_store.write_text(trusted)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust_store),
    }


def java_store(certificate: trustme.LeafCert) -> str:
    """Return key and certificates in one text for Java, which takes keys in PKCS8 only."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return b"".join([pem, *(part.bytes() for part in certificate.cert_chain_pems)]).decode()


def authority_pem(number: int = 0) -> str:
    """Return the certificate of a CA."""
    return authority(number).cert_pem.bytes().decode()


def certificate_of(certificate: trustme.LeafCert) -> bytes:
    """Return the certificate as DER."""
    return ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())


def tls_settings(number: int = 0, **more: str) -> dict[str, str]:
    """Return settings of a broker with a listener SSL, certificates in the settings; `more`:
    `ssl_client_auth=…` stands for `ssl.client.auth`.
    """
    return {
        "listeners": "SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": broker_certificate(number).private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": pem_of(broker_certificate(number)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority_pem(number),
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def client_tls(number: int = 0, *, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts a CA; it sends its certificate, if it has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority(number).configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return context


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost"
) -> ssl.SSLObject:
    """Return the server's side after a handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = set(sides)
    for _ in range(4):
        for side in sides:
            if side in waiting:
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                waiting.discard(side)
    assert not waiting
    return sides[1]


def pkcs12_of(certificate: trustme.LeafCert, passphrase: str) -> bytes:
    """Return a store as openssl makes it, with key and certificates."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    chain = [x509.load_pem_x509_certificate(pem.bytes()) for pem in certificate.cert_chain_pems]
    lock = BestAvailableEncryption(passphrase.encode())
    return pkcs12.serialize_key_and_certificates(b"broker", key, chain[0], chain[1:], lock)  # type: ignore[arg-type]


def trusted_pkcs12(passphrase: str, number: int = 0) -> bytes:
    """Return a store that trusts a CA, without a key."""
    trusted = x509.load_pem_x509_certificate(authority(number).cert_pem.bytes())
    lock = BestAvailableEncryption(passphrase.encode())
    certificate = pkcs12.PKCS12Certificate(trusted, b"ca")
    return pkcs12.serialize_java_truststore([certificate], lock)
