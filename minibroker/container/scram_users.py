"""Users of SCRAM that a start script makes: `kafka-storage format --add-scram SPECIFICATION`.

    SCRAM-SHA-512=[name=alice,password=secret]  ─► credential ─► a file ─► launch ─► the first start

Kafka writes such users when it formats a directory. Here the credential, without the password,
waits in a file until `launch` hands it to the broker (`minibroker.scram.credentials`).

Source: Kafka StorageTool, ScramParser.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.secured import users_text
from minibroker.container.health import TEMPORARY
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.scram import (
    CODES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES,
    credential,
    salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

USERS_FILE: Final = f"{TEMPORARY}/minibroker.scram"
"""A line per user: mechanism:name="credential", as in the setting."""
_SPECIFICATION_END: Final = re.compile(r"(?<=\]),")
_FLAGS: Final = ("--add-scram", "-S")
_OPTION: Final = re.compile(r'(\w+)=(?:"([^"]*)"|([^,]*))(?:,|$)')


class ScramUser(NamedTuple):
    """A user with one credential."""

    name: str
    mechanism: str
    salt: bytes
    salted_password: bytes
    iterations: int

    @property
    def stored(self) -> str:
        """Return the credential as the tree stores it."""
        code = CODES[self.mechanism]
        return credential(code, self.salt, self.salted_password, self.iterations)


def main(words: Sequence[str], users_file: str = USERS_FILE) -> int:
    """Do `kafka-storage format …`; return the exit code."""
    try:
        users = _all(words)
    except ConfigError as error:
        sys.stderr.write(f"kafka-storage: {error}\n")
        return 1
    keep(users, users_file)
    sys.stdout.write(
        "minibroker: nothing to format, the first start makes the data directory, with "
        f"{len(users)} SCRAM users\n"
    )
    return 0


def keep(users: Sequence[ScramUser], users_file: str = USERS_FILE) -> None:
    """Keep the credentials until the broker starts."""
    with os.fdopen(os.open(users_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        for user in users:
            file.write(users_text({f"{user.mechanism}:{user.name}": user.stored}) + "\n")


def given_users(users_file: str = USERS_FILE) -> str:
    """Return the users of the file as the value of `minibroker.scram.credentials`; "" for none."""
    try:
        with open(users_file, encoding="utf-8") as file:  # noqa: PTH123  pathlib costs 3 ms
            return " ".join(file.read().split("\n")).strip()
    except FileNotFoundError:
        return ""


def _all(words: Sequence[str]) -> list[ScramUser]:
    """Return the user of each specification. Raises ConfigError."""
    users = []
    remaining = iter(words)
    for word in remaining:
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            users.append(parse_specification(value if equals else next(remaining, "")))
    return users


def parse_specifications(text: str, name: str = "") -> list[ScramUser]:
    """Return a user for each of `SCRAM-SHA-256=[…],SCRAM-SHA-512=[…]`. Raises ConfigError."""
    return [parse_specification(part, name) for part in _SPECIFICATION_END.split(text)]


def parse_specification(text: str, name: str = "") -> ScramUser:
    """Return the user of `SCRAM-SHA-256=[name=…,password=…]`. `name`: the user, if the
    specification names none. Raises ConfigError, without the password.

    There may be `iterations` and `salt`, and `saltedpassword` (both in base 64) in place of the
    password.
    """
    mechanism, _, options_text = text.partition("=")
    code = CODES.get(mechanism)
    if code is None or not (options_text.startswith("[") and options_text.endswith("]")):
        raise ConfigError(
            f"{mechanism!r}: expected {' or '.join(CODES)}, and =[name=…,password=…] behind it"
        )
    options = {match[1]: match[2] or match[3] for match in _OPTION.finditer(options_text[1:-1])}
    user = options.get("name", name)
    if not user:
        raise ConfigError(f"{mechanism}: name=… is missing")
    iterations = options.get("iterations", str(ITERATIONS_MIN))
    if not (iterations.isdecimal() and ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX):
        raise ConfigError(
            f"{mechanism} of {user}: iterations={iterations}, expected {ITERATIONS_MIN} to "
            f"{ITERATIONS_MAX}"
        )
    salt = _bytes(f"salt of {user}", options["salt"]) if "salt" in options else _new_salt()
    if "saltedpassword" in options:
        salted = _bytes(f"saltedpassword of {user}", options["saltedpassword"])
    elif options.get("password"):
        salted = salted_password(code, options["password"], salt, int(iterations))
    else:
        raise ConfigError(f"{mechanism} of {user}: password=… is missing")
    return ScramUser(user, mechanism, salt, salted, int(iterations))


def _new_salt() -> bytes:
    return secrets.token_bytes(SALT_BYTES)


def _bytes(field_name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ConfigError(f"{field_name}: expected base 64") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
