"""Requests of administrators, without topics, configurations and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

NO_FEATURES = "3.9.1 has no features with ZooKeeper"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
SERVED_FEATURES = ("group.version", "metadata.version", "transaction.version")
CLIENT = {"client_software_name": "wire", "client_software_version": "1.0"}


def features_of(talk: Dialogue, version: int = 4) -> dict[str, Any]:
    """Return the features in ApiVersions that minibroker serves."""
    answer = talk.quietly("api_versions", version, **CLIENT)
    return {
        "supported": sorted(
            (feature["name"], feature["min_version"], feature["max_version"])
            for feature in answer["supported_features"]
            if feature["name"] in SERVED_FEATURES
        ),
        "finalized": sorted(
            (feature["name"], feature["min_version_level"], feature["max_version_level"])
            for feature in answer["finalized_features"]
            if feature["name"] in SERVED_FEATURES
        ),
        "epoch is known": answer["finalized_features_epoch"] >= 0,
    }


def level_of(talk: Dialogue, name: str) -> int:
    """Return the current level, 0 if there is none."""
    levels: dict[str, int] = {feature[0]: feature[2] for feature in features_of(talk)["finalized"]}
    return levels.get(name, 0)


def wait_for_level(talk: Dialogue, level: int) -> None:
    """Wait until `transaction.version` has this level: Kafka's brokers learn of a change later."""
    talk.wait_until(lambda: level_of(talk, "transaction.version") == level, f"level {level}")


@scenario("api_versions", since=3)
def api_versions_features(talk: Dialogue) -> None:
    talk.note("features", features_of(talk, talk.version))


def update(talk: Dialogue, label: str, *levels: tuple[str, int, int], **more: Any) -> None:
    """Ask for levels; in version 0 a request only says whether a level may fall."""
    updates = [
        {
            "feature": name,
            "max_version_level": level,
            **({"upgrade_type": kind} if talk.version else {"allow_downgrade": kind != UPGRADE}),
        }
        for name, level, kind in levels
    ]
    talk.ask(label, timeout_ms=10_000, feature_updates=updates, **more)


@scenario("update_features")
def update_features_refused(talk: Dialogue) -> None:
    for label, levels in (
        ("down without a word", [("transaction.version", 1, UPGRADE)]),
        ("too new", [("transaction.version", 3, UPGRADE)]),
        ("unknown", [("no.such.version", 1, UPGRADE)]),
        ("unknown, out of force", [("no.such.version", 0, SAFE)]),
        ("no name", [("", 1, UPGRADE)]),
        ("negative", [("transaction.version", -1, SAFE)]),
        ("unsupported way down", [("metadata.version", 20, SAFE)]),
        ("unsafe way down", [("metadata.version", 32, UNSAFE)]),
        ("one good, one bad", [("transaction.version", 2, UPGRADE), ("no.such", 1, UPGRADE)]),
        ("nothing", []),
        ("as it is", [("transaction.version", 2, UPGRADE)]),
    ):
        update(talk, label, *levels)


@scenario("update_features", since=1, peer="4.4.0", because=NO_FEATURES)
def update_features_down_and_up(talk: Dialogue) -> None:
    update(talk, "unknown way", ("transaction.version", 1, 9))
    update(talk, "validate only", ("transaction.version", 1, SAFE), validate_only=True)
    talk.note("unchanged", level_of(talk, "transaction.version"))
    try:
        for level in (1, 0):
            update(talk, f"down to {level}", ("transaction.version", level, SAFE))
            wait_for_level(talk, level)
        talk.note("out of force", features_of(talk))
        update(talk, "down upwards", ("transaction.version", 1, SAFE))
        update(talk, "up without validating", ("transaction.version", 1, UPGRADE))
    finally:
        update(talk, "back", ("transaction.version", 2, UPGRADE))
    wait_for_level(talk, 2)
    talk.note("in force again", features_of(talk))


ELR = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
BROKER_RESOURCE = 4
SET, DELETE = 0, 1


def elr_of(talk: Dialogue) -> tuple[Any, Any]:
    """Return the range of eligible leader replicas in ApiVersions, and the level in force."""
    answer = talk.quietly("api_versions", 4, **CLIENT)
    ranges = {feature["name"]: feature for feature in answer["supported_features"]}
    levels = {
        feature["name"]: feature["max_version_level"] for feature in answer["finalized_features"]
    }
    return (ranges[ELR]["min_version"], ranges[ELR]["max_version"]), levels.get(ELR, 0)


