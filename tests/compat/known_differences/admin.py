"""Known differences of users' credentials, elections, reassignments and quotas."""

from __future__ import annotations

from tests.compat.verdict import ABSENT, KAFKA_39, KAFKA_44, Difference, KnownDifference, Lacking

_WORDLESS_39 = "no words are an empty text, as in 3.9; 4.4 sends null"
_CHECKS_39 = "version 0 is checked in the order of 3.9"

_REASSIGNMENTS = {
    "on_one_broker": (
        "empty",
        "twice the same",
        "negative",
        "no such broker",
        "one of two",
        "unknown partition",
        "unknown topic",
        "nothing to take back",
        "several",
    ),
    "to_where_it_is": ("as it is",),
    "order_of_checks": (
        "partition twice",
        "nothing to take back",
        "unknown topic, no such broker",
        "no partitions",
    ),
}

_CREDENTIALS: list[KnownDifference] = [
    Difference(
        "alter_user_scram_credentials_good",
        tuple(
            f"{step}.results[0].error_message:"
            for step in ("set", "the other, no salt", "replace", "one away", "the last away")
        ),
        _WORDLESS_39,
        ours="",
        kafka_44=None,
    ),
    Difference(
        "alter_user_scram_credentials_refused",
        ("no password.results[0].error_message:",),
        "4.4 has a code and no words for it; ours say what is missing, as in 3.9",
        ours="text",
        kafka_44=None,
    ),
    Difference(
        "alter_user_scram_credentials_refused",
        ("set and away.results[0].error_code:",),
        "3.9 looks for a user that is named twice first, 4.4 for the credential; ours is 3.9",
        ours=92,
        kafka_44=91,
    ),
    Difference(
        "alter_user_scram_credentials_refused",
        ("two faults.results[0].error_code:",),
        "of two faults 3.9 tells that of the insertion, 4.4 that of the deletion; ours is 3.9",
        ours=93,
        kafka_44=33,
    ),
]

_BOTH_AT_ONCE = "a user may have two changes in one request, as in 3.9; 4.4 takes one"

_TWO_MECHANISMS: list[KnownDifference] = [
    Difference(
        "alter_user_scram_credentials_both_mechanisms",
        tuple(f"{step}.results[0].error_code:" for step in ("both at once", "one set, one away")),
        _BOTH_AT_ONCE,
        ours=0,
        kafka_44=92,
    ),
    Difference(
        "alter_user_scram_credentials_both_mechanisms",
        tuple(
            f"{step}.results[0].error_message:" for step in ("both at once", "one set, one away")
        ),
        _BOTH_AT_ONCE,
        ours="",
        kafka_44="text",
    ),
    Difference(
        "alter_user_scram_credentials_both_mechanisms",
        ("away.results[0].error_message:",),
        _WORDLESS_39,
        ours="",
        kafka_44=None,
    ),
]

_ELECTIONS: list[KnownDifference] = [
    line
    for kind, since in ((0, 0), (1, 1))
    for line in (
        Difference(
            "elect_leaders_that_lead",
            (f"all {kind}.replica_election_results.length",),
            "topics without an election are left out, as in 3.9; 4.4 names them, empty",
            ours=0,
            kafka_44=1,
            since=since,
        ),
        Lacking(
            "elect_leaders_that_lead",
            (f"all {kind}.replica_election_results[0]",),
            "topics without an election are left out, as in 3.9; 4.4 names them, empty",
            lacked_by=KAFKA_39,
            followed=KAFKA_39,
            since=since,
        ),
        Difference(
            "elect_leaders_that_lead",
            (f"twice {kind}.replica_election_results[0].partition_result.length",),
            "a partition that is named twice is answered once, as in 3.9",
            ours=1,
            kafka_44=2,
            since=since,
        ),
        Lacking(
            "elect_leaders_that_lead",
            (f"twice {kind}.replica_election_results[0].partition_result[1]",),
            "a partition that is named twice is answered once, as in 3.9",
            lacked_by=KAFKA_39,
            followed=KAFKA_39,
            since=since,
        ),
    )
]

_NO_SUCH_KIND = "a kind that does not exist is the client's error, as in 4.4; 3.9 fails on it"

_NO_SUCH_ELECTION: list[KnownDifference] = [
    Difference(
        "elect_leaders_that_lead",
        (
            "no such kind.error_code:",
            "no such kind.replica_election_results[0].partition_result[0].error_code:",
            "no such kind.replica_election_results[0].partition_result[1].error_code:",
        ),
        _NO_SUCH_KIND,
        ours=42,
        kafka_39=-1,
        since=1,
    ),
    Difference(
        "elect_leaders_that_lead",
        (
            "no such kind.replica_election_results[0].partition_result[0].error_message:",
            "no such kind.replica_election_results[0].partition_result[1].error_message:",
        ),
        _NO_SUCH_KIND,
        ours="text",
        kafka_39=None,
        since=1,
    ),
]

