"""The command line: turns arguments into a `BrokerConfig` and `ServeOptions`, returns an exit code.

Some flags are short names of Kafka's keys. They and `--set` are applied in their order: the later
wins. The parser is hand-written, because argparse costs 6 ms of a start that may take 120. Each
flag of `minibroker serve` is one row of `_FLAGS`.

Exit codes: 0 after a clean stop, 1 when the broker cannot start (one sentence on stderr), 2 for
wrong usage.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.options import ServeOptions, TopicToCreate, UsageError, parse_topic
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.control import ControlOptions

EXIT_OK: Final = 0
EXIT_CANNOT_START: Final = 1
EXIT_USAGE: Final = 2

_USAGE: Final = """\
minibroker: a Kafka-compatible broker in one process

  minibroker serve [--listen HOST:PORT] [--data-dir DIR] [--memory] [--brokers N]
                   [--topic NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE...]]...
                   [--zookeeper HOST:PORT[,...][/chroot]] [--config FILE] [--set KEY=VALUE]...
                   [--security PROTOCOL] [--user NAME:PASSWORD]...
                   [--ready-file FILE] [--loop uvloop|asyncio] [--log-level LEVEL]
                   [--control HOST:PORT] [--control-token TOKEN] [--control-read-token TOKEN]
                   [--control-tls LISTENER|FILE]
  minibroker dump-log [--print-data-log] [--deep-iteration] [--offsets-decoder]
                   [--transaction-log-decoder] [--json] FILE...
  minibroker check-log [--strict] [--deep] [--quiet] [--json] DIR...
  minibroker pipeline VERB [FLAG]...
  minibroker version

`minibroker COMMAND --help` explains the flags. `python -m minibroker` is the same program.
"""

_SERVE_HELP: Final = """\
minibroker serve: start the broker and serve until SIGTERM or SIGINT

  --listen HOST:PORT      address for clients (127.0.0.1:9092); port 0 takes a free port
  --data-dir DIR          directory of the data (./minibroker-data)
  --memory                keep no data: use a temporary directory and remove it at exit
  --topic NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE...]
                          create this topic if it does not exist; may be given more than once
  --brokers N             run N brokers (1) that replicate, in this process, without ZooKeeper. Ids,
                          ports and control ports follow those of the first broker, the data are in
                          DIR/broker-0, DIR/broker-1, ... Topics get 3 replicas (2 with two brokers)
                          unless a setting says otherwise
  --zookeeper HOST:PORT[,...][/chroot]
                          keep the metadata in ZooKeeper, as Apache Kafka 3.9 does
  --config FILE           read settings from a file like Kafka's server.properties
  --set KEY=VALUE         set a Kafka setting; may be given more than once
  --security PROTOCOL     SASL_PLAINTEXT lets only known users in (--user), SSL encrypts with a
                          certificate made for this broker, SASL_SSL does both; the file of the CA
                          that clients have to trust is named on stderr (PLAINTEXT)
  --user NAME:PASSWORD    a user that may log in by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; may be
                          given more than once. @FILE reads one NAME:PASSWORD from each line, which
                          keeps passwords out of process lists
  --ready-file FILE       write "minibroker listening on HOST:PORT" to FILE when clients can connect
                          (with several brokers HOST:PORT,HOST:PORT,...)
  --control HOST:PORT     serve health, metrics, faults and the clock over HTTP (off); the second
                          line of the ready file is its address. Any host but 127.0.0.1, ::1 and
                          localhost needs a token
  --control-token TOKEN   token that HTTP callers send (Authorization: Bearer TOKEN); /health needs
                          none. The variable MINIBROKER_CONTROL_TOKEN, or @FILE in place of the
                          token, keeps it out of process lists
  --control-read-token TOKEN
                          another token, for callers that only read (GET), such as Prometheus;
                          @FILE and MINIBROKER_CONTROL_READ_TOKEN as above
  --control-tls LISTENER|FILE
                          serve HTTPS with the certificate of a listener (--control-tls SSL), or
                          with a PEM file of a private key and its certificates
  --loop uvloop|asyncio   the event loop (uvloop)
  --log-level LEVEL       debug, info, warning or error (info), on stderr

KAFKA_... variables are settings too, as in the apache/kafka image: KAFKA_NUM_PARTITIONS=3 sets
num.partitions=3. A variable overrides --config. A flag overrides both. A later flag overrides an
earlier flag.

