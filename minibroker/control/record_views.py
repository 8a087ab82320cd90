"""Records as JSON: how keys, values and headers are shown, and how much of them.

A thread makes them (`text_of`), for one record may be as large as a message. A part above the
limit of bytes is cut at the start of its text; the page offers the whole part as a file.
"""

from __future__ import annotations

import base64
import codecs
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from minibroker.broker.storage.tasks import quick_switches
from minibroker.control.bodies import line_of
from minibroker.control.shapes import RecordView

if TYPE_CHECKING:
    from minibroker.rig.topic_records import ReadBatches, TopicRecord

RECORD_BYTES_AROUND: Final = 32
"""Bytes that a record counts besides its key and value."""


class ValueSchemas(Protocol):
    """The schemas of values, for the thread that shows records."""

    def decoded(self, data: bytes) -> tuple[int | None, Any]:
        """Return the id of the schema of a value, None: it has none; and the value, None where
        there is no decoder, or the bytes are not of the schema.
        """


class RecordForm(NamedTuple):
    """The choice of the records that are shown, and of their form. Constant."""

    format: str
    """`text`, `json`, `base64` or `registry`."""
    bytes_max: int | None = None
    """Bytes of a key, value or header that are shown; None: all, and no sizes."""
    key: bytes | None = None
    """Only records with this key; None: all."""
    until_ms: int | None = None
    """Only records before this time; None: all."""
    schemas: ValueSchemas | None = None
    """The decoders of values, with the format `registry`."""

    def fits(self, record: TopicRecord) -> bool:
        """Return whether a record is shown."""
        if self.key is not None and record.key != self.key:
            return False
        return self.until_ms is None or record.timestamp < self.until_ms

    @property
    def is_choosy(self) -> bool:
        """Return whether some records are not shown."""
        return self.key is not None or self.until_ms is not None


class RecordsText(NamedTuple):
    """Records as JSON, and the place behind them."""

    records: list[str]
    size_bytes: int
    """The size of keys and values that are shown."""
    scanned_bytes: int
    """The size of keys and values that were looked at."""
    next_offset: int


def text_of(
    batches: ReadBatches, limit: int, bytes_max: int, form: RecordForm, scan_max: int = 1 << 62
) -> RecordsText:
    """Return the first records of batches as JSON: at most `limit`, and so many that the last one
    reaches `bytes_max`, or that `scan_max` bytes were looked at. It runs in a thread. Raises
    CorruptionError.
    """
    lines: list[str] = []
    size_bytes = scanned_bytes = 0
    with quick_switches():
        records = batches.records()
        while True:
            try:
                record = next(records)
            except StopIteration as end:
                return RecordsText(lines, size_bytes, scanned_bytes, end.value)
            own_bytes = len(record.key or b"") + len(record.value or b"") + RECORD_BYTES_AROUND
            scanned_bytes += own_bytes
            if form.fits(record):
                lines.append(line_of(record_view(record, form)))
                size_bytes += min(own_bytes, 2 * (form.bytes_max or own_bytes))
            if len(lines) >= limit or size_bytes >= bytes_max or scanned_bytes >= scan_max:
                return RecordsText(lines, size_bytes, scanned_bytes, record.offset + 1)


def first_record(batches: ReadBatches) -> TopicRecord | None:
    """Return the first record of batches, None where they have none. It runs in a thread. Raises
    CorruptionError.
    """
    with quick_switches():
        return next(batches.records(), None)


def record_view(record: TopicRecord, form: RecordForm) -> RecordView:
    """Return a record as JSON has it."""
    key, key_fields = _part_of("key", record.key, form)
    value, value_fields = _part_of("value", record.value, form)
    fields = key_fields | value_fields
    if form.schemas is not None and value is not None and value is record.value:
        schema_id, content = form.schemas.decoded(value)
        if schema_id is not None:
            fields["schema_id"] = schema_id
        if content is not None:
            fields.pop("value_base64", None)
            fields["value"] = content
    is_cut = False
    if form.bytes_max is not None:
        is_cut = key is not record.key or value is not record.value
        fields["key_size"] = None if record.key is None else len(record.key)
        fields["value_size"] = None if record.value is None else len(record.value)
    if record.headers:
        headers = []
        for name, content in record.headers:
            part = _cut(content, form.bytes_max)
            is_cut = is_cut or part is not content
            headers.append([_cut_name(name, form.bytes_max), _header(part)])
        fields["headers"] = headers
    if is_cut:
        fields["cut"] = True
    return RecordView(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        **fields,
    )


def _part_of(
    name: str, data: bytes | None, form: RecordForm
) -> tuple[bytes | None, dict[str, Any]]:
    """Return the part of a key or value that is shown, and the field that shows it."""
    if data is None:
        return None, {name: None}
    part = _cut(data, form.bytes_max)
    assert part is not None
    is_whole = part is data
    content = _text(part, form.format, is_whole=is_whole)
    if name == "value" and form.format in ("json", "registry") and is_whole:
        content = _decoded(part)
        if content is None and form.format == "registry":
            content = _text(part, "text")
    if content is None:
        return part, {f"{name}_base64": base64.b64encode(part).decode()}
    return part, {name: content}


def _cut(data: bytes | None, bytes_max: int | None) -> bytes | None:
    if data is None or bytes_max is None or len(data) <= bytes_max:
        return data
    return data[:bytes_max]


def _cut_name(name: str, bytes_max: int | None) -> str:
    return name if bytes_max is None else name[:bytes_max]


def _text(data: bytes, form: str, *, is_whole: bool = True) -> str | None:
    """Return bytes as text, None if they are none, or are to be base64. The last letter of a part
    that is not whole may be missing.
    """
    if form == "base64":
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=is_whole)
    except UnicodeDecodeError:
        return None


def _decoded(data: bytes) -> Any:
    """Return decoded JSON; None if it is none, or null: as base64 it differs from a tombstone."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _header(content: bytes | None) -> Any:
    text = None if content is None else _text(content, "text")
    if content is None or text is not None:
        return text
    return {"base64": base64.b64encode(content).decode()}