_MOVES: list[KnownDifference] = [
    *(
        Difference(
            f"alter_partition_reassignments_{name}",
            tuple(f"{step}.error_message:" for step in steps),
            _WORDLESS_39,
            ours="",
            kafka_44=None,
            until=0,
        )
        for name, steps in _REASSIGNMENTS.items()
    ),
    Difference(
        "alter_partition_reassignments_on_one_broker",
        (
            "nothing to take back.responses[0].partitions[0].error_message:",
            "several.responses[0].partitions[1].error_message:",
        ),
        "in version 0 the words of this code are there, as in 3.9; 4.4 leaves them out",
        ours="text",
        kafka_44=None,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_to_where_it_is",
        ("epoch:",),
        "in version 0 a move to where it is begins a leader epoch, as in 3.9",
        ours=1,
        kafka_44=0,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("partition twice.responses[0].partitions.length",),
        "of a partition that is named twice the last counts, as in 3.9; 4.4 takes each",
        ours=1,
        kafka_44=2,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("partition twice.responses[0].partitions[0].error_code:",),
        "of a partition that is named twice the last counts, as in 3.9; 4.4 takes each",
        ours=39,
        kafka_44=0,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("partition twice.responses[0].partitions[0].error_message:",),
        "of a partition that is named twice the last counts, as in 3.9; 4.4 takes each",
        ours="text",
        kafka_44=None,
        until=0,
    ),
    Lacking(
        "alter_partition_reassignments_order_of_checks",
        ("partition twice.responses[0].partitions[1]",),
        "of a partition that is named twice the last counts, as in 3.9; 4.4 takes each",
        lacked_by=KAFKA_39,
        followed=KAFKA_39,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("nothing to take back.responses[0].partitions[0].error_code:",),
        _CHECKS_39,
        ours=85,
        kafka_44=3,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("unknown topic, no such broker.responses[0].partitions[0].error_code:",),
        _CHECKS_39,
        ours=39,
        kafka_44=3,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("no partitions.responses.length",),
        "a topic without partitions is left out, as in 3.9",
        ours=0,
        kafka_44=1,
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("no partitions.responses[0].name:",),
        "a topic without partitions is left out, as in 3.9",
        ours=ABSENT,
        kafka_44="own.named",
        until=0,
    ),
    Difference(
        "alter_partition_reassignments_order_of_checks",
        ("no partitions.responses[0].partitions.length",),
        "a topic without partitions is left out, as in 3.9",
        ours=ABSENT,
        kafka_44=0,
        until=0,
    ),
    Difference(
        "list_partition_reassignments_none",
        tuple(f"{step}.error_message:" for step in ("all", "none", "some", "unknown")),
        _WORDLESS_39,
        ours="",
        kafka_44=None,
    ),
]

_QUOTAS: list[KnownDifference] = [
    Difference(
        "alter_client_quotas_refused",
        ("key twice.entries[0].error_code:",),
        "of a key that is named twice the last counts, as in 3.9; 4.4 refuses it",
        ours=0,
        kafka_44=42,
    ),
    Difference(
        "alter_client_quotas_refused",
        ("key twice.entries[0].error_message:",),
        "of a key that is named twice the last counts, as in 3.9; 4.4 refuses it",
        ours=None,
        kafka_44="text",
    ),
]

_NO_FEATURES = "features are those of 4.4; 3.9 with ZooKeeper has none"
_ALL_OR_NOTHING = "one answer refuses all features, as in 4.4; 3.9 answers each"
_REFUSED_FEATURES = (
    "down without a word",
    "too new",
    "unknown",
    "unknown, out of force",
    "no name",
    "negative",
    "unsupported way down",
    "unsafe way down",
    "one good, one bad",
)

_FEATURES: list[KnownDifference] = [
    *(
        line
        for kind, version, count in (
            ("supported", 3, 1),
            ("supported", 4, 3),
            ("finalized", 3, 3),
            ("finalized", 4, 3),
        )
        for line in (
            Difference(
                "api_versions_features",
                (f"features.{kind}.length",),
                _NO_FEATURES,
                ours=count,
                kafka_39=0,
                since=version,
                until=version,
            ),
            Lacking(
                "api_versions_features",
                tuple(f"features.{kind}[{position}]" for position in range(count)),
                _NO_FEATURES,
                lacked_by=KAFKA_39,
                followed=KAFKA_44,
                since=version,
                until=version,
            ),
        )
    ),
    Difference(
        "update_features_refused",
        tuple(f"{step}.error_code:" for step in _REFUSED_FEATURES),
        _ALL_OR_NOTHING,
        ours=95,
        kafka_39=0,
        until=1,
    ),
    Difference(
        "update_features_refused",
        tuple(f"{step}.error_message:" for step in _REFUSED_FEATURES),
        _ALL_OR_NOTHING,
        ours="text",
        kafka_39=None,
        until=1,
    ),
    Difference(
        "update_features_refused",
        tuple(f"{step}.results.length" for step in _REFUSED_FEATURES[:-1]),
        _ALL_OR_NOTHING,
        ours=0,
        kafka_39=1,
        until=1,
    ),
    Difference(
        "update_features_refused",
        (f"{_REFUSED_FEATURES[-1]}.results.length",),
        _ALL_OR_NOTHING,
        ours=0,
        kafka_39=2,
        until=1,
    ),
    Lacking(
        "update_features_refused",
        (
            *(f"{step}.results[0]" for step in _REFUSED_FEATURES),
            f"{_REFUSED_FEATURES[-1]}.results[1]",
        ),
        _ALL_OR_NOTHING,
        lacked_by=KAFKA_44,
        followed=KAFKA_44,
        until=1,
    ),
    Difference(
        "update_features_refused",
        ("as it is.results[0].error_code:",),
        _NO_FEATURES,
        ours=0,
        kafka_39=42,
        until=1,
    ),
]

LINES: list[KnownDifference] = [
    *_FEATURES,
    *_CREDENTIALS,
    *_TWO_MECHANISMS,
    *_ELECTIONS,
    *_NO_SUCH_ELECTION,
    *_MOVES,
    *_QUOTAS,
]
