"""The report of a test that failed: the broker's last requests, groups and records, as tables.

`Broker.report` collects the rows, this module formats them, the pytest plugin prints the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import time_of_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.request_log import SeenRequest
    from minibroker.rig.topic_records import TopicRecord

    GroupRow = tuple[str, Sequence[GroupMember], Mapping[tuple[str, int], int]]
    """State, members, lag by topic and partition."""

TEXT_MAX: Final = 48
"""Characters of a key, a value or a client id that are shown."""
_REQUESTS: Final = ("time", "client", "request", "answer", "ms")
_GROUPS: Final = ("group", "state", "member", "partitions", "lag")
_RECORDS: Final = ("partition", "offset", "time", "key", "value")


def request_lines(requests: Iterable[SeenRequest]) -> list[str]:
    """Return the requests as a table, oldest first."""
    rows = [
        (
            time_of_day(request.at_ms),
            _cut(request.client_id or "-"),
            f"{request.api} v{request.version}",
            request.error or "ok",
            f"{request.duration_ms:.1f}",
        )
        for request in requests
    ]
    return table(_REQUESTS, rows) if rows else ["no client sent anything"]


def group_lines(groups: Mapping[str, GroupRow]) -> list[str]:
    """Return the groups as a table, by group id."""
    rows = []
    for group_id, (state, members, lag) in sorted(groups.items()):
        behind = " ".join(f"{topic}-{index}:{count}" for (topic, index), count in lag.items())
        for member in members:
            partitions_text = " ".join(f"{topic}-{index}" for topic, index in member.partitions)
            name = member.instance_id or member.client_id or member.member_id
            rows.append(
                (
                    _cut(group_id),
                    state,
                    _cut(name),
                    _cut(partitions_text or "-"),
                    _cut(behind or "-"),
                )
            )
        if not members:
            rows.append((_cut(group_id), state, "-", "-", _cut(behind or "-")))
    return table(_GROUPS, rows) if rows else []


def record_lines(records: Iterable[TopicRecord]) -> list[str]:
    """Return the records as a table."""
    rows = [
        (
            f"{record.topic}-{record.partition}",
            str(record.offset),
            "-" if record.timestamp < 0 else time_of_day(record.timestamp),
            _text_of(record.key),
            _text_of(record.value),
        )
        for record in records
    ]
    return table(_RECORDS, rows) if rows else []


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of columns as wide as their longest text; the last column is not padded."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _text_of(data: bytes | None) -> str:
    """Return bytes as text if they are UTF-8, else as Python writes them."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = repr(data)
    return _cut(text if text.isprintable() else repr(text))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