def alter_min_isr(talk: Dialogue, name: str, operation: int, value: str | None) -> Any:
    """Alter `min.insync.replicas` of a broker, or of the cluster with an empty name."""
    change = {"name": MIN_ISR, "config_operation": operation, "value": value}
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": name, "configs": [change]}
    return talk.quietly("incremental_alter_configs", 1, resources=[resource])["responses"]


def min_isr_layers(talk: Dialogue, kind: int, name: str) -> Any:
    """Describe `min.insync.replicas` of one resource with all its layers."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": [MIN_ISR]}
    answer = talk.quietly("describe_configs", 4, resources=[resource], include_synonyms=True)
    return answer["results"]


@scenario("update_features", since=1, peer="4.4.0", because=NO_FEATURES)
def update_features_eligible_leader_replicas(talk: Dialogue) -> None:
    """At this level only the cluster has `min.insync.replicas`; a new cluster of 4.4 begins so."""
    _, old_level = elr_of(talk)
    update(talk, "too new", (ELR, 2, UPGRADE))
    try:
        update(talk, "in force", (ELR, 1, UPGRADE))
        talk.wait_until(lambda: elr_of(talk)[1] == 1, "level 1")
        talk.note("range and level", elr_of(talk))
        topic = talk.make_topic("with-elr")
        for label, kind, name in (
            ("cluster", BROKER_RESOURCE, ""),
            ("broker", BROKER_RESOURCE, "0"),
            ("topic", TOPIC, topic),
        ):
            talk.note(f"described: {label}", min_isr_layers(talk, kind, name))
        for label, name, operation, value in (
            ("cluster removed", "", DELETE, None),
            ("broker set", "0", SET, "1"),
            ("broker removed", "0", DELETE, None),
        ):
            talk.note(label, alter_min_isr(talk, name, operation, value))
        talk.note("cluster set", alter_min_isr(talk, "", SET, "1"))
        resource = {"resource_type": BROKER_RESOURCE, "resource_name": "", "configs": []}
        talk.note("all removed", talk.quietly("alter_configs", 2, resources=[resource]))
        update(talk, "out of force", (ELR, 0, SAFE))
        talk.wait_until(lambda: elr_of(talk)[1] == 0, "level 0")
        talk.note("cluster may be removed", alter_min_isr(talk, "", DELETE, None))
    finally:
        update(talk, "as before", (ELR, old_level, UPGRADE if old_level else SAFE))
    talk.wait_until(lambda: elr_of(talk)[1] == old_level, f"level {old_level}")


# Security that is off: ACLs, delegation tokens, SASL.

TOPIC, READ, ALLOW, ANY = 2, 3, 3, 1
STRANGE_CODES = (0, 99, -1)


@scenario("describe_acls")
def describe_acls_disabled(talk: Dialogue) -> None:
    everything = {"resource_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    talk.ask("everything", **everything)
    talk.ask("one", resource_type_filter=TOPIC, operation=READ, permission_type=ALLOW)
    for code in STRANGE_CODES:
        for field in everything:
            talk.ask(f"{field} {code}", **{**everything, field: code})
        if talk.version:
            talk.ask(f"pattern type {code}", **everything, pattern_type_filter=code)


@scenario("create_acls")
def create_acls_disabled(talk: Dialogue) -> None:
    binding = {
        "resource_type": TOPIC,
        "resource_name": "t",
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    talk.ask("one", creations=[binding])
    talk.ask("the same twice", creations=[binding, binding])
    talk.ask("none", creations=[])
    for code in STRANGE_CODES:
        for field in ("resource_type", "operation", "permission_type"):
            talk.ask(f"{field} {code}", creations=[binding, {**binding, field: code}])
        if talk.version:
            strange = {**binding, "resource_pattern_type": code}
            talk.ask(f"pattern type {code}", creations=[strange])


@scenario("delete_acls")
def delete_acls_disabled(talk: Dialogue) -> None:
    everything = {"resource_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    talk.ask("everything, twice", filters=[everything, everything])
    talk.ask("none", filters=[])
    for code in STRANGE_CODES:
        for field in everything:
            talk.ask(f"{field} {code}", filters=[{**everything, field: code}])
        if talk.version:
            strange = {**everything, "pattern_type_filter": code}
            talk.ask(f"pattern type {code}", filters=[strange])


@scenario("create_delegation_token")
def create_delegation_token_not_allowed(talk: Dialogue) -> None:
    renewer = {"principal_type": "User", "principal_name": "bob"}
    talk.ask("own", renewers=[], max_lifetime_ms=-1)
    talk.ask("with a renewer", renewers=[renewer], max_lifetime_ms=1000)
    if talk.version >= 3:
        owner = {"owner_principal_type": "User", "owner_principal_name": "carol"}
        talk.ask("for somebody else", renewers=[], max_lifetime_ms=-1, **owner)


@scenario("renew_delegation_token")
def renew_delegation_token_not_allowed(talk: Dialogue) -> None:
    talk.ask("unknown", hmac=b"token", renew_period_ms=1000)


@scenario("expire_delegation_token")
def expire_delegation_token_not_allowed(talk: Dialogue) -> None:
    talk.ask("unknown", hmac=b"token", expiry_time_period_ms=1000)


@scenario("describe_delegation_token")
def describe_delegation_token_not_allowed(talk: Dialogue) -> None:
    talk.ask("all", owners=None)
    talk.ask("none", owners=[])
    talk.ask("one", owners=[{"principal_type": "User", "principal_name": "bob"}])


@scenario("sasl_handshake")
def sasl_handshake_on_plaintext(talk: Dialogue) -> None:
    talk.ask("first", mechanism="PLAIN")
    talk.ask("again", mechanism="SCRAM-SHA-256")
    talk.also("connection lives", "list_offsets", 1, replica_id=-1, topics=[])


@scenario("sasl_authenticate")
def sasl_authenticate_on_plaintext(talk: Dialogue) -> None:
    talk.ask("without a handshake", auth_bytes=b"\0user\0secret")
    talk.ask("empty", auth_bytes=b"")


# Users' credentials.

SHA_256, SHA_512 = 1, 2


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, **fields: Any
) -> dict[str, Any]:
    """Return a credential to set."""
    entry = {"salt": b"salt", "salted_password": b"p" * 32, **fields}
    return {"name": name, "mechanism": mechanism, "iterations": iterations, **entry}


def deletion(name: str, mechanism: int = SHA_256) -> dict[str, Any]:
    """Return a credential to remove."""
    return {"name": name, "mechanism": mechanism}


def scram_of(talk: Dialogue, user: str) -> list[tuple[int, int]]:
    """Return mechanism and iterations of a user, sorted: Kafka 4 keeps them in no order."""
    answer = talk.quietly("describe_user_scram_credentials", 0, users=[{"name": user}])
    infos = answer["results"][0]["credential_infos"]
    return sorted((info["mechanism"], info["iterations"]) for info in infos)


def wait_for_scram(talk: Dialogue, user: str, *expected: tuple[int, int]) -> None:
    """Wait until the broker shows the new credentials: Kafka 4 a moment after its answer."""
    talk.wait_until(lambda: scram_of(talk, user) == list(expected), f"credentials of {user}")


@scenario("alter_user_scram_credentials")
def alter_user_scram_credentials_good(talk: Dialogue) -> None:
    user = talk.topic("user")
    talk.ask("set", upsertions=[upsertion(user)], deletions=[])
    wait_for_scram(talk, user, (SHA_256, 4096))
    second = [upsertion(user, SHA_512, 8192, salt=b"")]
    talk.ask("the other, no salt", upsertions=second, deletions=[])
    wait_for_scram(talk, user, (SHA_256, 4096), (SHA_512, 8192))
    talk.ask("replace", upsertions=[upsertion(user, SHA_256, 16384)], deletions=[])
    wait_for_scram(talk, user, (SHA_256, 16384), (SHA_512, 8192))
    talk.ask("one away", upsertions=[], deletions=[deletion(user)])
    wait_for_scram(talk, user, (SHA_512, 8192))
    talk.ask("nothing", upsertions=[], deletions=[])
    talk.ask("the last away", upsertions=[], deletions=[deletion(user, SHA_512)])
    wait_for_scram(talk, user)


@scenario("alter_user_scram_credentials")
def alter_user_scram_credentials_both_mechanisms(talk: Dialogue) -> None:
    user = talk.topic("user")
    both = [upsertion(user), upsertion(user, SHA_512)]
    talk.ask("both at once", upsertions=both, deletions=[])
    for credential in both:
        talk.quietly("alter_user_scram_credentials", 0, upsertions=[credential], deletions=[])
    wait_for_scram(talk, user, (SHA_256, 4096), (SHA_512, 4096))
    talk.ask("one set, one away", upsertions=[upsertion(user, SHA_512)], deletions=[deletion(user)])
    talk.quietly("alter_user_scram_credentials", 0, upsertions=[], deletions=[deletion(user)])
    wait_for_scram(talk, user, (SHA_512, 4096))
    talk.ask("not there", upsertions=[], deletions=[deletion(user), deletion(user, SHA_512)])
    talk.ask("away", upsertions=[], deletions=[deletion(user, SHA_512)])


@scenario("alter_user_scram_credentials")
def alter_user_scram_credentials_refused(talk: Dialogue) -> None:
    user = talk.topic("user")
    for label, upsertions, deletions in (
        ("too few iterations", [upsertion(user, iterations=4095)], []),
        ("too many iterations", [upsertion(user, iterations=16385)], []),
        ("mechanism 0", [upsertion(user, mechanism=0)], []),
        ("mechanism 9", [upsertion(user, mechanism=9)], []),
        ("no name", [upsertion("")], []),
        ("no password", [upsertion(user, salted_password=b"")], []),
        ("twice", [upsertion(user), upsertion(user)], []),
        ("set and away", [upsertion(user)], [deletion(user)]),
        ("away, never there", [], [deletion(user)]),
        ("away, unknown mechanism", [], [deletion(user, 9)]),
        ("away, no name", [], [deletion("")]),
        ("two faults", [upsertion(user, iterations=1)], [deletion(user, 9)]),
    ):
        talk.ask(label, upsertions=upsertions, deletions=deletions)


@scenario("describe_user_scram_credentials")
def describe_user_scram_credentials_users(talk: Dialogue) -> None:
    names = [talk.topic(name) for name in ("b", "a", "ü %")]
    for name in names:
        talk.quietly("alter_user_scram_credentials", 0, upsertions=[upsertion(name)], deletions=[])
        wait_for_scram(talk, name, (SHA_256, 4096))
    talk.ask("some", users=[{"name": name} for name in names[:2]])
    talk.ask("one", users=[{"name": names[2]}])
    talk.ask("twice", users=[{"name": names[0]}, {"name": names[0]}])
    talk.ask("unknown", users=[{"name": talk.topic("nobody")}])
    talk.ask("no name", users=[{"name": ""}])
    for label, users in (("all", None), ("all, by an empty list", [])):
        answer = talk.quietly("describe_user_scram_credentials", 0, users=users)
        own = [result for result in answer["results"] if result["user"] in names]
        talk.note(label, [answer["error_code"], sorted(own, key=lambda result: result["user"])])
    away = [deletion(name) for name in names]
    talk.quietly("alter_user_scram_credentials", 0, upsertions=[], deletions=away)


@scenario("unregister_broker")
def unregister_broker_unknown(talk: Dialogue) -> None:
    talk.ask("unknown", broker_id=99)
    talk.ask("negative", broker_id=-1)


# Leaders and replicas.

PREFERRED, UNCLEAN, NO_SUCH_KIND = 0, 1, 7
ABSENT_BROKER = 5


def elect(
    talk: Dialogue, label: str, topics: dict[str, list[int]] | None, kind: int = PREFERRED
) -> None:
    """Ask for elections; version 0 has only one kind."""
    partitions = None
    if topics is not None:
        partitions = [{"topic": name, "partitions": ids} for name, ids in topics.items()]
    talk.ask(
        label,
        topic_partitions=partitions,
        timeout_ms=10_000,
        **({"election_type": kind} if talk.version else {}),
    )


@scenario("elect_leaders")
def elect_leaders_that_lead(talk: Dialogue) -> None:
    name = talk.make_topic("led", partitions=3)
    for kind in (PREFERRED, UNCLEAN) if talk.version else (PREFERRED,):
        elect(talk, f"some {kind}", {name: [2, 0]}, kind)
        elect(talk, f"all {kind}", None, kind)
        elect(talk, f"twice {kind}", {name: [1, 1]}, kind)
        elect(talk, f"none {kind}", {}, kind)
        unknown = {name: [0, 9, -1], talk.topic("unknown"): [0]}
        elect(talk, f"unknown {kind}", unknown, kind)
    if talk.version:
        elect(talk, "no such kind", {name: [0, 1]}, NO_SUCH_KIND)
    talk.note("epoch", leader_epoch_of(talk, name))


def leader_epoch_of(talk: Dialogue, name: str) -> int:
    """Return the leader epoch of partition 0."""
    partitions = talk.metadata_of(name)["partitions"]
    return int(min(partitions, key=lambda partition: partition["partition_index"])["leader_epoch"])


def reassign(
    talk: Dialogue, label: str, *moves: tuple[str, int, list[int] | None], **more: Any
) -> None:
    """Ask for moves: topic, partition, replicas (None: cancel)."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for name, index, replicas in moves:
        topics.setdefault(name, []).append({"partition_index": index, "replicas": replicas})
    entries = [{"name": name, "partitions": moved} for name, moved in topics.items()]
    talk.ask(label, timeout_ms=10_000, topics=entries, **more)


