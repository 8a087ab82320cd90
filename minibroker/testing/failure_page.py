"""The page of a failed test: one HTML file that shows the brokers as they were.

    FailedTest (views of brokers, error, log lines) ─► page() ─► failure_page.html

The page loads nothing. Every text on it is foreign: Jinja2 escapes it, control characters are shown
as escapes, and passwords of the brokers' users are masked.
"""

from __future__ import annotations

import platform
import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker import __version__
from minibroker.cli.quantities import duration, moment, number, size, time_of_day
from minibroker.kafka.foreign_text import printable
from minibroker.pages.conversation import conversation
from minibroker.pages.page import render
from minibroker.pages.plot import Bar, bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from markupsafe import Markup

    from minibroker.rig.snapshot import (
        GroupSnapshot,
        PartitionSnapshot,
        Snapshot,
        SnapshotRecord,
        TopicSnapshot,
        TransactionSnapshot,
    )
    from minibroker.testing.failure_watch import View

_TEXT_MAX: Final = 1_000
"""Characters of a key, a value or a header that are shown."""
_NAME_MAX: Final = 200
_ERROR_MAX: Final = 100_000
"""Characters of the test's error, of its end."""
_BARS_MAX: Final = 10
_PLACES_MAX: Final = 100
"""Partitions of a member or a transaction that are named."""
_LINE_MAX: Final = 2_000
"""Characters of a log line."""
_MASK: Final = "•••"
_SECRET_LEAST: Final = 4
"""Characters of a password that is masked: a shorter one would mask ordinary words."""


class FailedTest(NamedTuple):
    """Everything that the page shows."""

    test_id: str
    at_ms: int
    duration_ms: float
    phase: str
    """`test` or `setup`."""
    error: str
    views: Sequence[View]
    log_lines: Sequence[str]


class _BrokersPart(NamedTuple):
    """One broker or cluster, ready for the template."""

    title: str
    bootstrap: str
    anchor: str
    reason: str
    notes: Sequence[str]
    figures: Sequence[tuple[str, str]]
    brokers: Sequence[Sequence[str]]
    topics: Sequence[_TopicPart]
    groups: Sequence[Sequence[str]]
    members: Sequence[Sequence[str]]
    offsets: Sequence[Sequence[str]]
    lag: Markup | None
    transactions: Sequence[Sequence[str]]
    faults: Sequence[Sequence[str]]
    settings: Sequence[tuple[str, str]]


class _TopicPart(NamedTuple):
    """A topic, ready for the template."""

    name: str
    is_internal: bool
    summary: str
    configs: Sequence[tuple[str, str]]
    partitions: Sequence[Sequence[str]]
    records: Sequence[Sequence[str]]
    caption: str


def page(failed: FailedTest) -> str:
    """Return the whole page."""
    mask = masking({secret for view in failed.views for secret in view.secrets})
    exchanges = [
        exchange
        for view in failed.views
        if view.snapshot is not None
        for exchange in view.snapshot.exchanges
    ]
    renumbered = [exchange._replace(number=place) for place, exchange in enumerate(exchanges, 1)]
    error = failed.error
    return render(
        "testing/failure_page.html",
        test_id=printable(failed.test_id),
        subtitle=(
            f"The {failed.phase} failed at {moment(failed.at_ms)} UTC, after"
            f" {duration(int(failed.duration_ms))}. minibroker {__version__}, Python"
            f" {platform.python_version()}. Times are UTC."
        ),
        error=mask(_lines(error[-_ERROR_MAX:])),
        is_cut=len(error) > _ERROR_MAX,
        diagram=conversation(renumbered),
        has_requests=bool(renumbered),
        sections=[_section(place, view, mask) for place, view in enumerate(failed.views)],
        log_lines=[mask(printable(line[:_LINE_MAX])) for line in failed.log_lines],
    )


