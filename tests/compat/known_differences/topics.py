"""Known differences of topics and metadata. What topics are configured with: `configs`."""

from __future__ import annotations

from tests.compat.verdict import Difference, Known

LINES: list[Known] = [
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
        "the topic is created before the first answer leaves, so no client has to ask again",
        ours=False,
        kafka_39=True,
        kafka_44=True,
    ),
]