@scenario("alter_partition_reassignments")
def alter_partition_reassignments_on_one_broker(talk: Dialogue) -> None:
    name = talk.make_topic("still", partitions=2)
    unknown = talk.topic("unknown")
    reassign(talk, "empty", (name, 0, []))
    reassign(talk, "twice the same", (name, 0, [0, 0]))
    reassign(talk, "negative", (name, 0, [-1]))
    reassign(talk, "no such broker", (name, 0, [ABSENT_BROKER]))
    reassign(talk, "one of two", (name, 0, [0, ABSENT_BROKER]))
    reassign(talk, "unknown partition", (name, 9, [0]))
    reassign(talk, "unknown topic", (unknown, 0, [0]))
    reassign(talk, "nothing to take back", (name, 0, None))
    reassign(talk, "several", (name, 1, None), (unknown, 0, [0]), (name, 0, []))
    reassign(talk, "nothing")


@scenario("alter_partition_reassignments")
def alter_partition_reassignments_to_where_it_is(talk: Dialogue) -> None:
    name = talk.make_topic("same")
    reassign(talk, "as it is", (name, 0, [0]))
    # A broker hears of the move behind the answer, and of a later change behind the move.
    more = [{"name": name, "count": 2, "assignments": None}]
    talk.quietly("create_partitions", 0, topics=more, timeout_ms=10_000)
    talk.wait_for_topic(name, 2)
    talk.note("epoch", leader_epoch_of(talk, name))