def masking(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that puts a mask in the place of each of these texts."""
    texts = sorted((text for text in secrets if len(text) >= _SECRET_LEAST), key=len, reverse=True)
    if not texts:
        return str
    pattern = re.compile("|".join(map(re.escape, texts)))
    return lambda text: pattern.sub(_MASK, text)


def _section(place: int, view: View, mask: Callable[[str], str]) -> _BrokersPart:
    if view.snapshot is None:
        empty: dict[str, Any] = dict.fromkeys(_BrokersPart._fields, ())
        empty |= {"title": view.title, "anchor": f"b{place}", "reason": view.reason, "lag": None}
        return _BrokersPart(**empty)
    snapshot = view.snapshot
    return _BrokersPart(
        title=f"{view.title} at {snapshot.bootstrap}",
        bootstrap=snapshot.bootstrap,
        anchor=f"b{place}",
        reason="",
        notes=[printable(note) for note in snapshot.notes],
        figures=_figures(snapshot),
        brokers=[
            [
                str(broker.broker_id),
                broker.address,
                broker.state,
                "yes" if broker.is_controller else "no",
            ]
            for broker in snapshot.brokers
        ],
        topics=[_topic(topic) for topic in snapshot.topics],
        groups=[_group(group) for group in snapshot.groups],
        members=[row for group in snapshot.groups for row in _members(group)],
        offsets=[row for group in snapshot.groups for row in _offsets(group)],
        lag=_lag(snapshot.groups),
        transactions=[_transaction(transaction) for transaction in snapshot.transactions],
        faults=[
            [
                fault.rule,
                fault.effect,
                number(fault.hits),
                "removed" if fault.is_removed else "active",
            ]
            for fault in snapshot.faults
        ],
        settings=[(name, mask(_short(value))) for name, value in snapshot.settings],
    )


def _figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    topics = [topic for topic in snapshot.topics if not topic.is_internal]
    records = sum(
        max(partition.end_offset - max(partition.start_offset, 0), 0)
        for topic in topics
        for partition in topic.partitions
    )
    return [
        ("Passes for", snapshot.release),
        ("Topics", number(len(topics))),
        ("Offsets in use", number(records)),
        ("Groups", number(len(snapshot.groups))),
        ("Requests", number(len(snapshot.exchanges))),
        ("Errors", number(sum(exchange.error is not None for exchange in snapshot.exchanges))),
        ("Faults met", number(sum(fault.hits for fault in snapshot.faults))),
    ]


def _topic(topic: TopicSnapshot) -> _TopicPart:
    ends = sum(max(partition.end_offset, 0) for partition in topic.partitions)
    total = sum(
        max(partition.end_offset - max(partition.start_offset, 0), 0)
        for partition in topic.partitions
    )
    count = len(topic.partitions)
    record_count = len(topic.records)
    return _TopicPart(
        _name(topic.name),
        topic.is_internal,
        f"{count} partition{'' if count == 1 else 's'}, {number(total)} offsets in use"
        if ends
        else f"{count} partition{'' if count == 1 else 's'}, empty",
        [(name, _short(value)) for name, value in sorted(topic.configs.items())],
        [_partition(partition) for partition in topic.partitions],
        [_record(record) for record in topic.records],
        "Records" if record_count >= total else f"The last {number(record_count)} records",
    )


def _partition(partition: PartitionSnapshot) -> list[str]:
    leader = "none" if partition.leader < 0 else str(partition.leader)
    return [
        str(partition.number),
        leader,
        " ".join(map(str, partition.replicas)),
        " ".join(map(str, partition.in_sync)),
        _offset(partition.start_offset),
        _offset(partition.end_offset),
        _offset(partition.open_offset) if partition.open_offset != partition.end_offset else "–",
    ]


def _record(item: SnapshotRecord) -> list[str]:
    record = item.record
    headers = ", ".join(
        f"{_short(name)}={_text_of(data, item.header_sizes[place])}"
        for place, (name, data) in enumerate(record.headers)
    )
    return [
        f"{record.partition}",
        f"{record.offset}",
        "–" if record.timestamp < 0 else time_of_day(record.timestamp),
        _text_of(record.key, item.sizes[0]),
        _text_of(record.value, item.sizes[1]),
        headers,
    ]


def _group(group: GroupSnapshot) -> list[str]:
    lags = [offset.lag for offset in group.offsets]
    lag = "–" if not lags or None in lags else number(sum(lag for lag in lags if lag is not None))
    return [_name(group.name), group.kind, group.state, number(len(group.members)), lag]


def _members(group: GroupSnapshot) -> list[list[str]]:
    return [
        [
            _name(group.name),
            _name(member.client_id),
            _name(member.instance_id or "–"),
            _name(member.member_id),
            _places(member.partitions) or "nothing",
        ]
        for member in group.members
    ]


def _offsets(group: GroupSnapshot) -> list[list[str]]:
    owners = {place: member.client_id for member in group.members for place in member.partitions}
    return [
        [
            _name(group.name),
            _name(offset.topic),
            str(offset.partition),
            _offset(offset.committed),
            _offset(offset.end_offset),
            "–" if offset.lag is None else number(offset.lag),
            _name(owners.get((offset.topic, offset.partition), "–")),
        ]
        for offset in group.offsets
    ]


def _lag(groups: Sequence[GroupSnapshot]) -> Markup | None:
    """Return a bar for each group that is behind, None if no group is."""
    behind = [
        (sum(offset.lag or 0 for offset in group.offsets), _name(group.name)) for group in groups
    ]
    worst = sorted((item for item in behind if item[0]), reverse=True)[:_BARS_MAX]
    if not worst:
        return None
    return bars(
        [Bar(lag, name, f"{number(lag)} behind") for lag, name in worst],
        description="How many offsets each group is behind the end",
    )


def _transaction(transaction: TransactionSnapshot) -> list[str]:
    return [
        _name(transaction.transactional_id),
        transaction.state,
        str(transaction.producer_id),
        str(transaction.producer_epoch),
        _places(transaction.partitions) or "–",
        "–" if transaction.started_ms < 0 else time_of_day(transaction.started_ms),
        duration(transaction.timeout_ms),
    ]


def _places(places: Sequence[tuple[str, int]]) -> str:
    """Return the first partitions, and the number of the others."""
    text = ", ".join(f"{_name(topic)}-{index}" for topic, index in places[:_PLACES_MAX])
    return text if len(places) <= _PLACES_MAX else f"{text} and {len(places) - _PLACES_MAX} more"


def _text_of(data: bytes | None, size_bytes: int) -> str:
    """Return bytes as text if they are UTF-8, else in hexadecimal digits; `null` for none."""
    if data is None:
        return "null"
    cut = data[:_TEXT_MAX]
    is_whole = len(cut) == size_bytes
    try:  # a character that the cut halves is no error
        text = printable(getincrementaldecoder("utf-8")().decode(cut, final=is_whole))
    except UnicodeDecodeError:
        text = "0x" + cut.hex()
    return text if is_whole else f"{text}… ({size(size_bytes)})"


def _short(text: str) -> str:
    return printable(text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…")


def _name(text: str) -> str:
    return printable(text if len(text) <= _NAME_MAX else f"{text[: _NAME_MAX - 1]}…")


def _lines(text: str) -> str:
    """Return a text of several lines, each without control characters."""
    return "\n".join(printable(line) for line in text.splitlines())


def _offset(offset: int) -> str:
    return "–" if offset < 0 else number(offset)
