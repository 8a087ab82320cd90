"""GSSAPI: the client shows a ticket of Kerberos for this broker (RFC 4752).

    client ─ AP-REQ ───────────────────► the ticket, by the key in the broker's keytab
    client ◄─ AP-REP ─────────────────── the broker knows the key, too
    client ─ (nothing) ────────────────►
    client ◄─ layers that are offered ── authentication only, as in Kafka
    client ─ layer, another name ──────► done; the other name does not count, as in Kafka

The package `gssapi` (`pip install 'minibroker[kerberos]'`) calls libkrb5. It reads the keytab and
the cache of replayed tickets, so an exchange runs beside the loop. A keytab that is replaced counts
for the next login. The realm is in `java.security.krb5.conf`, `KRB5_CONFIG` or /etc/krb5.conf.

Source: Kafka SaslServerAuthenticator, SaslServerCallbackHandler; GssKrb5Server of Java. Kafka means
to close without an answer where a ticket is replayed (KerberosError); on Java 17 it does not.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

import gssapi
from gssapi.exceptions import GSSError

from minibroker.broker.security.kerberos_names import KerberosNames, parse_name
from minibroker.broker.security.sasl.exchange import CredentialsError, NamelessError
from minibroker.kafka.errors import ConfigError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.settings import ConfigValues

AUTHENTICATION_ONLY: Final = 1
_OFFER: Final = bytes([AUTHENTICATION_ONLY]) + (65536).to_bytes(3, "big")
"""The layers, and the most bytes of a message in one, which nobody sends."""
_CHOICE: Final = bytes([AUTHENTICATION_ONLY, 0, 0, 0])
_FLAGS: Final = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
CONFIGURATION_KEY: Final = "java.security.krb5.conf"
_TRUE: Final = "true"


class _Context(gssapi.SecurityContext):  # type: ignore[misc]  # untyped where it is missing
    """One side of a context, whose `step` raises its errors at once."""


# The metaclass sets it to True in every class: `step` would return the error as a token.
_Context.__DEFER_STEP_ERRORS__ = False


class KerberosLogin(NamedTuple):
    """The line of Krb5LoginModule: the key of this broker."""

    principal: str
    """As the line has it."""
    keytab: str
    service: str
    """The name of the service, `kafka` of `kafka/host@REALM`."""

    def acceptor(self) -> gssapi.Credentials:
        """Return the key of this broker, for tickets of clients. Raises GSSError."""
        return gssapi.Credentials(
            name=self._name, usage="accept", store={"keytab": f"FILE:{self.keytab}"}
        )

    def initiator(self) -> gssapi.Credentials:
        """Return a ticket of this broker, for others; a new one once it has lived long. Raises
        GSSError.
        """
        store = {
            "client_keytab": f"FILE:{self.keytab}",
            "ccache": f"MEMORY:minibroker {self.principal}",
        }
        return gssapi.Credentials(name=self._name, usage="initiate", store=store)

    @property
    def _name(self) -> gssapi.Name:
        return gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)


def login_of_options(settings: ConfigValues, options: Mapping[str, str]) -> KerberosLogin:
    """Return the login of a JAAS line. Raises ConfigError."""
    keytab, principal = options.get("keyTab", ""), options.get("principal", "")
    uses_keytab = options.get("useKeyTab", "").lower() == _TRUE
    if not (uses_keytab and keytab and principal):
        raise ConfigError(
            "the JAAS line of GSSAPI has no key of this broker, expected"
            " com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
            ' keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
        )
    services = {options.get("serviceName"), settings.text("sasl.kerberos.service.name")} - {None}
    if len(services) != 1:
        raise ConfigError(
            "sasl.kerberos.service.name: "
            + ("the JAAS line has another one" if services else "expected a name, usually kafka")
        )
    return KerberosLogin(principal, keytab.removeprefix("file:"), str(services.pop()))


class KerberosAcceptor:
    """The key of this broker, and the rules for names of clients. Constant after `check`."""

    __slots__ = ("_configuration", "_login", "_names", "_realm")

    def __init__(self, settings: ConfigValues, options: Mapping[str, str]) -> None:
        """`settings`: as the listener sees them; `options`: of the JAAS line. Raises
        ConfigError.
        """
        self._login = login_of_options(settings, options)
        self._names = KerberosNames(settings.words("sasl.kerberos.principal.to.local.rules"))
        self._configuration = settings.text(CONFIGURATION_KEY)
        self._realm = ""
        """The default realm, of which DEFAULT speaks."""

    def check(self) -> None:
        """Read the keytab and the default realm. Blocks. Raises ConfigError."""
        login = self._login
        _set_configuration(self._configuration)
        try:
            login.acceptor()
        except GSSError as error:
            raise ConfigError(
                f"keytab {login.keytab} has no key of {login.principal}: {reason_of(error)}"
            ) from None
        try:
            name = gssapi.Name("nobody", gssapi.NameType.kerberos_principal)
            self._realm = str(name.canonicalize(gssapi.MechType.kerberos)).partition("@")[2]
        except GSSError:
            self._realm = ""  # krb5.conf has none: no name is of it, as in Kafka

    def begin(self) -> KerberosExchange:
        """Return a new exchange."""
        return KerberosExchange(self)

    def context(self) -> _Context:
        """Return the broker's side of a new context. Raises GSSError."""
        return _Context(creds=self._login.acceptor(), usage="accept")

    def short_name(self, peer: str) -> str:
        """Return the name of the principal of a client. Raises ValueError."""
        return self._names.short_name(parse_name(peer), self._realm)


