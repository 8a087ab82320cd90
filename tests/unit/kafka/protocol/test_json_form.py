"""Fields of a message by Kafka's names, and messages made of them."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.json_form import fields_of, from_fields
from minibroker.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from minibroker.kafka.protocol.messages.fetch import FetchRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

ID = bytes(range(16))


def test_fields_are_those_of_the_version() -> None:
    assert [name for name, _, _ in fields_of(MetadataRequest(), 0)] == ["topics"]
    assert [name for name, _, _ in fields_of(MetadataRequest(), 9)] == [
        "topics",
        "allowAutoTopicCreation",
        "includeClusterAuthorizedOperations",
        "includeTopicAuthorizedOperations",
    ]


def test_a_tagged_field_with_its_default_is_left_out() -> None:
    assert "clusterId" not in {name for name, _, _ in fields_of(FetchRequest(), 12)}
    assert "clusterId" in {name for name, _, _ in fields_of(FetchRequest(cluster_id="c"), 12)}


def test_every_type_is_read() -> None:
    topics = [{"topicId": "AAECAwQFBgcICQoLDA0ODw", "name": None}]
    content = {"topics": topics, "allowAutoTopicCreation": False}
    assert from_fields(MetadataRequest, content, 12) == MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=ID, name=None)], allow_auto_topic_creation=False
    )
    assignment = {"memberId": "m", "assignment": "AAE="}
    assert from_fields(SyncGroupRequest, {"assignments": [assignment]}, 3) == SyncGroupRequest(
        assignments=[SyncGroupRequestAssignment(member_id="m", assignment=b"\x00\x01")]
    )
    entry = {
        "entity": [{"entityType": "user", "entityName": None}],
        "ops": [{"key": "k", "value": 1.5, "remove": True}],
    }
    assert from_fields(AlterClientQuotasRequest, {"entries": [entry]}, 1) == (
        AlterClientQuotasRequest(
            entries=[
                RequestEntryData(
                    entity=[EntityData(entity_type="user", entity_name=None)],
                    ops=[OpData(key="k", value=1.5, remove=True)],
                )
            ]
        )
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"MetadataRequest: \[\] is no object"),
        ({"topic": []}, "MetadataRequest version 12 has no field 'topic'"),
        ({"topics": [1]}, "MetadataRequestTopic: 1 is no object"),
        ({"topics": [{"name": 5}]}, "MetadataRequestTopic: 5 is no string"),
        ({"topics": [{"topicId": "short"}]}, "'short' is no uuid"),
        ({"allowAutoTopicCreation": 1}, "1 is no bool"),
        ({"topics": {"x" * 500: 1}}, "has no field 'xxx"),
    ],
)
def test_other_values_are_refused(content: object, message: str) -> None:
    with pytest.raises(ProtocolError, match=message) as refused:
        from_fields(MetadataRequest, content, 12)
    assert len(str(refused.value)) < 200


def test_numbers_and_bytes_are_not_mixed_up() -> None:
    for content in ({"maxWaitMs": "5"}, {"maxWaitMs": True}, {"maxWaitMs": 1.5}):
        with pytest.raises(ProtocolError, match="is no int32"):
            from_fields(FetchRequest, content, 4)
    with pytest.raises(ProtocolError, match="is no bytes"):
        from_fields(SyncGroupRequest, {"assignments": [{"assignment": "%"}]}, 3)
