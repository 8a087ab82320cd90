"""Kinds of values: how an option is read from words, read from Python, and shown.

A kind turns text into the value of a field, and refuses other text with a sentence without its
subject: `'1x' is no duration: expected …`. The caller puts the option in front, `--every` or
`every`. A value from Python is read as its text is, so both ways in refuse the same.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.files.object_stores import known_names
from minibroker.pipeline.quantities import exact_duration, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SIZE: Final = re.compile(r"(\d{1,12})\s*(K|M|G)?I?B?")
_UNIT_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_COUNT: Final = re.compile(r"[0-9]{1,18}")
PORT_MAX: Final = 65535


class Kind:
    """One value behind a flag, read by a function."""

    is_repeated = False
    """True if the flag may be given more than once."""
    is_switch = False
    """True if no value stands behind the flag."""

    def __init__(
        self, metavar: str, read: Callable[[str], Any] = str, show: Callable[[Any], str] = str
    ) -> None:
        """Read values with `read`.

        Args:
            metavar: the value's name in the help.
            read: returns the value of a text; raises JobUsageError without the option's name.
            show: returns the text of a value, as a person would write it.
        """
        self.metavar = metavar
        self._read = read
        self.show = show

    def of_words(self, words: Sequence[str]) -> Any:
        """Return the value of the words behind the flag, each time that it was given."""
        return self._read(words[-1])

    def of_python(self, value: Any) -> Any:
        """Return the value of a Python value, read as its text is."""
        return self.of_words(_words_of(value))

    def as_python(self, value: Any) -> Any:
        """Return a value as a call in Python gives it: text that this kind has read is text."""
        return value if value is None or self.show is str else self.show(value)


class Directory(Kind):
    """A directory of a job: a path, or a URL that Spark knows; see `places`."""

    def is_placed(self, value: str) -> bool:
        """Return whether a value names a directory, and nothing else."""
        return bool(value)


class DirectoryOrTopic(Directory):
    """A directory if there is a `/` in it (or it is `.`), else a topic."""

    def is_placed(self, value: str) -> bool:
        """Return whether a value is the directory of the two."""
        return is_path(value)


class Many(Kind):
    """A list: several flags, and several values behind each if it is split at commas."""

    is_repeated = True

    def __init__(
        self, metavar: str, read: Callable[[str], Any] = str, *, is_split: bool = True
    ) -> None:
        super().__init__(metavar, read, lambda values: ",".join(map(str, values)))
        self._is_split = is_split

    def of_words(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Return the values in their order; those of a split list each once.

        Raises JobUsageError for a word without a text: an unset variable of a shell, for instance.
        A list that is left out is none; `--mask ""` would write records unmasked.
        """
        for word in words:
            if not word.strip(" ,"):
                raise JobUsageError(f"{word!r} is empty: give a value, or leave the option out")
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
                raise JobUsageError(f"{word!r}: expected KEY=VALUE")
            pairs[key.strip()] = text
        return pairs

    def of_python(self, value: Mapping[str, str]) -> dict[str, str]:
        """Return a copy of a mapping."""
        if not hasattr(value, "items"):
            raise JobUsageError(f"{value!r}: expected a dict of names and values")
        return {str(key): str(text) for key, text in value.items()}

    def as_python(self, value: Any) -> Any:
        """Return the mapping as it is."""
        return value


class StorageSettings(Pairs):
    """Settings of a store, by the names of Spark, PyIceberg or deltalake."""

    def of_words(self, words: Any) -> dict[str, str]:
        """Return them; Spark's with or without `spark.hadoop.`. Raises JobUsageError."""
        return self._checked(super().of_words(words))

    def of_python(self, value: Mapping[str, str]) -> dict[str, str]:
        """Return them as `of_words` does."""
        return self._checked(super().of_python(value))

    @staticmethod
    def _checked(given: Mapping[str, str]) -> dict[str, str]:
        found = {name.removeprefix("spark.hadoop."): text for name, text in given.items()}
        for name in found:
            if name not in (known := known_names()):
                raise JobUsageError(
                    f"{name} is no setting of an object store here{near(name, known)}: expected "
                    f"one of {', '.join(known)}"
                )
        return found


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
            raise JobUsageError(f"{value!r}: expected True or False")
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
        )

    def of_python(self, value: Any) -> bool:
        """Return a bool as it is."""
        return SWITCH.of_python(value)

    def as_python(self, value: Any) -> Any:
        """Return a bool as it is."""
        return value


def choice(*allowed: str) -> Kind:
    """Return the kind of one word of several."""
    return Kind("|".join(allowed), lambda text: check_choice(text, allowed))


def check_choice(text: str, allowed: Iterable[str]) -> str:
    """Return `text` if it is in `allowed`. Raises JobUsageError."""
    if text not in (choices := tuple(allowed)):
        words = " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
        raise JobUsageError(f"{text!r}: expected {words}{near(text, choices)}")
    return text


