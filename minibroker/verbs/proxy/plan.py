"""`minibroker proxy`: its options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.connection import KAFKA, KAFKA_CONFIG
from minibroker.cli.declaration import Option, Part
from minibroker.cli.errors import CommandError
from minibroker.cli.kinds import ADDRESS, FILE, SWITCH, Kind, addresses
from minibroker.verbs.connecting import CA, SECURITY, USER, ClusterOptions, reader_of
from minibroker.verbs.trace import SelectionOptions

if TYPE_CHECKING:
    from minibroker.broker.config.control import ControlOptions
    from minibroker.client.settings import ClientSettings

LISTENING: Final = "For clients"
SHOWING: Final = "Output"
CONTROL: Final = "Control over HTTP"
TOKEN: Final = "--control-token"
READ_TOKEN: Final = "--control-read-token"
DEFAULT_LISTEN: Final = ("127.0.0.1", 9192)
CLIENT_ID: Final = "minibroker-proxy"


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


class ShownOptions(NamedTuple):
    """The parts of the conversation that are written, and the places."""

    trace: Annotated[
        bool, Option("--trace", SWITCH, "write a line for each request and its answer", SHOWING)
    ] = False
    is_full: Annotated[
        bool, Option("--full", SWITCH, "write every field of requests and answers", SHOWING)
    ] = False
    is_json: Annotated[
        bool,
        Option("--json", SWITCH, "write each request as a line of JSON", SHOWING),
    ] = False
    html: Annotated[
        str | None,
        Option(
            "--html",
            FILE,
            "at the end write a page with the conversation as a diagram",
            SHOWING,
        ),
    ] = None
    record: Annotated[
        str | None,
        Option(
            "--record",
            FILE,
            "add each request to a file, as a line of JSON, which minibroker trace --dialogue "
            "reads",
            SHOWING,
        ),
    ] = None
    chosen: Annotated[SelectionOptions, Part(SelectionOptions)] = SelectionOptions()


class ProxyControlOptions(NamedTuple):
    """The control API of a proxy, as the user gives it."""

    address: Annotated[
        tuple[str, int] | None,
        Option(
            "--control",
            ADDRESS,
            "serve faults, the log of requests and a page over HTTP. Any host but 127.0.0.1, ::1 "
            "and localhost needs a token",
            CONTROL,
            default="off",
        ),
    ] = None
    token: Annotated[
        str | None,
        Option(
            TOKEN,
            Kind("TOKEN"),
            "token that HTTP callers send (Authorization: Bearer TOKEN); @FILE or the variable "
            "MINIBROKER_CONTROL_TOKEN keep it out of process lists",
            CONTROL,
        ),
    ] = None
    read_token: Annotated[
        str | None,
        Option(
            READ_TOKEN,
            Kind("TOKEN"),
            "another token, for callers that only read (GET); @FILE and "
            "MINIBROKER_CONTROL_READ_TOKEN as above",
            CONTROL,
        ),
    ] = None
    page_only_reads: Annotated[
        bool,
        Option("--console-read-only", SWITCH, "the page in the browser changes nothing", CONTROL),
    ] = False

    def options(self) -> ControlOptions | None:
        """Return the options of the API, None without one. Raises CommandError."""
        if self.address is None:
            return None
        from minibroker.broker.config.control import control_options  # noqa: PLC0415  not for help
        from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above

        tokens = {TOKEN: self.token, READ_TOKEN: self.read_token}
        flags = {flag: text for flag, text in tokens.items() if text is not None}
        try:
            options = control_options(self.address, flags, None, os.environ)
        except ConfigError as error:
            raise CommandError(str(error)) from None
        return options._replace(page_only_reads=self.page_only_reads)


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
    output: Annotated[ShownOptions, Part(ShownOptions)] = ShownOptions()
    control: Annotated[ProxyControlOptions, Part(ProxyControlOptions)] = ProxyControlOptions()
    upstream: Annotated[UpstreamOptions, Part(UpstreamOptions)] = UpstreamOptions()
