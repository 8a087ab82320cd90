"""Keys and values as `dump-log` shows them: text, numbers, or the records of internal topics.

A decoder takes a record and returns the texts behind `key:` and `payload:`, None to print nothing.
The decoders of classes are those that come with Kafka (`org.apache.kafka.tools.api`); other classes
would need a JVM. Those of the internal topics are in `coordinator_records`, `metadata_records` and
`remote_records`, and are imported when a flag names them.

Source: Kafka DumpLogSegments' message parsers; DefaultDecoder, IntegerDecoder, LongDecoder,
StringDecoder.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.tools.log_records import LogRecord


class Decoded(NamedTuple):
    """The printed forms of a record's key and value; None prints nothing."""

    key: str | None
    value: str | None


Decoder = Callable[[LogRecord], Decoded]
FieldDecoder = Callable[[bytes], str]


def decode_text(data: bytes) -> str:
    """Return UTF-8 text, with replacement characters for other bytes."""
    return data.decode("utf-8", "replace")


def decode_hex(data: bytes) -> str:
    """Return two digits for each byte.

    (Kafka's DefaultDecoder prints the address of a Java array.)
    """
    return data.hex()


def _number(size: int) -> FieldDecoder:
    def decode(data: bytes) -> str:
        if len(data) < size:
            raise CorruptionError(f"{len(data)} bytes where a number of {size} bytes was expected")
        return str(int.from_bytes(data[:size], "big", signed=True))

    return decode


_PACKAGES: Final = ("org.apache.kafka.tools.api.", "kafka.serializer.")
"""Packages of the classes, now and before Kafka 3.5."""

_CLASSES: Final[dict[str, FieldDecoder]] = {
    "StringDecoder": decode_text,
    "DefaultDecoder": decode_hex,
    "IntegerDecoder": _number(4),
    "LongDecoder": _number(8),
}


def field_decoder(class_name: str) -> FieldDecoder | None:
    """Return the decoder of a class of Kafka, with or without its package, None if unknown."""
    for package in _PACKAGES:
        class_name = class_name.removeprefix(package)
    return _CLASSES.get(class_name)


def known_classes() -> str:
    """Return the names that `field_decoder` knows, for a message."""
    return ", ".join(_CLASSES)


def fields(decode_key: FieldDecoder, decode_value: FieldDecoder) -> Decoder:
    """Return a decoder from one for keys and one for values."""

    def decode(record: LogRecord) -> Decoded:
        return Decoded(
            None if record.key is None else decode_key(record.key),
            None if record.value is None else decode_value(record.value),
        )

    return decode
