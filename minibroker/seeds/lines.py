"""Records as lines of a seed: exact to the byte, and as readable as they may be.

A JSON object or array stands in the line as it is, if a load writes the same bytes again; any other
text is a JSON text, and what is no UTF-8 is base64.
"""

from __future__ import annotations

import base64
import json
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from minibroker.seeds.items import BASE64, compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.kafka.ids import TopicPartition
    from minibroker.kafka.records.record import Header, Record

_OPENINGS: Final = (b"{"[0], b"["[0])
_quote: Final = encode_basestring


def lines_of(place: TopicPartition, records: Iterable[Record]) -> bytes:
    """Return the lines of a partition's records, each with its end."""
    head = f'{{"topic": {_quote(place.topic)}, "partition": {place.partition}, "offset": '
    parts = []
    for offset, timestamp, key, value, headers in records:
        parts.append(
            f'{head}{offset}, "timestamp": {timestamp}, {_field("key", key)}, '
            f"{_field('value', value)}{_headers(headers) if headers else ''}}}\n"
        )
    return "".join(parts).encode()


def topic_line(name: str, partitions: int, configs: Mapping[str, str]) -> bytes:
    """Return the line that declares a topic."""
    fields: dict[str, Any] = {"create": name, "partitions": partitions}
    if configs:
        fields["configs"] = dict(configs)
    return f"{json.dumps(fields, ensure_ascii=False)}\n".encode()


def _field(name: str, data: bytes | None) -> str:
    """Return the field of a key or a value."""
    if data is None:
        return f'"{name}": null'
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f'"{name}_base64": "{base64.b64encode(data).decode()}"'
    if data and data[0] in _OPENINGS and _is_json_of_a_load(text, data):
        return f'"{name}": {text}'
    return f'"{name}": {_quote(text)}'


def _is_json_of_a_load(text: str, data: bytes) -> bool:
    """Return whether a load of this JSON writes these bytes."""
    try:
        return compact_json(json.loads(text)) == data
    except (ValueError, RecursionError):
        return False


def _headers(headers: Iterable[Header]) -> str:
    pairs = ", ".join(f"[{_quote(name)}, {_header_value(value)}]" for name, value in headers)
    return f', "headers": [{pairs}]'


def _header_value(data: bytes | None) -> str:
    if data is None:
        return "null"
    try:
        return _quote(data.decode())
    except UnicodeDecodeError:
        return f'{{"{BASE64}": "{base64.b64encode(data).decode()}"}}'