A topic with cleanup.policy=compact is compacted after one second without records; Kafka waits until
a segment is full. --set minibroker.log.cleaner.idle.ms=0 waits like Kafka.

  minibroker serve
  minibroker serve --memory --listen 127.0.0.1:0 --ready-file ready
  minibroker serve --brokers 3 --topic orders:6:3
  minibroker serve --topic orders:6 --topic users:3:cleanup.policy=compact:segment.ms=60000
  minibroker serve --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://myhost:9092
"""

_LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_LOOPS: Final = ("uvloop", "asyncio")
BROKERS_MAX: Final = 100
"""They share one loop, so a hundred idle ones are as many as make sense."""


class ServeArguments:
    """The arguments of `serve`, before file and environment are added. `parse_serve` fills it."""

    __slots__ = (
        "brokers",
        "config_file",
        "control",
        "control_tls",
        "control_tokens",
        "host",
        "in_memory",
        "log_level",
        "loop",
        "ready_file",
        "security",
        "settings",
        "topics",
        "users",
    )

    def __init__(self) -> None:
        self.settings: list[tuple[str, str]] = []
        self.topics: list[TopicToCreate] = []
        self.config_file: str | None = None
        self.ready_file: str | None = None
        self.control: tuple[str, int] | None = None
        self.control_tokens: dict[str, str] = {}
        """Flag → token, or @FILE."""
        self.control_tls: str | None = None
        self.in_memory = False
        self.security: str | None = None
        self.users: dict[str, str] = {}
        self.host: str | None = None
        """The name of this machine in the certificate of `--security`; None: that of `--listen`."""
        self.brokers = 1
        self.loop = "uvloop"
        self.log_level = "info"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code. Prints only the output of the command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words else ""
    if command in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return EXIT_OK
    if command in ("version", "--version", "-V"):
        from minibroker import __version__  # noqa: PLC0415  the one command that needs it

        print(f"minibroker {__version__}")
        return EXIT_OK
    if command == "serve":
        return _serve(words[1:])
    if command in ("dump-log", "check-log"):
        from minibroker.tools import commands  # noqa: PLC0415  serve does not pay for it

        return commands.run(command, words[1:])
    if command == "pipeline":
        from minibroker.pipeline import command_line  # noqa: PLC0415  serve does not pay for it

        return command_line.run(words[1:])
    if command:
        print(f"minibroker: unknown command {command!r}; these are the commands:", file=sys.stderr)
    print(_USAGE, end="", file=sys.stderr)
    return EXIT_USAGE


def _serve(words: Sequence[str]) -> int:
    if "--help" in words or "-h" in words:
        print(_SERVE_HELP, end="")
        return EXIT_OK
    try:
        arguments = parse_serve(words)
    except UsageError as error:
        print(f"minibroker serve: {error}; see minibroker serve --help", file=sys.stderr)
        return EXIT_USAGE
    configure_logging(arguments.log_level)
    try:
        config, options = build(arguments, os.environ)
    except ConfigError as error:
        print(f"minibroker: {error}", file=sys.stderr)
        return EXIT_CANNOT_START

    from minibroker import process  # noqa: PLC0415  everything else is loaded only to serve

    return process.run(config, options)


def parse_serve(words: Sequence[str]) -> ServeArguments:
    """Return the arguments after the word `serve`. Raises UsageError."""
    arguments = ServeArguments()
    remaining = iter(words)
    for word in remaining:
        if word == "--memory":
            arguments.in_memory = True
            continue
        flag, equals, value = word.partition("=")
        take = _FLAGS.get(flag)
        if take is None:
            raise UsageError(f"unknown argument {word!r}")
        take(arguments, value if equals else _value_of(flag, remaining))
    if arguments.in_memory and any(key in ("log.dirs", "log.dir") for key, _ in arguments.settings):
        raise UsageError("--memory keeps nothing and --data-dir keeps everything: give one of them")
    if arguments.security is not None or arguments.users:
        _secure(arguments)
    return arguments


def _secure(arguments: ServeArguments) -> None:
    """Put the settings of `--security` and `--user` before those of other flags. Raises UsageError.

    The address of `--listen` stays, with the security protocol as the listener's name.
    """
    from minibroker.broker.config.secured import secured_settings  # noqa: PLC0415  seldom asked for

    protocol = (arguments.security or "SASL_PLAINTEXT").upper()
    try:
        secured = secured_settings(protocol, arguments.users)
    except ConfigError as error:
        raise UsageError(f"--security and --user: {error}") from None
    secured["listeners"] = f"{protocol}://127.0.0.1:9092"
    flags = [
        (key, text.replace("PLAINTEXT://", f"{protocol}://") if key == "listeners" else text)
        for key, text in arguments.settings
    ]
    arguments.settings = [*secured.items(), *flags]


def build(
    arguments: ServeArguments, environment: Mapping[str, str]
) -> tuple[BrokerConfig, ServeOptions]:
    """Merge file, environment and flags, and check the result. Raises ConfigError."""
    from minibroker.broker.config.broker import BrokerConfig  # noqa: PLC0415  not for version and help
    from minibroker.broker.config.sources import gather  # noqa: PLC0415  as above
    from minibroker.kafka.java_formats.properties import read_properties  # noqa: PLC0415  as above

    file_settings = read_properties(arguments.config_file) if arguments.config_file else {}
    settings = arguments.settings
    if arguments.security is not None and arguments.security.upper().endswith("SSL"):
        settings = [*_certificates(arguments), *settings]
    config = BrokerConfig(gather(file_settings, environment, settings))
    if config.unknown_keys:
        import logging  # noqa: PLC0415  only with something to say

        logging.getLogger(__name__).warning(
            "unknown configuration keys are ignored: %s", ", ".join(config.unknown_keys)
        )
    if config.without_effect:
        import logging  # noqa: PLC0415  as above

        logging.getLogger(__name__).warning(
            "these settings have no effect: %s", ", ".join(config.without_effect)
        )
    options = ServeOptions(
        topics=arguments.topics,
        ready_file=arguments.ready_file,
        in_memory=arguments.in_memory,
        loop=arguments.loop,
        log_level=arguments.log_level,
        control=_control(arguments, environment),
        brokers=arguments.brokers,
    )
    return config, options


def _certificates(arguments: ServeArguments) -> list[tuple[str, str]]:
    """Return the settings of a certificate that is made for this broker. The directory beside the
    data keeps the CA; with `--memory` it goes at exit. Raises ConfigError.
    """
    import logging  # noqa: PLC0415  as the others: for --security SSL only
    from pathlib import Path  # noqa: PLC0415

    from minibroker.testing.security import Security  # noqa: PLC0415

    settings = dict(arguments.settings)
    if arguments.in_memory:
        import atexit  # noqa: PLC0415
        import shutil  # noqa: PLC0415
        import tempfile  # noqa: PLC0415

        directory = Path(tempfile.mkdtemp(prefix="minibroker-tls-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    else:
        directory = Path(settings.get("log.dirs", "minibroker-data").split(",")[0] + "-tls")
    assert arguments.security is not None
    security = Security(arguments.security, directory, arguments.users)
    ca_file = security.ca_file.absolute()
    logging.getLogger(__name__).info("clients have to trust the CA in %s", ca_file)
    listeners = settings.get("listeners", "")
    host = arguments.host or listeners.partition("://")[2].rpartition(":")[0].strip("[]")
    return list(security.tls_settings(host).items())


def _control(arguments: ServeArguments, environment: Mapping[str, str]) -> ControlOptions | None:
    """Return the options of the control API, None without `--control`. Raises ConfigError."""
    if arguments.control is None:
        flags = [*arguments.control_tokens, *(["--control-tls"] if arguments.control_tls else [])]
        if flags:
            raise ConfigError(f"{flags[0]} needs --control HOST:PORT")
        return None
    from minibroker.broker.config.control import control_options  # noqa: PLC0415  for --control only

    return control_options(
        arguments.control, arguments.control_tokens, arguments.control_tls, environment
    )


def _value_of(flag: str, remaining: Iterator[str]) -> str:
    value = next(remaining, None)
    if value is None or value.startswith("--"):
        raise UsageError(f"{flag} needs a value")
    return value


def _take_listen(arguments: ServeArguments, value: str) -> None:
    """Add `HOST:PORT` as the PLAINTEXT listener, or the text itself if it has Kafka's form
    `NAME://…`.
    """
    host, colon, port = value.rpartition(":")
    if "://" not in value:
        if not (colon and port.isdecimal() and int(port) <= 65535):
            raise UsageError(f"--listen {value}: expected HOST:PORT, for instance 127.0.0.1:9092")
        value = f"PLAINTEXT://{f'[{host}]' if ':' in host.strip('[]') else host}:{port}"
        value = value.replace("[[", "[").replace("]]", "]")
    arguments.settings.append(("listeners", value))


def _take_data_dir(arguments: ServeArguments, value: str) -> None:
    if not value:
        raise UsageError("--data-dir needs a directory")
    arguments.settings.append(("log.dirs", value))


def _take_zookeeper(arguments: ServeArguments, value: str) -> None:
    arguments.settings.append(("zookeeper.connect", value))


def _take_set(arguments: ServeArguments, value: str) -> None:
    key, equals, text = value.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {value}: expected KEY=VALUE, for instance num.partitions=3")
    arguments.settings.append((key.strip(), text))


def _take_topic(arguments: ServeArguments, value: str) -> None:
    arguments.topics.append(parse_topic(value))


def _take_config(arguments: ServeArguments, value: str) -> None:
    arguments.config_file = value


def _take_ready_file(arguments: ServeArguments, value: str) -> None:
    arguments.ready_file = value


def _take_control(arguments: ServeArguments, value: str) -> None:
    host, colon, port = value.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise UsageError(f"--control {value}: expected HOST:PORT, for instance 127.0.0.1:9093")
    arguments.control = (host.strip("[]"), int(port))


def _take_control_token(arguments: ServeArguments, value: str) -> None:
    arguments.control_tokens["--control-token"] = value


def _take_control_read_token(arguments: ServeArguments, value: str) -> None:
    arguments.control_tokens["--control-read-token"] = value


def _take_control_tls(arguments: ServeArguments, value: str) -> None:
    arguments.control_tls = value


def _take_security(arguments: ServeArguments, value: str) -> None:
    arguments.security = value


def _take_user(arguments: ServeArguments, value: str) -> None:
    from minibroker.broker.config.secured import parse_user  # noqa: PLC0415  seldom asked for

    lines = [value]
    if value.startswith("@"):
        try:
            with open(value[1:], encoding="utf-8") as file:  # noqa: PTH123  pathlib costs 3 ms here
                lines = [line for line in file.read().splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise UsageError(f"--user {value}: {error}") from None
    for line in lines:
        try:
            name, password = parse_user(line)
        except ConfigError as error:
            raise UsageError(f"--user: {error}") from None
        arguments.users[name] = password


def _take_brokers(arguments: ServeArguments, value: str) -> None:
    if not (value.isdecimal() and 1 <= int(value) <= BROKERS_MAX):
        raise UsageError(f"--brokers {value}: expected a number from 1 to {BROKERS_MAX}")
    arguments.brokers = int(value)


def _take_loop(arguments: ServeArguments, value: str) -> None:
    if value not in _LOOPS:
        raise UsageError(f"--loop {value}: expected {' or '.join(_LOOPS)}")
    arguments.loop = value


def _take_log_level(arguments: ServeArguments, value: str) -> None:
    if value.lower() not in _LOG_LEVELS:
        raise UsageError(f"--log-level {value}: expected one of {', '.join(_LOG_LEVELS)}")
    arguments.log_level = value.lower()


_FLAGS: Final[dict[str, Callable[[ServeArguments, str], None]]] = {
    "--listen": _take_listen,
    "--data-dir": _take_data_dir,
    "--topic": _take_topic,
    "--zookeeper": _take_zookeeper,
    "--config": _take_config,
    "--set": _take_set,
    "--ready-file": _take_ready_file,
    "--control": _take_control,
    "--control-token": _take_control_token,
    "--control-read-token": _take_control_read_token,
    "--control-tls": _take_control_tls,
    "--security": _take_security,
    "--user": _take_user,
    "--brokers": _take_brokers,
    "--loop": _take_loop,
    "--log-level": _take_log_level,
}


def configure_logging(level: str) -> None:
    """Write each event as a line on stderr: time, level, logger, message."""
    import logging  # noqa: PLC0415  version and help do without

    from minibroker.broker.log_lines import LogLines  # noqa: PLC0415  as above

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(handlers=[handler], level=level.upper())
