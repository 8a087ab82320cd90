"""Small programs with which compose files wait: `cub kafka-ready`, `nc -z`, `wait-for-port`.

    cub kafka-ready -b kafka:9092 1 30      one broker at least, within 30 s
    cub zk-ready zookeeper:2181 30          a ZooKeeper that answers
    dub wait kafka 9092 30                  a port that listens
    nc -z -w 2 kafka 9092                   …, asked once
    wait-for-port --host kafka 9092         …, within 30 s

Source: confluentinc/confluent-docker-utils (cub, dub), bitnami/wait-for-port, OpenBSD's nc.
"""

from __future__ import annotations

import socket
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.client import admin
from minibroker.container.scripts.connecting import reader_of
from minibroker.container.scripts.options import ScriptError, ScriptOption, Words, parse
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAUSE_S: Final = 0.1
_CONNECT_S: Final = 5.0
_WAIT_S: Final = "30"
_CUB: Final = {
    "b": ScriptOption("HOST:PORT", "the brokers"),
    "bootstrap-server": ScriptOption("HOST:PORT", "the brokers"),
    "c": ScriptOption("FILE", "settings of the client"),
    "config": ScriptOption("FILE", "settings of the client"),
    "z": ScriptOption("HOST:PORT", "the ZooKeeper where the brokers are registered"),
    "s": ScriptOption("PROTOCOL", "without effect: the settings say it"),
}
_FLAGS_WITH_VALUE: Final = ("-w", "-i", "-p", "-s")
"""Flags of nc that a value follows."""


def run(name: str, words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Wait or look; return 0 if it is there, else 1 and a line on stderr."""
    try:
        if name == "nc":
            return _nc(words, errors)
        if name == "cub":
            return _cub(words)
        return _port(name, words)
    except (ScriptError, KafkaError, OSError, ProtocolError, ConfigError, ValueError) as error:
        errors.write(f"{name}: {error or type(error).__name__}\n")
        return 1


def _nc(words: Sequence[str], errors: TextIO) -> int:
    """Do `nc -z [-v] [-w SECONDS] HOST PORT`. Raises OSError, ScriptError."""
    places: list[str] = []
    seconds, is_verbose, is_scan = _CONNECT_S, False, False
    remaining = iter(words)
    for word in remaining:
        if word.startswith("-") and not word.startswith("--"):
            is_scan |= "z" in word
            is_verbose |= "v" in word
            flag = next((option for option in _FLAGS_WITH_VALUE if option[1] in word), "")
            if flag:
                value = word.partition(flag[1])[2] or next(remaining, "")
                seconds = float(value) if flag == "-w" else seconds
        else:
            places.append(word)
    if not is_scan or len(places) != 2:
        raise ScriptError("only nc -z HOST PORT is here: it says whether a port listens")
    host, port = places
    try:
        _connect(host, int(port), seconds)
    except OSError as error:
        if is_verbose:
            errors.write(f"nc: connect to {host} port {port} (tcp) failed: {error}\n")
        return 1
    if is_verbose:
        errors.write(f"Connection to {host} {port} port [tcp/*] succeeded!\n")
    return 0


def _cub(words: Sequence[str]) -> int:
    """Do `cub kafka-ready …` and `cub zk-ready …`. Raises ScriptError and errors of clients."""
    kind, *rest = words or [""]
    if kind == "zk-ready" and len(rest) == 2:
        host, _, port = rest[0].partition(",")[0].partition("/")[0].rpartition(":")
        return _until(float(rest[1]), lambda: _connect(host, int(port), _CONNECT_S))
    if kind != "kafka-ready" or len(rest) < 2:
        raise ScriptError(
            "only kafka-ready -b HOST:PORT BROKERS SECONDS and zk-ready HOST:PORT SECONDS are here"
        )
    *options, least, seconds = rest
    arguments = parse(options, _CUB)
    names = {"b": "bootstrap-server", "c": "command-config", "config": "command-config"}
    names["z"] = "zookeeper"
    all_words = Words({names.get(name, name): value for name, value in arguments.values.items()})

    def look() -> None:
        count = len(admin.describe(reader_of(all_words), ()).brokers)
        if count < int(least):
            raise ScriptError(f"expected {least} brokers and there are {count}")

    return _until(float(seconds), look)


def _port(name: str, words: Sequence[str]) -> int:
    """Do `dub wait HOST PORT SECONDS` and `wait-for-port [--host HOST] PORT`."""
    if name == "dub":
        if len(words) != 4 or words[0] != "wait":
            raise ScriptError("only wait HOST PORT SECONDS is here")
        host, port, seconds = words[1:]
    else:
        options = dict(pairwise(words))
        host = options.get("--host", "localhost")
        seconds, port = options.get("--timeout", options.get("-t", _WAIT_S)), words[-1]
    return _until(float(seconds), lambda: _connect(host, int(port), _CONNECT_S))


def _connect(host: str, port: int, seconds: float) -> None:
    socket.create_connection((host, port), seconds).close()


def _until(seconds: float, look: Callable[[], None]) -> int:
    """Return 0 once `look` raises nothing. Raises its last error after that time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            look()
        except (ScriptError, KafkaError, OSError, ProtocolError):
            if time.monotonic() >= deadline:
                raise
            threading.Event().wait(PAUSE_S)
        else:
            return 0
