"""Paths of the cluster."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.control import shapes, views
from minibroker.control.bodies import answer
from minibroker.control.messages import HttpError
from minibroker.control.operations import NOT_RUNNING, ControlOperation, list_of
from minibroker.control.topic_shapes import BrokerQuery, SettingChange, SettingView
from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def cluster(scope: ControlScope, _: ControlCall) -> Response:
    """Return the cluster."""
    scope.check_running()
    return answer(views.cluster_of(scope.node.app))


async def become_controller(scope: ControlScope, call: ControlCall) -> Response:
    """Make this broker the controller."""
    await _change_cluster(scope.nodes.make_controller(scope.node.broker_id))
    return await cluster(scope, call)


async def make_leader(scope: ControlScope, call: ControlCall) -> Response:
    """Make a broker the leader of a partition."""
    leader: shapes.LeaderChoice = call.body
    broker_id = scope.node.broker_id if leader.broker is None else leader.broker
    await _change_cluster(scope.nodes.make_leader(leader.topic, leader.partition, broker_id))
    return await cluster(scope, call)


async def _change_cluster(change: Coroutine[Any, Any, None]) -> None:
    """Do a change of the cluster. Raises HttpError(409) with the reason why it cannot be."""
    try:
        await change
    except (MinibrokerError, ValueError, TimeoutError, RuntimeError) as error:
        raise HttpError(HTTPStatus.CONFLICT, str(error)) from None


async def broker_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Return the settings of a broker."""
    from minibroker.control import settings  # noqa: PLC0415  messages that few starts need

    node = scope.find(call.query.broker_id)
    client = scope.client_of(node.broker_id)
    return answer(await settings.settings_of(client, settings.BROKER, str(node.broker_id)))


async def change_broker_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Change dynamic settings of a broker."""
    from minibroker.control import settings  # noqa: PLC0415  as above

    node = scope.find(call.query.broker_id)
    client = scope.client_of(node.broker_id)
    name = str(node.broker_id)
    return answer(await settings.change_settings(client, settings.BROKER, name, call.body))


OPERATIONS: Final = (
    ControlOperation(
        "cluster",
        "GET",
        "/cluster",
        "The cluster as this broker knows it, and the partitions that lack a replica",
        cluster,
        shapes.ClusterView,
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "become_controller",
        "POST",
        "/cluster/controller",
        "Make this broker the controller",
        become_controller,
        shapes.ClusterView,
        body=shapes.Nothing,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "make_leader",
        "POST",
        "/cluster/leader",
        "Make a broker the leader of a partition",
        make_leader,
        shapes.ClusterView,
        body=shapes.LeaderChoice,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "broker_settings",
        "GET",
        "/configs",
        "The settings of a broker, with the place that each value comes from",
        broker_settings,
        list_of(SettingView),
        query=BrokerQuery,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "change_broker_settings",
        "POST",
        "/configs",
        "Change settings of a broker that may change while it runs",
        change_broker_settings,
        list_of(SettingView),
        query=BrokerQuery,
        body=SettingChange,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
)
