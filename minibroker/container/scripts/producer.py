"""`kafka-console-producer`: the lines of standard input become records of a topic.

Source: Kafka ConsoleProducer, LineMessageReader (3.9).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from minibroker.client.write import TopicWriter, WriteOptions
from minibroker.clock import SystemClock
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import settings_of, writer_of
from minibroker.container.scripts.options import ScriptError, ScriptOption, WordsError
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from minibroker.container.scripts.options import Words

_NAME: Final = "kafka-console-producer"
DOES: Final = {_NAME: "write the lines of standard input to a topic"}
_WITHOUT_EFFECT: Final = (
    *("batch-size", "timeout", "max-block-ms", "max-memory-bytes", "max-partition-memory-bytes"),
    *("message-send-max-retries", "metadata-expiry-ms", "retry-backoff-ms"),
    *("socket-buffer-size", "line-reader", "reader"),
)
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "broker-list": ScriptOption("HOST:PORT[,…]", "old name of --bootstrap-server"),
        "topic": ScriptOption("TOPIC", "the topic"),
        "producer.config": ScriptOption("FILE", "settings of the client, in a properties file"),
        "producer-property": ScriptOption("KEY=VALUE", "a setting of the client"),
        "command-property": ScriptOption("KEY=VALUE", "a setting of the client"),
        "property": ScriptOption(
            "KEY=VALUE", "parse.key, key.separator, parse.headers, null.marker …"
        ),
        "reader-property": ScriptOption("KEY=VALUE", "the same as --property"),
        "reader-config": ScriptOption("FILE", "such properties in a file"),
        "compression-codec": ScriptOption(
            "CODEC", "none, gzip, snappy, lz4 or zstd", is_optional=True
        ),
        "request-required-acks": ScriptOption("ACKS", "0, 1, -1 or all"),
        "request-timeout-ms": ScriptOption("MS", "time for an answer"),
        "sync": ScriptOption("", "wait for each record"),
        **{name: ScriptOption("VALUE", "without effect") for name in _WITHOUT_EFFECT},
    }
}
_ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LINES_TOGETHER: Final = 1000


class LineFormat(NamedTuple):
    """The parts of a line: headers, key and value."""

    has_key: bool
    key_separator: str
    has_headers: bool
    headers_delimiter: str
    headers_separator: str
    headers_key_separator: str
    null_marker: str | None
    ignores_errors: bool

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LineFormat:
        """Return the format that the properties of a reader say. Raises ScriptError."""

        def is_true(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        line = cls(
            is_true("parse.key"),
            properties.get("key.separator", "\t"),
            is_true("parse.headers"),
            properties.get("headers.delimiter", "\t"),
            properties.get("headers.separator", ","),
            properties.get("headers.key.separator", ":"),
            properties.get("null.marker"),
            is_true("ignore.error"),
        )
        separators = (line.headers_delimiter, line.headers_separator, line.headers_key_separator)
        if len(set(separators)) < len(separators) or line.null_marker in (
            *separators,
            line.key_separator,
        ):
            raise ScriptError("separators of headers and key, and null.marker, may not be equal")
        return line

    def record(self, text: str, number: int) -> Record:
        """Return the record of a line. Raises ScriptError."""
        headers: str | None = None
        key: str | None = None
        if self.has_headers:
            headers, text = self._part(text, self.headers_delimiter, "headers delimiter", number)
        if self.has_key:
            key, text = self._part(text, self.key_separator, "key separator", number)
        pairs = () if headers in (None, self.null_marker) else self._headers(str(headers), number)
        now_ms = SystemClock().now_ms()
        return Record(0, now_ms, self._bytes(key), self._bytes(text), pairs)

    def _part(self, text: str, mark: str, part_name: str, number: int) -> tuple[str | None, str]:
        head, separator, behind = text.partition(mark)
        if separator:
            return head, behind
        if self.ignores_errors:
            return None, text
        raise ScriptError(
            "org.apache.kafka.common.KafkaException: "
            f"No {part_name} found on line number {number}: '{text}'"
        )

    def _headers(self, text: str, number: int) -> tuple[tuple[str, bytes | None], ...]:
        pairs: list[tuple[str, bytes | None]] = []
        for pair in text.split(self.headers_separator):
            name, separator, value = pair.partition(self.headers_key_separator)
            if not separator and not self.ignores_errors:
                raise ScriptError(
                    "org.apache.kafka.common.KafkaException: No header key separator found in pair"
                    f" '{pair}' on line number {number}"
                )
            pairs.append((name, self._bytes(value) if separator else None))
        return tuple(pairs)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self.null_marker else text.encode(*_TEXT)


_TEXT: Final = ("utf-8", "surrogateescape")


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Write the lines; return the exit code. Raises ScriptError, KafkaError, OSError …"""
    words.require("topic")
    settings = settings_of(words)
    client = writer_of(settings)
    options = _options(words, settings)
    line = LineFormat.of(_properties(words))
    stream: BinaryIO = sys.stdin.buffer
    is_prompting = sys.stdin.isatty()
    with TopicWriter.open(client, words.value("topic"), options) as writer:
        number = 0
        while True:
            if is_prompting:
                out.write(">")
                out.flush()
            data = stream.readline()
            if not data:
                break
            number += 1
            text = data.rstrip(b"\n").removesuffix(b"\r").decode(*_TEXT)
            writer.add(line.record(text, number))
            if is_prompting or words.has("sync") or number % LINES_TOGETHER == 0:
                writer.flush()
        writer.flush()
    return 0


def _options(words: Words, settings: Mapping[str, str]) -> WriteOptions:
    """Return how records are written. Raises WordsError."""
    acks = words.value("request-required-acks", default=settings.get("acks", "-1"))
    codec = settings.get("compression.type", "none")
    if words.has("compression-codec"):
        codec = words.value("compression-codec") or "gzip"
    if acks not in _ACKS or codec not in _CODECS:
        raise WordsError(
            f"acks {acks} and codec {codec}: expected one of {', '.join(_ACKS)}, and of"
            f" {', '.join(_CODECS)}"
        )
    return WriteOptions(acks=_ACKS[acks], codec=codec)


def _properties(words: Words) -> dict[str, str]:
    """Return the properties of the reader of lines. Raises ScriptError."""
    properties: dict[str, str] = {}
    try:
        for path in words.all("reader-config"):
            properties |= read_properties(path)
    except ConfigError as error:
        raise ScriptError(str(error)) from None
    for pair in words.all("property", "reader-property"):
        key, _, value = pair.partition("=")
        properties[key] = value
    return properties
