"""Metadata with everything in it, for tests of KRaft's form."""

from __future__ import annotations

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import Token
from minibroker.kafka.ids import TopicId
from minibroker.kafka.scram import HASHES, ScramCredential, credential, credential_of
from minibroker.kafka.scram import salted_password as salt_password
from minibroker.tools.kraft.levels import LEVELS
from minibroker.tools.kraft.metadata import (
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)

PASSWORD = "secret"
ITERATIONS = 4096
PRODUCER_ID = 7000
EPOCH = 5
READERS = ConfigEntity(ConfigKind.GROUP, "readers")
NEVER_MS = 4_000_000_000_000


def scram_credential(mechanism: int) -> ScramCredential:
    """Return the credential for `PASSWORD`."""
    salt = b"salt of sixteen."
    salted = salt_password(mechanism, PASSWORD, salt, ITERATIONS)
    stored = credential_of(credential(mechanism, salt, salted, ITERATIONS))
    assert stored is not None
    return stored


def full_metadata(release: str, directory_id: bytes) -> Metadata:
    """Return the metadata of one stopped broker, id 0, with every kind of thing in it.

    Kafka 3.9 has no settings of groups.
    """
    has_groups = release != "3.9"
    partition = PartitionValue((0,), (0,), -1, 7, partition_epoch=3, directories=(directory_id,))
    allow_read = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)
    deny_all = Entry("User:mallory", "10.0.0.1", Operation.ALL, Permission.DENY)
    return Metadata(
        topics={
            "orders": TopicValue(TopicId(b"orders" + bytes(10)), (partition,) * 3),
            "prices": TopicValue(TopicId(b"prices" + bytes(10)), (partition,)),
        },
        configs={
            ConfigEntity(ConfigKind.TOPIC, "orders"): {
                "retention.ms": "86400000",
                "cleanup.policy": "compact",
            },
            ConfigEntity(ConfigKind.BROKER, ""): {"log.cleaner.threads": "2"},
            ConfigEntity(ConfigKind.BROKER, "0"): {"log.cleaner.backoff.ms": "20000"},
            **({READERS: {"consumer.session.timeout.ms": "50000"}} if has_groups else {}),
            ConfigEntity(ConfigKind.CLIENT_METRICS, "watch"): {"interval.ms": "60000"},
        },
        quotas={
            (("user", "alice"),): {"producer_byte_rate": 1e6, "request_percentage": 12.5},
            (("user", None),): {"consumer_byte_rate": 2e6},
            (("client-id", "app"),): {"producer_byte_rate": 3e6},
            (("client-id", None),): {"controller_mutation_rate": 4.0},
            (("client-id", "app"), ("user", "alice")): {"consumer_byte_rate": 5e6},
            (("client-id", None), ("user", None)): {"consumer_byte_rate": 6e6},
            (("ip", "10.1.2.3"),): {"connection_creation_rate": 7.0},
            (("ip", None),): {"connection_creation_rate": 8.0},
        },
        credentials={("alice", code): scram_credential(code) for code in HASHES},
        acls={
            Acl(Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL), allow_read): b"a" * 16,
            Acl(Pattern(ResourceType.GROUP, "r", PatternType.PREFIXED), deny_all): b"b" * 16,
        },
        tokens={
            "token-1": Token(
                "token-1", "User:alice", "User:bob", ("User:carol",), 1000, NEVER_MS, NEVER_MS
            )
        },
        features=dict(LEVELS[release]),
        next_producer_id=PRODUCER_ID,
        epoch=EPOCH,
    )