@scenario("alter_partition_reassignments")
def alter_partition_reassignments_order_of_checks(talk: Dialogue) -> None:
    name = talk.make_topic("named", partitions=2)
    reassign(talk, "partition twice", (name, 0, [0]), (name, 0, [ABSENT_BROKER]))
    reassign(talk, "nothing to take back", (talk.topic("unknown"), 0, None))
    reassign(talk, "unknown topic, no such broker", (talk.topic("unknown"), 0, [ABSENT_BROKER]))
    talk.ask("no partitions", timeout_ms=10_000, topics=[{"name": name, "partitions": []}])


@scenario("alter_partition_reassignments", since=1)
def alter_partition_reassignments_same_count(talk: Dialogue) -> None:
    name = talk.make_topic("held")
    reassign(talk, "as it is", (name, 0, [0]), allow_replication_factor_change=False)
    more = (name, 0, [0, ABSENT_BROKER])
    reassign(talk, "more, not there", more, allow_replication_factor_change=False)


@scenario("list_partition_reassignments")
def list_partition_reassignments_none(talk: Dialogue) -> None:
    name = talk.make_topic("still")
    talk.ask("all", timeout_ms=10_000, topics=None)
    talk.ask("none", timeout_ms=10_000, topics=[])
    some = [{"name": name, "partition_indexes": [0, 9, -1]}]
    talk.ask("some", timeout_ms=10_000, topics=some)
    strange = [{"name": talk.topic("unknown"), "partition_indexes": [0]}]
    talk.ask("unknown", timeout_ms=10_000, topics=strange)
