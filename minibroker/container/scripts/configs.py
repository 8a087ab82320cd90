"""`kafka-configs`: settings of topics, brokers, groups, and quotas and passwords of users.

Before the start of the broker of this container, SCRAM credentials wait for it, as those of
`kafka-storage`: with a ZooKeeper Kafka's own tool needs no broker either.

Source: Kafka ConfigCommand (3.9).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, TextIO

from minibroker.client import admin, configs
from minibroker.container.health import LISTENER_FILE
from minibroker.container.scram_users import USERS_FILE, keep, parse_specifications
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import ZOOKEEPER, reader_of
from minibroker.container.scripts.options import ScriptError, ScriptOption, WordsError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.kafka.protocol.messages import (
    alter_client_quotas,
    alter_user_scram_credentials,
    describe_client_quotas,
    describe_user_scram_credentials,
)
from minibroker.kafka.scram import CODES, MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.client.client import Client
    from minibroker.client.configs import OwnSetting
    from minibroker.container.scripts.options import Words

_NAME: Final = "kafka-configs"
DOES: Final = {_NAME: "describe or change settings of topics, brokers, users, clients, groups"}
_RESOURCES: Final = {
    "topics": configs.TOPIC,
    "brokers": configs.BROKER,
    "groups": configs.GROUP,
    "client-metrics": configs.CLIENT_METRICS,
}
_QUOTAS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHORT: Final = ("topic", "broker", "group", "user", "client", "ip", "client-metrics")
_DEFAULTS: Final = ("user-defaults", "client-defaults", "broker-defaults", "ip-defaults")
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "describe": ScriptOption("", "show the settings"),
        "alter": ScriptOption("", "change settings"),
        "all": ScriptOption("", "show defaults, too"),
        "entity-type": ScriptOption("TYPE", f"{', '.join((*_RESOURCES, *_QUOTAS))}"),
        "entity-name": ScriptOption("NAME", "the topic, broker, user, …"),
        "entity-default": ScriptOption("", "the default of brokers, users, clients or addresses"),
        "add-config": ScriptOption("KEY=VALUE,…", "settings to set; [a,b] keeps commas"),
        "add-config-file": ScriptOption("FILE", "settings to set, in a properties file"),
        "delete-config": ScriptOption("KEY,…", "settings to take away"),
        "force": ScriptOption("", "without effect"),
        **{name: ScriptOption("NAME", f"the same as --entity-type {name}s") for name in _SHORT},
        **{name: ScriptOption("", "the defaults") for name in _DEFAULTS},
    }
}
_PAIR_END: Final = re.compile(r",(?=[^\]]*(?:\[|$))")
_SOURCES: Final = (
    *("UNKNOWN", "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    *("STATIC_BROKER_CONFIG", "DEFAULT_CONFIG", "DYNAMIC_BROKER_LOGGER_CONFIG"),
    *("DYNAMIC_CLIENT_METRICS_CONFIG", "DYNAMIC_GROUP_CONFIG"),
)
_MATCH_NAME, _MATCH_DEFAULT, _MATCH_ANY = 0, 1, 2


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Do the action; return the exit code. Raises WordsError, ScriptError, KafkaError …"""
    types, names = _entities(words)
    if words.has("alter") == words.has("describe"):
        raise WordsError("Command must include exactly one action: --describe, --alter")
    if not types:
        raise WordsError("At least one of --entity-type, --topic, --broker, --user … must be given")
    try:
        if words.has("describe"):
            _describe(reader_of(words), words, types, names, out)
        else:
            _alter(words, types, names)
            entity = types[0].removesuffix("s")
            done = (
                f"config for {entity} {names[0]}"
                if names[0]
                else (f"default config for {types[0]} in the cluster")
            )
            out.write(f"Completed updating {done}.\n")
    except KafkaError as error:
        raise ScriptError(
            f"Error while executing config command: {error.detail or error.code.meaning}"
        ) from None
    except ConfigError as error:
        raise ScriptError(str(error)) from None
    return 0


def _entities(words: Words) -> tuple[list[str], list[str]]:
    """Return the types, and the names of their entities: "" for the default, none for all."""
    types = words.all("entity-type")
    names = words.all("entity-name")
    if words.has("entity-default"):
        names += [""] * len(words.all("entity-default"))
    for short in _SHORT:
        kind = short if short in _RESOURCES else f"{short}s"
        types += [kind] * len(words.all(short))
        names += words.all(short)
    for default in _DEFAULTS:
        if words.has(default):
            types.append(f"{default.removesuffix('-defaults')}s")
            names.append("")
    for kind in types:
        if kind not in {**_RESOURCES, **_QUOTAS}:
            kinds_text = ", ".join((*_RESOURCES, *_QUOTAS))
            raise WordsError(
                f"Invalid entity type {kind}, the entity type must be one of {kinds_text}"
            )
    return types, names


