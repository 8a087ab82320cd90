"""A broker with everything that metadata have, made by requests of admin clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.app import TREE_FILE
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.tokens import Token
from minibroker.client.sasl import ScramClient
from minibroker.clock import SystemClock
from minibroker.kafka.protocol.messages import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
    update_features,
)
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minibroker.tools.kraft.tree import read_metadata
from tests.support.in_process import InProcessBroker
from tests.support.kraft_answers import new_producer_id
from tests.unit.broker.handlers.acl_requests import SETTINGS as AUTHORIZER

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.cluster.tree import Tree
    from minibroker.tools.kraft.metadata import Metadata
    from tests.support.in_process import RawClient

WAIT_S: Final = 180
MECHANISM: Final = "SCRAM-SHA-256"
SETTINGS: Final = {
    **AUTHORIZER,
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": MECHANISM,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    "minibroker.users": 'root="r"',
    "delegation.token.secret.key": "the secret",
}
"""Settings of a broker that takes all of these requests from `root`."""
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
ODD: Final = "Jürgen/a <b>%2F"
"""A name that no node may have as it is."""
SALT: Final = b"salt"
SALTED: Final = b"salted password of thirty-two b."


async def log_in(running: InProcessBroker, name: str = "root", password: str = "r") -> RawClient:
    """Return a connection of this user."""
    client = await running.connect()
    exchange = ScramClient(MECHANISM, name, password, "nonce")
    await client.call(SaslHandshakeRequest(mechanism=MECHANISM), 1)
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=exchange.begin()), 1)
    last = exchange.respond(bytes(answer.auth_bytes))
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=last), 1)
    assert answer.error_code == 0, answer
    return client


async def create_topic(client: RawClient, name: str, count: int, **configs: str) -> bytes:
    """Create a topic; return its id. `segment_bytes=…` stands for `segment.bytes`."""
    topic = create_topics.CreatableTopic(
        name=name,
        num_partitions=count,
        replication_factor=1,
        configs=[
            create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    (result,) = (await client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)).topics
    assert result.error_code == 0, result
    return bytes(result.topic_id)


async def grow(client: RawClient, name: str, count: int) -> None:
    """Give a topic this many partitions."""
    topic = create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=30_000)
    (result,) = (await client.call(request, 3)).results
    assert result.error_code == 0, result


async def delete_topic(client: RawClient, name: str) -> None:
    """Delete a topic."""
    topic = delete_topics.DeleteTopicState(name=name)
    request = delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=30_000)
    (result,) = (await client.call(request, 6)).responses
    assert result.error_code == 0, result


async def set_configs(client: RawClient, kind: int, name: str, **configs: str) -> None:
    """Set keys of a resource; `segment_bytes=…` stands for `segment.bytes`."""
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = (await client.call(request, 1)).responses
    assert result.error_code == 0, result


async def set_quotas(client: RawClient, entity: dict[str, str | None], **quotas: float) -> None:
    """Set quotas of an entity."""
    entry = alter_client_quotas.RequestEntryData(
        entity=[
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[alter_client_quotas.OpData(key=key, value=value) for key, value in quotas.items()],
    )
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
    (result,) = (await client.call(request, 1)).entries
    assert result.error_code == 0, result


async def set_credential(client: RawClient, user: str, mechanism: int) -> None:
    """Give a user a credential of `SALTED`."""
    upsertion = alter_user_scram_credentials.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=4096, salt=SALT, salted_password=SALTED
    )
    request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=[upsertion])
    (result,) = (await client.call(request, 0)).results
    assert result.error_code == 0, result


async def create_acl(client: RawClient, **fields: Any) -> None:
    """Create an ACL: alice may read, where `fields` do not say something else."""
    usual = {"principal": "User:alice", "host": "*", "operation": 3, "permission_type": 3}
    creation = create_acls.AclCreation(**{**usual, **fields})
    request = create_acls.CreateAclsRequest(creations=[creation])
    (result,) = (await client.call(request, 3)).results
    assert result.error_code == 0, result


async def create_token(client: RawClient, renewer: str) -> Any:
    """Return the answer that describes a new token of the client's user."""
    renewers = [
        create_delegation_token.CreatableRenewers(principal_type="User", principal_name=renewer)
    ]
    request = create_delegation_token.CreateDelegationTokenRequest(
        owner_principal_type="User",
        owner_principal_name="",
        renewers=renewers,
        max_lifetime_ms=-1,
    )
    answer = await client.call(request, 3)
    assert answer.error_code == 0, answer
    return answer


