"""`kafka-configs` of the image: it gives a user SCRAM credentials, and nothing else.

Modules of Testcontainers run it in the container, when the broker serves:

    kafka-configs --alter --zookeeper localhost:2181 --entity-type users --entity-name alice \\
      --add-config SCRAM-SHA-512=[password=secret]

The broker of this container is asked, by AlterUserScramCredentials on a listener without security,
whatever `--zookeeper` or `--bootstrap-server` say. Before the start of the broker the credentials
wait for it, as those of `kafka-storage`: with a ZooKeeper Kafka's own tool needs no broker either.

Source: Kafka ConfigCommand; KafkaContainer of Testcontainers for Node.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from minibroker.container.health import LISTENER_FILE, NotReady, ask, connected, read_address
from minibroker.container.scram_users import USERS_FILE, ScramUser, keep, parse_specifications
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.scram import CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

_ONLY: Final = (
    "only --alter --entity-type users --entity-name NAME --add-config "
    "'SCRAM-SHA-512=[password=SECRET]' is here; use the tool of Apache Kafka from outside"
)


def main(
    words: Sequence[str], listener_file: str = LISTENER_FILE, users_file: str = USERS_FILE
) -> int:
    """Do `kafka-configs …`; return the exit code."""
    try:
        users = parse(words)
        if os.path.exists(listener_file):  # noqa: PTH110  pathlib costs 3 ms
            alter(users, listener_file)
        else:
            keep(users, users_file)
    except (ConfigError, NotReady, OSError) as error:
        sys.stderr.write(f"kafka-configs: {error}\n")
        return 1
    sys.stdout.write(f"Completed updating config for user {users[0].name}.\n")
    return 0


def parse(words: Sequence[str]) -> list[ScramUser]:
    """Return the user with each credential. Raises ConfigError."""
    values = {
        word.removeprefix("--"): value for word, value in pairwise(words) if word.startswith("--")
    }
    name, added = values.get("entity-name"), values.get("add-config")
    if "--alter" not in words or values.get("entity-type") != "users" or not (name and added):
        raise ConfigError(_ONLY)
    return parse_specifications(added, name)


def alter(users: Sequence[ScramUser], listener_file: str = LISTENER_FILE) -> None:
    """Give the user the credentials. Raises ConfigError, NotReady, OSError."""
    listener = read_address(listener_file)
    if listener.protocol != "PLAINTEXT":
        raise ConfigError(
            f"no listener of this broker is PLAINTEXT, and this tool cannot log in: {_ONLY}"
        )
    upsertions = [
        ScramCredentialUpsertion(
            name=user.name,
            mechanism=CODES[user.mechanism],
            iterations=user.iterations,
            salt=user.salt,
            salted_password=user.salted_password,
        )
        for user in users
    ]
    writer = Writer()
    AlterUserScramCredentialsRequest(upsertions=upsertions).write(writer, 0)
    with connected(listener) as connection:
        # A flexible request: tagged fields end both headers.
        body = b"\0" + writer.to_bytes()
        answer = ask(connection, AlterUserScramCredentialsRequest.API_KEY, 0, body)
    response = AlterUserScramCredentialsResponse.read(Reader(memoryview(answer), 1), 0)
    for result in response.results:
        if result.error_code:
            raise ConfigError(
                f"user {result.user}: error {result.error_code}, {result.error_message}"
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