def _set_configuration(path: str | None) -> None:
    """Have libkrb5 read another file than KRB5_CONFIG or /etc/krb5.conf. Raises ConfigError."""
    if path is not None:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"{CONFIGURATION_KEY}={path} cannot be read")
        os.environ["KRB5_CONFIG"] = path


class KerberosPeerLogin:
    """The login of this broker at others, by a ticket. Constant."""

    mechanism = "GSSAPI"

    __slots__ = ("_login",)

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login

    def begin(self, host: str) -> KerberosClient:
        """Do `client.PeerLogin.begin`."""
        return KerberosClient(self._login, host)


class KerberosClient:
    """One login at another broker: a ticket, then the layer. Workers call it, in turn."""

    __slots__ = ("_context", "_has_chosen", "_host", "_login", "is_complete")

    def __init__(self, login: KerberosLogin, host: str) -> None:
        self._login = login
        self._host = host
        self._context: _Context
        """Set by `begin`."""
        self._has_chosen = False
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `client.ClientExchange.begin`."""
        target = gssapi.Name(
            f"{self._login.service}@{self._host}", gssapi.NameType.hostbased_service
        )
        try:
            self._context = _Context(
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
        """Do `client.ClientExchange.respond`."""
        try:
            if not self._context.complete:
                return bytes(self._context.step(token) or b"")
            if self._has_chosen:
                self.is_complete = True
                return b""
            offer = self._context.unwrap(token).message
            if len(offer) != len(_OFFER) or not offer[0] & AUTHENTICATION_ONLY:
                raise ProtocolError("GSSAPI: the broker wants another layer than authentication")
            self._has_chosen = True
            return bytes(self._context.wrap(_CHOICE, encrypt=False).message)
        except GSSError as error:
            raise ProtocolError(f"GSSAPI: {reason_of(error)}") from None


class KerberosExchange:
    """One attempt: tokens of the context, then the layer. Workers call `respond`, in turn."""

    may_block = True

    __slots__ = (
        "_acceptor",
        "_context",
        "_has_offered",
        "expires_ms",
        "is_complete",
        "is_token",
        "name",
    )

    def __init__(self, acceptor: KerberosAcceptor) -> None:
        self._acceptor = acceptor
        self._context: _Context | None = None
        """None before the first token."""
        self._has_offered = False
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes | None:
        """Do `Exchange.respond`."""
        try:
            if self._context is None:
                self._context = self._acceptor.context()
            context = self._context
            if not context.complete:
                if not token:  # the library would take it for a mistake of its caller
                    raise CredentialsError("GSSAPI: an empty token")
                answer = context.step(token)
                return answer if answer or not context.complete else self._offer(context)
            if not self._has_offered:
                if token:
                    raise CredentialsError("GSSAPI: the client sent a token too many")
                return self._offer(context)
            self._take_choice(context, token)
        except GSSError as error:
            raise CredentialsError(f"GSSAPI: {reason_of(error)}") from None
        return None

    def _offer(self, context: _Context) -> bytes:
        self._has_offered = True
        return bytes(context.wrap(_OFFER, encrypt=False).message)

    def _take_choice(self, context: _Context, token: bytes) -> None:
        choice = context.unwrap(token).message
        if len(choice) < len(_OFFER) or not choice[0] & AUTHENTICATION_ONLY:
            raise CredentialsError("GSSAPI: the client chose a layer that is not offered")
        try:
            self.name = self._acceptor.short_name(str(context.initiator_name))
        except ValueError as error:
            raise NamelessError(str(error)) from None
        self.is_complete = True


def reason_of(error: GSSError) -> str:
    """Return what libkrb5 says, on one line."""
    texts = error.get_all_statuses(error.min_code, is_maj=False) or [str(error)]
    return "; ".join(text.decode() if isinstance(text, bytes) else text for text in texts)
