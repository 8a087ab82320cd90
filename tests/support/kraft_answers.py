"""Answers of a cluster about its metadata, in the form of `Metadata`.

Every field is filled from requests of an admin client, none from files.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import Token
from minibroker.client.sasl import ScramClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.describe_acls import DescribeAclsRequest
from minibroker.kafka.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from minibroker.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from minibroker.kafka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
)
from minibroker.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minibroker.tools.kraft.metadata import ConfigEntity, Metadata, PartitionValue, TopicValue
from tests.support.in_process import RawClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Answer = TypeVar("Answer")

WAIT_S = 60
OWN_SOURCES = {1, 2, 3, 7, 8}
"""Sources of settings that somebody set: topic, broker, all brokers, client metrics, group."""


async def connect(port: int) -> RawClient:
    """Return a connection to 127.0.0.1."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return RawClient(reader, writer, "admin")


async def log_in(port: int, mechanism: str, user: str, password: str) -> RawClient:
    """Return a connection of this user. `mechanism`: one of SCRAM."""
    client = await connect(port)
    exchange = ScramClient(mechanism, user, password, "nonce")
    await client.call(SaslHandshakeRequest(mechanism=mechanism), 1)
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=exchange.begin()), 1)
    assert answer.error_code == 0, answer
    last = exchange.respond(bytes(answer.auth_bytes))
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=last), 1)
    assert answer.error_code == 0, answer
    return client


async def answered_metadata(client: RawClient, entities: Iterable[ConfigEntity]) -> Metadata:
    """Return the metadata of a cluster, but for tokens, credentials' keys and producer ids.

    `entities`: resources whose settings are asked for; the cluster lists only topics.
    """
    metadata = Metadata()
    metadata.topics = await answered_topics(client)
    for entity in entities:
        settings = await _settings(client, entity)
        if settings:
            metadata.configs[entity] = settings
    quotas = await client.call(DescribeClientQuotasRequest(components=[]), 1)
    assert quotas.error_code == 0, quotas
    for entry in quotas.entries:
        parts = tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity))
        metadata.quotas[parts] = {value.key: value.value for value in entry.values}
    metadata.acls = dict.fromkeys(await _acls(client), bytes(16))
    versions = await client.call(
        ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3
    )
    metadata.features = {f.name: f.max_version_level for f in versions.finalized_features}
    return metadata


async def answered_topics(client: RawClient) -> dict[str, TopicValue]:
    """Return the topics; of a partition only replicas, ISR, leader and its epoch."""
    answer = await client.call(MetadataRequest(topics=None), 12)
    return {
        topic.name: TopicValue(
            TopicId(bytes(topic.topic_id)),
            tuple(
                PartitionValue(
                    tuple(partition.replica_nodes),
                    tuple(partition.isr_nodes),
                    partition.leader_id,
                    partition.leader_epoch,
                )
                for partition in sorted(topic.partitions, key=lambda p: p.partition_index)
            ),
        )
        for topic in answer.topics
    }


async def _settings(client: RawClient, entity: ConfigEntity) -> dict[str, str]:
    """Return the settings of a resource that are its own."""
    resource = DescribeConfigsResource(
        resource_type=entity.kind, resource_name=entity.name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    (result,) = (await client.call(request, 4)).results
    assert result.error_code == 0, result
    return {
        setting.name: setting.value
        for setting in result.configs
        if setting.config_source in OWN_SOURCES and not _is_shared(entity, setting)
    }


def _is_shared(entity: ConfigEntity, setting: Any) -> bool:
    """Return whether a broker only inherits this setting from all brokers."""
    return entity.name != "" and setting.config_source == 3


async def _acls(client: RawClient) -> list[Acl]:
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    answer = await client.call(request, 3)
    assert answer.error_code == 0, answer
    return [
        Acl(
            Pattern(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
            ),
            Entry(
                acl.principal, acl.host, Operation(acl.operation), Permission(acl.permission_type)
            ),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


async def answered_credentials(client: RawClient) -> dict[tuple[str, int], int]:
    """Return (user, mechanism) → iterations."""
    answer = await client.call(DescribeUserScramCredentialsRequest(users=None), 0)
    assert answer.error_code == 0, answer
    return {
        (result.user, info.mechanism): info.iterations
        for result in answer.results
        for info in result.credential_infos
    }


async def answered_tokens(client: RawClient) -> dict[str, Token]:
    """Return the tokens that the client's user may see, by id."""
    answer = await client.call(DescribeDelegationTokenRequest(owners=None), 3)
    assert answer.error_code == 0, answer
    return {
        token.token_id: Token(
            token.token_id,
            f"{token.principal_type}:{token.principal_name}",
            f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
            tuple(f"{r.principal_type}:{r.principal_name}" for r in token.renewers),
            token.issue_timestamp,
            token.max_timestamp,
            token.expiry_timestamp,
        )
        for token in answer.tokens
    }


async def ask_until(
    ask: Callable[[RawClient], Awaitable[Answer]],
    client: RawClient,
    is_wanted: Callable[[Answer], bool],
) -> Answer:
    """Return the first answer that is wanted: a broker hears of a change after the controller."""
    async with asyncio.timeout(WAIT_S):
        answer = await ask(client)
        while not is_wanted(answer):
            answer = await ask(client)
    return answer


async def new_producer_id(client: RawClient) -> int:
    """Return the id of a new idempotent producer.

    A broker that has no block of ids yet asks the controller, and has clients ask again.
    """
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    async with asyncio.timeout(WAIT_S):
        answer = await client.call(request, 4)
        while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            answer = await client.call(request, 4)
    assert answer.error_code == 0, answer
    return int(answer.producer_id)
