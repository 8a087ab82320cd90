"""Writes the configuration that a request gives a resource, and has it act.

AlterConfigs and IncrementalAlterConfigs call `edit_config`. The passwords of a broker stand encoded
in the metadata tree. An edit sees them in plain text, and those that it changes are encoded.

Source: Kafka ZkAdminManager.alterBrokerConfigs, DynamicBrokerConfig.toPersistentProps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.config.dynamic import is_password
from minibroker.broker.handlers.configs.resources import BROKER, check_resource, entity_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.handlers.common.context import Services


class _OtherPasswordsError(Exception):
    """The tree has passwords that are not decoded yet."""

    def __init__(self, stored: dict[str, str]) -> None:
        super().__init__()
        self.stored = stored


async def edit_config(
    services: Services,
    kind: int,
    name: str,
    edit: Callable[[dict[str, str]], dict[str, str]],
    texts: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Give a resource the values that `edit` makes of its present ones. Raises what `edit` raises,
    and the error of a topic that is deleted by then: its name may belong to another one soon.

    `texts`: the values of the request. With `validate_only` nothing is written.
    Raises KafkaError INVALID_CONFIG where a password cannot be stored.
    """

    def edit_existing(current: dict[str, str]) -> dict[str, str]:
        check_resource(services, kind, name)
        return edit(current)

    if kind == BROKER:
        await _edit_broker(services, name, edit, texts, validate_only=validate_only)
        if not validate_only:
            services.dynamic.reload()
    else:
        await services.cluster.edit_config(
            *entity_of(kind, name), edit_existing, validate_only=validate_only
        )


async def _edit_broker(
    services: Services,
    name: str,
    edit: Callable[[dict[str, str]], dict[str, str]],
    texts: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Do `edit_config` for a broker, or for all of them where the name is empty."""
    stored: dict[str, str] = {}  # the passwords in the tree
    plain: dict[str, str] = {}  # those of them that can be decoded
    encoded: dict[str, str] | str = {}  # those of the request, or why they cannot be stored
    if not validate_only and any(map(is_password, texts)):
        encoded = await _encoded(services, name, texts)

    def edit_stored(current: dict[str, str]) -> dict[str, str]:
        stored_now = {key: text for key, text in current.items() if is_password(key)}
        if stored_now != stored:
            raise _OtherPasswordsError(stored_now)
        plain_values = {key: text for key, text in current.items() if key not in stored_now}
        values = edit(plain_values | plain)
        if validate_only or not any(map(is_password, values)):
            return values
        if isinstance(encoded, str):
            raise KafkaError(ErrorCode.INVALID_CONFIG, encoded)
        to_store = dict(values)
        for key, text in values.items():
            if is_password(key):
                to_store[key] = stored[key] if plain.get(key) == text else encoded[key]
        services.passwords.note(values, to_store)
        return to_store

    while True:
        try:
            await services.cluster.edit_config(
                *entity_of(BROKER, name), edit_stored, validate_only=validate_only
            )
        except _OtherPasswordsError as error:
            stored = error.stored
            plain = await services.passwords.decode(stored)
        else:
            return


async def _encoded(services: Services, name: str, texts: Mapping[str, str]) -> dict[str, str] | str:
    """Return the passwords of a request as they are stored, or the complaint why they cannot be.

    It is the last complaint of a request: the values are checked first, as in Kafka.
    """
    complaint = ""
    if not name and services.dynamic.static.zookeeper_connect is not None:
        complaint = "Password config can be defined only at broker level"
    else:
        try:
            return await services.passwords.encode(texts)
        except ConfigError as error:
            complaint = str(error)
    return (
        f"Invalid config value for resource ConfigResource(type=BROKER, name='{name}'): {complaint}"
    )