async def set_feature(client: RawClient, name: str, level: int) -> None:
    """Set the level of a feature, up or down."""
    update = update_features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=2)
    answer = await client.call(update_features.UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert answer.error_code == 0, answer


class Filled(NamedTuple):
    """A tree that a broker left, and ids that the broker chose."""

    metadata: Metadata
    orders_id: bytes
    again_id: bytes
    token: Token
    producer_id: int


async def fill(directory: Path) -> Filled:
    """Have a broker make everything and stop; return what its tree says."""
    async with (
        InProcessBroker(directory, SETTINGS) as running,
        await log_in(running) as root,
    ):
        orders_id = await create_topic(root, "orders", 2, segment_bytes="2097152")
        await grow(root, "orders", 3)
        await create_topic(root, "deleted", 1, segment_bytes="1048577")
        await delete_topic(root, "deleted")
        await create_topic(root, "again", 2)
        await delete_topic(root, "again")
        again_id = await create_topic(root, "again", 1)
        await set_configs(root, BROKER, "0", log_cleaner_threads="2")
        await set_configs(root, BROKER, "", message_max_bytes="2000000")
        await set_configs(root, GROUP, ODD, consumer_session_timeout_ms="50000")
        await set_configs(root, CLIENT_METRICS, "m", interval_ms="1000")
        await set_quotas(root, {"user": ODD}, producer_byte_rate=1e7)
        await set_quotas(root, {"user": None}, request_percentage=0.5)
        await set_quotas(root, {"client-id": "c%"}, consumer_byte_rate=5)
        await set_quotas(root, {"client-id": None}, controller_mutation_rate=1.5)
        await set_quotas(root, {"user": "u", "client-id": ODD}, producer_byte_rate=1)
        await set_quotas(root, {"user": None, "client-id": None}, producer_byte_rate=2)
        await set_quotas(root, {"ip": "127.0.0.1"}, connection_creation_rate=7)
        await set_quotas(root, {"ip": None}, connection_creation_rate=8)
        await set_credential(root, ODD, 2)
        await create_acl(root, resource_type=2, resource_name="orders")
        await create_acl(
            root,
            resource_type=3,
            resource_name="team-",
            resource_pattern_type=4,
            operation=2,
            permission_type=2,
            host="10.0.0.1",
        )
        answer = await create_token(root, ODD)
        await set_feature(root, "transaction.version", 1)
        producer_id = await new_producer_id(root)
    tree = EmbeddedTree(directory / "data" / TREE_FILE, SystemClock())
    await tree.open()
    metadata = await read_metadata(tree, BrokerConfig(SETTINGS))
    await tree.close()
    token = Token(
        answer.token_id,
        "User:root",
        "User:root",
        (f"User:{ODD}",),
        answer.issue_timestamp_ms,
        answer.max_timestamp_ms,
        answer.expiry_timestamp_ms,
    )
    return Filled(metadata, orders_id, again_id, token, producer_id)


async def contents(tree: Tree) -> dict[str, tuple[bytes, int]]:
    """Return path → value and version of each node."""
    node_paths = await tree.subtree("/")
    nodes = await tree.get_many(node_paths)
    return {
        path: (node[0], node[1].version)
        for path, node in zip(node_paths, nodes, strict=True)
        if node is not None
    }