def near(text: str, known: Iterable[str]) -> str:
    """Return ` (do you mean --topic?)` if something known is near, else nothing."""
    bare = {name.lstrip("-"): name for name in known}  # dashes are alike in all flags
    found = difflib.get_close_matches(text.lstrip("-"), bare, n=1)
    return f" (do you mean {bare[found[0]]}?)" if found else ""


def duration_ms(text: str) -> int:
    """Return a duration such as `90s`, `1m`, `1h30m` or `250ms` in milliseconds.

    Raises JobUsageError.
    """
    total = milliseconds(text)
    if total is None:
        raise JobUsageError(f"{text!r} is no duration: expected for instance 30s, 1m, 1h30m or 1d")
    if total == 0:
        raise JobUsageError(f"{text!r} is no duration: it has to be longer than nothing")
    return total


def bytes_of(text: str) -> int:
    """Return a size such as `64MB`, `512KB`, `1GB` or `1000000` in bytes. Raises JobUsageError."""
    found = _SIZE.fullmatch(text.strip().upper())
    if found is None or int(found[1]) == 0:
        raise JobUsageError(f"{text!r} is no size: expected for instance 64MB, 512KB or 1GB")
    return int(found[1]) * _UNIT_BYTES[found[2] or ""]


def bytes_text(size_bytes: int) -> str:
    """Return a size as `bytes_of` reads it: `64MB`."""
    for unit in ("G", "M", "K"):
        if size_bytes % _UNIT_BYTES[unit] == 0:
            return f"{size_bytes // _UNIT_BYTES[unit]}{unit}B"
    return str(size_bytes)


def rate_of(text: str) -> int:
    """Return bytes a second such as `50MB/s` or `50MB`. Raises JobUsageError."""
    try:
        return bytes_of(re.sub(r"\s*/\s*s$", "", text.strip(), flags=re.IGNORECASE))
    except JobUsageError as error:
        raise JobUsageError(
            f"{text!r} is no rate: expected for instance 50MB/s, 512KB/s or 1GB/s"
        ) from error


def rate_text(bytes_per_s: int) -> str:
    """Return a rate as `rate_of` reads it: `50MB/s`."""
    return f"{bytes_text(bytes_per_s)}/s"


def speed_of(text: str) -> float | None:
    """Return a speed such as `1x`, `0.5x` or `60x` as a factor, `max` as None.

    Raises JobUsageError.
    """
    if text == "max":
        return None
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise JobUsageError(f"{text!r}: expected 1x, 0.5x, 60x and the like, or max")
    return factor


def count_of(text: str) -> int:
    """Return a number from 1 up. Raises JobUsageError."""
    if not _COUNT.fullmatch(text) or int(text) < 1:
        raise JobUsageError(f"{text!r}: expected a number from 1 up")
    return int(text)


def check_topic(name: str) -> str:
    """Return `name` if Kafka allows it as a topic. Raises JobUsageError."""
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise JobUsageError(
            f"{name!r} cannot be a topic: its name may have letters, digits, '.', '_' and '-', "
            "249 at most"
        )
    return name


def topic_or_directory(text: str) -> str:
    """Return a path as it is, and anything else if it can be a topic. Raises JobUsageError."""
    return text if is_path(text) else check_topic(text)


def addresses(text: str) -> str:
    """Return `HOST:PORT`, or several with commas between. Raises JobUsageError."""
    for address in text.split(","):
        host, colon, port = address.strip().rpartition(":")
        is_port = bool(_COUNT.fullmatch(port)) and 0 < int(port) <= PORT_MAX
        if not (host and colon and is_port):
            raise JobUsageError(f"{text!r}: expected HOST:PORT, such as 127.0.0.1:9092")
    return text


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
    raise JobUsageError(f"{value!r}: expected text")


FILE: Final = Kind("FILE")
TEXT: Final = Kind("TEXT")
EXPRESSION: Final = Kind("EXPR")
EXPRESSIONS: Final = Many("EXPR", is_split=False)
DIRECTORY: Final = Directory("DIR")
DIRECTORY_OR_TOPIC: Final = DirectoryOrTopic("TOPIC|DIR", topic_or_directory)
TOPIC: Final = Kind("T", check_topic)
TOPICS: Final = Many("T[,...]", check_topic)
COUNT: Final = Kind("N", count_of)
DURATION: Final = Kind("DURATION", duration_ms, exact_duration)
SIZE: Final = Kind("SIZE", bytes_of, bytes_text)
RATE: Final = Kind("RATE", rate_of, rate_text)
PAIRS: Final = Pairs()
STORAGE: Final = StorageSettings()
SWITCH: Final = Switch()
