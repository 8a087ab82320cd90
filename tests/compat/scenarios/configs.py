"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue
    from tests.support.wire import Answer

UNKNOWN_TYPE, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# Values that belong to the machine, the test set-up or the release, not to behaviour.
OWN_VALUES = {
    "broker.id",
    "node.id",
    "listeners",
    "advertised.listeners",
    "log.dir",
    "log.dirs",
    "zookeeper.connect",
    "controller.quorum.voters",
    "controller.listener.names",
    "listener.security.protocol.map",
    "process.roles",
    "log.cleaner.dedupe.buffer.size",
}


def describe(
    talk: Dialogue, label: str, kind: int, name: str, keys: Any = None, **fields: Any
) -> None:
    """Record DescribeConfigs of one resource, with the configs sorted by name."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    answer = talk.quietly("describe_configs", talk.version, resources=[resource], **fields)
    talk.note(label, by_name(answer))


def by_name(answer: Answer) -> Answer:
    """Return the answer with its configs as a mapping: their order differs by broker."""
    results = [
        {**result, "configs": {config["name"]: config for config in result["configs"]}}
        for result in answer["results"]
    ]
    return {**answer, "results": results}


@scenario("describe_configs")
def describe_configs_topic(talk: Dialogue) -> None:
    topic = talk.make_topic(
        "configured", configs={"retention.ms": "1000", "cleanup.policy": "compact"}
    )
    describe(talk, "all", TOPIC, topic)
    describe(talk, "two", TOPIC, topic, ["retention.ms", "segment.bytes"])
    describe(talk, "one unknown", TOPIC, topic, ["retention.ms", "no.such.key"])
    describe(talk, "none", TOPIC, topic, [])


@scenario("describe_configs", since=1)
def describe_configs_synonyms(talk: Dialogue) -> None:
    topic = talk.make_topic(
        "configured", configs={"retention.ms": "1000", "cleanup.policy": "compact"}
    )
    describe(talk, "all", TOPIC, topic, include_synonyms=True)


@scenario("describe_configs", since=3)
def describe_configs_documentation(talk: Dialogue) -> None:
    topic = talk.make_topic("configured")
    describe(talk, "all", TOPIC, topic, include_documentation=True)


@scenario("describe_configs")
def describe_configs_refused(talk: Dialogue) -> None:
    describe(talk, "unknown topic", TOPIC, talk.topic("unknown"))
    describe(talk, "illegal topic", TOPIC, "a/b")
    describe(talk, "empty topic", TOPIC, "")
    describe(talk, "other broker", BROKER, "9")
    describe(talk, "not a number", BROKER, "x")
    describe(talk, "unknown type", UNKNOWN_TYPE, "x")
    describe(talk, "type 77", 77, "x")
    talk.ask("no resources", resources=[])


@scenario("describe_configs")
def describe_configs_twice(talk: Dialogue) -> None:
    topic = talk.make_topic("twice")
    keys = ["retention.ms"]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": keys}
    answer = talk.quietly("describe_configs", talk.version, resources=[resource, resource])
    talk.note("twice", by_name(answer))


@scenario("describe_configs", since=1)
def describe_configs_broker(talk: Dialogue) -> None:
    """Every key of the broker: name, type, value, source, read only, sensitive, synonyms."""
    resource = {"resource_type": BROKER, "resource_name": "0", "configuration_keys": None}
    answer = talk.quietly(
        "describe_configs", talk.version, resources=[resource], include_synonyms=True
    )
    for result in answer["results"]:
        for config in result["configs"]:
            if config["name"] in OWN_VALUES:
                config["value"] = config["synonyms"] = config["config_source"] = "own"
    talk.note("broker", by_name(answer))


@scenario("describe_configs")
def describe_configs_broker_keys(talk: Dialogue) -> None:
    keys = [
        "num.partitions",
        "log.retention.ms",
        "log.retention.hours",
        "auto.create.topics.enable",
    ]
    describe(talk, "some", BROKER, "0", keys)
    describe(talk, "cluster default", BROKER, "", keys)


def altered(
    talk: Dialogue, kind: int, name: str, *configs: tuple[Any, ...], **fields: Any
) -> dict[str, Any]:
    """Return an AlterConfigs request from (key, value), or its incremental form from (key, op,
    value).
    """
    if talk.api == "alter_configs":
        entries = [{"name": key, "value": value} for key, value in configs]
    else:
        entries = [
            {"name": key, "config_operation": op, "value": value} for key, op, value in configs
        ]
    resource = {"resource_type": kind, "resource_name": name, "configs": entries}
    return {"resources": [resource], **fields}


def own_configs(talk: Dialogue, topic: str) -> dict[str, str]:
    """Return the configs that are set on the topic itself."""
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": None}
    answer = talk.quietly("describe_configs", 1, resources=[resource])
    set_on_topic = 1
    return {
        config["name"]: config["value"]
        for config in answer["results"][0]["configs"]
        if config["config_source"] == set_on_topic
    }


def note_configs(talk: Dialogue, topic: str, expected: dict[str, str]) -> None:
    """Wait until the broker applied the change, and record the configs."""
    talk.wait_until(lambda: own_configs(talk, topic) == expected, f"{topic} with {expected}")
    talk.note(f"now {expected}", own_configs(talk, topic))


@scenario("alter_configs")
def alter_configs_replaces(talk: Dialogue) -> None:
    """AlterConfigs sets the given keys and resets all others."""
    topic = talk.make_topic("altered", configs={"retention.ms": "1000"})
    talk.ask("set", **altered(talk, TOPIC, topic, ("segment.bytes", "2000000")))
    note_configs(talk, topic, {"segment.bytes": "2000000"})
    only = {"validate_only": True}
    talk.ask("validated", **altered(talk, TOPIC, topic, ("retention.ms", "7"), **only))
    talk.note("unchanged", own_configs(talk, topic))
    talk.ask("empty", **altered(talk, TOPIC, topic))
    note_configs(talk, topic, {})


@scenario("alter_configs")
def alter_configs_refused(talk: Dialogue) -> None:
    topic = talk.make_topic("altered", configs={"retention.ms": "1000"})
    for label, kind, name, configs in (
        ("unknown key", TOPIC, topic, [("no.such.key", "1")]),
        ("bad value", TOPIC, topic, [("retention.ms", "soon")]),
        ("null value", TOPIC, topic, [("retention.ms", None)]),
        ("one good, one bad", TOPIC, topic, [("retention.ms", "5"), ("segment.bytes", "1")]),
        ("key twice", TOPIC, topic, [("retention.ms", "5"), ("retention.ms", "6")]),
        ("unknown topic", TOPIC, talk.topic("unknown"), [("retention.ms", "5")]),
        ("illegal topic", TOPIC, "a/b", [("retention.ms", "5")]),
        ("empty topic", TOPIC, "", [("retention.ms", "5")]),
        ("other broker", BROKER, "9", [("log.cleaner.threads", "1")]),
        ("not a number", BROKER, "x", [("log.cleaner.threads", "1")]),
        ("read only", BROKER, "0", [("broker.id", "5")]),
        ("unknown type", UNKNOWN_TYPE, "x", [("a", "b")]),
        ("type 77", 77, "x", [("a", "b")]),
    ):
        talk.ask(label, **altered(talk, kind, name, *configs))
    talk.note("unchanged", own_configs(talk, topic))
    talk.ask("no resources", resources=[])


@scenario("incremental_alter_configs")
def incremental_alter_configs_good(talk: Dialogue) -> None:
    topic = talk.make_topic("stepwise", configs={"retention.ms": "1000"})
    talk.ask("set", **altered(talk, TOPIC, topic, ("segment.bytes", SET, "2000000")))
    note_configs(talk, topic, {"retention.ms": "1000", "segment.bytes": "2000000"})
    talk.ask("delete", **altered(talk, TOPIC, topic, ("retention.ms", DELETE, None)))
    note_configs(talk, topic, {"segment.bytes": "2000000"})
    talk.ask("append", **altered(talk, TOPIC, topic, ("cleanup.policy", APPEND, "compact")))
    note_configs(talk, topic, {"segment.bytes": "2000000", "cleanup.policy": "delete,compact"})
    talk.ask("append again", **altered(talk, TOPIC, topic, ("cleanup.policy", APPEND, "compact")))
    talk.ask("subtract", **altered(talk, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")))
    note_configs(talk, topic, {"segment.bytes": "2000000", "cleanup.policy": "compact"})
    talk.ask("delete what is not set", **altered(talk, TOPIC, topic, ("flush.ms", DELETE, None)))
    only = {"validate_only": True}
    talk.ask("validated", **altered(talk, TOPIC, topic, ("flush.ms", SET, "7"), **only))
    talk.note("unchanged", own_configs(talk, topic))


@scenario("incremental_alter_configs")
def incremental_alter_configs_refused(talk: Dialogue) -> None:
    topic = talk.make_topic("stepwise", configs={"retention.ms": "1000"})
    for label, kind, name, configs in (
        ("unknown key", TOPIC, topic, [("no.such.key", SET, "1")]),
        ("delete unknown key", TOPIC, topic, [("no.such.key", DELETE, None)]),
        ("bad value", TOPIC, topic, [("retention.ms", SET, "soon")]),
        ("null value", TOPIC, topic, [("retention.ms", SET, None)]),
        ("append to no list", TOPIC, topic, [("retention.ms", APPEND, "5")]),
        ("subtract from no list", TOPIC, topic, [("retention.ms", SUBTRACT, "5")]),
        ("append bad", TOPIC, topic, [("cleanup.policy", APPEND, "shred")]),
        ("unknown operation", TOPIC, topic, [("retention.ms", 9, "5")]),
        ("key twice", TOPIC, topic, [("retention.ms", SET, "5"), ("retention.ms", SET, "6")]),
        ("unknown topic", TOPIC, talk.topic("unknown"), [("retention.ms", SET, "5")]),
        ("illegal topic", TOPIC, "a/b", [("retention.ms", SET, "5")]),
        ("other broker", BROKER, "9", [("log.cleaner.threads", SET, "1")]),
        ("not a number", BROKER, "x", [("log.cleaner.threads", SET, "1")]),
        ("read only", BROKER, "0", [("broker.id", SET, "5")]),
        ("bad broker value", BROKER, "0", [("log.cleaner.threads", SET, "many")]),
        ("unknown type", UNKNOWN_TYPE, "x", [("a", SET, "b")]),
        ("type 77", 77, "x", [("a", SET, "b")]),
    ):
        talk.ask(label, **altered(talk, kind, name, *configs))
    talk.note("unchanged", own_configs(talk, topic))
    talk.ask("no resources", resources=[])


DOUBLES = (
    "0.5", "0.5d", "0.5F", "1f", "1.", ".5", "+5e-1", "0x1p-1", "0x1", " \t0.5 ", "0\u20035",
    "\xa00.5", "inf", "infinity", "Infinity", "nan", "NaN", "1_0", "0.5dd", "", "\u0661", "1e400",
)  # fmt: skip
INTEGERS = (
    "+5",
    "-0",
    "1_000",
    " 5\t",
    "\x015",
    "\xa05",
    "\u20035",
    "\u0665",
    "5L",
    "5.0",
    "0x5",
    "",
)
SWITCHES = ("TRUE", " true ", "\x01true", "\xa0true", "yes", "1", "fal\u017fe")


@scenario("incremental_alter_configs")
def incremental_alter_configs_numbers(talk: Dialogue) -> None:
    """Numbers and switches in all ways of writing them."""
    topic = talk.make_topic("numbers")
    for key, texts in (
        ("min.cleanable.dirty.ratio", DOUBLES),
        ("min.insync.replicas", INTEGERS),
        ("preallocate", SWITCHES),
    ):
        for place, text in enumerate(texts):
            talk.ask(
                f"{key} {place} {text!a}",
                **altered(talk, TOPIC, topic, (key, SET, text), validate_only=True),
            )


@scenario("incremental_alter_configs")
def incremental_alter_configs_broker(talk: Dialogue) -> None:
    """Alter the broker's level and the cluster's, and see both in DescribeConfigs."""
    key = "log.cleaner.backoff.ms"
    for label, name, value in (("broker", "0", "15001"), ("cluster", "", "15002")):
        talk.ask(f"set {label}", **altered(talk, BROKER, name, (key, SET, value)))

        def entries(name: str = name) -> list[Any]:
            resource = {"resource_type": BROKER, "resource_name": name, "configuration_keys": [key]}
            answer = talk.quietly(
                "describe_configs", 1, resources=[resource], include_synonyms=True
            )
            return list(answer["results"][0]["configs"])

        talk.wait_until(
            lambda entries=entries, value=value: any(c["value"] == value for c in entries()),  # type: ignore[misc]
            f"{key} {value}",
        )
        talk.note(f"shown {label}", entries())
    for label, name in (("broker", "0"), ("cluster", "")):
        talk.ask(f"delete {label}", **altered(talk, BROKER, name, (key, DELETE, None)))


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="secret";'
PASSWORDS = (
    ("listener.name.other.ssl.keystore.password", "x"),
    ("listener.name.other.plain.sasl.jaas.config", JAAS),
    ("listener.name.other.sasl.enabled.mechanisms", "PLAIN"),
    ("some.plugin.ssl.key.password", "x"),
    ("ssl.key.password", "x"),
)


@scenario(
    "incremental_alter_configs", peer="4.4.0", because="3.9.1 needs a secret for ZooKeeper's sake"
)
def incremental_alter_configs_passwords(talk: Dialogue) -> None:
    """Alter passwords of the broker and of the cluster; see that they are there, and not which."""
    names = [name for name, _ in PASSWORDS]
    for broker in ("0", ""):
        for name, value in PASSWORDS:
            talk.ask(f"set {name} of {broker}", **altered(talk, BROKER, broker, (name, SET, value)))
    prefixed = [name for name in names if name != "ssl.key.password"]
    resource = {"resource_type": BROKER, "resource_name": "0", "configuration_keys": prefixed}

    def entries() -> list[Any]:
        answer = talk.quietly("describe_configs", 1, resources=[resource], include_synonyms=True)
        return sorted(answer["results"][0]["configs"], key=lambda entry: str(entry["name"]))

    def all_are_set() -> bool:
        sources = [synonym["source"] for entry in entries() for synonym in entry["synonyms"]]
        return sources.count(2) == 4 and sources.count(3) == 1

    talk.wait_until(all_are_set, "four of the broker, and one of the cluster")
    talk.note("shown", entries())
    for broker in ("0", ""):
        deletions = [(name, DELETE, None) for name in names]
        talk.ask(f"delete of {broker}", **altered(talk, BROKER, broker, *deletions))


@scenario("list_config_resources")
def list_config_resources_answers(talk: Dialogue) -> None:
    topic = talk.make_topic("listed")
    types = [[TOPIC], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [], [77]]
    for kinds in types if talk.version else [[]]:
        fields = {"resource_types": kinds} if talk.version else {}
        answer = talk.quietly("list_config_resources", talk.version, **fields)
        names = sorted(
            (resource.get("resource_type", CLIENT_METRICS), resource["resource_name"])
            for resource in answer["config_resources"]
            if resource.get("resource_type") != TOPIC or resource["resource_name"] == topic
        )
        talk.note(f"types {kinds}", [answer["error_code"], names])
