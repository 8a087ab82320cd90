"""Paths of quotas."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.bodies import answer
from minibroker.control.messages import in_time
from minibroker.control.operations import NOT_RUNNING, ControlOperation, list_of
from minibroker.control.quota_shapes import QuotaChange, QuotaView
from minibroker.control.scope import KNOWN_S

if TYPE_CHECKING:
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope

QUOTA_KINDS: Final = ("users", "clients", "ips")
"""Kinds of entities that have quotas."""


async def quotas(scope: ControlScope, _: ControlCall) -> Response:
    """Return the quotas."""
    from minibroker.control.quotas import quotas_of  # noqa: PLC0415  messages that few starts need

    return answer(await quotas_of(scope.client()))


async def change_quotas(scope: ControlScope, call: ControlCall) -> Response:
    """Set and remove quotas."""
    from minibroker.control import quotas as changes  # noqa: PLC0415  as above

    client = scope.client()
    await changes.change_quotas(client, call.body)
    await in_time(scope.nodes.until_set(QUOTA_KINDS, None, client.metadata, KNOWN_S))
    return answer(await changes.quotas_of(client))


OPERATIONS: Final = (
    ControlOperation(
        "quotas",
        "GET",
        "/quotas",
        "The quotas of users, client ids and addresses",
        quotas,
        list_of(QuotaView),
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "change_quotas",
        "POST",
        "/quotas",
        "Set and remove quotas of a user, a client id or an address",
        change_quotas,
        list_of(QuotaView),
        body=QuotaChange,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING, HTTPStatus.GATEWAY_TIMEOUT),
    ),
)
