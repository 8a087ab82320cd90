"""GSSAPI: a login by a ticket of Kerberos (RFC 4752).

    we ─ AP-REQ ───────────────────► the ticket, by the key in the broker's keytab
    we ◄─ AP-REP ─────────────────── the broker knows the key, too
    we ─ (nothing) ────────────────►
    we ◄─ layers that are offered ── authentication only
    we ─ layer ────────────────────►

The package `gssapi` (`pip install 'minibroker[kerberos]'`) calls libkrb5. It reads the keytab and
asks the KDC for a ticket, so `begin` blocks. A broker's side is `broker.security.sasl.kerberos`.

Source: Kafka SaslClientAuthenticator, KerberosLogin; GssKrb5Client of Java.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

import gssapi
from gssapi.exceptions import GSSError

from minibroker.kafka.errors import ConfigError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.config_keys import TypedSettings

AUTHENTICATION_ONLY: Final = 1
OFFER: Final = bytes([AUTHENTICATION_ONLY]) + (65536).to_bytes(3, "big")
"""The layers, and the most bytes of a message in one, which nobody sends."""
_CHOICE: Final = bytes([AUTHENTICATION_ONLY, 0, 0, 0])
_FLAGS: Final = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
CONFIGURATION_KEY: Final = "java.security.krb5.conf"
_TRUE: Final = "true"


class Context(gssapi.SecurityContext):  # type: ignore[misc]  # untyped where it is missing
    """One side of a context, whose `step` raises its errors at once."""


# The metaclass sets it to True in every class: `step` would return the error as a token.
Context.__DEFER_STEP_ERRORS__ = False


class KerberosLogin(NamedTuple):
    """The line of Krb5LoginModule: a key, by which we get tickets, and a broker opens them; or
    tickets that somebody else gets.
    """

    principal: str
    """As the line has it; empty: that of the ticket in the cache."""
    keytab: str
    """Empty: the ticket is in a cache."""
    service: str
    """The name of the service, `kafka` of `kafka/host@REALM`."""
    cache: str = ""
    """A file with our ticket; empty: the usual one, or `KRB5CCNAME`."""

    @property
    def mechanism(self) -> str:
        """Return the mechanism of SASL."""
        return "GSSAPI"

    def begin(self, host: str) -> KerberosClient:
        """Do `sasl.SaslLogin.begin`."""
        return KerberosClient(self, host)

    def acceptor(self) -> gssapi.Credentials:
        """Return the key of this broker, for tickets of clients. Raises GSSError."""
        return gssapi.Credentials(
            name=self._name, usage="accept", store={"keytab": f"FILE:{self.keytab}"}
        )

    def initiator(self) -> gssapi.Credentials:
        """Return our ticket; with a keytab a new one once it has lived long. Raises GSSError."""
        store = {}
        if self.keytab:
            store = {
                "client_keytab": f"FILE:{self.keytab}",
                "ccache": f"MEMORY:minibroker {self.principal}",
            }
        elif self.cache:
            store = {"ccache": f"FILE:{self.cache}"}
        return gssapi.Credentials(name=self._name, usage="initiate", store=store or None)

    @property
    def _name(self) -> gssapi.Name | None:
        if not self.principal:
            return None
        return gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)


def login_of_options(settings: TypedSettings, options: Mapping[str, str]) -> KerberosLogin:
    """Return the login of a JAAS line. Raises ConfigError."""
    keytab, principal = options.get("keyTab", ""), options.get("principal", "")
    uses_keytab = options.get("useKeyTab", "").lower() == _TRUE
    if not (uses_keytab and keytab and principal):
        raise ConfigError(
            "the JAAS line of GSSAPI has no key of this broker, expected"
            " com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
            ' keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
        )
    return KerberosLogin(principal, _path(keytab), _service_of(settings, options))


def login_of_client(settings: TypedSettings, options: Mapping[str, str]) -> KerberosLogin:
    """Return the login of a JAAS line of a client: by a keytab, or by a ticket in a cache.

    Raises ConfigError.
    """
    service, principal = _service_of(settings, options), options.get("principal", "")
    if options.get("useKeyTab", "").lower() == _TRUE:
        return login_of_options(settings, options)
    if options.get("useTicketCache", "").lower() != _TRUE:
        raise ConfigError(
            "the JAAS line of GSSAPI says nothing about a ticket, expected useTicketCache=true, or"
            ' useKeyTab=true keyTab="/PATH" principal="NAME@REALM"'
        )
    return KerberosLogin(principal, "", service, _path(options.get("ticketCache", "")))


def _path(location: str) -> str:
    return location.removeprefix("FILE:").removeprefix("file:")


def _service_of(settings: TypedSettings, options: Mapping[str, str]) -> str:
    """Return the name of the service. Raises ConfigError."""
    services = {options.get("serviceName"), settings.text("sasl.kerberos.service.name")} - {None}
    if len(services) != 1:
        raise ConfigError(
            "sasl.kerberos.service.name: "
            + ("the JAAS line has another one" if services else "expected a name, usually kafka")
        )
    return str(services.pop())


def set_configuration(path: str | None) -> None:
    """Have libkrb5 read another file than KRB5_CONFIG or /etc/krb5.conf. Raises ConfigError."""
    if path is not None:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"{CONFIGURATION_KEY}={path} cannot be read")
        os.environ["KRB5_CONFIG"] = path


class KerberosClient:
    """One login at another broker: a ticket, then the layer. Workers call it, in turn."""

    __slots__ = ("_context", "_has_chosen", "_host", "_login", "is_complete")

    def __init__(self, login: KerberosLogin, host: str) -> None:
        self._login = login
        self._host = host
        self._context: Context
        """Set by `begin`."""
        self._has_chosen = False
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `sasl.ClientExchange.begin`."""
        target = gssapi.Name(
            f"{self._login.service}@{self._host}", gssapi.NameType.hostbased_service
        )
        try:
            self._context = Context(
                name=target,
                creds=self._login.initiator(),
                mech=gssapi.MechType.kerberos,
                flags=_FLAGS,
                usage="initiate",
            )
            return bytes(self._context.step())
        except GSSError as error:
            raise ConnectionError(f"GSSAPI: {reason_of(error)}") from None

    def respond(self, token: bytes) -> bytes:
        """Do `sasl.ClientExchange.respond`."""
        try:
            if not self._context.complete:
                return bytes(self._context.step(token) or b"")
            if self._has_chosen:
                self.is_complete = True
                return b""
            offer = self._context.unwrap(token).message
            if len(offer) != len(OFFER) or not offer[0] & AUTHENTICATION_ONLY:
                raise ProtocolError("GSSAPI: the broker wants another layer than authentication")
            self._has_chosen = True
            return bytes(self._context.wrap(_CHOICE, encrypt=False).message)
        except GSSError as error:
            raise ProtocolError(f"GSSAPI: {reason_of(error)}") from None


def reason_of(error: GSSError) -> str:
    """Return what libkrb5 says, on one line."""
    texts = error.get_all_statuses(error.min_code, is_maj=False) or [str(error)]
    return "; ".join(text.decode() if isinstance(text, bytes) else text for text in texts)
