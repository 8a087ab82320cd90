"""The settings of several brokers that share a process, made from one configuration.

Broker n of `count` gets the id `broker.id` + n, the ports of the listeners + n, and a directory
`broker-<id>` in each log directory. Where the user gave no replication factor, topics get as many
replicas as Kafka's documentation recommends: 3, or one for each broker if there are fewer.

Used by `serve --brokers` and by `testing.Cluster`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener

REPLICAS_MAX: Final = 3
PORT_MAX: Final = 65535


def configs_of(config: BrokerConfig, count: int) -> list[BrokerConfig]:
    """Return the configuration of each broker, in the order of their ids. Raises ConfigError."""
    if config.zookeeper_connect is not None:
        raise ConfigError(
            f"--brokers {count} keeps the metadata in this process and needs no ZooKeeper: leave "
            f"out --zookeeper (zookeeper.connect={config.zookeeper_connect}); or leave out "
            "--brokers, and start a process for each broker, with a broker.id and a --data-dir "
            "of its own"
        )
    configs = [_config_of(config, count, number) for number in range(count)]
    _check_ports(configs)
    return configs


def replicas_of(count: int) -> int:
    """Return how many replicas a topic gets among `count` brokers where nobody says it."""
    return min(REPLICAS_MAX, count)


def member_directory(log_dir: str, broker_id: int) -> str:
    """Return the directory of one broker in a log directory of all."""
    return str(Path(log_dir) / f"broker-{broker_id}")


def _config_of(config: BrokerConfig, count: int, number: int) -> BrokerConfig:
    """Return the configuration of broker `number` of `count`, from 0 up: id, directories and ports
    of its own, and replicas as several brokers have them, unless a setting says otherwise.
    """
    broker_id = config.broker_id + number
    own = {
        "broker.id": str(broker_id),
        "node.id": str(broker_id),
        "log.dirs": ",".join(member_directory(path, broker_id) for path in config.log_dirs),
        "listeners": _moved(config.listeners, number),
    }
    if "advertised.listeners" in config.originals:
        own["advertised.listeners"] = _moved(config.advertised_listeners, number)
    replicas = str(replicas_of(count))
    defaults = {
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        # As in Kafka. With two brokers, transactions have to go on when one of them dies.
        "transaction.state.log.min.isr": "2" if count >= REPLICAS_MAX else "1",
    }
    originals = config.originals
    return config.with_overrides(
        {**{key: text for key, text in defaults.items() if key not in originals}, **own}
    )


def _moved(listeners: Iterable[Listener], number: int) -> str:
    """Return the text of listeners whose ports are higher by `number`; a free port stays one.

    Raises ConfigError.
    """
    moved = []
    for listener in listeners:
        port = listener.port + number if listener.port else 0
        if port > PORT_MAX:
            raise ConfigError(
                f"listener {listener}: the ports of the other brokers follow this one, and "
                f"{port} is none: give a lower port, or 0 for free ones"
            )
        moved.append(str(listener._replace(port=port)))
    return ",".join(moved)


def _check_ports(configs: list[BrokerConfig]) -> None:
    """Check that no broker gets a port of another one. Raises ConfigError."""
    broker_by_port: dict[int, int] = {}
    for config in configs:
        for listener in config.listeners:
            other = (
                broker_by_port.setdefault(listener.port, config.broker_id)
                if listener.port
                else None
            )
            if other not in (None, config.broker_id):
                raise ConfigError(
                    f"listener {listener} of broker {config.broker_id} has a port that broker "
                    f"{other} has, too: each broker takes the ports after the one before it; give "
                    f"listeners whose ports are {len(configs)} apart, or port 0"
                )
