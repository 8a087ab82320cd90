"""Everything that an administrator sees of a cluster, as one value that can be compared.

A view is sections: `topics`, `offsets`, `configs` … Each has names and their values. The same raw
requests ask both sides. A value that both sides cannot share is left out, by section, in `Omission`
with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.java_strings import partition_for
from tests.outgrowing.nodes import METADATA_VERSION, Nodes
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.outgrowing.nodes import Login

View = dict[str, dict[Any, Any]]
"""Section → name → value."""

READY_S = 120.0
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
"""Types of resources with settings."""
DYNAMIC_SOURCES = frozenset({1, 2, 3, 7, 8})
"""Sources of values that somebody set while the cluster ran: topic, broker, all brokers, client
metrics, group."""
ANY = 1
"""Operations, permissions and types of an ACL's filter that match every ACL."""
EARLIEST, LATEST = -2, -1
COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
MINE = frozenset({"classic", "consumer"})
"""Types of groups that minibroker has. Groups of other types stay in its log, unseen."""
FEATURES_OF_RELEASE = frozenset({"metadata.version", "kraft.version"})


class NotReadyError(AssertionError):
    """A coordinator or a leader is not there yet."""


class Omission(NamedTuple):
    """Names of a section that need not be equal."""

    section: str
    applies: Callable[[Any], bool]
    """Returns whether a name is left out."""
    reason: str


class Placement(NamedTuple):
    """The replicas of a partition, and who leads it."""

    leader: int
    replicas: tuple[int, ...]


def topic_of(partition: str) -> str:
    """Return the topic of `topic-0`."""
    return partition.rpartition("-")[0]


ALWAYS = (
    Omission(
        "offsets",
        lambda name: topic_of(name).startswith("__"),
        "coordinators write there while nobody works",
    ),
    Omission(
        "producers",
        lambda name: topic_of(name).startswith("__"),
        "as above: the coordinator of transactions commits offsets",
    ),
    Omission(
        "features",
        lambda name: name in FEATURES_OF_RELEASE,
        "the level says how a release writes its metadata",
    ),
)


def differences(
    earlier: View, after: View, omissions: Iterable[Omission] = (), *, only_common: str = "features"
) -> list[str]:
    """Return a sentence for each value that is not the same in both views.

    A section counts that both have.

    `only_common`: the section in which only names of both views count: a release has its features.
    """
    sentences = []
    for section in sorted(earlier.keys() & after.keys()):
        left_out = [item for item in (*ALWAYS, *omissions) if item.section == section]
        old, new = earlier[section], after[section]
        names = old.keys() & new.keys() if section == only_common else old.keys() | new.keys()
        for name in sorted(names, key=str):
            if any(omission.applies(name) for omission in left_out):
                continue
            if old.get(name) != new.get(name):
                sentences.append(f"{section} {name}: {old.get(name)} became {new.get(name)}")
    return sentences


def view_of(address: str, login: Login | None = None, *, ready_s: float = READY_S) -> View:
    """Return the view of a cluster whose partitions all have their leader, and whose coordinators
    have read their logs. Raises AssertionError where that takes longer than `ready_s`.
    """
    views: list[View] = []
    errors: list[str] = [""]

    def see() -> bool:
        try:
            with Nodes(address, login) as nodes:
                views.append(_view(nodes))
        except (NotReadyError, ConnectionError) as error:
            errors[0] = str(error)
            return False
        return True

    try:
        wait_until(see, "the cluster is ready to be viewed", ready_s)
    except AssertionError as error:
        raise AssertionError(f"{error}: {errors[0]}") from error
    return views[-1]


def _view(nodes: Nodes) -> View:
    metadata = nodes.any("metadata", METADATA_VERSION, topics=None)
    partitions = dict(_partitions(metadata))
    _check_coordinators(nodes, metadata)
    groups = _groups(nodes)
    names = [topic["name"] for topic in metadata["topics"]]
    return {
        "cluster": {"id": metadata["cluster_id"], "nodes": sorted(nodes.clients)},
        "topics": {
            topic["name"]: (topic["topic_id"].hex(), topic["is_internal"])
            for topic in metadata["topics"]
        },
        # The first of its replicas that comes leads.
        "partitions": {name: placement.replicas for name, placement in partitions.items()},
        "offsets": _offsets(nodes, partitions),
        "directories": dict(_directories(nodes)),
        "producers": dict(_producers(nodes, partitions)),
        "configs": dict(_configs(nodes, names)),
        **_group_configs(nodes, groups),
        "quotas": dict(_quotas(nodes)),
        "credentials": dict(_credentials(nodes)),
        "acls": dict.fromkeys(_acls(nodes), "held"),
        "tokens": dict(_tokens(nodes)),
        "groups": groups,
        "commits": dict(_commits(nodes, groups)),
        "transactions": dict(_transactions(nodes)),
        "features": dict(_features(nodes)),
    }


