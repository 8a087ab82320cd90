"""Dialogues of a client with a ticket of Kerberos: what it sends, what it sees, who it is then.

As `sasl_dialogues`: they are recorded from Apache Kafka (`tests/golden/record_kerberos.py`) and
played on minibroker. They need a KDC (`tests/support/kerberos.py`) and its variables in the
environment of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import gssapi

from tests.support.kerberos import ALICE, BROKER, REALM, REPORTS, Kdc
from tests.support.sasl_dialogues import CLOSED, Talk

if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY: Final = f"nobody@{REALM}"
OTHER_SERVICE: Final = f"http/localhost@{REALM}"
KERBEROS: Final = "KERBEROS"
DIALOGUES: Final[dict[str, Callable[[KerberosTalk], None]]] = {}
"""Name → what the client does."""


def settings(kdc: Kdc) -> dict[str, str]:
    """Return the settings of a broker besides its listeners: PLAINTEXT, and KERBEROS with SASL."""
    return {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": (
            "RULE:[2:$1 of $2](reports .*)s/ of /-/,RULE:[1:$1](nobody)s/.*/x@y/,DEFAULT"
        ),
        "connection.failed.authentication.delay.ms": "1",
        "delegation.token.secret.key": "to see who has logged in",
        f"listener.name.{KERBEROS.lower()}.gssapi.sasl.jaas.config": (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
            f' keyTab="{kdc.keytab(BROKER)}" principal="{BROKER}";'
        ),
    }


class KerberosTalk(Talk):
    """One connection of a client with a ticket."""

    def __init__(self, host: str, port: int, kdc: Kdc) -> None:
        super().__init__(host, port)
        self._kdc = kdc
        self._has_headers = True

    def context(
        self, principal: str = ALICE, service: str = "kafka", *, is_mutual: bool = True
    ) -> Any:
        """Return the client's side of a new context."""
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        store = {
            "client_keytab": f"FILE:{self._kdc.keytab(principal)}",
            # Tickets of another KDC of this process are of no use.
            "ccache": f"MEMORY:{self._kdc.directory}-{principal}",
        }
        flags = gssapi.RequirementFlag.integrity
        if is_mutual:
            flags |= gssapi.RequirementFlag.mutual_authentication
        return gssapi.SecurityContext(
            name=gssapi.Name(f"{service}@localhost", gssapi.NameType.hostbased_service),
            creds=gssapi.Credentials(name=name, usage="initiate", store=store),
            mech=gssapi.MechType.kerberos,
            flags=flags,
            usage="initiate",
        )

    def tell(self, token: bytes) -> bytes | None:
        """Send a token; return the answer's, None with a note where there is none."""
        if not self._has_headers:
            answer = self.token(token)
            if answer == CLOSED:
                self.notes.append(CLOSED)
                return None
            return bytes.fromhex(answer)
        reply = self.quietly("sasl_authenticate", 1, auth_bytes=token)
        if not reply or reply["error_code"]:
            self.notes.append(_fields_of(reply))
            return None
        return bytes(reply["auth_bytes"])

    def log_in(
        self,
        context: Any = None,
        *,
        choice: bytes = b"\1\0\0\0",
        change: Callable[[bytes], bytes] = bytes,
        between: bytes = b"",
    ) -> None:
        """Prove an identity; note the layers that are offered and the end."""
        context = context or self.context()
        answer = self.tell(context.step())
        if answer is None:
            return
        if not context.complete:
            context.step(answer)
            answer = self.tell(between)
            if answer is None:
                return
        self.notes.append(context.unwrap(answer).message.hex())
        last = change(context.wrap(choice, False).message)
        if not self._has_headers:  # Kafka does not answer the last token
            self.send_only(last)
            return
        last_answer = self.quietly("sasl_authenticate", 1, auth_bytes=last)
        self.notes.append(_fields_of(last_answer))

    def without_headers(self) -> None:
        """Send tokens without a header from now on."""
        self._has_headers = False

    def note_principal(self) -> None:
        """Note the principal that the broker sees."""
        answer = self.quietly("create_delegation_token", 1, renewers=[], max_lifetime_ms=1000)
        names = ("error_code", "principal_type", "principal_name")
        self.notes.append([answer[name] for name in names] if answer else CLOSED)


