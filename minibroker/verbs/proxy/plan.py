"""`minibroker proxy`: its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.connection import CONNECTION, KAFKA, KAFKA_CONFIG
from minibroker.cli.declaration import Option, Part, Verb
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import FILE, PORT_MAX, SWITCH, Kind, addresses
from minibroker.verbs.connecting import CA, SECURITY, USER, ClusterOptions, reader_of

if TYPE_CHECKING:
    from minibroker.client.settings import ClientSettings

LISTENING: Final = "For clients"
SHOWING: Final = "What is shown"
DEFAULT_LISTEN: Final = ("127.0.0.1", 9192)
CLIENT_ID: Final = "minibroker-proxy"


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; the port may be 0. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) <= PORT_MAX):
        raise UsageError(f"{text}: expected HOST:PORT, for instance 127.0.0.1:9192")
    return host.strip("[]"), int(port)


def _address_text(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


ADDRESS: Final = Kind("HOST:PORT", address_of, _address_text)


class UpstreamOptions(NamedTuple):
    """How the proxy connects to Kafka, as the user gives it."""

    security: Annotated[str | None, SECURITY] = None
    user: Annotated[tuple[str, str] | None, USER] = None
    ca: Annotated[str | None, CA] = None
    kafka: Annotated[Mapping[str, str], KAFKA] = {}
    kafka_config: Annotated[str | None, KAFKA_CONFIG] = None

    def settings(self, to: str) -> ClientSettings:
        """Return the settings of a client of Kafka at `to`. Raises UsageError, CommandError."""
        kafka = {"client.id": CLIENT_ID, **self.kafka}
        return reader_of(ClusterOptions(to, **self._replace(kafka=kafka)._asdict())).settings


class ProxyPlan(NamedTuple):
    """The options of `proxy`."""

    to: Annotated[
        str,
        Option(
            "--to",
            Kind("HOST:PORT[,...]", addresses),
            "Kafka, as a client would be given it (bootstrap.servers)",
            example="kafka:9092",
        ),
    ]
    listen: Annotated[
        tuple[str, int],
        Option(
            "--listen",
            ADDRESS,
            "where clients come; each broker of the cluster gets the next free port behind it",
            LISTENING,
        ),
    ] = DEFAULT_LISTEN
    advertise: Annotated[
        str | None,
        Option(
            "--advertise",
            Kind("HOST"),
            "the name of this machine that clients are told",
            LISTENING,
            default="the one of --listen; with 0.0.0.0 the address to which a client came",
        ),
    ] = None
    tls: Annotated[
        str | None,
        Option(
            "--tls",
            FILE,
            "speak TLS with clients: a PEM file of a private key and its certificates",
            LISTENING,
        ),
    ] = None
    trace: Annotated[
        bool, Option("--trace", SWITCH, "write a line for each request and its answer", SHOWING)
    ] = False
    upstream: Annotated[UpstreamOptions, Part(UpstreamOptions)] = UpstreamOptions()


def run(plan: ProxyPlan, out: TextIO, errors: TextIO) -> int:
    """Serve until a signal comes; return the exit code. Raises CommandError, UsageError."""
    from minibroker.verbs.proxy.process import serve  # noqa: PLC0415  not for help

    return serve(plan, plan.upstream.settings(plan.to), out, errors)


VERB: Final = Verb(
    name="proxy",
    does="stand between clients and any Kafka: show what they say, add faults",
    plan=ProxyPlan,
    run=run,
    groups=(LISTENING, SHOWING, CONNECTION),
    notes="""\
Give clients the address of --listen in place of Kafka's. The addresses in Kafka's answers become
those of the proxy, so that all brokers are reached through it. It works before every Kafka from 0.8
on, and before minibroker; what it does not understand passes as it is.

Without options of the connection, logins go through: a client logs in at Kafka with its own user.
With --security SSL the proxy speaks TLS with Kafka, and clients do not have to; with --user it logs
in for them.
""",
    examples=(
        "proxy --to kafka:9092 --trace",
        "proxy --to kafka-1:9092,kafka-2:9092 --listen 0.0.0.0:9192 --advertise my-host",
        "proxy --to kafka:9094 --security SASL_SSL --user alice:secret --ca ca.pem",
    ),
)
