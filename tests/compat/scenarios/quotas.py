"""DescribeClientQuotas and AlterClientQuotas: values per user and client id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

EXACT, DEFAULT, ANY = 0, 1, 2


def entity(**names: str | None) -> list[dict[str, Any]]:
    """Return an entity; underscores in a type stand for dashes, a name of None is the default."""
    return [
        {"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()
    ]


def change(key: str, value: float | None) -> dict[str, Any]:
    """Return an operation that sets one quota, or removes it with None."""
    return {"key": key, "value": value or 0.0, "remove": value is None}


def alter(
    components: list[dict[str, Any]], *changes: dict[str, Any], validate_only: bool = False
) -> dict[str, Any]:
    """Return an AlterClientQuotas request with one entry."""
    return {
        "entries": [{"entity": components, "ops": list(changes)}],
        "validate_only": validate_only,
    }


def part(kind: str, match_type: int, match: str | None = None) -> dict[str, Any]:
    """Return one component of a DescribeClientQuotas filter."""
    return {"entity_type": kind, "match_type": match_type, "match": match}


def note_quotas(talk: Dialogue, label: str, client: str, expected: dict[str, float]) -> None:
    """Wait until a client id has the expected quotas: Kafka applies them later."""

    def quotas() -> dict[str, float]:
        answer = talk.quietly(
            "describe_client_quotas", 0, components=[part("client-id", EXACT, client)], strict=True
        )
        return {v["key"]: v["value"] for e in answer["entries"] or () for v in e["values"]}

    talk.wait_until(lambda: quotas() == expected, f"quotas of {client}: {expected}")
    talk.note(label, quotas())


@scenario("alter_client_quotas")
def alter_client_quotas_good(talk: Dialogue) -> None:
    client = talk.topic("client")
    client_entity = entity(client_id=client)
    talk.ask("set", **alter(client_entity, change("producer_byte_rate", 1000.0)))
    note_quotas(talk, "is set", client, {"producer_byte_rate": 1000.0})
    both = (change("consumer_byte_rate", 5.5e6), change("producer_byte_rate", None))
    talk.ask("set and remove", **alter(client_entity, *both))
    note_quotas(talk, "the other is set", client, {"consumer_byte_rate": 5.5e6})
    only = alter(client_entity, change("request_percentage", 50.0), validate_only=True)
    talk.ask("validate only", **only)
    note_quotas(talk, "unchanged", client, {"consumer_byte_rate": 5.5e6})
    talk.ask("remove what is not set", **alter(client_entity, change("request_percentage", None)))
    talk.ask("no entries", entries=[])
    talk.ask("remove the last", **alter(client_entity, change("consumer_byte_rate", None)))
    note_quotas(talk, "none", client, {})


@scenario("alter_client_quotas")
def alter_client_quotas_refused(talk: Dialogue) -> None:
    client = talk.topic("client")
    client_entity = entity(client_id=client)
    for label, someone, changes in (
        ("unknown key", client_entity, [change("no_such_rate", 1.0)]),
        ("unknown type", entity(planet="mars"), [change("producer_byte_rate", 1.0)]),
        ("no entity", [], [change("producer_byte_rate", 1.0)]),
        ("type twice", client_entity + client_entity, [change("producer_byte_rate", 1.0)]),
        ("empty name", entity(client_id=""), [change("producer_byte_rate", 1.0)]),
        (
            "key twice",
            client_entity,
            [change("producer_byte_rate", 1.0), change("producer_byte_rate", 2.0)],
        ),
        ("fraction of a byte", client_entity, [change("producer_byte_rate", 1.5)]),
        ("negative", client_entity, [change("producer_byte_rate", -1.0)]),
    ):
        talk.ask(label, **alter(someone, *changes, validate_only=True))


@scenario("describe_client_quotas")
def describe_client_quotas_filters(talk: Dialogue) -> None:
    user, client = talk.topic("user"), talk.topic("client")
    for target, rate in (
        (entity(user=user), 1.0),
        (entity(user=user, client_id=client), 2.0),
        (entity(client_id=client), 3.0),
        (entity(user=user, client_id=None), 4.0),
    ):
        talk.quietly("alter_client_quotas", 0, **alter(target, change("producer_byte_rate", rate)))

    def own_quotas(strict: bool, *components: dict[str, Any]) -> list[Any]:
        answer = talk.quietly(
            "describe_client_quotas", talk.version, components=list(components), strict=strict
        )
        own = filter(_is_own(user, client), answer["entries"] or [])
        return [answer["error_code"], sorted(map(_text_of, own))]

    a_user, a_client = part("user", EXACT, user), part("client-id", EXACT, client)
    talk.wait_until(lambda: len(own_quotas(False, a_user)[1]) == 3, "three quotas of the user")
    for strict in (False, True):
        talk.note(f"user {strict}", own_quotas(strict, a_user))
        talk.note(f"client {strict}", own_quotas(strict, a_client))
        talk.note(f"both {strict}", own_quotas(strict, a_user, a_client))
        talk.note(f"any client {strict}", own_quotas(strict, a_user, part("client-id", ANY)))
        talk.note(
            f"default client {strict}", own_quotas(strict, a_user, part("client-id", DEFAULT))
        )
        talk.note(f"nothing asked {strict}", own_quotas(strict))
    talk.ask("unknown type", components=[part("planet", ANY)], strict=True)
    talk.ask("empty type", components=[part("", ANY)], strict=True)
    talk.ask("type twice", components=[a_user, a_user], strict=True)


def _text_of(entry: Any) -> str:
    """Return an entry as text, with its entity sorted: Kafka's order is that of a hash map."""
    names = sorted(
        f"{component['entity_type']}={component['entity_name']}" for component in entry["entity"]
    )
    values = sorted((quota["key"], quota["value"]) for quota in entry["values"])
    return f"{' '.join(names)}: {values}"


