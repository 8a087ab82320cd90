"""The tables of a failed test."""

from __future__ import annotations

from minibroker.rig.group_views import GroupMember
from minibroker.rig.request_log import SeenRequest
from minibroker.rig.topic_records import TopicRecord
from minibroker.testing.report import TEXT_MAX, group_lines, record_lines, request_lines, table

AT_MS = 1_700_000_000_123


def test_columns_are_as_wide_as_their_longest_text() -> None:
    assert table(("a", "long"), [("wide", "b"), ("c", "")]) == ["a     long", "wide  b", "c"]


def test_requests_say_who_asked_and_how_it_ended() -> None:
    asked = SeenRequest("Produce", 9, "mine", "127.0.0.1:5", AT_MS, 0.25, "NOT_LEADER_OR_FOLLOWER")
    fine = SeenRequest("Fetch", 12, None, "127.0.0.1:5", AT_MS, 12.0, None)
    assert request_lines([asked, fine]) == [
        "time          client  request     answer                  ms",
        "22:13:20.123  mine    Produce v9  NOT_LEADER_OR_FOLLOWER  0.2",
        "22:13:20.123  -       Fetch v12   ok                      12.0",
    ]
    assert request_lines([]) == ["no client sent anything"]


def test_groups_show_a_line_for_each_member() -> None:
    members = [
        GroupMember("m-1", "rdkafka", None, (("orders", 0), ("orders", 1))),
        GroupMember("m-2", "rdkafka", "static", ()),
    ]
    groups = {
        "mine": ("Stable", members, {("orders", 0): 3}),
        "gone": ("Empty", [], {}),
    }
    assert group_lines(groups) == [
        "group  state   member   partitions         lag",
        "gone   Empty   -        -                  -",
        "mine   Stable  rdkafka  orders-0 orders-1  orders-0:3",
        "mine   Stable  static   -                  orders-0:3",
    ]
    assert group_lines({}) == []


def test_records_are_cut_and_shown_as_text_where_they_are_text() -> None:
    records = [
        TopicRecord("t", 0, 7, AT_MS, "CreateTime", b"k", b"x" * 100),
        TopicRecord("t", 0, 8, -1, "CreateTime", None, b"a\nb"),
    ]
    head, cut, escaped = record_lines(records)
    assert head.split() == ["partition", "offset", "time", "key", "value"]
    assert cut.split()[-1] == "x" * (TEXT_MAX - 1) + "…"
    assert escaped.split() == ["t-0", "8", "-", "null", r"'a\nb'"]
    assert record_lines([]) == []
