"""Known differences of Produce, Fetch and ListOffsets."""

from __future__ import annotations

from tests.compat.verdict import ABSENT, Difference, Known

_OUTCOME = "responses[0].partition_responses[0]"
_PADDED = (
    "a converted answer ends where its messages end; Kafka pads it to the size of what it read"
)
_ONCE = "a partition that is named twice is answered twice, as in 3.9; 4.4 answers it once"
_NO_PARTITIONS = "a topic without partitions is answered, as in 3.9; 4.4 leaves it out"

_PRODUCED: list[Known] = [
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

_FETCHED: list[Known] = [
    Difference(
        "fetch_old_versions_convert",
        ("from 0.responses[0].partitions[0].records.length",),
        _PADDED,
        ours=6,
        kafka_39=7,
    ),
    *(
        Difference(
            "fetch_old_versions_convert",
            ("from 0.responses[0].partitions[0].records[6].cut_after_bytes:",),
            _PADDED,
            ours=ABSENT,
            kafka_39=size,
            since=since,
            until=since + 1,
        )
        for since, size in ((0, 69), (2, 21))
    ),
]

_LISTED: list[Known] = [
    Difference("list_offsets_twice", ("outcomes.length",), _ONCE, ours=3, kafka_44=2),
    Difference("list_offsets_twice", ("outcomes[1][0]:",), _ONCE, ours=0, kafka_44=1),
    Difference("list_offsets_twice", ("outcomes[1][1]:",), _ONCE, ours=42, kafka_44=0),
    Difference("list_offsets_twice", ("outcomes[1][2]:",), _ONCE, ours=-1, kafka_44=0),
    Difference("list_offsets_twice", ("outcomes[2].length",), _ONCE, ours=3, kafka_44=ABSENT),
    Difference("list_offsets_twice", ("outcomes[2][0]:",), _ONCE, ours=1, kafka_44=ABSENT),
    Difference(
        "list_offsets_twice",
        ("outcomes[2][1]:", "outcomes[2][2]:"),
        _ONCE,
        ours=0,
        kafka_44=ABSENT,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics.length",),
        _NO_PARTITIONS,
        ours=1,
        kafka_44=0,
        since=1,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics[0].name:",),
        _NO_PARTITIONS,
        ours="own.timed",
        kafka_44=ABSENT,
        since=1,
    ),
    Difference(
        "list_offsets_unknown",
        ("no partitions.topics[0].partitions.length",),
        _NO_PARTITIONS,
        ours=0,
        kafka_44=ABSENT,
        since=1,
    ),
]

LINES: list[Known] = [*_PRODUCED, *_FETCHED, *_LISTED]