def _is_own(*names: str) -> Any:
    return lambda entry: any(component["entity_name"] in names for component in entry["entity"])


# Replication rates are configurations: how fast, of the broker; for which replicas, of a topic.

SET, DELETE = 0, 1
TOPIC, BROKER = 2, 4
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def configure(talk: Dialogue, label: str, kind: int, name: str, *changes: Any) -> None:
    """Ask for changes of one resource: key, operation and value of each."""
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    talk.ask(
        label,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        validate_only=False,
    )


def configured(talk: Dialogue, kind: int, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return value and source of some keys."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
    answer = talk.quietly("describe_configs", 1, resources=[resource])
    return {
        config["name"]: [config["value"], config["config_source"]]
        for config in answer["results"][0]["configs"]
    }


def expect_config(
    talk: Dialogue, label: str, kind: int, name: str, expected: dict[str, str]
) -> None:
    """Wait until the broker has these values, then record them with their source."""

    def entries() -> dict[str, Any]:
        return configured(talk, kind, name, tuple(expected))

    talk.wait_until(
        lambda: {key: value[0] for key, value in entries().items()} == expected, f"{expected}"
    )
    talk.note(label, entries())


@scenario("incremental_alter_configs")
def incremental_alter_configs_throttled_replicas(talk: Dialogue) -> None:
    name = talk.make_topic("throttled")
    leader, follower = REPLICAS
    both = [(leader, SET, "0:0,1:0"), (follower, SET, "*")]
    configure(talk, "set", TOPIC, name, *both)
    expect_config(talk, "are set", TOPIC, name, {leader: "0:0,1:0", follower: "*"})
    for value in ("0", "0:", "a:b", "0:0,*", "none", "0:0,,1:1", ""):
        configure(talk, f"value {value!r}", TOPIC, name, (leader, SET, value))
    away = [(key, DELETE, None) for key in REPLICAS]
    configure(talk, "away", TOPIC, name, *away)
    expect_config(talk, "are away", TOPIC, name, {leader: "", follower: ""})


@scenario("incremental_alter_configs")
def incremental_alter_configs_throttled_rates(talk: Dialogue) -> None:
    leader, follower = RATES
    both = [(leader, SET, "1048576"), (follower, SET, "2097152")]
    configure(talk, "set", BROKER, "0", *both)
    try:
        expect_config(talk, "are set", BROKER, "0", {leader: "1048576", follower: "2097152"})
        for value in ("-1", "1.5", "fast", ""):
            configure(talk, f"value {value!r}", BROKER, "0", (leader, SET, value))
    finally:
        configure(talk, "away", BROKER, "0", *((key, DELETE, None) for key in RATES))
    talk.wait_until(lambda: not configured(talk, BROKER, "0", RATES), "no rates")