def _pairs(words: Words) -> dict[str, str]:
    """Return the settings to set. Raises WordsError."""
    pairs: dict[str, str] = {}
    for path in words.all("add-config-file"):
        pairs |= read_properties(path)
    for part in filter(None, _PAIR_END.split(words.value("add-config"))):
        key, equals, value = part.partition("=")
        if not equals:
            raise WordsError(
                "requirement failed: Invalid entity config: all configs to be added must be in the"
                ' format "key=val".'
            )
        pairs[key.strip()] = value.strip().strip("[]").strip()
    return pairs


def _alter(words: Words, types: Sequence[str], names: Sequence[str]) -> None:
    """Change settings. Raises WordsError, ScriptError, KafkaError, ConfigError, OSError."""
    if len(types) != len(names):
        raise WordsError("An entity name must be specified for every entity type")
    added = _pairs(words)
    deleted_keys = [key.strip() for key in words.value("delete-config").split(",") if key.strip()]
    scram = any(key in CODES for key in (*added, *deleted_keys))
    if types[0] == "users" and len(types) == 1 and scram:
        _alter_logins(words, names[0], deleted_keys)
        return
    client = reader_of(words)
    if types[0] in _QUOTAS:
        _alter_quotas(client, types, names, added, deleted_keys)
        return
    resource = configs.Resource(_RESOURCES[types[0]], names[0])
    own = {setting.name for setting in _own_settings(client, resource)} if deleted_keys else set()
    missing = [key for key in deleted_keys if key not in own]
    if missing:
        raise ScriptError(f"Invalid config(s): {','.join(missing)}")
    changes: dict[str, str | None] = {**added, **dict.fromkeys(deleted_keys)}
    configs.alter_settings(client, resource, changes, only_checks=False)


def _alter_logins(words: Words, name: str, deleted_mechanisms: Sequence[str]) -> None:
    """Set and delete SCRAM credentials of a user. Raises ConfigError, KafkaError, OSError."""
    users = []
    for part in filter(None, _PAIR_END.split(words.value("add-config"))):
        users += parse_specifications(part, name)
    has_broker = os.path.exists(LISTENER_FILE)  # noqa: PTH110  pathlib costs 3 ms
    if words.has(ZOOKEEPER) and not has_broker and users and not deleted_mechanisms:
        keep(users, USERS_FILE)
        return
    messages = alter_user_scram_credentials
    request = messages.AlterUserScramCredentialsRequest(
        deletions=[
            messages.ScramCredentialDeletion(name=name, mechanism=CODES[mechanism])
            for mechanism in deleted_mechanisms
        ],
        upsertions=[
            messages.ScramCredentialUpsertion(
                name=user.name,
                mechanism=CODES[user.mechanism],
                iterations=user.iterations,
                salt=user.salt,
                salted_password=user.salted_password,
            )
            for user in users
        ],
    )
    answer = reader_of(words).ask_any(request, messages.AlterUserScramCredentialsResponse, (0, 0))
    for result in answer.results:
        _check(result.error_code, result.error_message)


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message)


def _alter_quotas(
    client: Client,
    types: Sequence[str],
    names: Sequence[str],
    added: dict[str, str],
    deleted_keys: Sequence[str],
) -> None:
    """Set and delete quotas. Raises WordsError, ScriptError, KafkaError, OSError."""
    own = {key for _, values in _quotas(client, types, names) for key in values}
    missing = [key for key in deleted_keys if key not in own]
    if missing:
        raise ScriptError(f"Invalid config(s): {','.join(missing)}")
    messages = alter_client_quotas
    ops = [messages.OpData(key=key, value=0.0, remove=True) for key in deleted_keys]
    for key, text in added.items():
        try:
            ops.append(messages.OpData(key=key, value=float(text), remove=False))
        except ValueError:
            raise WordsError(f"Cannot parse quota configuration value for {key}: {text}") from None
    entity = [
        messages.EntityData(entity_type=_QUOTAS[kind], entity_name=name or None)
        for kind, name in zip(types, names, strict=True)
    ]
    request = messages.AlterClientQuotasRequest(
        entries=[messages.RequestEntryData(entity=entity, ops=ops)], validate_only=False
    )
    answer = client.ask_any(request, messages.AlterClientQuotasResponse, (0, 1))
    for entry in answer.entries:
        _check(entry.error_code, entry.error_message)


