"""The page of a failed test from made values: its texts, its bounds, its masks."""

from __future__ import annotations

import re
from html import unescape

import pytest

from minibroker.rig.group_views import GroupMember
from minibroker.rig.snapshot import (
    BrokerSnapshot,
    GroupSnapshot,
    OffsetSnapshot,
    PartitionSnapshot,
    Snapshot,
    SnapshotRecord,
    TopicSnapshot,
    TransactionSnapshot,
)
from minibroker.rig.topic_records import TopicRecord
from minibroker.testing.failure_page import FailedTest, masking, page
from minibroker.testing.failure_watch import View

NOON_MS = 1_790_000_000_000
EMPTY = Snapshot("127.0.0.1:9", "id", "Kafka 4.4", [], [], [], [], [], [], [], [])


def page_of(*views: View, error: str = "AssertionError", log_lines: tuple[str, ...] = ()) -> str:
    return page(FailedTest("test_it", NOON_MS, 1500, "test", error, views, log_lines))


def snapshot_page(snapshot: Snapshot, *secrets: str) -> str:
    return page_of(View("Broker", snapshot, "", frozenset(secrets)))


def cells(html: str) -> list[str]:
    return [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)]


def record(value: bytes | None, size: int | None = None, at_ms: int = NOON_MS) -> SnapshotRecord:
    topic_record = TopicRecord("t", 0, 7, at_ms, "CreateTime", None, value, ((f"h{size}", None),))
    return SnapshotRecord(topic_record, (0, len(value or b"") if size is None else size), (0,))


def records_page(*records: SnapshotRecord) -> list[str]:
    partitions = [PartitionSnapshot(0, -1, (0, 1), (0,), 0, 9, 7)]
    return cells(
        snapshot_page(EMPTY._replace(topics=[TopicSnapshot("t", False, {}, partitions, records)]))
    )


@pytest.mark.parametrize(
    ("value", "size", "text"),
    [
        (None, 0, "null"),
        (b"", 0, ""),
        ("ä→".encode(), None, "ä→"),
        (b"\xff\x00", None, "0xff00"),
        (b"a\x1b[2Jb\n", None, r"a\x1b[2Jb\n"),
        ("ä".encode() * 600, 1_200, "ä" * 500 + "… (1.2 KiB)"),
        (b"x" + "ä".encode() * 600, 10_000_000, "x" + "ä" * 499 + "… (9.5 MiB)"),
    ],
)
def test_a_value_is_a_text_or_digits_and_says_how_long_it_is(
    value: bytes | None, size: int | None, text: str
) -> None:
    assert text in records_page(record(value, size))


def test_a_partition_without_a_leader_and_with_an_open_transaction_says_so() -> None:
    assert records_page()[:7] == ["0", "none", "0 1", "0", "0", "9", "7"]


def test_a_time_that_no_calendar_has_is_a_number() -> None:
    page = records_page(record(b"v", at_ms=2**62), record(b"w", at_ms=-1), record(b"x"))
    assert [cell for cell in page if cell in ("–", f"{2**62} ms", "14:13:20.000")] == [
        f"{2**62} ms",
        "–",
        "14:13:20.000",
    ]


def test_a_group_has_its_lag_where_all_ends_are_known() -> None:
    member = GroupMember("m-1", "shop", "static", tuple(("t", index) for index in range(150)))
    read_in_part = OffsetSnapshot("t", 0, 5, 9)
    ahead, unknown = OffsetSnapshot("t", 1, 9, 5), OffsetSnapshot("u", 0, 5, -1)
    group = GroupSnapshot("g", "consumer", "Stable", [member], [read_in_part, ahead])
    texts = cells(
        snapshot_page(
            EMPTY._replace(groups=[group, group._replace(offsets=[read_in_part, unknown])])
        )
    )
    assert texts[:10] == ["g", "consumer", "Stable", "1", "4", "g", "consumer", "Stable", "1", "–"]
    assert any(cell.endswith("t-99 and 50 more") for cell in texts)
    assert texts[-1] == "–", "nobody has the partition of the last offset"


def test_a_transaction_shows_when_it_began() -> None:
    transaction = TransactionSnapshot("mover", "Ongoing", 3, 1, [("t", 0)], NOON_MS, 60_000)
    idle = transaction._replace(transactional_id="idle", partitions=[], started_ms=-1)
    assert cells(snapshot_page(EMPTY._replace(transactions=[transaction, idle]))) == [
        *("mover", "Ongoing", "3", "1", "t-0", "14:13:20.000", "1 min"),
        *("idle", "Ongoing", "3", "1", "–", "–", "1 min"),
    ]


def test_passwords_are_masked_in_error_settings_and_log() -> None:
    snapshot = EMPTY._replace(settings=[("jaas", "password=pass-of-alice;")])
    view = View("Broker", snapshot, "", frozenset({"pass-of-alice", "abc"}))
    html = page_of(view, error="login of pass-of-alice, abc", log_lines=("pass-of-alice tried",))
    assert "pass-of-alice" not in html
    assert html.count("•••") == 3
    assert "abc" in html, "three letters would mask words"


def test_of_secrets_the_longest_is_masked_first() -> None:
    assert masking({"secret", "secret-two"})("secret-two secret") == "••• •••"
    assert masking(set())("a.*") == "a.*"


def test_a_broker_that_could_not_be_looked_at_has_its_reason() -> None:
    html = page_of(View("Cluster of 3 brokers", None, "TimeoutError: <late>"))
    assert "It could not be looked at: TimeoutError: &lt;late&gt;" in html


def test_a_long_error_keeps_its_end() -> None:
    html = page_of(error="begin" + "x" * 200_000 + "\nthe end")
    assert "begin" not in unescape(html).split('id="error"')[1].split("</section>")[0]
    assert "the end" in html
    assert len(html) < 150_000


def test_brokers_are_a_table_where_there_are_several() -> None:
    first = BrokerSnapshot(0, "127.0.0.1:9", "running", True)
    assert "Controller" not in snapshot_page(EMPTY._replace(brokers=[first]))
    second = first._replace(broker_id=1, state="killed", is_controller=False)
    assert cells(snapshot_page(EMPTY._replace(brokers=[first, second])))[4:] == [
        *("1", "127.0.0.1:9", "killed", "no"),
    ]
