"""The options of every verb that is a client of a cluster: where it is, and how to connect to it.

The names of the settings are those of Kafka's clients in Java; a file of them is the one that
Kafka's own tools take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Option
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import FILE, PAIRS, Kind, addresses

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
CONNECTION: Final = "Connection"
"""The title in the help page."""
_ADDRESS_KEYS: Final = ("bootstrap.servers", "metadata.broker.list")
"""Names of the address: of Java, which wins, and of librdkafka."""

BOOTSTRAP: Final = Option(
    "--bootstrap",
    Kind("HOST:PORT[,...]", addresses),
    "the broker",
    CONNECTION,
    default=f"bootstrap.servers of --kafka-config, or {DEFAULT_BOOTSTRAP}",
)
KAFKA: Final = Option(
    "--kafka", PAIRS, "a setting of the Kafka client, such as security.protocol=SSL", CONNECTION
)
KAFKA_CONFIG: Final = Option(
    "--kafka-config",
    FILE,
    "settings of the Kafka client in a properties file, as Kafka's own tools take it "
    "(client.properties): passwords stay out of the list of processes",
    CONNECTION,
)


class ConnectionOptions(NamedTuple):
    """A cluster, as the user gives it; `Part(ConnectionOptions)` in a plan."""

    bootstrap: Annotated[str | None, BOOTSTRAP] = None
    kafka: Annotated[Mapping[str, str], KAFKA] = {}
    kafka_config: Annotated[str | None, KAFKA_CONFIG] = None

    def settings(self) -> dict[str, str]:
        """Return the settings of a client, the address among them.

        Raises UsageError: the file cannot be read.
        """
        address, settings = merged_settings(self.bootstrap, self.kafka_config, self.kafka)
        return {**settings, "bootstrap.servers": address or DEFAULT_BOOTSTRAP}


def merged_settings(
    bootstrap: str | None, config_file: str | None, settings: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """Return the address of a cluster, None if nothing says one, and the other settings.

    Args:
        bootstrap: the address; None: the one among the settings.
        config_file: a properties file with settings of a client, None: none.
        settings: more of them, which win; `kafka.` may stand before the names.

    Raises:
        UsageError: the file cannot be read.
    """
    merged = {} if config_file is None else _read_file(config_file)
    merged |= {name.removeprefix("kafka."): value for name, value in settings.items()}
    addresses_given = [merged.pop(key) for key in _ADDRESS_KEYS if key in merged]
    return bootstrap or next(iter(addresses_given), None), merged


def _read_file(path: str) -> dict[str, str]:
    from minibroker.client.given_settings import read_file  # noqa: PLC0415  for a file only
    from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above

    try:
        return read_file(path)
    except ConfigError as error:
        raise UsageError(str(error)) from None