def _fields_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of SaslAuthenticate, {"end": …} where there is none."""
    if not answer:
        return {"end": CLOSED}
    return {**answer, "auth_bytes": answer["auth_bytes"].hex()}


def dialogue(function: Callable[[KerberosTalk], None]) -> Callable[[KerberosTalk], None]:
    """Add a dialogue under its own name."""
    DIALOGUES[function.__name__] = function
    return function


def play(host: str, port: int, kdc: Kdc, name: str) -> list[Any]:
    """Return what the client of a dialogue saw."""
    talk = KerberosTalk(host, port, kdc)
    try:
        DIALOGUES[name](talk)
    finally:
        talk.close()
    return talk.notes


@dialogue
def a_ticket(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in()
    talk.note_principal()


@dialogue
def a_ticket_without_mutual_authentication(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(talk.context(is_mutual=False))
    talk.note_principal()


@dialogue
def a_ticket_with_raw_tokens(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI", 0)
    talk.without_headers()
    talk.log_in()
    talk.note_principal()


@dialogue
def a_ticket_of_a_service(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(talk.context(REPORTS))
    talk.note_principal()


@dialogue
def a_ticket_of_the_brokers_own_name(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(talk.context(BROKER))
    talk.note_principal()


@dialogue
def a_ticket_and_another_name(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(choice=b"\1\0\0\0bob@ELSEWHERE")
    talk.note_principal()


@dialogue
def a_ticket_for_another_service(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk._kdc.keytab(OTHER_SERVICE)
    talk.log_in(talk.context(service="http"))
    talk.end()


@dialogue
def a_ticket_that_comes_twice(talk: KerberosTalk) -> None:
    """An overheard ticket is of no use."""
    token = talk.context().step()
    talk.handshake("GSSAPI")
    assert talk.tell(token)
    other = KerberosTalk(*talk.peer, talk._kdc)
    other.handshake("GSSAPI")
    other.tell(token)
    other.end()
    other.close()
    talk.notes += other.notes


@dialogue
def a_token_of_nothing(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.tell(b"")
    talk.end()


@dialogue
def a_token_that_is_no_token(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.tell(b"\x60\x82\x02\x10" + bytes(40))
    talk.end()


@dialogue
def a_token_that_was_changed(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    token = bytearray(talk.context().step())
    token[-1] ^= 1
    talk.tell(bytes(token))
    talk.end()


@dialogue
def a_token_between_ticket_and_layers(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(between=b"x")
    talk.end()


@dialogue
def a_layer_that_is_not_offered(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(choice=b"\4\0\0\0")
    talk.end()


@dialogue
def two_layers(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(choice=b"\3\0\xff\xff")
    talk.note_principal()


@dialogue
def a_layer_without_its_mark(talk: KerberosTalk) -> None:
    """Somebody between client and broker writes the choice."""
    talk.handshake("GSSAPI")
    talk.log_in(change=lambda _: b"\1\0\0\0")
    talk.end()


@dialogue
def a_layer_that_was_changed(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(change=lambda token: token[:-1] + bytes([token[-1] ^ 1]))
    talk.end()


@dialogue
def a_name_that_no_rule_takes(talk: KerberosTalk) -> None:
    talk.handshake("GSSAPI")
    talk.log_in(talk.context(NOBODY))
    talk.metadata()


@dialogue
def another_mechanism(talk: KerberosTalk) -> None:
    talk.ask("sasl_handshake", 1, mechanism="PLAIN")
    talk.end()


@dialogue
def a_ticket_without_a_handshake(talk: KerberosTalk) -> None:
    """Clients of Kafka 0.9 begin so."""
    talk.without_headers()
    talk.log_in()
    talk.note_principal()


@dialogue
def a_request_before_the_ticket(talk: KerberosTalk) -> None:
    talk.metadata()
