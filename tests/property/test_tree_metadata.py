"""Metadata and trees: written and read back they are equal, whichever tree they are written into.

The trees are real ones, in memory. Metadata are any that a tree can hold; a tree is one that
metadata were written into, twice, with things that only a tree has. Versions of nodes differ from
tree to tree, so epochs of partitions are set to 0 before a comparison.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import encode_config
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import ensure_node
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.quotas.limits import CLIENT_KEYS, CONNECTION_RATE
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import RESOURCE_TYPES, Operation
from minibroker.broker.security.tokens import Token
from minibroker.clock import SystemClock
from minibroker.kafka.ids import TopicId
from minibroker.kafka.scram import ScramCredential
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata, write_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

EXAMPLES = 100
CONFIGS = [
    BrokerConfig({}),
    BrokerConfig({"minibroker.advertised.kafka.version": "3.9"}),
    BrokerConfig({"password.encoder.secret": "s", "password.encoder.iterations": "1024"}),
]
"""Configurations that metadata are written and read with."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.one_of(st.sampled_from(["a", "b", "<default>", "clients", "a/b", "%41"]), TEXTS)
NODE_NAMES = NAMES.filter(lambda name: name not in {"", ".", ".."})
TOPIC_NAMES = st.sampled_from(["a", "b", "a.b", "c_d", "__consumer_offsets"])
BROKERS = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple)
EPOCHS = st.integers(0, 2**31 - 1)
COUNTS = st.integers(0, 2**63 - 1)
KEYS = st.sampled_from(["retention.ms", "ssl.key.password", "x"])
SETTINGS = st.dictionaries(KEYS, TEXTS, min_size=1, max_size=3)
MOVES = st.lists(st.integers(0, 3), max_size=2, unique=True).map(tuple)
PARTITIONS = st.builds(
    PartitionValue,
    replicas=BROKERS,
    isr=MOVES,
    leader=st.integers(-1, 3),
    leader_epoch=EPOCHS,
    adding=MOVES,
    removing=MOVES,
    is_recovering=st.booleans(),
    partition_epoch=st.just(0),
    directories=st.just(()),
    eligible=st.just(()),
    last_eligible=st.just(()),
)
TOPICS = st.builds(
    TopicValue,
    st.binary(min_size=16, max_size=16).filter(any).map(TopicId),
    st.lists(PARTITIONS, min_size=1, max_size=3).map(tuple),
)
ENTITIES = st.one_of(
    st.builds(ConfigEntity, st.just(ConfigKind.BROKER), st.sampled_from(["", "0", "7"])),
    st.builds(
        ConfigEntity, st.sampled_from([ConfigKind.CLIENT_METRICS, ConfigKind.GROUP]), NODE_NAMES
    ),
)
QUOTA_NAMES = st.none() | NODE_NAMES
WHOLE = st.integers(-5, 2**53).map(float)
FRACTIONS = st.floats(allow_nan=False)
CLIENT_QUOTAS = st.fixed_dictionaries(
    {}, optional=dict(zip(CLIENT_KEYS, (WHOLE, WHOLE, FRACTIONS, FRACTIONS), strict=True))
).filter(bool)
IP_QUOTAS = st.fixed_dictionaries({CONNECTION_RATE: st.integers(-5, 2**31 - 1).map(float)})
QUOTAS = st.one_of(
    st.tuples(st.tuples(st.tuples(st.just("client-id"), QUOTA_NAMES)), CLIENT_QUOTAS),
    st.tuples(st.tuples(st.tuples(st.just("user"), QUOTA_NAMES)), CLIENT_QUOTAS),
    st.tuples(
        st.tuples(
            st.tuples(st.just("client-id"), QUOTA_NAMES), st.tuples(st.just("user"), QUOTA_NAMES)
        ),
        CLIENT_QUOTAS,
    ),
    st.tuples(st.tuples(st.tuples(st.just("ip"), QUOTA_NAMES)), IP_QUOTAS),
)
CREDENTIALS = st.builds(
    ScramCredential,
    st.binary(max_size=8),
    st.binary(max_size=8),
    st.binary(max_size=8),
    st.integers(0, 20_000),
)
PATTERN_NAMES = st.lists(
    NODE_NAMES.filter(lambda name: "/" not in name and "\0" not in name), min_size=1, max_size=3
).map("/".join)
PRINCIPALS = TEXTS.map(lambda name: f"User:{name}")
PATTERNS = st.builds(
    Pattern,
    st.sampled_from(RESOURCE_TYPES),
    PATTERN_NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
ACLS = st.builds(
    Acl,
    PATTERNS,
    st.builds(
        Entry,
        PRINCIPALS,
        st.sampled_from(["*", "10.0.0.1"]),
        st.sampled_from([word for word in Operation if word > Operation.ANY]),
        st.sampled_from([Permission.ALLOW, Permission.DENY]),
    ),
)
TOKEN_IDS = st.from_regex(r"[A-Za-z0-9_=-]{1,8}", fullmatch=True)
TOKENS = st.builds(
    Token,
    TOKEN_IDS,
    PRINCIPALS,
    PRINCIPALS,
    st.lists(PRINCIPALS).map(tuple),
    COUNTS,
    COUNTS,
    COUNTS,
)
FEATURES = st.dictionaries(
    st.sampled_from(["metadata.version", "group.version", "share.version", "x"]),
    st.integers(1, 40),
)


def have_different_ids(topics: dict[str, TopicValue]) -> bool:
    """Return whether no two topics have the same id."""
    return len({topic.id for topic in topics.values()}) == len(topics)


@st.composite
def metadata_values(draw: st.DrawFn) -> Metadata:
    """Any metadata that a tree can hold."""
    topics = draw(st.dictionaries(TOPIC_NAMES, TOPICS, max_size=3).filter(have_different_ids))
    configs = draw(st.dictionaries(ENTITIES, SETTINGS, max_size=3))
    for name in topics:
        if draw(st.booleans()):
            configs[ConfigEntity(ConfigKind.TOPIC, name)] = draw(SETTINGS)
    return Metadata(
        topics=topics,
        configs=configs,
        quotas=dict(draw(st.lists(QUOTAS, max_size=4))),
        credentials=draw(
            st.dictionaries(st.tuples(NODE_NAMES, st.sampled_from([1, 2])), CREDENTIALS, max_size=3)
        ),
        acls=dict.fromkeys(draw(st.lists(ACLS, max_size=4)), NO_ACL_ID),
        tokens={token.id: token for token in draw(st.lists(TOKENS, max_size=2))},
        features=draw(FEATURES),
        next_producer_id=draw(COUNTS),
        epoch=draw(EPOCHS),
    )


def in_trees(count: int, steps: Callable[..., Coroutine[Any, Any, None]]) -> None:
    """Call `steps` with this many open trees, each empty."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            trees = [EmbeddedTree(Path(directory, f"{n}.db"), SystemClock()) for n in range(count)]
            for tree in trees:
                await tree.open()
            try:
                await steps(*trees)
            finally:
                for tree in trees:
                    await tree.close()

    asyncio.run(run())


def without_versions(metadata: Metadata) -> Metadata:
    """Return the metadata with the epoch 0 for each partition."""
    topics = {
        name: topic._replace(
            partitions=tuple(
                partition._replace(partition_epoch=0) for partition in topic.partitions
            )
        )
        for name, topic in metadata.topics.items()
    }
    return replace(metadata, topics=topics)


@settings(max_examples=EXAMPLES)
@given(metadata_values(), st.sampled_from(CONFIGS))
def test_metadata_outlive_a_tree(metadata: Metadata, config: BrokerConfig) -> None:
    async def steps(tree: EmbeddedTree) -> None:
        await write_metadata(tree, metadata, config)
        assert await read_metadata(tree, config) == metadata
        assert await write_metadata(tree, metadata, config) == 0

    in_trees(1, steps)


@settings(max_examples=EXAMPLES)
@given(
    metadata_values(),
    metadata_values(),
    st.sampled_from(CONFIGS),
    st.sets(TOPIC_NAMES),
    st.dictionaries(st.sampled_from(["users/a", "users/b", "ips/a"]), st.just({"x": "1"})),
)
def test_a_tree_outlives_another_tree(
    first: Metadata,
    second: Metadata,
    config: BrokerConfig,
    marked_topics: set[str],
    foreign_settings: dict[str, dict[str, str]],
) -> None:
    """A tree that is brought to the metadata of another one says the same, whatever either has."""

    async def steps(tree: EmbeddedTree, other_tree: EmbeddedTree) -> None:
        for path, values in foreign_settings.items():
            await ensure_node(tree, f"{paths.CONFIG}/{path}", encode_config(values))
        await write_metadata(tree, first, config)
        for name in marked_topics:
            await ensure_node(tree, paths.delete_topic(name))
        await write_metadata(tree, second, config)
        metadata = await read_metadata(tree, config)
        assert without_versions(metadata) == replace(
            second,
            epoch=max(first.epoch, second.epoch),
            next_producer_id=max(first.next_producer_id, second.next_producer_id),
        )
        await write_metadata(other_tree, metadata, config)
        other_metadata = await read_metadata(other_tree, config)
        assert without_versions(other_metadata) == without_versions(metadata)

    in_trees(2, steps)
