"""The port of a missing ZooKeeper: `zookeeper-server-start FILE` in the image.

Start scripts for Kafka before KRaft run a ZooKeeper beside it. minibroker keeps the metadata itself
(`launch`), but some tools wait until the port listens, such as Testcontainers for Node. A
connection is closed at once.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import read_properties

_DEFAULT_PORT: Final = "2181"


def main(words: list[str]) -> int:
    """Listen until the container ends; return the exit code if the port cannot be bound."""
    try:
        listening = listen(words[0] if words else "")
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"zookeeper-server-start: {error}\n")
        return 1
    sys.stdout.write("minibroker: no ZooKeeper is started here, its port only listens\n")
    sys.stdout.flush()
    while True:
        dismiss(listening)


def listen(properties_file: str) -> socket.socket:
    """Return the bound socket of `clientPort`, 2181 without a file. Raises ConfigError, OSError."""
    settings = read_properties(properties_file) if properties_file else {}
    port = settings.get("clientPort", _DEFAULT_PORT).strip()
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"clientPort={port} in {properties_file}: expected a port")
    return socket.create_server(("", int(port)))


def dismiss(listening: socket.socket) -> None:
    """Wait for one connection and close it."""
    connection, _ = listening.accept()
    connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
