"""Java's properties files: `key=value` lines with comments, escapes and lines that go on.

`server.properties`, and the settings of clients as Kafka's tools take them.
Source: java.util.Properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE_OF: Final = {"\\": "\\\\"} | {letter: f"\\{name}" for name, letter in _ESCAPES.items()}


def read_properties(path: str) -> dict[str, str]:
    """Return key → text of a properties file (ISO 8859-1, as Java reads it). Raises ConfigError."""
    try:
        with open(path, encoding="iso-8859-1") as file:  # noqa: PTH123  pathlib costs 3 ms here
            return parse_properties(file.read())
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return key → text of Java properties text; of equal keys the last one holds.

    Raises ValueError on a broken `\\uXXXX`.
    """
    return dict(_split_line(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    r"""Yield the lines without comments and blanks; a line that ends in an odd number of `\` goes
    on.
    """
    pending = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        content = line.lstrip(" \t\f")
        if not pending and (not content or content[0] in "#!"):
            continue
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            pending += content[:-1]
            continue
        yield pending + content
        pending = ""
    if pending:
        yield pending


def _split_line(line: str) -> tuple[str, str]:
    """Return key and value. A key ends at the first unescaped `=`, `:` or blank; blanks around the
    separator go.
    """
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
    return _unescape(line[:end]), _unescape(value)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if len(digits) != 4 or not all(
                    digit in "0123456789abcdefABCDEF" for digit in digits
                ):
                    raise ValueError(f"\\u{digits} is not \\u and four hexadecimal digits")
                char = chr(int(digits, 16))
                position += 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break
        characters.append(char)
    # Letters beyond 16 bits are two escapes.
    return "".join(characters).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def escape(value: str) -> str:
    """Return a value as it stands in a line `key=value` of a properties file."""
    text = "".join(_ESCAPE_OF.get(letter, letter) for letter in value)
    if text.startswith(" "):
        text = "\\" + text  # Java skips spaces behind the sign
    return "".join(letter if letter.isascii() else _unicode_escapes(letter) for letter in text)


def _unicode_escapes(letter: str) -> str:
    """Return one or two escapes: Java counts in 16 bits."""
    data = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))