def _partitions(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Placement]]:
    """Yield partition → where it is. Raises NotReadyError until all replicas are in sync."""
    for topic in metadata["topics"]:
        for partition in topic["partitions"]:
            name = f"{topic['name']}-{partition['partition_index']}"
            replicas, isr = partition["replica_nodes"], sorted(partition["isr_nodes"])
            if partition["leader_id"] < 0 or isr != sorted(replicas):
                raise NotReadyError(f"{name}: {partition}")
            yield name, Placement(partition["leader_id"], tuple(replicas))


def _check_coordinators(nodes: Nodes, metadata: Mapping[str, Any]) -> None:
    """Raise NotReadyError until each partition of the coordinators was read.

    A listing leaves out partitions that are not read yet, without a word.
    """
    counts = {topic["name"]: len(topic["partitions"]) for topic in metadata["topics"]}
    for name in _names_for_each(counts.get("__consumer_offsets", 0)):
        groups = [{"group_id": name, "topics": None}]
        answers = nodes.each("offset_fetch", 8, groups=groups, require_stable=False)
        _check_answered(name, [answer["groups"][0]["error_code"] for answer in answers])
    for name in _names_for_each(counts.get("__transaction_state", 0)):
        answers = nodes.each("describe_transactions", 0, transactional_ids=[name])
        _check_answered(name, [answer["transaction_states"][0]["error_code"] for answer in answers])


def _check_answered(name: str, codes: list[ErrorCode]) -> None:
    if COORDINATOR_ERRORS.issuperset(codes):
        raise NotReadyError(f"{name}: {[ErrorCode(code).name for code in codes]}")


