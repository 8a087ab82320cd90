"""The broker that `hand-over` and `take-back` are about: its directories, and how `serve` had it.

The options of settings are those of `serve`, so the same words name the same broker.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.declaration import InOrder, Option
from minibroker.cli.kinds import FILE, Many
from minibroker.verbs.serve.plan import PROTOCOL, SETTINGS_IN_ORDER, ServePlan, Users, secured

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.tools.kraft.nodes import Home

SETTINGS: Final = "Settings, as serve had them"
_OTHERS: Final = frozenset({"--data-dir", "--zookeeper"})
"""The directories are named by themselves; a tree in ZooKeeper is not handed over."""


def _regrouped(option: Option) -> Option:
    return Option(option.flag, option.kind, option.help, SETTINGS, default=option.default)


class StoppedBroker(NamedTuple):
    """The options."""

    directories: Annotated[
        tuple[str, ...],
        Option(
            "DIR",
            Many("DIR", is_split=False, completes="directory"),
            "the data directory of serve; several log directories of one broker in the order of "
            "log.dirs",
            example="minibroker-data",
        ),
    ]
    settings: Annotated[
        tuple[tuple[str, str], ...],
        InOrder(
            [
                _regrouped(option)
                for option in SETTINGS_IN_ORDER.options
                if option.flag not in _OTHERS
            ]
        ),
    ] = ()
    """Kafka's key and value, in the order of the flags."""
    config_file: Annotated[
        str | None, Option("--config", FILE, "the file of serve --config", SETTINGS)
    ] = None
    security: Annotated[
        str | None,
        Option("--security", PROTOCOL, "the protocol of serve --security", SETTINGS),
    ] = None
    users: Annotated[
        Mapping[str, str], Option("--user", Users(), "the users of serve --user", SETTINGS)
    ] = {}
    """Name → password."""


def read_broker(options: StoppedBroker) -> "tuple[Home, list[BrokerConfig]]":
    """Return the directories and the configuration of each node. Raises UsageError, StorageError,
    ConfigError.
    """
    from minibroker.broker.config.members import configs_of  # noqa: PLC0415  not for help
    from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above
    from minibroker.tools.kraft.nodes import read_home  # noqa: PLC0415  as above
    from minibroker.verbs.serve.settings import build  # noqa: PLC0415  as above

    home = read_home(options.directories)
    log_dirs = ("log.dirs", ",".join(options.directories))
    first_id = home.nodes[0].id
    plan = ServePlan(
        settings=(
            *options.settings,
            log_dirs,
            ("broker.id", str(first_id)),
            ("node.id", str(first_id)),
        ),
        config_file=options.config_file,
        security=options.security,
        users=options.users,
    )
    config, _ = build(secured(plan), os.environ)
    if not home.is_shared:
        return home, [config]
    configs = configs_of(config, len(home.nodes))
    ids = [node.id for node in home.nodes]
    if ids != [member.broker_id for member in configs]:
        raise ConfigError(
            f"{options.directories[0]} has the brokers {', '.join(map(str, ids))}: expected ids "
            f"that follow {first_id}"
        )
    return home, configs
