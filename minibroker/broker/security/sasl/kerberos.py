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

from typing import TYPE_CHECKING

import gssapi
from gssapi.exceptions import GSSError

from minibroker.broker.security.kerberos_names import KerberosNames, parse_name
from minibroker.broker.security.sasl.exchange import CredentialsError, NamelessError
from minibroker.client.kerberos import (
    AUTHENTICATION_ONLY,
    CONFIGURATION_KEY,
    OFFER,
    Context,
    login_of_options,
    reason_of,
    set_configuration,
)
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.settings import ConfigValues


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
        set_configuration(self._configuration)
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

    def context(self) -> Context:
        """Return the broker's side of a new context. Raises GSSError."""
        return Context(creds=self._login.acceptor(), usage="accept")

    def short_name(self, peer: str) -> str:
        """Return the name of the principal of a client. Raises ValueError."""
        return self._names.short_name(parse_name(peer), self._realm)


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
        self._context: Context | None = None
        """None before the first token."""
        self._has_offered = False
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes | None:
        """Do `SaslExchange.respond`."""
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

    def _offer(self, context: Context) -> bytes:
        self._has_offered = True
        return bytes(context.wrap(OFFER, encrypt=False).message)

    def _take_choice(self, context: Context, token: bytes) -> None:
        choice = context.unwrap(token).message
        if len(choice) < len(OFFER) or not choice[0] & AUTHENTICATION_ONLY:
            raise CredentialsError("GSSAPI: the client chose a layer that is not offered")
        try:
            self.name = self._acceptor.short_name(str(context.initiator_name))
        except ValueError as error:
            raise NamelessError(str(error)) from None
        self.is_complete = True
