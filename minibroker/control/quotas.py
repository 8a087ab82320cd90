"""Quotas over HTTP: they are read and changed as by an admin client."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.control.messages import HttpError
from minibroker.control.quota_shapes import QuotaView
from minibroker.kafka.protocol.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from minibroker.kafka.protocol.messages.alter_client_quotas import (
    EntityData,
    OpData,
    RequestEntryData,
)
from minibroker.rig.inner_client import check_code

if TYPE_CHECKING:
    from minibroker.control.quota_shapes import QuotaChange
    from minibroker.rig.inner_client import InnerClient

DEFAULT: Final = "<default>"
"""As in Kafka's tools; no client can have a quota under this name."""
_PARTS: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}


async def quotas_of(client: InnerClient) -> list[QuotaView]:
    """Return the quotas of all entities, by user, client id and address. Raises KafkaError."""
    response = await client.ask(DESCRIBE_CLIENT_QUOTAS, components=[], strict=False)
    check_code(response.error_code, response.error_message)
    views = [_view(entry) for entry in response.entries or ()]
    return sorted(views, key=lambda view: (view.user or "", view.client_id or "", view.ip or ""))


def _view(entry: Any) -> QuotaView:
    names = {
        part.entity_type: DEFAULT if part.entity_name is None else part.entity_name
        for part in entry.entity
    }
    return QuotaView(
        **{field: names.get(kind) for field, kind in _PARTS.items()},
        values={value.key: value.value for value in entry.values},
    )


async def change_quotas(client: InnerClient, change: QuotaChange) -> None:
    """Set and remove quotas of an entity. Raises HttpError, KafkaError."""
    entity = [
        EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name)
        for field, kind in _PARTS.items()
        if (name := getattr(change, field)) is not None
    ]
    ops = [OpData(key=key, value=value, remove=False) for key, value in change.set.items()]
    ops += [OpData(key=key, value=0.0, remove=True) for key in change.remove]
    if not entity or not ops or change.set.keys() & set(change.remove):
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            "expected user, client_id or ip, and quotas, each in set or in remove",
        )
    entry = RequestEntryData(entity=entity, ops=ops)
    response = await client.ask(ALTER_CLIENT_QUOTAS, entries=[entry], validate_only=False)
    (result,) = response.entries
    check_code(result.error_code, result.error_message)