# What there is.


def _describe(
    client: Client, words: Words, types: Sequence[str], names: Sequence[str], out: TextIO
) -> None:
    """Show the settings. Raises KafkaError, OSError, ProtocolError."""
    if types[0] in _QUOTAS:
        for entity, values in _quotas(client, types, names):
            values_text = ", ".join(f"{key}={value}" for key, value in values.items())
            out.write(f"Quota configs for {entity} are {values_text}\n")
        if "users" in types and "clients" not in types and "" not in names:
            _describe_logins(client, names, out)
        return
    kind = types[0]
    everything = words.has("all")
    for name in names or _all_names(client, kind):
        resource = configs.Resource(_RESOURCES[kind], name)
        scope = "All" if everything else "Dynamic"
        title = f"{scope} configs for {kind.removesuffix('s')} {name} are:"
        out.write(f"{title if name else f'Default configs for {kind} in the cluster are:'}\n")
        settings = (
            configs.settings_of(client, resource, with_synonyms=True)
            if everything
            else _own_settings(client, resource)
        )
        for setting in sorted(settings):
            synonyms = ", ".join(
                f"{_SOURCES[each.source]}:{each.name}={_text(each.value)}"
                for each in setting.synonyms
            )
            secret = str(setting.is_secret).lower()
            value = _text(setting.value)
            out.write(f"  {setting.name}={value} sensitive={secret} synonyms={{{synonyms}}}\n")


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _own_settings(client: Client, resource: configs.Resource) -> list[OwnSetting]:
    """Return the settings of the resource itself: of a broker that one's, or the default's."""
    sources = configs.OWN_SOURCES[resource.kind]
    if resource.kind == configs.BROKER:
        sources = frozenset({2 if resource.name else 3})
    return [
        setting
        for setting in configs.settings_of(client, resource, with_synonyms=True)
        if setting.source in sources
    ]


def _all_names(client: Client, kind: str) -> list[str]:
    if kind == "topics":
        return list(admin.describe(client).topics)
    if kind == "brokers":
        return [*(str(broker) for broker in admin.describe(client, ()).brokers), ""]
    raise WordsError(f"--entity-name must be given with --entity-type {kind}")


def _quotas(
    client: Client, types: Sequence[str], names: Sequence[str]
) -> list[tuple[str, dict[str, float]]]:
    """Return what each entity is called, and its quotas. Raises KafkaError, OSError."""
    messages = describe_client_quotas
    components = []
    for place, kind in enumerate(types):
        name = names[place] if place < len(names) else None
        match = _MATCH_ANY if name is None else _MATCH_NAME if name else _MATCH_DEFAULT
        components.append(
            messages.ComponentData(entity_type=_QUOTAS[kind], match_type=match, match=name or None)
        )
    request = messages.DescribeClientQuotasRequest(components=components, strict=True)
    answer = client.ask_any(request, messages.DescribeClientQuotasResponse, (0, 1))
    _check(answer.error_code, answer.error_message)
    entities = []
    for entry in answer.entries or ():
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        values_text = ", ".join(
            f"{title} '{entity[kind]}'" if entity[kind] is not None else f"the default {title}"
            for kind, title in (
                ("user", "user-principal"),
                ("client-id", "client-id"),
                ("ip", "ip"),
            )
            if kind in entity
        )
        entities.append((values_text, {value.key: value.value for value in entry.values}))
    return entities


def _describe_logins(client: Client, names: Sequence[str], out: TextIO) -> None:
    messages = describe_user_scram_credentials
    users: Any = [messages.UserName(name=name) for name in names] or None
    answer = client.ask_any(
        messages.DescribeUserScramCredentialsRequest(users=users),
        messages.DescribeUserScramCredentialsResponse,
        (0, 0),
    )
    _check(answer.error_code, answer.error_message)
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        _check(result.error_code, result.error_message)
        values_text = ", ".join(
            f"{MECHANISMS[info.mechanism]}=iterations={info.iterations}"
            for info in result.credential_infos
        )
        out.write(
            f"SCRAM credential configs for user-principal '{result.user}' are {values_text}\n"
        )
