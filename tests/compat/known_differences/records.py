"""Known differences of Produce, Fetch and ListOffsets."""

from __future__ import annotations

from tests.compat.verdict import ABSENT, Difference, KnownDifference
from tests.support.batches import TIMESTAMP

_OUTCOME = "responses[0].partition_responses[0]"
_PADDED = (
    "a converted answer ends where its messages end; Kafka pads it to the size of what it read"
)
_ONCE = "a partition that is named twice is answered twice, as in 3.9; 4.4 answers it once"
_NO_PARTITIONS = "a topic without partitions is answered, as in 3.9; 4.4 leaves it out"

_PRODUCED: list[KnownDifference] = [
    Difference(
        "produce_transactional",
        tuple(
            f"{step}.{_OUTCOME}.log_start_offset:" for step in ("older epoch", "the session before")
        ),
        "an old epoch is refused before the log is asked, as in 4.4",
        ours=-1,
        kafka_39=0,
        since=5,
        until=11,
    ),
    Difference(
        "produce_bad_frames_of_records",
        (f"length too small.{_OUTCOME}.error_message:",),
        "the fault is named, as it is for the other wrong lengths",
        ours="text",
        kafka_39=None,
        kafka_44=None,
        since=8,
    ),
]

_RECORDS = "responses[0].partitions[0].records"

# Scenario, step → how many messages there are, and how many bytes Kafka pads with: in versions 0
# and 1 (format v0), in 2 and in 3 (v1). Nothing: no padding.
_PADDING: dict[tuple[str, str], tuple[int, int | None, int | None, int | None]] = {
    ("", "from 0"): (6, 69, 21, 21),
    ("", "from 1"): (5, 96, 56, 56),
    ("", "from 2"): (4, 46, 14, 14),
    ("", "from 3"): (3, 73, 49, 49),
    ("", "from 5"): (1, 42, 34, 34),
    ("", "limit 1"): (2, None, None, 7),
    ("", "limit 60"): (2, None, None, 7),
    ("", "limit 100"): (2, 46, 30, 30),
    ("", "limit 150"): (2, 96, 80, 80),
    ("_append_time", "from 0"): (2, 23, 7, 7),
    ("_everything", "from 0"): (5, 23, None, None),
    ("_everything", "from 3"): (2, 15, None, None),
    ("_everything", "from 4"): (2, 15, None, None),
}


def _padding(
    name: str, step: str, messages: int, *, pad_bytes: int, since: int, until: int
) -> list[KnownDifference]:
    scenario, records = f"fetch_old_versions_convert{name}", f"{step}.{_RECORDS}"
    return [
        Difference(
            scenario,
            (f"{records}.length",),
            _PADDED,
            ours=messages,
            kafka_39=messages + 1,
            since=since,
            until=until,
        ),
        Difference(
            scenario,
            (f"{records}[{messages}].cut_after_bytes:",),
            _PADDED,
            ours=ABSENT,
            kafka_39=pad_bytes,
            since=since,
            until=until,
        ),
    ]


_FETCHED: list[KnownDifference] = [
    line
    for (name, step), (messages, *pads) in _PADDING.items()
    for pad_bytes, since, until in zip(pads, (0, 2, 3), (1, 2, 3), strict=True)
    if pad_bytes is not None
    for line in _padding(name, step, messages, pad_bytes=pad_bytes, since=since, until=until)
]

_OFFSETS: list[KnownDifference] = [
    Difference(
        "list_offsets_twice", ("outcomes.length",), _ONCE, ours=3, kafka_44=2, since=1, until=9
    ),
    Difference(
        "list_offsets_twice", ("outcomes[1][0]:",), _ONCE, ours=0, kafka_44=1, since=1, until=9
    ),
    Difference(
        "list_offsets_twice", ("outcomes[1][1]:",), _ONCE, ours=42, kafka_44=0, since=1, until=9
    ),
    Difference(
        "list_offsets_twice", ("outcomes[1][2]:",), _ONCE, ours=-1, kafka_44=0, since=1, until=9
    ),
    Difference(
        "list_offsets_twice",
        ("outcomes[2].length",),
        _ONCE,
        ours=3,
        kafka_44=ABSENT,
        since=1,
        until=9,
    ),
    Difference(
        "list_offsets_twice", ("outcomes[2][0]:",), _ONCE, ours=1, kafka_44=ABSENT, since=1, until=9
    ),
    Difference(
        "list_offsets_twice",
        ("outcomes[2][1]:", "outcomes[2][2]:"),
        _ONCE,
        ours=0,
        kafka_44=ABSENT,
        since=1,
        until=9,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics.length",),
        _NO_PARTITIONS,
        ours=1,
        kafka_44=0,
        since=1,
        until=9,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics[0].name:",),
        _NO_PARTITIONS,
        ours="own.timed",
        kafka_44=ABSENT,
        since=1,
        until=9,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics[0].partitions.length",),
        _NO_PARTITIONS,
        ours=0,
        kafka_44=ABSENT,
        since=1,
        until=9,
    ),
]

_LATER_SEGMENT = "a lookup by time goes on to later segments; Kafka ends where deleted records were"

_DELETED: list[KnownDifference] = [
    Difference(
        "delete_records_before_a_later_time",
        tuple(f"+{delta}.topics[0].partitions[0].{field}:" for delta in (51, 100)),
        _LATER_SEGMENT,
        ours=ours,
        kafka_39=-1,
        kafka_44=-1,
    )
    for field, ours in (("offset", 3), ("timestamp", TIMESTAMP + 110), ("leader_epoch", 0))
]

LINES: list[KnownDifference] = [*_PRODUCED, *_FETCHED, *_OFFSETS, *_DELETED]
