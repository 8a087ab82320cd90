"""Damaged tickets of Kerberos: every one ends in an answer or in an error that a login has."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.kafka.errors import ProtocolError
from tests.fuzz.damage import damaged
from tests.support import kerberos
from tests.support.kerberos import ALICE, BROKER, Kdc, running_kdc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.security.sasl.kerberos import KerberosAcceptor, KerberosExchange

_MISSING = kerberos.missing()
if _MISSING is not None:
    pytest.skip(_MISSING, allow_module_level=True)

LOGINS = 600
NOW_MS = 1_700_000_000_000
CHOICE = b"\1\0\0\0"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC, which this process finds."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        yield kdc


@pytest.fixture
def acceptor(kdc: Kdc) -> KerberosAcceptor:
    from minibroker.broker.security.sasl.kerberos import KerberosAcceptor  # noqa: PLC0415  needs libkrb5

    options = {"useKeyTab": "true", "keyTab": kdc.keytab(BROKER), "principal": BROKER}
    new_acceptor = KerberosAcceptor(ConfigValues({"sasl.kerberos.service.name": "kafka"}), options)
    new_acceptor.check()
    return new_acceptor


def new_context(kdc: Kdc) -> Any:
    """Return the client's side of a new login of alice."""
    import gssapi  # noqa: PLC0415  an extra

    name = gssapi.Name(ALICE, gssapi.NameType.kerberos_principal)
    store = {"client_keytab": f"FILE:{kdc.keytab(ALICE)}", "ccache": "MEMORY:fuzz"}
    return gssapi.SecurityContext(
        name=gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service),
        creds=gssapi.Credentials(name=name, usage="initiate", store=store),
        mech=gssapi.MechType.kerberos,
        usage="initiate",
    )


def fails(exchange: KerberosExchange, token: bytes) -> bool:
    """Return whether a token ends the login. Anything but the errors of a login is raised."""
    try:
        exchange.respond(token, NOW_MS)
    except (CredentialsError, RefusedError, ProtocolError):
        return True
    return False


def test_nobody_gets_in_with_a_damaged_ticket(kdc: Kdc, acceptor: KerberosAcceptor) -> None:
    chance = random.Random(88)
    tickets = [bytes(new_context(kdc).step()) for _ in range(8)]
    failed = 0
    for _ in range(LOGINS):
        exchange = acceptor.begin()
        ticket = chance.choice(tickets)
        token = damaged(chance, chance.choice([ticket, chance.randbytes(chance.randrange(700))]))
        for part in (token, b"", damaged(chance, ticket)):
            assert not exchange.is_complete
            if part != ticket and fails(exchange, part):
                failed += 1
                break
        assert not exchange.is_complete
        assert exchange.name == ""
    assert failed > LOGINS * 0.9


def test_a_good_ticket_needs_a_good_end(kdc: Kdc, acceptor: KerberosAcceptor) -> None:
    chance = random.Random(89)
    names = set()
    for _ in range(LOGINS // 6):
        context, exchange = new_context(kdc), acceptor.begin()
        answer = exchange.respond(bytes(context.step()), NOW_MS)
        if not context.complete:
            context.step(answer)
            exchange.respond(b"", NOW_MS)
        last = bytes(context.wrap(CHOICE, False).message)
        token = damaged(chance, last)
        is_whole = token == last  # libkrb5 turns the bytes round where they are
        assert fails(exchange, token) is not is_whole
        assert exchange.is_complete is is_whole
        names.add(exchange.name)
    assert names == {"", "alice"}
