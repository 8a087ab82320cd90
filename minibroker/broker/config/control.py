"""Options of the control API: address, tokens, certificate. Loaded only for `serve --control`.

    flags and MINIBROKER_CONTROL_… variables ─► control_options ─► process ─► control.broker

A token may stand in a file, `@FILE`, so that no list of processes and no dump of variables has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN: Final = "--control-token"
READ_TOKEN: Final = "--control-read-token"
_VARIABLES: Final = {
    TOKEN: "MINIBROKER_CONTROL_TOKEN",
    READ_TOKEN: "MINIBROKER_CONTROL_READ_TOKEN",
}
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
TOKEN_FILE_BYTES_MAX: Final = 4096


class ControlOptions(NamedTuple):
    """The control API of one process."""

    host: str
    port: int
    """0: a free port."""
    token: str | None = None
    """The token that may do everything; None: there is none."""
    read_token: str | None = None
    """The token that may only read (GET); None: there is none."""
    tls: str | None = None
    """A listener with TLS whose certificate is used, or a PEM file; None: plain HTTP."""
    page_only_reads: bool = False
    """True: no page of a browser changes anything."""

    @property
    def has_token(self) -> bool:
        """Return whether callers need a token."""
        return self.token is not None or self.read_token is not None

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def control_options(
    address: tuple[str, int],
    flags: Mapping[str, str],
    tls: str | None,
    environment: Mapping[str, str],
) -> ControlOptions:
    """Return the options. `flags`: the values of `TOKEN` and `READ_TOKEN` that were given; a
    variable stands for a flag that is missing.

    Raises ConfigError for a token that cannot be used, and where other machines would need none.
    """
    token, read_token = (_token(flag, flags, environment) for flag in (TOKEN, READ_TOKEN))
    options = ControlOptions(*address, token, read_token, tls)
    if token is not None and token == read_token:
        raise ConfigError(
            f"{READ_TOKEN} and {TOKEN} are the same token: the one that only reads has to differ"
        )
    if not options.has_token and options.host not in LOOPBACK:
        raise ConfigError(
            f"--control {options.address} can be reached from other machines: give it a token with "
            f"{_VARIABLES[TOKEN]}, or {TOKEN} @FILE"
        )
    return options


def _token(flag: str, flags: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Return the token of a flag, or of its variable. Raises ConfigError, without the token."""
    name = flag if flags.get(flag) else _VARIABLES[flag]
    value = flags.get(flag) or environment.get(_VARIABLES[flag])
    if not value:
        return None
    if value.startswith("@"):
        name = f"{name} {value}"
        value = _read(name, value[1:])
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigError(
            f"{name}: a token may have only ASCII letters, digits and signs, no blanks"
        )
    return value


def _read(name: str, path: str) -> str:
    """Return the token in a file, without the end of its line. Raises ConfigError."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(TOKEN_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise ConfigError(f"{name}: the file is empty, expected a token")
    if len(data) > TOKEN_FILE_BYTES_MAX:
        raise ConfigError(
            f"{name}: the file is larger than {TOKEN_FILE_BYTES_MAX} bytes, expected one token"
        )
    return text
