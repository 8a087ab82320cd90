"""Kinds of values: how an option is read from words, read from Python, and shown.

A kind turns text into the value of a field, and refuses other text with a sentence without its
subject: `'1x' is no duration: expected …`. The caller puts the option in front, `--every` or
`every`. A value from Python is read as its text is, so both ways in refuse the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from minibroker.cli.errors import UsageError
from minibroker.cli.quantities import exact_duration, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Patterns are compiled where they are used: a start of the broker uses none of them.
_SIZE: Final = r"(\d{1,12})\s*(K|M|G)?I?B?"
_UNIT_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_TOPIC: Final = r"[A-Za-z0-9._-]{1,249}"
_COUNT: Final = r"[0-9]{1,18}"
PORT_MAX: Final = 65535


Completion = Literal["", "file", "directory"]


class Kind:
    """One value behind a flag, read by a function."""

    is_repeated = False
    """True if the flag may be given more than once."""
    is_switch = False
    """True if no value stands behind the flag."""

    def __init__(
        self,
        metavar: str,
        read: Callable[[str], Any] = str,
        show: Callable[[Any], str] = str,
        *,
        completes: Completion = "",
        choices: Sequence[str] = (),
    ) -> None:
        """Read values with `read`.

        Args:
            metavar: the value's name in the help.
            read: returns the value of a text; raises UsageError without the option's name.
            show: returns the text of a value, as a person would write it.
            completes: the paths that a shell offers for it.
            choices: the words that a shell offers for it.
        """
        self.metavar = metavar
        self._read = read
        self.show = show
        self.completes = completes
        self.choices = tuple(choices)

    def of_words(self, words: Sequence[str]) -> Any:
        """Return the value of the words behind the flag, each time that it was given."""
        return self._read(words[-1])

    def of_python(self, value: Any) -> Any:
        """Return the value of a Python value, read as its text is."""
        return self.of_words(_words_of(value))

    def as_python(self, value: Any) -> Any:
        """Return a value as a call in Python gives it: text that this kind has read is text."""
        return value if value is None or self.show is str else self.show(value)


class Many(Kind):
    """A list: several flags, and several values behind each if it is split at commas."""

    is_repeated = True

    def __init__(
        self,
        metavar: str,
        read: Callable[[str], Any] = str,
        *,
        is_split: bool = True,
        completes: Completion = "",
    ) -> None:
        super().__init__(
            metavar, read, lambda values: ",".join(map(str, values)), completes=completes
        )
        self._is_split = is_split

    def of_words(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Return the values in their order; those of a split list each once.

        Raises UsageError for a word without a text: an unset variable of a shell, for instance.
        A list that is left out is none; `--mask ""` would write records unmasked.
        """
        for word in words:
            if not word.strip(" ,"):
                raise UsageError(f"{word!r} is empty: give a value, or leave the option out")
        return self._read_all(words)

    def _read_all(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Return the values in words that have a text."""
        if not self._is_split:
            return tuple(self._read(word) for word in words)
        parts = (part.strip() for word in words for part in word.split(","))
        return tuple(dict.fromkeys(self._read(part) for part in parts if part))

    def as_python(self, value: Any) -> Any:
        """Return the values as they are."""
        return value


class Pairs(Kind):
    """KEY=VALUE, several times; a mapping in Python. Values are not shown: some are passwords."""

    is_repeated = True

    def __init__(self) -> None:
        super().__init__("KEY=VALUE", show=lambda pairs: " ".join(f"{key}=…" for key in pairs))

    def of_words(self, words: Sequence[str]) -> dict[str, str]:
        """Return key → value; of a key that is given twice the last."""
        pairs = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"{word!r}: expected KEY=VALUE")
            pairs[key.strip()] = text
        return pairs

    def of_python(self, value: Mapping[str, str]) -> dict[str, str]:
        """Return a copy of a mapping."""
        if not hasattr(value, "items"):
            raise UsageError(f"{value!r}: expected a dict of names and values")
        return {str(key): str(text) for key, text in value.items()}

    def as_python(self, value: Any) -> Any:
        """Return the mapping as it is."""
        return value


class Switch(Kind):
    """True if the flag is there; a bool in Python."""

    is_switch = True

    def __init__(self) -> None:
        super().__init__("", show=lambda value: "yes" if value else "no")

    def of_words(self, words: Sequence[str]) -> bool:
        """Return True: the flag was given."""
        return True

    def of_python(self, value: Any) -> bool:
        """Return a bool as it is."""
        if not isinstance(value, bool):
            raise UsageError(f"{value!r}: expected True or False")
        return value

    def as_python(self, value: Any) -> Any:
        """Return a bool as it is."""
        return value


class Either(Kind):
    """One of two words on the command line, True or False in Python."""

    def __init__(self, when_true: str, when_false: str) -> None:
        self._words = (when_true, when_false)
        super().__init__(
            "|".join(self._words),
            lambda text: check_choice(text, self._words) == when_true,
            lambda value: when_true if value else when_false,
            choices=self._words,
        )

    def of_python(self, value: Any) -> bool:
        """Return a bool as it is."""
        return SWITCH.of_python(value)

    def as_python(self, value: Any) -> Any:
        """Return a bool as it is."""
        return value


def choice(*allowed: str) -> Kind:
    """Return the kind of one word of several."""
    return Kind("|".join(allowed), lambda text: check_choice(text, allowed), choices=allowed)


def check_choice(text: str, allowed: Iterable[str]) -> str:
    """Return `text` if it is in `allowed`. Raises UsageError."""
    if text not in (choices := tuple(allowed)):
        words = " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
        raise UsageError(f"{text!r}: expected {words}{near(text, choices)}")
    return text


def near(text: str, words: Iterable[str]) -> str:
    """Return ` (did you mean --topic?)` if something known is near, else nothing."""
    import difflib  # noqa: PLC0415  a command without a mistake does without

    bare = {name.lstrip("-"): name for name in words}  # dashes are alike in all flags
    matches = difflib.get_close_matches(text.lstrip("-"), bare, n=1)
    return f" (did you mean {bare[matches[0]]}?)" if matches else ""


def duration_ms(text: str) -> int:
    """Return a duration such as `90s`, `1m`, `1h30m` or `250ms` in milliseconds.

    Raises UsageError.
    """
    total = milliseconds(text)
    if total is None:
        raise UsageError(f"{text!r} is no duration: expected for instance 30s, 1m, 1h30m or 1d")
    if total == 0:
        raise UsageError(f"{text!r} is no duration: it has to be longer than nothing")
    return total


def bytes_of(text: str) -> int:
    """Return a size such as `64MB`, `512KB`, `1GB` or `1000000` in bytes. Raises UsageError."""
    match = re.fullmatch(_SIZE, text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{text!r} is no size: expected for instance 64MB, 512KB or 1GB")
    return int(match[1]) * _UNIT_BYTES[match[2] or ""]


def bytes_text(size_bytes: int) -> str:
    """Return a size as `bytes_of` reads it: `64MB`."""
    for unit in ("G", "M", "K"):
        if size_bytes % _UNIT_BYTES[unit] == 0:
            return f"{size_bytes // _UNIT_BYTES[unit]}{unit}B"
    return str(size_bytes)


def rate_of(text: str) -> int:
    """Return bytes a second such as `50MB/s` or `50MB`. Raises UsageError."""
    try:
        return bytes_of(re.sub(r"\s*/\s*s$", "", text.strip(), flags=re.IGNORECASE))
    except UsageError as error:
        raise UsageError(
            f"{text!r} is no rate: expected for instance 50MB/s, 512KB/s or 1GB/s"
        ) from error


def rate_text(bytes_per_s: int) -> str:
    """Return a rate as `rate_of` reads it: `50MB/s`."""
    return f"{bytes_text(bytes_per_s)}/s"


def count_of(text: str) -> int:
    """Return a number from 1 up. Raises UsageError."""
    if not re.fullmatch(_COUNT, text) or int(text) < 1:
        raise UsageError(f"{text!r}: expected a number from 1 up")
    return int(text)


def check_topic(name: str) -> str:
    """Return `name` if Kafka allows it as a topic. Raises UsageError."""
    if not re.fullmatch(_TOPIC, name) or name in (".", ".."):
        raise UsageError(
            f"{name!r} cannot be a topic: its name may have letters, digits, '.', '_' and '-', "
            "249 at most"
        )
    return name


def addresses(text: str) -> str:
    """Return `HOST:PORT`, or several with commas between. Raises UsageError."""
    for address in text.split(","):
        host, colon, port = address.strip().rpartition(":")
        is_port = bool(re.fullmatch(_COUNT, port)) and 0 < int(port) <= PORT_MAX
        if not (host and colon and is_port):
            raise UsageError(f"{text!r}: expected HOST:PORT, such as 127.0.0.1:9092")
    return text


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; the port may be 0. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    is_port = bool(re.fullmatch(_COUNT, port)) and int(port) <= PORT_MAX
    if not (colon and host and is_port):
        raise UsageError(f"{text}: expected HOST:PORT, for instance 127.0.0.1:9192")
    return host.strip("[]"), int(port)


def address_text(address: tuple[str, int]) -> str:
    """Return HOST:PORT, with brackets around IPv6."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_path(text: str) -> bool:
    """Return whether `text` names a directory: it has a `/` (or is `.`), which no topic has."""
    return "/" in text or text in (".", "..")


def _words_of(value: Any) -> list[str]:
    """Return a value of Python as the words of a command line."""
    if isinstance(value, str | os.PathLike):
        return [os.fspath(value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, Iterable):
        return [word for item in value for word in _words_of(item)]
    raise UsageError(f"{value!r}: expected text")


FILE: Final = Kind("FILE", completes="file")
CODEC: Final = choice("none", "gzip", "snappy", "lz4", "zstd")
"""A codec of batches, as `compression.type` names it."""
TEXT: Final = Kind("TEXT")
TOPIC: Final = Kind("T", check_topic)
TOPICS: Final = Many("T[,...]", check_topic)
COUNT: Final = Kind("N", count_of)
DURATION: Final = Kind("DURATION", duration_ms, exact_duration)
SIZE: Final = Kind("SIZE", bytes_of, bytes_text)
ADDRESS: Final = Kind("HOST:PORT", address_of, address_text)
RATE: Final = Kind("RATE", rate_of, rate_text)
PAIRS: Final = Pairs()
SWITCH: Final = Switch()
