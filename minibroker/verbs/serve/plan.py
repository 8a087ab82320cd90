"""The options of `minibroker serve`.

Some flags are short names of Kafka's keys. They and `--set` are applied in their order: the later
wins. `settings` adds the file and the environment.

The annotations are no strings here: those of so many options would cost 2 ms of a start.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.declaration import InOrder, Option
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import ADDRESS, FILE, PORT_MAX, SWITCH, Kind, Many, check_choice, choice
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from minibroker.broker.config.topic_option import TopicToCreate

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOOPS: Final = ("auto", "uvloop", "asyncio")
BROKERS_MAX: Final = 100
"""They share one loop, so a hundred idle ones are as many as make sense."""

CONTROL_TOKEN: Final = "--control-token"
CONTROL_READ_TOKEN: Final = "--control-read-token"
CONTROL_TLS: Final = "--control-tls"
CONSOLE_READ_ONLY: Final = "--console-read-only"
REGISTRY_USER: Final = "--registry-user"
REGISTRY_TLS: Final = "--registry-tls"

CLIENTS: Final = "Clients and topics"
METADATA: Final = "Data and metadata"
SETTINGS: Final = "Settings"
SECURITY: Final = "Security"
CONTROL: Final = "Control over HTTP"
REGISTRY: Final = "Schema registry"
PROCESS: Final = "Process"


PROTOCOL: Final = Kind("PROTOCOL", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))


class Users(Kind):
    """`NAME:PASSWORD`, or `@FILE` with one on each line; name → password."""

    is_repeated = True

    def __init__(self) -> None:
        super().__init__("NAME:PASSWORD", show=", ".join)

    def of_words(self, words: Sequence[str]) -> dict[str, str]:
        """Return the users; of a name that is given twice the last. Raises UsageError."""
        from minibroker.broker.config.secured import parse_user  # noqa: PLC0415  seldom asked for

        users = {}
        for word in words:
            for line in _lines_of(word):
                try:
                    name, password = parse_user(line)
                except ConfigError as error:
                    raise UsageError(f"is wrong: {error}") from None
                users[name] = password
        return users


def _lines_of(word: str) -> list[str]:
    """Return the word, or the lines of the file behind `@`. Raises UsageError."""
    if not word.startswith("@"):
        return [word]
    try:
        with open(word[1:], encoding="utf-8") as file:  # noqa: PTH123  pathlib costs 3 ms here
            return [line for line in file.read().splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"{word}: {error}") from None


def _listener(value: str) -> tuple[str, str]:
    """Return the setting of `HOST:PORT` as the PLAINTEXT listener, or of the text itself if it has
    Kafka's form `NAME://…`. Raises UsageError.
    """
    host, colon, port = value.rpartition(":")
    if "://" not in value:
        if not (colon and port.isdecimal() and int(port) <= PORT_MAX):
            raise UsageError(f"{value}: expected HOST:PORT, for instance 127.0.0.1:9092")
        value = f"PLAINTEXT://{f'[{host}]' if ':' in host.strip('[]') else host}:{port}"
        value = value.replace("[[", "[").replace("]]", "]")
    return "listeners", value


def _data_dir(value: str) -> tuple[str, str]:
    if not value:
        raise UsageError("needs a directory")
    return "log.dirs", value


def _release(value: str) -> tuple[str, str]:
    from minibroker.broker.config.release_defaults import release_named  # noqa: PLC0415  seldom asked for
    from minibroker.broker.config.values import RELEASE_KEY  # noqa: PLC0415  as above

    try:
        return RELEASE_KEY, release_named(value)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def _setting(value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{value}: expected KEY=VALUE, for instance num.partitions=3")
    return key.strip(), text


def _topic(value: str) -> "TopicToCreate":
    from minibroker.broker.config.topic_option import parse_topic  # noqa: PLC0415  for --topic only

    try:
        return parse_topic(value)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def _brokers(value: str) -> int:
    if not (value.isdecimal() and 1 <= int(value) <= BROKERS_MAX):
        raise UsageError(f"{value}: expected a number from 1 to {BROKERS_MAX}")
    return int(value)


def _log_level(value: str) -> str:
    return check_choice(value.lower(), LOG_LEVELS)


SETTINGS_IN_ORDER: Final = InOrder(
    (
        Option(
            "--listen",
            Kind("HOST:PORT", _listener),
            "address for clients; port 0 takes a free port",
            CLIENTS,
            default="127.0.0.1:9092",
        ),
        Option(
            "--data-dir",
            Kind("DIR", _data_dir, completes="directory"),
            "directory of the data",
            METADATA,
            default="./minibroker-data",
        ),
        Option(
            "--zookeeper",
            Kind("HOST:PORT[,...][/chroot]", lambda value: ("zookeeper.connect", value)),
            "keep the metadata in ZooKeeper, as Apache Kafka 3.9 does",
            METADATA,
        ),
        Option(
            "--as",
            Kind("RELEASE", _release),
            "pass for this Kafka release, from 0.8.2 to 4.4: versions of requests, features and "
            "defaults are those of that release",
            SETTINGS,
            default="newest",
        ),
        Option(
            "--set",
            Many("KEY=VALUE", _setting, is_split=False),
            "set a Kafka setting",
            SETTINGS,
        ),
    )
)


class ServePlan(NamedTuple):
    """The options of `serve`, before file and environment are added."""

    settings: Annotated[tuple[tuple[str, str], ...], SETTINGS_IN_ORDER] = ()
    """Kafka's key and value, in the order of the flags."""
    topics: Annotated[
        tuple["TopicToCreate", ...],
        Option(
            "--topic",
            Many("NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE...]", _topic, is_split=False),
            "create this topic if it does not exist",
            CLIENTS,
        ),
    ] = ()
    seeds: Annotated[
        tuple[str, ...],
        Option(
            "--seed",
            Many("FILE|DIR", is_split=False, completes="file"),
            "load topics, records and offsets of groups from this seed (.jsonl, .yaml, or a "
            "directory of segment files) before the broker is ready, unless its topics have "
            "records",
            CLIENTS,
        ),
    ] = ()
    brokers: Annotated[
        int,
        Option(
            "--brokers",
            Kind("N", _brokers),
            "run N brokers that replicate, in this process, without ZooKeeper. Ids, ports and "
            "control ports follow those of the first broker, the data are in DIR/broker-0, "
            "DIR/broker-1, ... Topics get 3 replicas (2 with two brokers) unless a setting says "
            "otherwise",
            CLIENTS,
        ),
    ] = 1
    in_memory: Annotated[
        bool,
        Option(
            "--memory",
            SWITCH,
            "keep no data: use a temporary directory and remove it at exit",
            METADATA,
        ),
    ] = False
    config_file: Annotated[
        str | None,
        Option(
            "--config", FILE, "read settings from a file like Kafka's server.properties", SETTINGS
        ),
    ] = None
    security: Annotated[
        str | None,
        Option(
            "--security",
            PROTOCOL,
            "SASL_PLAINTEXT lets only known users in (--user), SSL encrypts with a certificate "
            "made for this broker, SASL_SSL does both; the file of the CA that clients have to "
            "trust is named on stderr",
            SECURITY,
            default="PLAINTEXT",
        ),
    ] = None
    users: Annotated[
        Mapping[str, str],
        Option(
            "--user",
            Users(),
            "a user that may log in by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. @FILE reads one "
            "NAME:PASSWORD from each line, which keeps passwords out of process lists",
            SECURITY,
        ),
    ] = {}
    """Name → password."""
    control: Annotated[
        tuple[str, int] | None,
        Option(
            "--control",
            ADDRESS,
            "serve health, metrics, faults and the clock over HTTP; the second line of the ready "
            "file is its address. Any host but 127.0.0.1, ::1 and localhost needs a token",
            CONTROL,
            default="off",
        ),
    ] = None
    control_token: Annotated[
        str | None,
        Option(
            CONTROL_TOKEN,
            Kind("TOKEN"),
            "token that HTTP callers send (Authorization: Bearer TOKEN); /health needs none. The "
            "variable MINIBROKER_CONTROL_TOKEN, or @FILE in place of the token, keeps it out of "
            "process lists",
            CONTROL,
        ),
    ] = None
    control_read_token: Annotated[
        str | None,
        Option(
            CONTROL_READ_TOKEN,
            Kind("TOKEN"),
            "another token, for callers that only read (GET), such as Prometheus; @FILE and "
            "MINIBROKER_CONTROL_READ_TOKEN as above",
            CONTROL,
        ),
    ] = None
    control_tls: Annotated[
        str | None,
        Option(
            CONTROL_TLS,
            Kind("LISTENER|FILE", completes="file"),
            "serve HTTPS with the certificate of a listener (--control-tls SSL), or with a PEM "
            "file of a private key and its certificates",
            CONTROL,
        ),
    ] = None
    console_read_only: Annotated[
        bool,
        Option(
            CONSOLE_READ_ONLY,
            SWITCH,
            "the console, which --control serves to a browser, changes nothing, whatever its "
            "token; other programs do",
            CONTROL,
        ),
    ] = False
    registry: Annotated[
        tuple[str, int] | None,
        Option(
            "--registry",
            ADDRESS,
            "serve a schema registry with Confluent's REST API, which keeps its schemas in the "
            "topic _schemas; the last line of the ready file is its address. With --brokers each "
            "broker has one, on the ports that follow",
            REGISTRY,
            default="off",
        ),
    ] = None
    registry_users: Annotated[
        Mapping[str, str],
        Option(
            REGISTRY_USER,
            Users(),
            "a user of the registry, by HTTP basic authentication; without one everybody is "
            "served. @FILE reads one NAME:PASSWORD from each line",
            REGISTRY,
        ),
    ] = {}
    """Name → password."""
    registry_tls: Annotated[
        str | None,
        Option(
            REGISTRY_TLS,
            Kind("LISTENER|FILE", completes="file"),
            "serve the registry over HTTPS with the certificate of a listener (--registry-tls "
            "SSL), or with a PEM file of a private key and its certificates",
            REGISTRY,
        ),
    ] = None
    ready_file: Annotated[
        str | None,
        Option(
            "--ready-file",
            FILE,
            'write "minibroker listening on HOST:PORT" to FILE when clients can connect (with '
            "several brokers HOST:PORT,HOST:PORT,...)",
            PROCESS,
        ),
    ] = None
    loop: Annotated[
        str,
        Option(
            "--loop",
            choice(*LOOPS),
            "the event loop; auto: uvloop where it is installed, else asyncio's own",
            PROCESS,
        ),
    ] = "auto"
    log_level: Annotated[
        str,
        Option(
            "--log-level",
            Kind("LEVEL", _log_level, choices=LOG_LEVELS),
            "debug, info, warning or error, on stderr",
            PROCESS,
        ),
    ] = "info"
    host: str | None = None
    """The name of this machine in the certificate of `--security`; None: that of `--listen`."""

    @property
    def control_tokens(self) -> dict[str, str]:
        """Return flag → token, or @FILE, of those that are given."""
        tokens = {CONTROL_TOKEN: self.control_token, CONTROL_READ_TOKEN: self.control_read_token}
        return {flag: token for flag, token in tokens.items() if token is not None}


def secured(plan: ServePlan) -> ServePlan:
    """Return the plan with the settings of `--security` and `--user` before those of other flags.

    The address of `--listen` stays, with the security protocol as the listener's name. Raises
    UsageError.
    """
    if plan.security is None and not plan.users:
        return plan
    from minibroker.broker.config.secured import secured_settings  # noqa: PLC0415  seldom asked for

    protocol = (plan.security or "SASL_PLAINTEXT").upper()
    try:
        own = secured_settings(protocol, plan.users)
    except ConfigError as error:
        raise UsageError(f"--security and --user: {error}") from None
    own["listeners"] = f"{protocol}://127.0.0.1:9092"
    flags = [
        (key, text.replace("PLAINTEXT://", f"{protocol}://") if key == "listeners" else text)
        for key, text in plan.settings
    ]
    return plan._replace(settings=(*own.items(), *flags))