def _names_for_each(count: int) -> list[str]:
    """Return a name for each partition of a coordinator's topic that has so many."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < count:
        name = f"probe-{number}"
        names.setdefault(partition_for(name, count), name)
        number += 1
    return list(names.values())


def _by_leader(partitions: Mapping[str, Placement]) -> dict[int, dict[str, list[int]]]:
    """Return leader → topic → numbers."""
    places: dict[int, dict[str, list[int]]] = {}
    for name, placement in partitions.items():
        topic, _, number = name.rpartition("-")
        places.setdefault(placement.leader, {}).setdefault(topic, []).append(int(number))
    return places


def _offsets(nodes: Nodes, partitions: Mapping[str, Placement]) -> dict[str, Any]:
    """Return partition → start, end, end of what is decided. Raises NotReadyError."""
    offsets: dict[str, list[int]] = {name: [] for name in partitions}
    for timestamp, isolation_level in ((EARLIEST, 0), (LATEST, 0), (LATEST, 1)):
        for leader, topics in _by_leader(partitions).items():
            answer = nodes.clients[leader].call(
                "list_offsets",
                7,
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[
                    {
                        "name": topic,
                        "partitions": [
                            {"partition_index": number, "timestamp": timestamp}
                            for number in numbers
                        ],
                    }
                    for topic, numbers in topics.items()
                ],
            )
            for topic in answer["topics"]:
                for partition in topic["partitions"]:
                    name = f"{topic['name']}-{partition['partition_index']}"
                    _check(partition["error_code"], name)
                    offsets[name].append(partition["offset"])
    return {name: tuple(values) for name, values in offsets.items()}


def _check(code: ErrorCode, subject: str) -> None:
    if code:
        raise NotReadyError(f"{subject}: {ErrorCode(code).name}")


def _directories(nodes: Nodes) -> Iterator[tuple[Any, str]]:
    for node_id, client in nodes.clients.items():
        for directory in client.call("describe_log_dirs", 4, topics=None)["results"]:
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    name = f"{topic['name']}-{partition['partition_index']}"
                    yield (node_id, name), directory["log_dir"]


def _producers(nodes: Nodes, partitions: Mapping[str, Placement]) -> Iterator[tuple[str, Any]]:
    """Yield partition → producer id → where it is. Raises NotReadyError."""
    for leader, topics in _by_leader(partitions).items():
        requests = [
            {"name": topic, "partition_indexes": numbers} for topic, numbers in topics.items()
        ]
        for topic in nodes.clients[leader].call("describe_producers", 0, topics=requests)["topics"]:
            for partition in topic["partitions"]:
                name = f"{topic['name']}-{partition['partition_index']}"
                _check(partition["error_code"], name)
                yield (
                    name,
                    {
                        producer["producer_id"]: (
                            producer["producer_epoch"],
                            producer["last_sequence"],
                            producer["current_txn_start_offset"],
                        )
                        for producer in partition["active_producers"]
                    },
                )


def _configs(nodes: Nodes, topics: Iterable[str]) -> Iterator[tuple[Any, dict[str, str]]]:
    """Yield (type, name) → what was set."""
    config_resources = nodes.any("list_config_resources", 0)["config_resources"]
    resources = [
        *((TOPIC, name) for name in topics),
        (BROKER, ""),
        *((CLIENT_METRICS, resource["resource_name"]) for resource in config_resources),
    ]
    yield from _described(nodes.any("describe_configs", 4, resources=_resources(resources)))
    for node_id, client in nodes.clients.items():
        request_parts = _resources([(BROKER, str(node_id))])
        yield from _described(client.call("describe_configs", 4, resources=request_parts))


def _group_configs(nodes: Nodes, groups: Iterable[str]) -> View:
    """Return the section of groups, or none: Kafka 3.9 has no settings of groups."""
    request_parts = _resources((GROUP, name) for name in groups)
    answer = nodes.any("describe_configs", 4, resources=request_parts)
    if ErrorCode.INVALID_REQUEST in {result["error_code"] for result in answer["results"]}:
        return {}
    return {"group_configs": dict(_described(answer))}


def _resources(resources: Iterable[tuple[int, str]]) -> list[dict[str, Any]]:
    return [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in resources
    ]


def _described(answer: Mapping[str, Any]) -> Iterator[tuple[Any, dict[str, str]]]:
    for result in answer["results"]:
        name = (result["resource_type"], result["resource_name"])
        _check(result["error_code"], str(name))
        values = {
            config["name"]: config["value"]
            for config in result["configs"]
            if config["config_source"] in DYNAMIC_SOURCES
        }
        if values:
            yield name, values


def _quotas(nodes: Nodes) -> Iterator[tuple[Any, dict[str, float]]]:
    answer = nodes.any("describe_client_quotas", 1, components=[], strict=False)
    _check(answer["error_code"], "quotas")
    for entry in answer["entries"] or ():
        entity = sorted((part["entity_type"], part["entity_name"]) for part in entry["entity"])
        yield tuple(entity), {value["key"]: value["value"] for value in entry["values"]}


def _credentials(nodes: Nodes) -> Iterator[tuple[str, dict[int, int]]]:
    answer = nodes.any("describe_user_scram_credentials", 0, users=None)
    _check(answer["error_code"], "credentials")
    for result in answer["results"]:
        infos = result["credential_infos"]
        yield result["user"], {info["mechanism"]: info["iterations"] for info in infos}


def _acls(nodes: Nodes) -> Iterator[tuple[Any, ...]]:
    answer = nodes.any(
        "describe_acls",
        3,
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    if answer["error_code"] == ErrorCode.SECURITY_DISABLED:
        return
    _check(answer["error_code"], "ACLs")
    for resource in answer["resources"]:
        for acl in resource["acls"]:
            yield (
                *(resource[field] for field in ("resource_type", "resource_name", "pattern_type")),
                *(acl[field] for field in ("principal", "host", "operation", "permission_type")),
            )


def _tokens(nodes: Nodes) -> Iterator[tuple[str, Any]]:
    answer = nodes.any("describe_delegation_token", 3, owners=None)
    if answer["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        return  # of a listener that asks nobody who he is
    _check(answer["error_code"], "tokens")
    for token in answer["tokens"]:
        yield token["token_id"], tuple(str(value) for value in token.values())


def _groups(nodes: Nodes) -> dict[str, Any]:
    """Return group → type of its protocol, type."""
    groups = {}
    for answer in nodes.each("list_groups", 5, states_filter=[], types_filter=[]):
        _check(answer["error_code"], "groups")
        for group in answer["groups"]:
            kind = group["group_type"].lower()
            if kind in MINE:
                groups[group["group_id"]] = (group["protocol_type"], kind)
    return groups


def _commits(nodes: Nodes, groups: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield (group, partition) → offset, metadata. Raises NotReadyError."""
    requests = [{"group_id": group, "topics": None} for group in groups]
    if not requests:
        return
    answered = set()
    for answer in nodes.each("offset_fetch", 8, groups=requests, require_stable=False):
        for group in answer["groups"]:
            if group["error_code"] in COORDINATOR_ERRORS:
                continue
            _check(group["error_code"], group["group_id"])
            answered.add(group["group_id"])
            for topic in group["topics"]:
                for partition in topic["partitions"]:
                    name = f"{topic['name']}-{partition['partition_index']}"
                    place = (partition["committed_offset"], partition["metadata"])
                    yield (group["group_id"], name), place
    if answered != set(groups):
        raise NotReadyError(f"no coordinator of {set(groups) - answered}")


def _transactions(nodes: Nodes) -> Iterator[tuple[str, Any]]:
    """Yield transactional id → its state. Raises NotReadyError."""
    for client in nodes.clients.values():
        transactions = client.call("list_transactions", 1, state_filters=[], producer_id_filters=[])
        _check(transactions["error_code"], "transactions")
        ids = [state["transactional_id"] for state in transactions["transaction_states"]]
        states = client.call("describe_transactions", 0, transactional_ids=ids)
        for state in states["transaction_states"]:
            _check(state["error_code"], state["transactional_id"])
            partitions = {topic["topic"]: sorted(topic["partitions"]) for topic in state["topics"]}
            if state["transaction_state"].startswith("Prepare"):
                raise NotReadyError(f"{state['transactional_id']}: its end is being written")
            yield (
                state["transactional_id"],
                (
                    state["transaction_state"],
                    state["producer_id"],
                    state["producer_epoch"],
                    state["transaction_timeout_ms"],
                    state["transaction_start_time_ms"],
                    partitions,
                ),
            )


def _features(nodes: Nodes) -> Iterator[tuple[str, int]]:
    answer = nodes.any("api_versions", 3, client_software_name="view", client_software_version="1")
    for feature in answer["finalized_features"]:
        yield feature["name"], feature["max_version_level"]
