"""Where minibroker and Apache Kafka answer differently, and why that is right.

A line here is a promise in both directions: what it names must differ, in every version it names. A
difference that is gone fails the test until its line is gone as well.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

NEWEST = 99


class Difference(NamedTuple):
    """One accepted difference."""

    scenario: str
    path: str
    """Pattern of the places in the transcript, as `fnmatch` reads it (`[` is literal here)."""
    reason: str
    since: int = 0
    until: int = NEWEST
    peer: str | None = None
    """Only against this peer (`3.9.1`, `4.4.0`); None: against both."""

    def covers(self, path: str) -> bool:
        """Whether this line is about `path`."""
        return fnmatchcase(path, self.path.replace("[", "[[]"))


_DEFAULT_FLAG = (
    "version 0 tells defaults from what is set, as brokers of its day did; Kafka 3.9 never fills "
    "the field"
)
_ONE_NODE = "defaults for a single node (config/broker_keys.py lists them)"
_UNKNOWN_OPERATION = "an unknown operation is the client's error; Kafka 3.9 fails on it inside"

_BOUND_AT_START = "listeners are bound at start; Kafka binds and lets go of them while it runs"
_NOT_SERVED = "a security setting that is not served cannot be set, so it is shown as read-only"
_UNSERVED_SECURITY = (
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)

_NO_WORDS = "no words are an empty text, as in 3.9; Kafka 4 sends null"

KNOWN_DIFFERENCES: list[Difference] = [
    *(
        Difference(
            "produce_transactional",
            f"{step}.responses[0].partition_responses[0].log_start_offset:",
            "an old epoch is refused before the log is asked, as in Kafka 4",
            since=5,
            peer="3.9.1",
        )
        for step in ("older epoch", "the session before")
    ),
    Difference(
        "elect_leaders_that_lead",
        "no such kind.*",
        "a kind that does not exist is the client's error; Kafka 3.9 fails on it inside",
        since=1,
        peer="3.9.1",
    ),
    *(
        Difference(f"alter_partition_reassignments_{name}", "*.error_message:", _NO_WORDS, since=1)
        for name in ("on_one_broker", "to_where_it_is", "same_count")
    ),
    Difference(
        "alter_partition_reassignments_to_where_it_is",
        "epoch:",
        "a move that is done begins a leader epoch, as in 3.9; Kafka 4 sees that nothing moves",
        since=1,
    ),
    Difference(
        "describe_groups_all",
        "*.member_assignment:",
        "members are shown with what they were assigned last, as in Kafka 4",
        peer="3.9.1",
    ),
    Difference(
        "describe_groups_all",
        "what may be done*.authorized_operations:",
        "groups have configurations, as in Kafka 4",
        since=3,
        peer="3.9.1",
    ),
    Difference(
        "list_groups_all",
        "with spaces.*",
        "spaces around the name of a state are cut, as in Kafka 4",
        since=4,
        peer="3.9.1",
    ),
    Difference(
        "find_coordinator_of_unknown_type",
        "share group*",
        "share groups are not served; the key is not of their form either, as Kafka 4 says",
        since=6,
        peer="3.9.1",
    ),
    Difference(
        "offset_commit_of_nobody",
        "twice in one.*",
        "a partition that is named twice is answered twice, as in Kafka 4",
        since=1,
        peer="3.9.1",
    ),
    Difference(
        "offset_commit_of_a_generation_that_never_was",
        "*.error_code:",
        "from version 9 on a client knows GROUP_ID_NOT_FOUND (KIP-848); Kafka 3.9 knows no such"
        " client with classic groups",
        since=9,
        peer="3.9.1",
    ),
    Difference(
        "offset_fetch_some",
        "no partitions.*",
        "a topic without partitions is answered, as in Kafka 4",
        peer="3.9.1",
    ),
    *(
        Difference(f"describe_configs_{name}", "*.is_default:", _DEFAULT_FLAG, until=0)
        for name in ("topic", "twice", "broker_keys")
    ),
    *(
        Difference("describe_configs_broker", f"broker.*.{key}.synonyms*.value:", _ONE_NODE)
        for key in (
            "group.initial.rebalance.delay.ms",
            "offsets.topic.replication.factor",
            "transaction.state.log.min.isr",
            "transaction.state.log.replication.factor",
        )
    ),
    *(
        Difference("describe_configs_broker", f"broker.*.{key}.read_only:", _BOUND_AT_START)
        for key in ("listeners", "listener.security.protocol.map")
    ),
    *(
        Difference("describe_configs_broker", f"broker.*.{key}.read_only:", _NOT_SERVED)
        for key in _UNSERVED_SECURITY
    ),
    Difference(
        "incremental_alter_configs_refused", "unknown operation.*", _UNKNOWN_OPERATION, peer="3.9.1"
    ),
    Difference(
        "metadata_auto_creation",
        "first: retriable, named[0]:",
        "the topic is created before the first answer leaves, so no client has to ask again",
    ),
    Difference(
        "produce_garbage_records",
        "garbage.*.error_code:",
        "INVALID_RECORD names the fault; Kafka's own code stumbles and answers an unknown error",
    ),
    Difference(
        "produce_compressed",
        "not gzip.*",
        "compressed records are not opened on append (design.md 4): their CRC is checked, the "
        "producer's compression is believed; Kafka opens them and stumbles over an unknown error",
    ),
    Difference(
        "produce_bad_frames_of_records",
        "length too small.*.error_message:",
        "the fault is named, as it is for the other wrong lengths",
        since=8,
    ),
    Difference(
        "fetch_old_versions_convert",
        "from 0.*",
        "a converted answer ends where its messages end; Kafka pads it to the size of what it read",
    ),
    Difference(
        "list_offsets_twice",
        "outcomes*",
        "the same answer in every version, Kafka 3.9's; 4.4 answers such a partition once",
        since=10,
    ),
    Difference(
        "list_offsets_unknown",
        "no partitions.*",
        "the same answer in every version, Kafka 3.9's; 4.4 leaves such a topic out",
        since=10,
    ),
]


def differences_of(scenario: str, version: int, peer: str) -> list[Difference]:
    """The lines that a run of `scenario` at `version` against `peer` must prove."""
    return [
        line
        for line in KNOWN_DIFFERENCES
        if line.scenario == scenario
        and line.since <= version <= line.until
        and line.peer in {None, peer}
    ]
