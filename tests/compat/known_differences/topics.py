"""Known differences of topics and metadata. Their configurations are in `configs`."""

from __future__ import annotations

from tests.compat.verdict import ABSENT, KAFKA_44, Difference, KnownDifference, Lacking

_TWICE = "a name that is given twice is answered once, as in 4.4"
_BAD_NUMBER = "a partition number that cannot be is the client's error, as in 4.4; 3.9 fails on it"
_SAYS_WHY = "the answer says why, as in 4.4; 3.9 has a code alone"

_DELETED: list[KnownDifference] = [
    Difference(
        "delete_topics_by_name",
        tuple(f"{step}.responses[0].error_message:" for step in ("again", "illegal")),
        _SAYS_WHY,
        ours="text",
        kafka_39=None,
        since=5,
    ),
    Difference(
        "delete_topics_by_id",
        tuple(
            f"{step}.responses[0].error_message:"
            for step in ("name again", "unknown id", "neither")
        ),
        _SAYS_WHY,
        ours="text",
        kafka_39=None,
    ),
    *(
        Difference(
            "delete_topics_by_id",
            (f"{step}.responses[0].topic_id:",),
            "a topic that is deleted by its name is answered with its id, as in 4.4",
            ours,
            kafka_39,
        )
        for step, ours, kafka_39 in (
            ("by name", "topic_id #1", "0" * 32),
            ("by id", "topic_id #2", "topic_id #1"),
            ("unknown id", "topic_id #3", "topic_id #2"),
        )
    ),
    Difference(
        "delete_topics_by_id",
        ("neither.responses[0].error_code:",),
        "neither name nor id is the client's error, as in 4.4; 3.9 calls it a lack of permission",
        ours=42,
        kafka_39=29,
    ),
    Difference(
        "delete_topics_both_or_twice",
        ("both.responses[0].error_message:",),
        _SAYS_WHY,
        ours="text",
        kafka_39=None,
    ),
    *(
        Difference(
            "delete_topics_both_or_twice",
            (f"name and its id{place}",),
            "a topic that is named twice is refused, as in 4.4; 3.9 deletes it and says so twice",
            ours,
            kafka_39,
        )
        for place, ours, kafka_39 in ((".length", 1, 2), ("[0]:", 42, 0), ("[1]:", ABSENT, 0))
    ),
]

_CREATED: list[KnownDifference] = [
    Difference("create_topics_duplicates", ("outcomes.length",), _TWICE, ours=2, kafka_39=3),
    Lacking(
        "create_topics_duplicates", ("outcomes[2]",), _TWICE, lacked_by=KAFKA_44, followed=KAFKA_44
    ),
    Difference(
        "create_topics_bad_assignments",
        ("negative partition.topics[0].error_code:",),
        _BAD_NUMBER,
        ours=39,
        kafka_39=-1,
    ),
    Difference(
        "create_topics_bad_assignments",
        ("negative partition.topics[0].error_message:",),
        _BAD_NUMBER,
        ours="text",
        kafka_39=None,
    ),
    Difference(
        "create_topics_bad_assignments",
        ("same partition twice:",),
        "a partition that is assigned twice is refused, as in 4.4; 3.9 takes the last",
        ours=39,
        kafka_39=0,
    ),
]

LINES: list[KnownDifference] = [
    *_DELETED,
    *_CREATED,
    Difference(
        "create_topics_validate_only",
        ("good.topics[0].topic_id:",),
        "a topic that is not made has no id, as in 3.9; 4.4 makes one up",
        ours="0" * 32,
        kafka_44="topic_id #1",
        since=7,
    ),
    Difference(
        "create_partitions_refused",
        tuple(f"{step}.results[0].error_message:" for step in ("unknown topic", "illegal name")),
        "4.4 has a code and no words for it; ours are those of 3.9",
        ours="text",
        kafka_44=None,
    ),
    Difference(
        "metadata_auto_creation",
        ("first: retriable, named[0]:",),
        "the topic has its leaders before the first answer leaves, so no client has to ask again;"
        " Kafka first answers LEADER_NOT_AVAILABLE (3.9) or UNKNOWN_TOPIC_OR_PARTITION (4.4), and"
        " a client's test that waits for such an answer needs a fault",
        ours=False,
        kafka_39=True,
        kafka_44=True,
    ),
]
