"""Records of KRaft → metadata: the rules of each record, and of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from minibroker.tools.kraft.levels import LevelError
from minibroker.tools.kraft.metadata import ConfigEntity, ConfigKind, PartitionValue
from minibroker.tools.kraft.records import RegisteredBroker
from minibroker.tools.kraft.replay import Replay

if TYPE_CHECKING:
    from minibroker.tools.kraft.metadata import Metadata
    from minibroker.tools.kraft.records import StoredMessage

ID = b"t" * 16
DIRECTORY = b"d" * 16
TOPIC = TopicRecord(name="t", topic_id=ID)


def replayed(*messages: StoredMessage) -> Metadata:
    replay = Replay()
    for message in messages:
        replay.apply(message)
    return replay.finish(1)


def partition(index: int = 0, **fields: object) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index,
        topic_id=ID,
        replicas=[0, 1],
        isr=[0, 1],
        leader=0,
        leader_epoch=7,
        partition_epoch=3,
        directories=[DIRECTORY, DIRECTORY],
        eligible_leader_replicas=[1],
        last_known_elr=[1],
    )
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def change(**fields: object) -> PartitionChangeRecord:
    record = PartitionChangeRecord(partition_id=0, topic_id=ID)
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def after(record: PartitionChangeRecord) -> PartitionValue:
    return replayed(TOPIC, partition(), record).topics["t"].partitions[0]


FIRST = PartitionValue((0, 1), (0, 1), 0, 7, (), (), False, 3, (DIRECTORY, DIRECTORY), (1,), (1,))


def test_a_partition_is_as_its_record_says() -> None:
    assert replayed(TOPIC, partition()).topics["t"].partitions == (FIRST,)


def test_a_change_changes_only_what_it_names() -> None:
    assert after(change(isr=[0])) == FIRST._replace(isr=(0,), partition_epoch=4)


@pytest.mark.parametrize("leader", [-1, 0, 1])
def test_a_leader_that_is_named_raises_its_epoch(leader: int) -> None:
    assert after(change(leader=leader)) == FIRST._replace(
        leader=leader, leader_epoch=8, partition_epoch=4
    )


def test_recovery_begins_and_ends() -> None:
    assert after(change(leader_recovery_state=1)).is_recovering
    messages = (TOPIC, partition(leader_recovery_state=1), change(leader_recovery_state=0))
    assert not replayed(*messages).topics["t"].partitions[0].is_recovering


def test_directories_are_as_many_as_the_replicas() -> None:
    other = b"e" * 16
    assert after(change(directories=[other, DIRECTORY])).directories == (other, DIRECTORY)
    assert after(change(directories=[bytes(16), bytes(16)])).directories == ()
    with pytest.raises(CorruptionError, match="3 replicas and 2 directories"):
        after(change(replicas=[0, 1, 2]))


def test_eligible_replicas_are_cleared() -> None:
    cleared = FIRST._replace(eligible=(), last_eligible=(), partition_epoch=4)
    for name in ("", "t"):
        messages = (TOPIC, partition(), ClearElrRecord(topic_name=name))
        assert replayed(*messages).topics["t"].partitions == (cleared,)
    other = replayed(TOPIC, partition(), ClearElrRecord(topic_name="u"))
    assert other.topics["t"].partitions == (FIRST,)


def test_a_removed_topic_takes_its_settings_with_it() -> None:
    setting = ConfigRecord(resource_type=2, resource_name="t", name="a", value="1")
    remove = RemoveTopicRecord(topic_id=ID)
    metadata = replayed(TOPIC, partition(), setting, remove)
    assert metadata.topics == {}
    assert metadata.configs == {}
    again = replayed(TOPIC, setting, remove, TopicRecord(name="t", topic_id=b"u" * 16))
    assert again.topics["t"].id == b"u" * 16
    assert again.configs == {}


def test_a_setting_without_a_value_goes() -> None:
    def setting(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name="0", name=name, value=value)

    both = (setting("a", "1"), setting("b", "2"))
    entity = ConfigEntity(ConfigKind.BROKER, "0")
    assert replayed(*both, setting("a", None)).configs == {entity: {"b": "2"}}
    assert replayed(*both, setting("a", None), setting("b", None)).configs == {}


def test_a_quota_is_one_of_its_entity_in_any_order() -> None:
    def quota(*parts: tuple[str, str | None], remove: bool = False) -> ClientQuotaRecord:
        entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        return ClientQuotaRecord(entity=entity, key="k", value=1.5, remove=remove)

    added = quota(("user", "a"), ("client-id", None))
    assert replayed(added).quotas == {(("client-id", None), ("user", "a")): {"k": 1.5}}
    removed = quota(("client-id", None), ("user", "a"), remove=True)
    assert replayed(added, removed).quotas == {}


def test_things_of_security_come_and_go() -> None:
    acl = AccessControlEntryRecord(
        id=ID,
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    credential = UserScramCredentialRecord(name="a", mechanism=1, iterations=4096)
    token = DelegationTokenRecord(token_id="x", owner="User:a", requester="User:a")
    metadata = replayed(acl, credential, token)
    assert len(metadata.acls) == len(metadata.credentials) == len(metadata.tokens) == 1
    metadata = replayed(
        acl,
        credential,
        token,
        RemoveAccessControlEntryRecord(id=ID),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
        RemoveDelegationTokenRecord(token_id="x"),
    )
    assert (metadata.acls, metadata.credentials, metadata.tokens) == ({}, {}, {})


def test_a_feature_of_level_0_is_out_of_force() -> None:
    group = FeatureLevelRecord(name="group.version", feature_level=1)
    assert replayed(group).features == {"group.version": 1}
    assert replayed(group, FeatureLevelRecord(name="group.version")).features == {}
    with pytest.raises(LevelError, match=r"metadata\.version is 34, newer than 33"):
        replayed(FeatureLevelRecord(name="metadata.version", feature_level=34))


def test_brokers_register_change_and_go() -> None:
    replay = Replay()
    replay.apply(RegisterBrokerRecord(broker_id=2, broker_epoch=9, incarnation_id=ID))
    assert replay.brokers == {2: RegisteredBroker(9, ID)}
    replay.apply(BrokerRegistrationChangeRecord(broker_id=2, log_dirs=[DIRECTORY]))
    assert replay.brokers == {2: RegisteredBroker(9, ID, (DIRECTORY,))}
    replay.apply(UnregisterBrokerRecord(broker_id=2))
    assert replay.brokers == {}


def test_records_that_say_nothing_about_the_cluster_are_skipped() -> None:
    assert replayed(NoOpRecord(), ZkMigrationStateRecord()) == replayed()


BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def test_only_an_ended_transaction_counts() -> None:
    assert list(replayed(BEGIN, TOPIC, END).topics) == ["t"]
    assert replayed(BEGIN, TOPIC, ABORT).topics == {}
    assert replayed(BEGIN, TOPIC).topics == {}
    other = TopicRecord(name="u", topic_id=b"u" * 16)
    assert list(replayed(BEGIN, TOPIC, ABORT, other, BEGIN, NoOpRecord()).topics) == ["u"]


TWO_USERS = [EntityData(entity_type="user", entity_name=name) for name in ("a", None)]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ((ClientQuotaRecord(entity=TWO_USERS, key="k"),), "quota k names its user twice"),
        ((END,), "ends a transaction that was not begun"),
        ((BEGIN, BEGIN), "begins a transaction inside another one"),
        ((partition(),), "no topic with id"),
        ((RemoveTopicRecord(topic_id=ID),), "no topic with id"),
        ((TOPIC, change(isr=[0])), "no partition t-0"),
        ((TOPIC, partition(1)), "none with index 0"),
        ((TOPIC, partition(2**30)), "a partition with index 1073741824"),
        ((TOPIC, TOPIC), "is already that of topic t"),
        ((TOPIC, TopicRecord(name="t", topic_id=b"u" * 16)), "two topics with the name t"),
        ((ConfigRecord(resource_type=3, name="a"),), "a resource of type 3, expected"),
        (
            (AccessControlEntryRecord(principal="User:a", operation=99),),
            "a code that means nothing",
        ),
        ((UserScramCredentialRecord(name="a", mechanism=9),), "a credential of mechanism 9"),
    ],
)
def test_a_record_that_contradicts_is_named(
    messages: tuple[StoredMessage, ...], sentence: str
) -> None:
    with pytest.raises(CorruptionError, match=sentence):
        replayed(*messages)
