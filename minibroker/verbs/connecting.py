"""The cluster that a small verb asks: its options, and the client for it.

The settings are those of Kafka's clients, as the pipeline takes them. `--security`, `--user` and
`--ca` are short names for those that reach a broker of `minibroker serve` with the same options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.connection import (
    BOOTSTRAP,
    CONNECTION,
    DEFAULT_BOOTSTRAP,
    KAFKA,
    KAFKA_CONFIG,
    merged_settings,
)
from minibroker.cli.declaration import Option
from minibroker.cli.errors import CommandError, UsageError
from minibroker.cli.kinds import FILE, Kind, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.client.client import Client
    from minibroker.client.settings import ClientSettings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
CLIENT_ID: Final = "minibroker"


def _protocol(text: str) -> str:
    return check_choice(text.upper(), PROTOCOLS)


def _user(text: str) -> tuple[str, str]:
    """Return name and password of `NAME:PASSWORD`, or of the first line of `@FILE`."""
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:  # noqa: PTH123  as other options do
                text = file.readline().strip()
        except OSError as error:
            raise UsageError(f"{text}: {error.strerror}") from None
        except ValueError:  # of the decoder
            raise UsageError(f"{text}: the file is no text in UTF-8") from None
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise UsageError("is no NAME:PASSWORD")
    return name, password


SECURITY: Final = Option(
    "--security",
    Kind("PROTOCOL", _protocol, choices=PROTOCOLS),
    "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL (security.protocol)",
    CONNECTION,
    default="PLAINTEXT",
)
USER: Final = Option(
    "--user",
    Kind("NAME:PASSWORD", _user, show=lambda user: f"{user[0]}:…"),
    f"log in as this user, by {DEFAULT_MECHANISM} unless sasl.mechanism says otherwise; "
    "@FILE reads it from a file",
    CONNECTION,
)
CA: Final = Option(
    "--ca",
    FILE,
    "the CA of the broker's certificate, in a PEM file (ssl.truststore.location)",
    CONNECTION,
)


class ClusterOptions(NamedTuple):
    """A cluster, as the user gives it; `Part(ClusterOptions)` in a plan."""

    bootstrap: Annotated[str | None, BOOTSTRAP] = None
    security: Annotated[str | None, SECURITY] = None
    user: Annotated[tuple[str, str] | None, USER] = None
    ca: Annotated[str | None, CA] = None
    kafka: Annotated[Mapping[str, str], KAFKA] = {}
    kafka_config: Annotated[str | None, KAFKA_CONFIG] = None

    def given_settings(self) -> dict[str, str]:
        """Return the settings of a client, with the names that the user gave.

        Raises UsageError: the file cannot be read.
        """
        address, settings = merged_settings(self.bootstrap, self.kafka_config, self.kafka)
        settings["bootstrap.servers"] = address or DEFAULT_BOOTSTRAP
        settings.setdefault("client.id", CLIENT_ID)
        protocol = self.security or (_secured(self) if "security.protocol" not in settings else "")
        if protocol:
            settings["security.protocol"] = protocol
        if self.ca is not None:
            settings |= {"ssl.truststore.location": self.ca, "ssl.truststore.type": "PEM"}
        if self.user is not None:
            name, password = self.user
            mechanisms = (settings.pop("sasl.mechanisms", ""), DEFAULT_MECHANISM)
            settings.setdefault("sasl.mechanism", next(filter(None, mechanisms)))
            settings |= {"sasl.username": name, "sasl.password": password}
        return settings


def _secured(options: ClusterOptions) -> str:
    """Return the protocol of a user and a CA, which need no word more."""
    if options.user is not None:
        return "SASL_PLAINTEXT" if options.ca is None else "SASL_SSL"
    return "" if options.ca is None else "SSL"


def reader_of(options: ClusterOptions) -> Client:
    """Return a client that reads. Raises UsageError, CommandError for settings that cannot be."""
    from minibroker.client.client import Client  # noqa: PLC0415  not for a help page
    from minibroker.client.given_settings import for_reader  # noqa: PLC0415  as above

    return Client(_values(for_reader, options.given_settings()))


def writer_of(options: ClusterOptions, *, creates_topics: bool) -> Client:
    """Return a client that writes. `creates_topics`: as for `Client`. Raises UsageError,
    CommandError.
    """
    from minibroker.client.client import Client  # noqa: PLC0415  not for a help page
    from minibroker.client.given_settings import for_writer  # noqa: PLC0415  as above

    settings = {
        name: value
        for name, value in options.given_settings().items()
        if name not in PRODUCER_SETTINGS
    }
    return Client(_values(for_writer, settings), creates_topics=creates_topics)


PRODUCER_SETTINGS: Final = frozenset(
    {
        *("acks", "batch.size", "buffer.memory", "compression.type", "delivery.timeout.ms"),
        *("enable.idempotence", "linger.ms", "max.block.ms", "max.request.size"),
        *("max.in.flight.requests.per.connection", "key.serializer", "value.serializer"),
    }
)
"""Settings of a producer, which are not about its connections."""


def _values(
    translate: Callable[[Mapping[str, str]], dict[str, str]], settings: dict[str, str]
) -> ClientSettings:
    from minibroker.client.settings import client_settings  # noqa: PLC0415  not for a help page
    from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above

    try:
        in_java = translate(settings)
    except ConfigError as error:  # a file cannot be read, for instance
        raise CommandError(f"the Kafka settings: {error}") from None
    try:
        return client_settings(in_java)
    except ConfigError as error:
        raise UsageError(f"the Kafka settings (--kafka, --kafka-config): {error}") from None


def is_committed(options: ClusterOptions) -> bool:
    """Return whether open and aborted transactions are left out (isolation.level)."""
    settings = options.given_settings()
    return settings.get("isolation.level", "read_committed") != "read_uncommitted"
