"""A seed in YAML: topics, records and groups of one file that a person writes. Needs PyYAML.

    topics:
      orders: {partitions: 3, configs: {cleanup.policy: compact}}
      payments:
    records:
      - {topic: orders, key: o-1, value: {id: 1, amount: 12}, timestamp: -1h}
    groups:
      billing: {orders: {0: 1}}

    file ─events of PyYAML─► values with their lines ─► items.Item: topics, records, groups

Plain values are those of YAML 1.2's core schema: `yes` and `2026-11-24` are texts. Aliases are
refused, since a small file of them can stand for any amount of data. So are tags besides `!!str`
and `!!binary`, more than `FILE_BYTES_MAX` or `VALUES_MAX`, and values deeper than `DEPTH_MAX`.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import IO, TYPE_CHECKING, Any, Final

from minibroker.seeds.errors import LinePlace, SeedError
from minibroker.seeds.items import CREATE, GROUP, TOPIC, group_offset_of, record_of, topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.seeds.items import Item

FILE_BYTES_MAX: Final = 16 << 20
DEPTH_MAX: Final = 64
VALUES_MAX: Final = 1_000_000
"""Values of a file, those inside of others too: each takes far more memory than its bytes."""
_LINES_HINT: Final = (
    "write so many records as JSON lines (.jsonl) or segment files, which take less time and memory"
)
_PARTS: Final = ("topics", "records", "groups")
_BINARY: Final = "tag:yaml.org,2002:binary"
_TEXT: Final = "tag:yaml.org,2002:str"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class _Mapping(dict[str, Any]):
    """The fields of a mapping, with the line where it begins."""

    line: int


def read_items(file: IO[bytes], name: str, now_ms: int) -> Iterator[Item]:
    """Yield the items of a file: topics, then records, then offsets of groups.

    Args:
        file: the text, at its start.
        name: of the file, for messages.
        now_ms: the broker's time, for relative timestamps.

    Raises:
        SeedError: PyYAML is missing, the file is too large, no YAML, or has no seed in it.
        OSError: the file cannot be read.
    """
    text = file.read(FILE_BYTES_MAX + 1)
    if len(text) > FILE_BYTES_MAX:
        raise SeedError(f"{name} has more than {FILE_BYTES_MAX >> 20} MB of YAML; {_LINES_HINT}")
    content = _Reader(text, name).content()
    for part in content:
        if part not in _PARTS:
            raise SeedError(f"{name}: {part[:100]!r}: expected {', '.join(_PARTS)}")
    yield from _topics(content, name)
    for record in _part(content, "records", list, "a list of records", name):
        if not isinstance(record, _Mapping):
            raise LinePlace(name, content.line).refuse("records", record, "a list of records")
        yield record_of(record, LinePlace(name, record.line), now_ms)
    yield from _group_offsets(content, name)


def _topics(content: _Mapping, name: str) -> Iterator[Item]:
    topics = _part(content, "topics", _Mapping, "topics by their names", name)
    for topic, fields in topics.items() if topics else ():
        place = LinePlace(name, fields.line if isinstance(fields, _Mapping) else topics.line)
        if not isinstance(fields, _Mapping | None):
            raise place.refuse(
                f"topics.{topic}", fields, "partitions, replicas, configs, or nothing"
            )
        if fields and CREATE in fields:
            raise place.refuse(f"topics.{topic}", CREATE, "partitions, replicas or configs")
        yield topic_of({CREATE: topic, **(fields or {})}, place)


def _group_offsets(content: _Mapping, name: str) -> Iterator[Item]:
    groups = _part(content, "groups", _Mapping, "groups by their names", name)
    expected = "topics, each with partitions and their offsets, such as {orders: {0: 17}}"
    for group, topics in groups.items() if groups else ():
        if not isinstance(topics, _Mapping):
            raise LinePlace(name, groups.line).refuse(f"groups.{group}", topics, expected)
        for topic, offsets in topics.items():
            if not isinstance(offsets, _Mapping):
                raise LinePlace(name, topics.line).refuse(
                    f"groups.{group}.{topic}", offsets, expected
                )
            for partition, offset in offsets.items():
                place = LinePlace(name, offsets.line)
                if not _INTEGER.fullmatch(partition):
                    raise place.refuse(f"groups.{group}.{topic}", partition, "a partition's number")
                fields = {GROUP: group, TOPIC: topic, "partition": int(partition), "offset": offset}
                yield group_offset_of(fields, place)


def _part(content: _Mapping, part: str, kind: type, expected: str, name: str) -> Any:
    """Return a part of the file, an empty tuple if it is not there. Raises SeedError."""
    value = content.get(part)
    if value is None:
        return ()
    if not isinstance(value, kind):
        raise LinePlace(name, content.line).refuse(part, value, expected)
    return value


class _Reader:
    """Makes values of the events of one file."""

    def __init__(self, text: bytes, name: str) -> None:
        """Raises SeedError if PyYAML is missing."""
        try:
            import yaml  # noqa: PLC0415  an extra
        except ImportError:
            raise SeedError(
                f"{name}: YAML needs a package: pip install 'minibroker[yaml]', or write the seed "
                "as JSON lines (.jsonl)"
            ) from None
        self._yaml = yaml
        self._name = name
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        self._depth = 0
        self._values = 0

    def content(self) -> _Mapping:
        """Return the mapping that the file has. Raises SeedError."""
        try:
            content = self._document()
        except self._yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._name if mark is None else str(LinePlace(self._name, mark.line + 1))
            raise SeedError(f"{place}: it is no YAML: {error.problem}") from None
        except (self._yaml.YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise SeedError(f"{self._name}: it is no YAML: {reason}") from None
        if content is None:
            raise SeedError(f"{self._name} is empty: expected {', '.join(_PARTS)}")
        if not isinstance(content, _Mapping):
            raise SeedError(f"{self._name}: expected a mapping with {', '.join(_PARTS)}")
        return content

    def _document(self) -> Any:
        """Return the value of the only document, None for none. Raises SeedError, YAMLError."""
        content = None
        documents = 0
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._at(event, "a second document begins: expected one in a file")
                content = self._value(next(self._events))
        return content

    def _value(self, event: Any) -> Any:
        """Return the value that begins with an event. Raises SeedError, YAMLError."""
        yaml = self._yaml
        self._values += 1
        if self._values > VALUES_MAX:
            raise self._at(event, f"the file has more than {VALUES_MAX} values; {_LINES_HINT}")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.AliasEvent):
            raise self._at(event, f"*{event.anchor} is an alias: expected the value itself")
        if event.tag is not None and not event.implicit:
            raise self._at(event, f"the tag {event.tag}: expected none, !!str or !!binary")
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._at(event, f"the values are deeper than {DEPTH_MAX}")
        is_sequence = isinstance(event, yaml.SequenceStartEvent)
        value = self._sequence() if is_sequence else self._mapping(event)
        self._depth -= 1
        return value

    def _sequence(self) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            items.append(self._value(event))
        return items

    def _mapping(self, start: Any) -> _Mapping:
        fields = _Mapping()
        fields.line = start.start_mark.line + 1
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            if not isinstance(event, self._yaml.ScalarEvent):
                raise self._at(event, "a name is a list, a mapping or an alias: expected a text")
            name = event.value
            if name in fields:
                raise self._at(event, f"{name[:100]!r} stands twice in one mapping")
            fields[name] = self._value(next(self._events))
        return fields

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag == _BINARY:
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                raise self._at(event, "!!binary: expected bytes in base64, such as AAE=") from None
        if event.tag not in (None, _TEXT, "!"):
            raise self._at(event, f"the tag {event.tag}: expected none, !!str or !!binary")
        return _plain(text) if event.implicit[0] and event.tag is None else text

    def _at(self, event: Any, sentence: str) -> SeedError:
        return SeedError(f"{LinePlace(self._name, event.start_mark.line + 1)}: {sentence}")


def _plain(text: str) -> Any:
    """Return the value of a scalar without quotes."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
