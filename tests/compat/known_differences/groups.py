"""Known differences of groups and committed offsets."""

from __future__ import annotations

from tests.compat.verdict import ABSENT, KAFKA_39, KAFKA_44, Difference, KnownDifference, Lacking

_LAST_SHARE = "members are shown with what they were assigned last, as in 4.4"
_TWICE = "a partition that is named twice is answered twice, as in 4.4"
_NO_PARTITIONS = "a topic without partitions is answered, as in 4.4"
_SPACES = "spaces around the name of a state are cut, as in 4.4"

_DESCRIBED: list[KnownDifference] = [
    *(
        Difference(
            "describe_groups_all",
            (
                f"all join.groups[0].members[{position}].member_assignment:",
                f"waits for the shares.groups[0].members[{position}].member_assignment:",
            ),
            _LAST_SHARE,
            ours=share.hex(),
            kafka_39="",
            until=5,
        )
        for position, share in ((0, b"that"), (1, b"this"))
    ),
    Difference(
        "describe_groups_all",
        tuple(f"what may be done.groups[{position}].authorized_operations:" for position in (0, 1)),
        "groups have configurations, as in 4.4",
        ours=3400,
        kafka_39=328,
        since=3,
        until=5,
    ),
    Difference(
        "list_groups_all", ("with spaces.groups.length",), _SPACES, ours=1, kafka_39=0, since=4
    ),
    Lacking(
        "list_groups_all",
        ("with spaces.groups[0]",),
        _SPACES,
        lacked_by=KAFKA_39,
        followed=KAFKA_44,
        since=4,
    ),
    Difference(
        "find_coordinator_of_unknown_type",
        ("share group without its form.coordinators[0].error_code:",),
        "share groups are not served; the key is not of their form either, as 4.4 says",
        ours=42,
        kafka_39=15,
        since=6,
    ),
]

_OFFSETS: list[KnownDifference] = [
    Difference(
        "offset_commit_of_nobody",
        ("twice in one.topics[0].partitions.length",),
        _TWICE,
        ours=2,
        kafka_39=1,
        since=1,
        until=9,
    ),
    *(
        Difference(
            "offset_commit_of_nobody",
            (f"twice in one.topics[0].partitions[1].{field}:",),
            _TWICE,
            ours=0,
            kafka_39=ABSENT,
            since=1,
            until=9,
        )
        for field in ("partition_index", "error_code")
    ),
    Difference(
        "offset_commit_of_a_generation_that_never_was",
        tuple(
            f"{step}.topics[0].partitions[0].error_code:"
            for step in ("unknown group", "of a member")
        ),
        "from version 9 on a client knows GROUP_ID_NOT_FOUND (KIP-848), as in 4.4; 3.9 gives no"
        " such code to classic groups",
        ours=69,
        kafka_39=22,
        since=9,
        until=9,
    ),
    Difference(
        "offset_fetch_some",
        ("no partitions.topics.length",),
        _NO_PARTITIONS,
        ours=1,
        kafka_39=0,
        until=7,
    ),
    Difference(
        "offset_fetch_some",
        ("no partitions.topics[0].name:",),
        _NO_PARTITIONS,
        ours="own.read",
        kafka_39=ABSENT,
        until=7,
    ),
    Difference(
        "offset_fetch_some",
        ("no partitions.topics[0].partitions.length",),
        _NO_PARTITIONS,
        ours=0,
        kafka_39=ABSENT,
        until=7,
    ),
    Difference(
        "offset_fetch_some",
        ("no partitions.groups[0].topics.length",),
        _NO_PARTITIONS,
        ours=1,
        kafka_39=0,
        since=8,
        until=9,
    ),
    Lacking(
        "offset_fetch_some",
        ("no partitions.groups[0].topics[0]",),
        _NO_PARTITIONS,
        lacked_by=KAFKA_39,
        followed=KAFKA_44,
        since=8,
        until=9,
    ),
]

_VOTES: list[KnownDifference] = [
    Difference(
        "consumer_group_heartbeat_assignors_tie",
        tuple(f"after range.groups[0].{field}:" for field in ("group_epoch", "assignment_epoch")),
        "as many votes for two assignors have one answer, as in 4.3; in 4.4 it depends on who votes"
        " last, and each heartbeat makes a new epoch",
        ours=3,
        kafka_44=4,
        since=1,
    )
]

LINES: list[KnownDifference] = [*_VOTES, *_DESCRIBED, *_OFFSETS]
